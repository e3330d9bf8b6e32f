//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// A release's migration fails before anything of it is applied: the release before goes
// on, and what is said is the hook. Whether a revert follows by itself depends on what
// else fails on the cluster just then.
func TestFailedHookIsDegraded(t *testing.T) {
	t.Parallel()
	s := newScenario(t, normalCluster, "hook", singleComponent())
	s.startWithHook("PreSync", "migration", "web", 20)

	s.pushRelease("web", "dev", "1.1.0")
	good := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.pushRelease("web", "dev", "1.2.0-broken-in-qa")
	s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", good.Index)
	s.record("hook-failed", "web", "qa", hasFailedSync)
	s.awaitBlamedHook("PreSync", "migration", "")
	s.awaitRunning("web", "qa", "1.1.0")
}

// A release is applied and healthy, and then its smoke test fails in qa: what is said is the
// hook, and that the release runs.
func TestHookThatFailsAfterTheSync(t *testing.T) {
	t.Parallel()
	f := repoFixture{plain: filesWithImage("smoke"), sets: singleComponent().sets}
	s := newScenario(t, normalCluster, "smoke", f)
	s.startWithHook("PostSync", "smoke", "smoke", 20)

	s.pushRelease("web", "dev", "1.1.0", "web", "smoke")
	good := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.pushEdits(dev, "Release web 1.2.0 with a test that qa can't pull", map[string]edit{overlayFile("web", "dev"): func(old string) string {
		return setTag("smoke", "1.2.0-broken-in-qa")(setTag("web", "1.2.0")(old))
	}})
	s.awaitMerged("web", "qa", "1.2.0", good.Index)
	s.awaitRunning("web", "qa", "1.2.0")
	s.record("smoke-failed", "web", "qa", hasFailedSync)
	s.awaitBlamedHook("PostSync", "smoke", "the release itself was applied and runs")
}

// A person ends a sync that hangs in its migration: that convicts nobody, nothing is taken
// back by itself, and the person is asked what to do. They take the release back.
func TestTerminatedSyncRevertsNothing(t *testing.T) {
	t.Parallel()
	s := newScenario(t, normalCluster, "ended", singleComponent())
	s.startWithHook("PreSync", "migration", "web", 600)

	s.pushRelease("web", "dev", "1.1.0")
	good := s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.pushRelease("web", "dev", "1.2.0-broken-in-qa")
	hanging := s.awaitMerged("web", "qa", "1.2.0-broken-in-qa", good.Index)
	s.awaitOperation("web", "qa", "Running")
	s.must(s.cluster.deleteByAPI(s.ctx, "/api/v1/applications/"+s.prefix+"-web-qa/operation"))
	s.awaitOperation("web", "qa", "Failed")
	s.awaitWhy("web", "qa", "is left to a person", func(e *api.EnvironmentWhy) error {
		if e.State == promotion.Failed && strings.Contains(e.Text, "a person, or the controller's limit for syncs, ended it") {
			return nil
		}
		return fmt.Errorf("it is %s", e.State)
	})
	s.record("ended", "web", "qa", nil)
	s.checkNoPull(revertPrefix("web", "qa"))

	s.addComment(ada, hanging.Index, "/liftlock revert the migration hangs")
	s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}

// startWithHook gives web a Job that a phase of every sync runs, with an image. It fails after so
// many seconds where its pod doesn't start. Then startWithHook starts the server.
func (s *scenario) startWithHook(phase, job, image string, seconds int) {
	s.Helper()
	s.pushEdits(dev, "A "+phase+" hook", map[string]edit{
		"apps/web/base/kustomization.yaml": func(string) string { return "resources:\n  - deployment.yaml\n  - hook.yaml\n" },
		"apps/web/base/hook.yaml":          func(string) string { return fmt.Sprintf(hookYAML, job, phase, seconds, image) },
	})
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(byDirectory, "syncPolicy: {", "syncPolicy: {retry: {limit: 1, backoff: {duration: 1s}}, ", 1)}
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()
}

// hookYAML is a Job: its name, the phase, the seconds, and the image in the registry.
const hookYAML = `apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s
  annotations: {argocd.argoproj.io/hook: %[2]s, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}
spec:
  activeDeadlineSeconds: %[3]d
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: %[1]s
          image: registry.example/%[4]s
`

// awaitBlamedHook waits until web's account of qa, or the revert there, names a Job of a
// phase, and says what else.
func (s *scenario) awaitBlamedHook(phase, job, further string) {
	s.Helper()
	eventually(s, "the failed "+job+" is what is wrong in qa", func() (bool, error) {
		reverts, err := s.liftlockPulls(revertPrefix("web", "qa"))
		for _, p := range reverts {
			if strings.Contains(p.Body, "Job "+job) && strings.Contains(p.Body, further) {
				return true, nil
			}
		}
		w, whyErr := s.server.getWhy(s.ctx, "web")
		if err = errors.Join(err, whyErr); err != nil {
			return false, err
		}
		for i := range w.Environments {
			if e := &w.Environments[i]; e.State == promotion.Degraded && strings.Contains(e.Text, "the "+phase+" hook Job "+job) && strings.Contains(e.Text, further) {
				return true, nil
			}
		}
		return false, errors.New("nobody says so")
	})
}

// awaitOperation waits until a component's last operation in an environment is in a phase.
func (s *scenario) awaitOperation(component, env, phase string) {
	s.Helper()
	name := s.prefix + "-" + component + "-" + env
	eventually(s, name+"'s operation is "+phase, func() (bool, error) {
		u, err := s.cluster.kube.Resource(applications).Namespace("argocd").Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if a := parseAppState(u); a.phase != phase {
			return false, errors.New(a.String())
		}
		return true, nil
	})
}
