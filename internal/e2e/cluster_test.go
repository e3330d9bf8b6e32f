//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

var (
	applications    = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	applicationSets = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applicationsets"}
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// appState is what a story looks at in an Application.
type appState struct {
	name, revision, reconciledAt      string
	sync, health                      string
	phase, message, operationRevision string // of the last operation
	isThere                           bool
}

func (a appState) String() string {
	if !a.isThere {
		return a.name + " doesn't exist"
	}
	return fmt.Sprintf("%s: %s, %s at %.10s, reconciled %s, operation %s at %.10s %s", a.name, a.sync, a.health, a.revision, a.reconciledAt, a.phase, a.operationRevision, a.message)
}

// getApplication reads one; isThere tells whether it exists.
func (w *testCluster) getApplication(ctx context.Context, name string) (appState, error) {
	u, err := w.kube.Resource(applications).Namespace("argocd").Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return appState{name: name}, nil
	}
	if err != nil {
		return appState{}, err
	}
	return parseAppState(u), nil
}

// getByAPI reads an answer of Argo CD's own API, which asks nobody who they are in the lab.
func (w *testCluster) getByAPI(ctx context.Context, path string, into any) error {
	return w.callAPI(ctx, http.MethodGet, path, into)
}

// deleteByAPI is `argocd app terminate-op` and the like.
func (w *testCluster) deleteByAPI(ctx context.Context, path string) error {
	var nothing struct{}
	return w.callAPI(ctx, http.MethodDelete, path, &nothing)
}

func (w *testCluster) callAPI(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.argocd.server+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json") // Argo CD refuses to change anything without
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s answers %s", method, path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func parseAppState(u *unstructured.Unstructured) appState {
	str := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, fields...) // absent: empty
		return s
	}
	return appState{
		name: u.GetName(), isThere: true,
		sync: str("status", "sync", "status"), health: str("status", "health", "status"), revision: str("status", "sync", "revision"),
		reconciledAt: str("status", "reconciledAt"), phase: str("status", "operationState", "phase"),
		message: str("status", "operationState", "message"), operationRevision: str("status", "operationState", "syncResult", "revision"),
	}
}

// deployedImage is the image that a component's Deployment asks for in a namespace; empty
// when there is none.
func (w *testCluster) deployedImage(ctx context.Context, namespace, component string) (string, error) {
	u, err := w.kube.Resource(deployments).Namespace(namespace).Get(ctx, component, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return "", fmt.Errorf("deployment %s/%s has no containers: %w", namespace, component, err)
	}
	c, _ := containers[0].(map[string]any)
	s, _ := c["image"].(string)
	return s, nil
}

// applySet creates the ApplicationSet, or replaces what is there.
func (w *testCluster) applySet(ctx context.Context, manifest string) error {
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		return fmt.Errorf("read the ApplicationSet: %w", err)
	}
	sets := w.kube.Resource(applicationSets).Namespace("argocd")
	if _, err := sets.Create(ctx, &u, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // Argo CD writes what it finds of it
		old, err := sets.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		old.Object["spec"] = u.Object["spec"]
		_, err = sets.Update(ctx, old, metav1.UpdateOptions{})
		return err
	})
}

// deleteSet deletes an ApplicationSet and with it its Applications, so that Argo CD has nothing
// left to do for a story that is over. Their deployed objects stay.
func (w *testCluster) deleteSet(ctx context.Context, name string) error {
	err := w.kube.Resource(applicationSets).Namespace("argocd").Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
