//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The repo-server is away while a release is synced in qa, so the sync ends in an error. No release
// causes that. As long as the repo-server is away the state of qa is unknown. Then a person is
// asked, nothing is reverted, and once a person has synced again the release goes on. It isn't told
// beside other stories, whose syncs would fail too.
func TestRepoServerOutageRevertsNothing(t *testing.T) {
	f := singleComponent()
	f.sets = map[string]string{"shop.yaml": strings.Replace(byDirectory, "automated: {prune: true}, ", "", 1)}
	s := newScenario(t, normalCluster, "outage", f)
	s.applySets(f, nil)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.awaitApplication("web", env)
		s.syncByHand("web", env, "Succeeded", `"syncOptions": ["CreateNamespace=true"]`)
	}
	s.awaitSettled()
	s.startServer()

	s.awaitOutOfSync("web", "dev", s.pushRelease("web", "dev", "1.1.0"))
	s.syncByHand("web", "dev", "Succeeded", "")
	commit := *s.awaitMerged("web", "qa", "1.1.0", 0).MergedCommitID
	s.awaitOutOfSync("web", "qa", commit)
	s.record("manual", "web", "qa", nil)

	s.runLab("stop", "argocd-repo-server")
	back := false
	t.Cleanup(func() {
		if !back {
			s.runLab("start", "argocd-repo-server")
		}
	})
	s.syncByHand("web", "qa", "Error", `"revision": "`+commit+`"`)
	s.awaitWhy("web", "qa", "can't be told", func(e *api.EnvironmentWhy) error {
		if len(e.Targets) == 1 && e.Targets[0].State == "unclear" && strings.Contains(e.Targets[0].Reason, "ComparisonError") {
			return nil
		}
		return fmt.Errorf("the targets are %+v", e.Targets)
	})
	s.record("outage", "web", "qa", nil)
	s.runLab("start", "argocd-repo-server")
	back = true
	s.awaitWhy("web", "qa", "is left to a person", func(e *api.EnvironmentWhy) error {
		if e.State == promotion.Failed && strings.Contains(e.Text, "ended Error") {
			return nil
		}
		return fmt.Errorf("it is %s", e.State)
	})
	s.checkNoPull(revertPrefix("web", "qa"))
	s.record("outage-over", "web", "qa", nil)
	s.syncByHand("web", "qa", "Succeeded", `"revision": "`+commit+`"`)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.record("outage-synced", "web", "qa", nil)
	s.checkNoPull(revertPrefix("web", "qa"))
}

// runLab changes the story's world by the lab's own command.
func (s *scenario) runLab(args ...string) {
	s.Helper()
	c := exec.Command("../../deploy/lab/lab", args...)
	c.Env = append(os.Environ(), "LIFTLOCK_LAB_RUN="+s.cluster.name)
	if out, err := c.CombinedOutput(); err != nil {
		s.Fatalf("lab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	s.Logf("        lab %s", strings.Join(args, " "))
}

// awaitApplication waits until a component's Application in an environment is there.
func (s *scenario) awaitApplication(component, env string) {
	s.Helper()
	name := s.prefix + "-" + component + "-" + env
	eventually(s, "the Application "+name+" is there", func() (bool, error) {
		_, err := s.cluster.kube.Resource(applications).Namespace("argocd").Get(s.ctx, name, metav1.GetOptions{})
		return err == nil, err
	})
}

// awaitOutOfSync waits until Argo CD has seen that an environment lacks a commit.
func (s *scenario) awaitOutOfSync(component, env, commit string) {
	s.Helper()
	name := s.prefix + "-" + component + "-" + env
	eventually(s, fmt.Sprintf("%s lacks %.10s", name, commit), func() (bool, error) {
		a, err := s.cluster.getApplication(s.ctx, name)
		if err == nil && (a.revision != commit || a.sync != "OutOfSync") {
			err = errors.New(a.String())
		}
		return err == nil, err
	})
}
