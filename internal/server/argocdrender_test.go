package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// newPluginHarness makes a world whose targets are rendered by a plugin of Argo CD's, and in
// which the server knows Argo CD's API.
func newPluginHarness(t *testing.T, lines string) *harness {
	s := newHarness(t, harnessOptions{plugin: "kasane"})
	s.opts.argocdLines = fmt.Sprintf("    api: {url: %s, token: %s, insecure: true}\n%s", s.ArgoCD.APIURL(), s.ArgoCD.APIToken(), lines)
	s.start()
	return s
}

// TestArgoCDRenders shows what a promotion changes of manifests that only a plugin of Argo CD's
// makes. It shows it in the pull request, to people who ask there, and in the API, also when it has
// landed.
func TestArgoCDRenders(t *testing.T) {
	s := newPluginHarness(t, "    render: argocd\n")
	p := s.releaseToProd("1.1.0")
	p = s.awaitPull(p.Number, "shows what Argo CD renders", func(p *emulator.PullRequest) bool {
		return strings.Contains(p.Body, "+ spec.template.spec.containers[name=web].image: registry.example/web:1.1.0")
	})
	for _, want := range []string{"- `web-prod`: 2 changed", "ConfigMap web-prod"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("there is no %q in\n%s", want, p.Body)
		}
	}
	for _, not := range []string{"not rendered", "tracking-id", "++++"} {
		if strings.Contains(p.Body, not) {
			t.Errorf("there is %q in\n%s", not, p.Body)
		}
	}
	if answer := s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock diff"), "+1"); !strings.Contains(answer, "registry.example/web:1.1.0") {
		t.Errorf("the answer is\n%s", answer)
	}
	await := func(what string, landed bool) *api.RenderedDiff {
		var d *api.RenderedDiff
		s.waitFor(what, func() (bool, string) {
			var err error
			d, err = s.getDiff(p.Number)
			return err == nil && d.Landed == landed && !d.Pending, fmt.Sprint(d, err)
		})
		if len(d.Targets) != 1 || fmt.Sprint(d.Targets[0].Names) != "[web-prod]" || len(d.Targets[0].Objects) != 2 || d.Targets[0].Why != "" {
			t.Errorf("%s: %+v", what, d)
		}
		return d
	}
	open := await("the API has it", false)
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	if landed := await("the API has it when it has landed", true); fmt.Sprint(landed.Targets[0].Objects) != fmt.Sprint(open.Targets[0].Objects) {
		t.Errorf("it was\n%+v\nit is\n%+v", open.Targets, landed.Targets)
	}
}

// TestArgoCDCannotRender says of a target what Argo CD says, but for secrets, and shows the
// others.
func TestArgoCDCannotRender(t *testing.T) {
	s := newPluginHarness(t, "    render: argocd\n")
	s.awaitJudged()
	s.must("break the plugin", s.ArgoCD.SetFault("argocd", "web-prod", argoemulator.AppFault{RenderError: "plugin sidecar failed: --token hunter2, exit status 1"}))
	p := s.releaseToProd("1.1.0")
	p = s.awaitPull(p.Number, "says why it isn't rendered", func(p *emulator.PullRequest) bool {
		return strings.Contains(p.Body, "- `web-prod`: not rendered: Argo CD: plugin sidecar failed: --token (hidden), exit status 1")
	})
	if strings.Contains(p.Body, "hunter2") {
		t.Errorf("a secret is in\n%s", p.Body)
	}
	if qa := s.listPulls("web", "qa")[0]; !strings.Contains(qa.Body, "registry.example/web:1.1.0") || strings.Contains(qa.Body, "not rendered") {
		t.Errorf("the other says\n%s", qa.Body)
	}
}

// TestPluginIsNamed says which plugin renders a target, and how to have it asked.
func TestPluginIsNamed(t *testing.T) {
	s := newPluginHarness(t, "")
	p := s.releaseToProd("1.1.0")
	if want := "- `web-prod`: not rendered: plugin kasane; with render: argocd in the server's file its Argo CD is asked"; !strings.Contains(p.Body, want) {
		t.Errorf("there is no %q in\n%s", want, p.Body)
	}
	if n := s.ArgoCD.Requests()["GET api/manifests"]; n > 0 {
		t.Errorf("Argo CD was asked %d times", n)
	}
}
