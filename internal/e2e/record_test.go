//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordVariable names a folder in which stories leave Applications as they are at moments
// that internal/argocd/testdata/recorded has; not set: they don't.
const recordVariable = "LIFTLOCK_E2E_RECORD"

// record leaves a component's Application in an environment under a name, without the parts that
// are only this run's. is waits for a moment that comes and goes, nil: it is there.
func (s *scenario) record(name, component, env string, is func(*unstructured.Unstructured) error) {
	s.Helper()
	s.recordIn(s.cluster, name, component, env, is)
}

// recordIn is record in one of several Argo CDs.
func (s *scenario) recordIn(w *testCluster, name, component, env string, is func(*unstructured.Unstructured) error) {
	s.Helper()
	s.recordFrom(name, is, func() (*unstructured.Unstructured, error) {
		return w.kube.Resource(applications).Namespace("argocd").Get(s.ctx, s.prefix+"-"+component+"-"+env, metav1.GetOptions{})
	})
}

// recordByAPI is record of what Argo CD's own API answers.
func (s *scenario) recordByAPI(name, component, env string, is func(*unstructured.Unstructured) error) {
	s.Helper()
	s.recordFrom(name, is, func() (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		return u, s.cluster.getByAPI(s.ctx, "/api/v1/applications/"+s.prefix+"-"+component+"-"+env, &u.Object)
	})
}

// isDegraded is a moment for record.
func isDegraded(u *unstructured.Unstructured) error {
	if a := parseAppState(u); a.health != "Degraded" {
		return errors.New(a.String())
	}
	return nil
}

// isOutOfSync is a moment for record.
func isOutOfSync(u *unstructured.Unstructured) error {
	if a := parseAppState(u); a.sync != "OutOfSync" {
		return errors.New(a.String())
	}
	return nil
}

// hasFailedSync is a moment for record.
func hasFailedSync(u *unstructured.Unstructured) error {
	if a := parseAppState(u); a.phase != "Failed" {
		return errors.New(a.String())
	}
	return nil
}

func (s *scenario) recordFrom(name string, is func(*unstructured.Unstructured) error, get func() (*unstructured.Unstructured, error)) {
	s.Helper()
	dir := os.Getenv(recordVariable)
	if dir == "" {
		return
	}
	u := eventually(s, "the Application is as it is to be recorded", func() (*unstructured.Unstructured, error) {
		u, err := get()
		if err == nil && is != nil {
			err = is(u)
		}
		return u, err
	})
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	raw, err := json.MarshalIndent(u.Object, "", " ")
	s.must(err)
	text := strings.NewReplacer(s.clone.url, "https://git.example.com/acme/fleet.git", s.prefix, "shop", s.cluster.giteaURL, "https://git.example.com").Replace(string(raw))
	dir = filepath.Join(dir, strings.TrimPrefix(s.cluster.argocd.version, "v"))
	s.must(os.MkdirAll(dir, 0o750))
	s.must(os.WriteFile(filepath.Join(dir, name+".json"), []byte(text+"\n"), 0o600))
}
