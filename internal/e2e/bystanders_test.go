//go:build e2e

package e2e

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var projects = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"}

// A person's own syncs on a verified target fail. One is a dry run of a commit that doesn't exist,
// and one the Deployment alone at a branch whose selector can't be applied over the release's. The
// release causes neither.
func TestBystandersFailedSyncRevertsNothing(t *testing.T) {
	t.Parallel()
	s := startScenario(t, normalCluster, "bystander", singleComponent(), nil)
	s.pushRelease("web", "dev", "1.1.0")
	first := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.record("bystander", "web", "qa", nil)

	s.syncByHand("web", "qa", "Error", `"dryRun": true, "revision": "0123456789012345678901234567890123456789"`)
	s.record("bystander-dry-run", "web", "qa", nil)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	try, err := s.clone.push(s.ctx, s.cluster.accounts[ada], "main", "try", "Another selector", map[string]edit{
		"apps/web/base/deployment.yaml": func(old string) string { return strings.ReplaceAll(old, "{app: web}", "{app: other}") },
	})
	s.must(err)
	s.syncByHand("web", "qa", "Failed", `"revision": "`+try+`", "resources": [{"group": "apps", "kind": "Deployment", "name": "web"}]`)
	s.record("bystander-partial", "web", "qa", nil)

	// The next release comes in as ever, and would be the one after a revert otherwise.
	s.pushRelease("web", "dev", "1.2.0")
	s.awaitMerged("web", "qa", "1.2.0", first.Index)
	s.awaitRunning("web", "qa", "1.2.0")
	s.awaitState("web", "qa", "1.2.0", promotion.Verified)
	s.checkNoPull(revertPrefix("web", "qa"))
}

// syncByHand starts an operation on a component's Application in an environment, as `argocd app
// sync` does, and waits until it ended so.
func (s *scenario) syncByHand(component, env, phase, sync string) {
	s.Helper()
	name, mark := s.prefix+"-"+component+"-"+env, rand.Text()
	patch := `{"operation": {"initiatedBy": {"username": "ada"}, "info": [{"name": "story", "value": "` + mark + `"}], "sync": {` + sync + `}}}`
	_, err := s.cluster.kube.Resource(applications).Namespace("argocd").Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
	eventually(s, ada+"'s sync in "+env+" ended "+phase, func() (bool, error) {
		u, err := s.cluster.kube.Resource(applications).Namespace("argocd").Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		info, _, _ := unstructured.NestedSlice(u.Object, "status", "operationState", "operation", "info") // absent: it isn't this one
		if a := parseAppState(u); a.phase != phase || !strings.Contains(fmt.Sprint(info), mark) {
			return false, errors.New(a.String())
		}
		return true, nil
	})
}

// Somebody deletes the Deployment of a verified release. Every line of Argo CD calls that
// something else (Missing, or Healthy and OutOfSync); it is degraded, and taken back.
func TestDeletedDeploymentIsMissing(t *testing.T) {
	t.Parallel()
	s := startScenario(t, normalCluster, "deleted", singleComponent(), nil)
	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)

	s.record("deleted-before", "web", "qa", nil)
	s.must(s.cluster.kube.Resource(deployments).Namespace(s.prefix+"-qa").Delete(s.ctx, "web", metav1.DeleteOptions{}))
	s.record("deleted", "web", "qa", isOutOfSync)
	revert := s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	if !strings.Contains(revert.Body, "Missing") || !strings.Contains(revert.Body, "Deployment") {
		t.Errorf("the revert doesn't say which Deployment is missing:\n%s", revert.Body)
	}
	s.awaitState("web", "qa", firstTag, promotion.Verified)
	s.awaitRunning("web", "qa", firstTag)
}

// A sync window is closed over qa: the release waits there, and says until when. Somebody
// has it open sooner, in a minute or two: it says until then, and goes on by itself when it
// opens. Nothing has failed.
func TestClosedSyncWindowIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(byDirectory, "project: default", "project: PREFIX", 1)}
	// Argo CD's windows begin at a minute; it is in UTC.
	begins := time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
	s := newScenario(t, normalCluster, "window", f)
	s.createProject(nil)
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()
	opens := s.closeWindow("qa", begins, 2*time.Hour)

	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitQueued("web", "qa", "until "+opens)
	s.record("window", "web", "qa", nil)
	s.checkNoPull(promotionBranch("web", "prod"))
	now := time.Now().UTC().Truncate(time.Minute)
	opens = s.closeWindow("qa", now.Add(-time.Minute), 3*time.Minute)
	s.awaitQueued("web", "qa", "until "+opens)
	if image, err := s.cluster.deployedImage(s.ctx, s.prefix+"-qa", "web"); err != nil || !strings.HasSuffix(image, ":"+firstTag) {
		t.Errorf("qa runs %s (%v) before its window opens", image, err)
	}
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.checkNoPull(revertPrefix("web", "qa"))
}

// closeWindow forbids all syncs of web in an environment for so long from a minute on, every day,
// and returns when that ends. Argo CD's windows are in UTC.
func (s *scenario) closeWindow(env string, begins time.Time, length time.Duration) (opens string) {
	s.Helper()
	s.createProject([]any{map[string]any{
		"kind": "deny", "schedule": fmt.Sprintf("%d %d * * *", begins.Minute(), begins.Hour()), "duration": length.String(), "applications": []any{s.prefix + "-web-" + env},
	}})
	return begins.Add(length).Format(time.RFC3339)
}

// awaitQueued waits until a component's target in an environment waits its turn, and says why.
func (s *scenario) awaitQueued(component, env, why string) {
	s.Helper()
	s.awaitWhy(component, env, "is queued: "+why, func(e *api.EnvironmentWhy) error {
		for _, target := range e.Targets {
			if target.State == "queued" && strings.Contains(target.Reason, why) {
				return nil
			}
		}
		return fmt.Errorf("the targets are %+v, not queued: %s", e.Targets, why)
	})
}

// createProject makes the story's AppProject, or gives it these sync windows.
func (s *scenario) createProject(windows []any) {
	s.Helper()
	spec := map[string]any{
		"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"namespace": "*", "server": "*"}},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}
	if windows != nil {
		spec["syncWindows"] = windows
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": map[string]any{"name": s.prefix, "namespace": "argocd"}, "spec": spec,
	}}
	_, err := s.cluster.kube.Resource(projects).Namespace("argocd").Apply(s.ctx, s.prefix, u, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
	s.must(err)
}
