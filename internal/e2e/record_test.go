//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordVariable names a folder in which stories leave Applications as they are at moments
// that internal/argocd/testdata/recorded has; not set: they don't.
const recordVariable = "LIFTLOCK_E2E_RECORD"

// record leaves a component's Application in an environment under a name, without what is
// only this run's; is waits for a moment that comes and goes, nil: it is there.
func (s *scenario) record(name, component, env string, is func(*unstructured.Unstructured) error) {
	s.Helper()
	dir := os.Getenv(recordVariable)
	if dir == "" {
		return
	}
	u := eventually(s, "the Application is as it is to be recorded", func() (*unstructured.Unstructured, error) {
		u, err := s.cluster.kube.Resource(applications).Namespace("argocd").Get(s.ctx, s.prefix+"-"+component+"-"+env, metav1.GetOptions{})
		if err == nil && is != nil {
			err = is(u)
		}
		return u, err
	})
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	raw, err := u.MarshalJSON()
	s.must(err)
	text := strings.NewReplacer(s.clone.url, "https://git.example.com/acme/fleet.git", s.prefix, "shop", s.cluster.giteaURL, "https://git.example.com").Replace(string(raw))
	dir = filepath.Join(dir, strings.TrimPrefix(s.cluster.argocd.version, "v"))
	s.must(os.MkdirAll(dir, 0o750))
	s.must(os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600))
}
