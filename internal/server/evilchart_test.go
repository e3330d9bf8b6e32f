package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestAChartThatEndsItsProcess puts a chart on the tracked branch that prints a dict that contains
// itself, which Go's runtime can't recover from. It is promoted like any other, and its pull
// request says why its manifests can't be shown. The server and the other team go on, also after a
// restart.
func TestAChartThatEndsItsProcess(t *testing.T) {
	files := map[string]string{}
	for _, env := range []string{"dev", "qa", "prod"} {
		at := overlayPath("evil", env)
		files[at+"/.argocd-source.yaml"] = "helm: {releaseName: evil}\n"
		files[at+"/Chart.yaml"] = "apiVersion: v2\nname: evil\nversion: 1.0.0\n"
		files[at+"/templates/conf.yaml"] = `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`
	}
	s := startHarness(t, harnessOptions{components: []string{"web", "evil"}, files: files})
	s.awaitJudged()
	died := func(tag string) {
		t.Helper()
		s.commitRelease("evil", tag)
		p := s.awaitPromotion("evil", "qa", tag)
		const reason = "rendering apps/evil/overlays/qa died: it crashed: it recurses without end (stack overflow)"
		s.awaitPull(p.Number, "says what its chart did", func(p *emulator.PullRequest) bool { return strings.Contains(p.Body, reason) })
	}
	died("1.1.0")
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	if !strings.Contains(p.Body, "image") || strings.Contains(p.Body, " died: ") {
		t.Errorf("the honest team's pull request says:\n%s", p.Body)
	}
	s.stop()
	s.start()
	died("1.2.0")
	s.commitRelease("web", "1.2.0")
	s.awaitPromotion("web", "qa", "1.2.0")
}
