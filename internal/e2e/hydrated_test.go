//go:build e2e

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/liftlock/liftlock/internal/promotion"
)

// hydrated makes Argo CD's source hydrator write each environment's manifests to a branch.
var hydrated = strings.Replace(byDirectory, "      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}\n", `      sourceHydrator:
        drySource: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
        syncSource: {targetBranch: 'hydrated/{{ .path.basename }}', path: '{{ index .path.segments 1 }}'}
`, 1)

// The source hydrator writes the manifests of each environment to a branch, from which Argo CD
// syncs. A release is verified where its manifests are there and run, and a bad one comes back.
func TestHydratedReleaseIsPromotedAndABrokenOneReverted(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": hydrated}
	s := newScenario(t, normalCluster, "hydrated", f)
	s.allowHydration()
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	good := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitOpen("web", "prod", "1.1.0", 0)

	s.pushRelease("web", "dev", "1.2.0-broken-in-qa")
	s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", good.Index)
	s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}

// allowHydration gives Argo CD the right to push to the story's repository.
func (s *scenario) allowHydration() {
	s.Helper()
	writer := s.cluster.accounts[admins]
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": s.prefix, "namespace": "argocd", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repository-write"}},
		"stringData": map[string]any{"type": "git", "url": s.clone.url, "username": writer.login, "password": writer.token},
	}}
	_, err := s.cluster.kube.Resource(secrets).Namespace("argocd").Apply(s.ctx, s.prefix, u, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
	s.must(err)
}
