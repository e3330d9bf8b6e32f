//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

// A release is verified in qa, and that night a job fails there that it didn't change. From
// 3.2 on Argo CD calls that Degraded: a person is asked, nothing is taken back, and after the
// next night all is well. Before, it says nothing of it.
func TestFailedCronJobIsNotTheReleases(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	s := newScenario(t, normalCluster, "nightly", f)
	s.pushEdits(dev, "A job every night", map[string]edit{
		"apps/web/base/kustomization.yaml": func(string) string { return "resources:\n  - deployment.yaml\n  - nightly.yaml\n" },
		"apps/web/base/nightly.yaml":       func(string) string { return nightlyYAML },
	})
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	s.pushRelease("web", "dev", "1.1.0")
	s.awaitMerged("web", "qa", "1.1.0", 0)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.record("nightly-before", "web", "qa", nil)
	evening := time.Now().UTC()
	s.setNightly("qa", evening, evening.Add(-24*time.Hour))
	if s.cluster.argocd.version >= "v3.2" { // versions of one digit, as the lab's are
		s.awaitWhy("web", "qa", "is left to a person", func(e *api.EnvironmentWhy) error {
			if e.State == promotion.Degraded && strings.Contains(e.Text, "(CronJob nightly) also fails by itself") {
				return nil
			}
			return fmt.Errorf("it is %s: %s", e.State, e.Text)
		})
		s.record("nightly-failed", "web", "qa", isDegraded)
	}
	s.setNightly("qa", evening, evening.Add(time.Minute))
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.checkNoPull(revertPrefix("web", "qa"))
}

// setNightly says of the job in an environment when it last began and when it last succeeded.
func (s *scenario) setNightly(env string, began, succeeded time.Time) {
	s.Helper()
	status := fmt.Sprintf(`{"status": {"lastScheduleTime": %q, "lastSuccessfulTime": %q}}`, began.Format(time.RFC3339), succeeded.Format(time.RFC3339))
	_, err := s.cluster.kube.Resource(cronJobs).Namespace(s.prefix+"-"+env).Patch(s.ctx, "nightly", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	s.must(err)
}

const nightlyYAML = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: report
              image: docker.example/report:1
`
