//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// hydrated makes Argo CD's source hydrator write each environment's manifests to a branch.
var hydrated = strings.Replace(byDirectory, "      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}\n", `      sourceHydrator:
        drySource: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
        syncSource: {targetBranch: 'hydrated/{{ .path.basename }}', path: '{{ index .path.segments 1 }}'}
`, 1)

// The stories of Argo CD's source hydrator are told one after the other. Argo CD hydrates one
// branch at a time, and each again every few seconds, so that several such stories would wait for
// each other.
func TestHydrated(t *testing.T) {
	t.Parallel()
	t.Run("ReleaseIsPromotedAndABrokenOneReverted", runHydratedRelease)
	t.Run("ReleaseThatChangesNoManifest", runHydratedReleaseThatChangesNoManifest)
	t.Run("ReleaseWaitsForItsStagingBranch", runHydratedReleaseInStaging)
	t.Run("ReleaseWaitsForAnotherComponent", runHydrationThatAnotherComponentBreaks)
	t.Run("IntoAnotherRepository", runHydratedIntoAnotherRepository)
}

// The source hydrator writes the manifests of each environment to a branch, from which Argo CD
// syncs. A release is verified where its manifests are there and run, and a bad one comes back.
func runHydratedRelease(t *testing.T) {
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": hydrated}
	s := newScenario(t, normalCluster, "hydrated", f)
	s.allowHydration(s.clone.url)
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

// allowHydration gives Argo CD the right to push to a repository.
func (s *scenario) allowHydration(url string) {
	s.Helper()
	writer := s.cluster.accounts[admins]
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": s.prefix, "namespace": "argocd", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repository-write"}},
		"stringData": map[string]any{"type": "git", "url": url, "username": writer.login, "password": writer.token},
	}}
	_, err := s.cluster.kube.Resource(secrets).Namespace("argocd").Apply(s.ctx, s.prefix, u, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
	s.must(err)
}

// A release is of an image that no manifest has, so that the hydrator has nothing to write. Newer
// hydrators make no commit then, and record on the existing one what they compared it with. The
// release is verified all the same, where the environment takes one without an effect.
func runHydratedReleaseThatChangesNoManifest(t *testing.T) {
	f := repoFixture{plain: filesWithImage("spare"), sets: map[string]string{"shop.yaml": hydrated}}
	const ofQA = "      onDegraded: revert-and-merge\n"
	f.plain[".liftlock.yaml"] = strings.Replace(f.plain[".liftlock.yaml"], ofQA, ofQA+"      effect: optional\n", 1)
	s := newScenario(t, normalCluster, "unused", f)
	s.allowHydration(s.clone.url)
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	s.pushEdits(dev, "Release the image that nothing uses", map[string]edit{overlayFile("web", "dev"): setTag("spare", "1.1.0")})
	s.awaitPull(promotionBranch("web", "qa"), "qa's pull request is merged", 0, isMerged)
	s.awaitPull(promotionBranch("web", "prod"), "prod's pull request is open, as qa is verified", 0, func(p *gitea.PullRequest) error {
		if p.State != gitea.StateOpen {
			return fmt.Errorf("#%d is %s", p.Index, p.State)
		}
		return nil
	})
}

// The hydrator writes to staging branches, which people merge. A release has arrived where its
// manifests are merged, whatever commit that made.
func runHydratedReleaseInStaging(t *testing.T) {
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(hydrated, "        syncSource:", "        hydrateTo: {targetBranch: 'next/{{ .path.basename }}'}\n        syncSource:", 1)}
	s := newScenario(t, normalCluster, "staging", f)
	s.allowHydration(s.clone.url)
	s.applySets(f, nil)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.mergeStaging(env, firstTag)
	}
	s.awaitSettled()
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.mergeStaging("dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitWhy("web", "qa", "waits for the staging branch", func(e *api.EnvironmentWhy) error {
		if len(e.Targets) == 1 && e.Targets[0].State == "arriving" {
			return nil
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	s.mergeStaging("qa", "1.1.0")
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}

// mergeStaging merges an environment's staging branch, with a commit of its own, once its
// manifests run the tag.
func (s *scenario) mergeStaging(env, tag string) {
	s.Helper()
	next := eventually(s, "the hydrator has written "+tag+" for "+env, func() (string, error) {
		as := s.cluster.accounts[dev]
		if _, err := s.clone.runGit(s.ctx, as, "fetch", "-q", "origin", "next/"+env); err != nil {
			return "", err
		}
		manifest, err := s.clone.runGit(s.ctx, as, "show", "FETCH_HEAD:web/manifest.yaml")
		if err != nil || !strings.Contains(manifest, "registry.example/web:"+tag) {
			return "", fmt.Errorf("its manifests are %q: %w", manifest, err)
		}
		return s.clone.runGit(s.ctx, as, "rev-parse", "FETCH_HEAD")
	})
	next = strings.TrimSpace(next)
	parents := []string{"-p", next}
	if _, err := s.clone.runGit(s.ctx, s.cluster.accounts[dev], "fetch", "-q", "origin", "hydrated/"+env); err == nil {
		parents = []string{"-p", strings.TrimSpace(s.runGit("rev-parse", "FETCH_HEAD")), "-p", next}
	}
	merge := s.runGit(append([]string{"commit-tree", "-m", "Merge " + tag + " into " + env, next + "^{tree}"}, parents...)...)
	s.runGit("push", "-q", "origin", strings.TrimSpace(merge)+":refs/heads/hydrated/"+env)
}

// All components of a branch are hydrated together, or none is. While one of them can't be
// rendered, another one's release waits and says that the hydrator failed. It hasn't failed itself,
// and goes on when the other one is mended.
func runHydrationThatAnotherComponentBreaks(t *testing.T) {
	f := repoFixture{components: map[string][]string{"api": {"api"}, "web": {"web"}}, environments: threeSteps}
	f.sets = map[string]string{"shop.yaml": hydrated}
	s := newScenario(t, normalCluster, "group", f)
	s.allowHydration(s.clone.url)
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	s.pushEdits(dev, "Name a file that isn't there, in qa", map[string]edit{
		overlayFile("api", "qa"): func(old string) string {
			return strings.Replace(old, "  - ../../base\n", "  - ../../base\n  - absent.yaml\n", 1)
		},
	})
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitWhy("web", "qa", "waits for the hydrator, which failed", func(e *api.EnvironmentWhy) error {
		if len(e.Targets) == 1 && e.Targets[0].State == "arriving" && strings.Contains(e.Targets[0].Reason, "the source hydrator failed") {
			return nil
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	s.record("hydration-failed", "web", "qa", func(u *unstructured.Unstructured) error {
		phase, _, err := unstructured.NestedString(u.Object, "status", "sourceHydrator", "currentOperation", "phase")
		if err == nil && phase != "Failed" {
			err = fmt.Errorf("the hydrator's phase is %s", phase)
		}
		return err
	})
	s.pushEdits(dev, "Name it no more", map[string]edit{
		overlayFile("api", "qa"): func(old string) string { return strings.Replace(old, "  - absent.yaml\n", "", 1) },
	})
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.checkNoPull(revertPrefix("web", "qa"))
}

// From 3.5 on the hydrator can write to another repository, which the server must know.
func runHydratedIntoAnotherRepository(t *testing.T) {
	if normalCluster.argocd.version < "v3.5" { // versions of one digit, as the lab's are
		t.Skip("Argo CD " + normalCluster.argocd.version + " hydrates within one repository")
	}
	f := singleComponent()
	s := newScenario(t, normalCluster, "elsewhere", f)
	manifests := s.repo + "-manifests"
	s.must(s.cluster.createRepository(manifests))
	url := s.cluster.giteaURL + "/" + s.cluster.org + "/" + manifests + ".git"
	empty := s.runGit("commit-tree", "-m", "Manifests", strings.TrimSpace(s.runGit("mktree")))
	s.runGit("push", "-q", url, strings.TrimSpace(empty)+":refs/heads/main")
	s.server.manifests = s.cluster.org + "/" + manifests
	s.allowHydration(url)
	f.sets = map[string]string{"shop.yaml": strings.Replace(hydrated, "syncSource: {", "syncSource: {repoURL: "+url+", ", 1)}
	s.applySets(f, nil)
	s.pushEdits(dev, "Hydrate into another repository", map[string]edit{"argocd/shop.yaml": func(string) string { return fillPlaceholders(f.sets["shop.yaml"], s.prefix, s.clone.url) }})
	s.awaitSettled()
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}
