package appset

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestOtherRevision names what keeps a merge from reaching a target, and nothing where it does.
func TestOtherRevision(t *testing.T) {
	here := func(revisions ...string) (out []Source) {
		for _, r := range revisions {
			out = append(out, Source{Here: true, TargetRevision: r})
		}
		return out
	}
	for name, c := range map[string]struct {
		target Target
		want   string
	}{
		"the branch":                  {Target{Sources: here("main")}, ""},
		"its head":                    {Target{Sources: here("HEAD")}, ""},
		"nothing is said":             {Target{Sources: here("")}, ""},
		"the branch's full name":      {Target{Sources: here("refs/heads/main")}, ""},
		"a tag":                       {Target{Sources: here("v1.2")}, "v1.2"},
		"one of two sources":          {Target{Sources: here("v1.2", "main")}, ""},
		"no source of this":           {Target{Sources: []Source{{TargetRevision: "1.0.0", Chart: "web"}}}, ""},
		"it is what is edited":        {Target{Sources: here("v1.2"), GeneratorFiles: []string{"apps/web/config.json"}}, ""},
		"it is in the set's manifest": {Target{Sources: here("v1.2"), ApplicationSetFile: "apps/web/config.json"}, ""},
	} {
		if got := c.target.OtherRevision("main", []string{"apps/web/config.json"}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestUnreachedTargets says what no merge reaches, once for all that follow the same.
func TestUnreachedTargets(t *testing.T) {
	p := &pipeline.Pipeline{}
	p.Spec.Carry = []pipeline.Carry{{KustomizeImages: []string{"*"}}, {JSON: &pipeline.FieldPick{Files: []string{"{{environment}}.json"}, Paths: []string{"pin", "project"}}}, {Files: &pipeline.FilePick{Include: []string{"pins/*.yaml"}}}}
	target := func(name, revision string, change func(t *Target)) Target {
		t := Target{Name: name, Component: "web", Environment: "prod", ApplicationSet: "shop", ApplicationSetFile: "argocd/shop.yaml", Sources: []Source{{Here: true, TargetRevision: revision}}}
		if change != nil {
			change(&t)
		}
		return t
	}
	chart := func(version string) func(t *Target) {
		return func(t *Target) {
			t.Sources = []Source{{RepoURL: "https://charts.example", Chart: "web", TargetRevision: version}}
		}
	}
	const (
		unreached = ": a merge into main doesn't reach it; let it follow main, or carry the field that its targetRevision is made from"
		floating  = ": which version that is at a time isn't in Git, so it can't be proven that it deploys what was verified before; name one version"
	)
	targets := []Target{
		target("on-main", "main", nil), target("pinned-a", "v1.2", nil), target("pinned-b", "v1.2", nil),
		target("not-managed", "v1.2", func(t *Target) { t.Environment = "" }),
		target("own-branch", "v1.2", func(t *Target) { t.Branch = "env/prod" }),
		target("pin-is-carried", "v1.2", func(t *Target) {
			t.GeneratorFiles, t.Params = []string{"envs/prod.json"}, map[string]any{"pin": "1.2", "project": "shop"}
		}),
		target("another-field-is-carried", "v1.4", func(t *Target) {
			t.GeneratorFiles, t.Params = []string{"envs/prod.json"}, map[string]any{"version": "1.4", "project": "shop"}
		}),
		target("pin-is-carried-below", "v1.2", func(t *Target) { t.GeneratorFiles = []string{"envs/prod/pins/web.yaml"} }),
		target("another-file-is-carried", "v1.3", func(t *Target) { t.GeneratorFiles = []string{"envs/qa.json"} }),
		target("created-only", "main", func(t *Target) { t.Policy.NoUpdate, t.GeneratorFiles = true, []string{"envs/prod.json"} }),
		target("created-only, but what it deploys changes", "main", func(t *Target) { t.Policy.NoUpdate, t.GeneratorFiles = true, []string{"envs/qa.json"} }),
		target("one-version", "", chart("1.2.3")), target("a-range", "", chart("1.*")), target("another-range", "", chart(">=1.2")), target("newest", "", chart("")),
		target("an-artifact", "", func(t *Target) {
			t.Sources = []Source{{RepoURL: "oci://registry.example/web", TargetRevision: "latest"}}
		}),
		target("with-values-here", "main", func(t *Target) { t.Sources = append(t.Sources, Source{Chart: "web", TargetRevision: "1.*"}) }),
	}
	problem := func(names, revision, why string) Problem {
		return Problem{File: "argocd/shop.yaml", ApplicationSet: "shop", Message: names + " in prod: targetRevision is " + revision + why}
	}
	want := []Problem{problem("pinned-a, pinned-b", "v1.2", unreached), problem("another-field-is-carried", "v1.4", unreached), problem("another-file-is-carried", "v1.3", unreached),
		{File: "argocd/shop.yaml", ApplicationSet: "shop", Message: "created-only in prod: its ApplicationSet only creates Applications and never updates them (applicationsSync, or the controller's policy): " +
			"what a merge into main changes in what they are generated from doesn't reach them; let the policy update, or carry fields in files that they deploy"},
		problem("a-range", "1.*", floating),
		problem("another-range", ">=1.2", floating), problem("newest", "the newest version", floating), problem("an-artifact", "latest", floating)}
	if diff := cmp.Diff(want, UnreachedTargets(p, targets, "main")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := UnreachedTargets(p, targets, ""); got != nil {
		t.Errorf("without a tracked branch: %v", got)
	}
}
