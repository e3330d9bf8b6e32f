package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// changedRepo is a repository with branches, and somebody's pull request in it.
type changedRepo struct {
	*testRepo
	o *Gatherer
}

func newChangedRepo(t *testing.T, limits sandbox.Limits, more map[string]string) *changedRepo {
	t.Helper()
	c := newBranchRepo(t, more)
	runner, err := evaluate.NewRunner(limits, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return &changedRepo{c, New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{c.Repository}, Now: time.Now, Sandbox: runner})}
}

// evaluate is what a commit of files on top of a branch's head would do to that branch; an empty
// text removes a file.
func (c *changedRepo) evaluate(ctx context.Context, base string, files map[string]string) (*effects.ChangeReport, error) {
	c.t.Helper()
	c.checkoutBranch(base)
	spec := git.CommitSpec{Message: "x", Parents: []string{c.at}, Base: c.at}
	for name, text := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text), Delete: text == ""})
	}
	head := c.write("feature", spec)
	s := takeSnapshot(c.t, c.o, c.testRepo)
	pr := &forge.PullRequest{Number: 7, Base: base, Head: head, Ref: "refs/heads/feature"}
	into, ok := s.BaseOf(pr)
	if !ok {
		c.t.Fatalf("%s is no branch that is judged", base)
	}
	change, err := c.o.Changes.ReadChange(ctx, s, into, pr)
	if err != nil {
		return nil, err
	}
	return c.o.Changes.EvaluateChange(ctx, s, change, render.TextLimit{Bytes: 10_000})
}

// describeReport lists what a report says, a line a thing.
func describeReport(cr *effects.ChangeReport) []string {
	var out []string
	if cr.Report != nil {
		for i := range cr.Report.Pipelines {
			p := &cr.Report.Pipelines[i]
			for _, e := range p.Environments {
				for k := range e.Targets {
					out = append(out, fmt.Sprintf("%s: %s %s", e.Name, e.Targets[k].Name, e.Targets[k].What))
				}
			}
		}
	}
	for _, c := range cr.Rendered {
		why, _, _ := strings.Cut(c.Why, ":")
		text := fmt.Sprintf("%s: %s", c.Target, c.Summary+why)
		if c.Spec {
			text += ", and the Application"
		}
		out = append(out, text)
	}
	for _, text := range []string{cr.Failed, cr.PipelineErr, cr.RenderedErr} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// TestEvaluateChange says which targets somebody's pull request touches and what it does to
// their manifests, on the tracked branch and on an environment's own.
func TestEvaluateChange(t *testing.T) {
	const overlay = "apps/web/kustomization.yaml"
	two := "resources: [../../base]\nimages: [{name: x, newTag: '2'}]\n"
	for name, tc := range map[string]struct {
		base  string
		more  map[string]string // in the repository before
		files map[string]string
		want  []string
	}{
		"an overlay on the tracked branch":        {base: "main", files: map[string]string{overlay: two}, want: []string{"prod: s-web-prod changed", "s-web-prod: 1 changed"}},
		"the same on an environment's own branch": {base: "env/qa", files: map[string]string{overlay: two}, want: []string{"qa: s-web-qa changed", "s-web-qa: 1 changed"}},
		"a file that changes no manifest":         {base: "main", files: map[string]string{overlay: "# x\n" + two[:len(two)-5] + "1'}]\n"}, want: []string{"prod: s-web-prod changed", "s-web-prod: "}},
		"a file that nobody reads":                {base: "main", files: map[string]string{"docs": "x"}},
		"an overlay that can't be rendered":       {base: "main", files: map[string]string{overlay: "resources: [gone.yaml]\n"}, want: []string{"prod: s-web-prod changed", "s-web-prod: after the change"}},
		"a target that goes": {base: "main", files: map[string]string{"argocd/s.yaml": appSetYAML("s", "{list: {elements: ["+listElement("api", "prod", "main")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}'}")},
			want: []string{"dev: s-api-dev deleted", "dev: s-web-dev deleted", "prod: s-web-prod deleted", "qa: s-api-qa deleted", "qa: s-web-qa deleted",
				"s-api-dev: 1 removed", "s-api-qa: 1 removed", "s-web-dev: 1 removed", "s-web-prod: 1 removed", "s-web-qa: 1 removed"}},
		"the Applications themselves": {base: "main", files: map[string]string{"argocd/s.yaml": appSetYAML("s", "{list: {elements: ["+strings.Join([]string{listElement("web", "dev", "env/dev"), listElement("api", "dev", "env/dev"), listElement("web", "qa", "env/qa"), listElement("api", "qa", "env/qa"),
			listElement("api", "prod", "main"), listElement("web", "prod", "main")}, ", ")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}', kustomize: {namePrefix: '{{ if eq .env \"prod\" }}p-{{ end }}'}}")},
			want: []string{"prod: s-api-prod changed", "prod: s-web-prod changed", "s-api-prod: 1 added, 1 removed, and the Application", "s-web-prod: 1 added, 1 removed, and the Application"}},
		"rules that can't be read": {base: "main", files: map[string]string{".liftlock.yaml": "spec: ["}, want: []string{".liftlock.yaml:1: not valid YAML: did not find expected node content"}},
		"rules that go":            {base: "main", files: map[string]string{".liftlock.yaml": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChangedRepo(t, sandbox.Limits{}, tc.more)
			report, err := c.evaluate(t.Context(), tc.base, tc.files)
			if err != nil {
				t.Fatal(err)
			}
			got := describeReport(report)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := []string{"the Argo CD hub: the server's file has no Argo CD named hub"}; !slices.Equal(report.Unknown, want) {
				t.Errorf("unknown is %q", report.Unknown)
			}
		})
	}
}

// TestEvaluateChangeFails tells a head that can't be evaluated, which is a verdict, from a run
// that is over, which is an error.
func TestEvaluateChangeFails(t *testing.T) {
	c := newChangedRepo(t, sandbox.Limits{Answer: 1}, nil)
	files := map[string]string{"apps/web/kustomization.yaml": "namePrefix: y-\n"}
	report, err := c.evaluate(t.Context(), "main", files)
	if err != nil || report.Failed == "" || report.Report != nil || report.Rendered != nil {
		t.Errorf("a head that is too much: %+v, %v", report, err)
	}
	c = newChangedRepo(t, sandbox.Limits{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err = c.evaluate(ctx, "main", files); !errors.Is(err, context.Canceled) || report != nil {
		t.Errorf("a run that is over: %+v, %v", report, err)
	}
}

// TestRenderChangeIsBounded renders so many of the targets that a change touches, and counts
// the others.
func TestRenderChangeIsBounded(t *testing.T) {
	const more = 3
	var elements []string
	for i := range evaluate.MaxRenderPairs + more {
		elements = append(elements, listElement(fmt.Sprintf("c%d", i), "prod", "main"))
	}
	c := newChangedRepo(t, sandbox.Limits{}, map[string]string{"argocd/s.yaml": appSetYAML("s", "{list: {elements: ["+strings.Join(elements, ", ")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'base', targetRevision: '{{ .branch }}'}")})
	report, err := c.evaluate(t.Context(), "main", map[string]string{"base/kustomization.yaml": "resources: [d.yaml]\nnamePrefix: y-\n"})
	if err != nil || len(report.Rendered) != evaluate.MaxRenderPairs || report.NotRendered != more {
		t.Fatalf("%d are rendered and %d aren't (%v)", len(report.Rendered), report.NotRendered, err)
	}
	if r := report.Rendered[evaluate.MaxRenderPairs-1]; r.Summary == "" || r.Why != "" {
		t.Errorf("the last is %+v", r)
	}
}
