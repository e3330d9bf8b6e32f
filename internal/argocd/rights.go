package argocd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// SyncBarred says why Sync would be refused for an Application, with the rule that is missing;
// empty: it wouldn't. The error is for an Argo CD that doesn't answer.
func (w *Watcher) SyncBarred(ctx context.Context, app *verification.App) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if w.api == nil {
		return w.patchBarred(ctx, app.Namespace)
	}
	may, err := w.api.MaySync(ctx, app.Namespace, app.Name, app.Project)
	switch {
	case err != nil:
		return "", fmt.Errorf("ask Argo CD whether it may be synced: %w", err)
	case !may:
		return "the token of " + w.api.Source() + " may not; allow it in argocd-rbac-cm: p, <role>, applications, sync, " + app.Project +
			"/*, allow", nil
	}
	return "", nil
}

// patchBarred says why the Applications of a namespace may not be patched.
func (w *Watcher) patchBarred(ctx context.Context, namespace string) (string, error) {
	allowed, err := w.mayDo(ctx, namespace, "patch", "argoproj.io", "applications")
	switch {
	case err != nil:
		return "", fmt.Errorf("ask Kubernetes whether it may be synced: %w", err)
	case !allowed:
		return "Kubernetes doesn't let Liftlock; allow its account in a Role: apiGroups [argoproj.io], resources [applications], verbs " +
			"[patch]", nil
	}
	return "", nil
}

// mayDo says whether Kubernetes would let Liftlock do something to all objects of a resource in a
// namespace; empty: in all of them. Every account that may log in may ask.
func (w *Watcher) mayDo(ctx context.Context, namespace, verb, group, resource string) (bool, error) {
	review := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{
		"resourceAttributes": map[string]any{"namespace": namespace, "verb": verb, "group": group, "resource": resource},
	}}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	raw, err := w.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(body).DoRaw(ctx)
	if err != nil {
		return false, err
	}
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err = json.Unmarshal(raw, &answer)
	return answer.Status.Allowed, err
}
