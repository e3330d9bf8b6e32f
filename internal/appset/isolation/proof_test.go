package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// inQA is who the edits of these tests are for.
func inQA(t *appset.Target) bool { return t.Environment == "qa" }

func target(name, folder string) appset.Target {
	return appset.Target{Name: name, Namespace: "argocd", Environment: name[strings.LastIndex(name, "-")+1:], ApplicationSet: "shop", ApplicationSetFile: "argocd/shop.yaml",
		Sources: []appset.Source{{RepoURL: repoURL, Path: folder, Here: true, TargetRevision: "HEAD"}}}
}

func with(t appset.Target, change func(*appset.Target)) appset.Target {
	t.Sources = slices.Clone(t.Sources)
	change(&t)
	return t
}

// TestWhyNotIsolated holds what each refusal says.
func TestWhyNotIsolated(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {tag: TAG}\n"
	base := fstest.MapFS{}
	put := func(name, text string) { base[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	put("shared/config.yaml", strings.ReplaceAll(configMap, "TAG", "v1"))
	put("remote/kustomization.yaml", "resources: [../shared/config.yaml, https://example.com/base.yaml]\n")
	put("alone/kustomization.yaml", "resources: [config.yaml]\n")
	put("alone/config.yaml", configMap)
	put("lenient/kustomization.yaml", "resources: [../alone]\npatches:\n- patch: '{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"x\"}, \"data\": {\"tag\": \"ours\"}}'\n")
	put("envs.json", `{"qa": "v1"}`)
	many := func(n int, folder string) (out []appset.Target) {
		for i := range n {
			out = append(out, target(fmt.Sprintf("t%d-prod", i), folder))
		}
		return out
	}
	generated := func(t *appset.Target) { t.GeneratorFiles = []string{"envs.json"} }
	qa := target("web-qa", "shared")
	tests := []struct {
		name          string
		before, after []appset.Target // after nil: as before
		problems      [2][]string
		edit          map[string]string // new contents; empty: deleted
		want          string            // empty: it is proven
	}{
		{name: "nobody else reads it", before: []appset.Target{qa, target("web-prod", "alone")}, edit: map[string]string{"shared/config.yaml": configMap}},
		{name: "another reads it", before: []appset.Target{qa, target("web-prod", "shared")}, edit: map[string]string{"shared/config.yaml": configMap},
			want: "shared/config.yaml is also read by web-prod, whose manifests it would change"},
		{name: "another reads it and stays as it is", before: []appset.Target{target("web-qa", "alone"), target("web-prod", "lenient")}, edit: map[string]string{"alone/config.yaml": strings.ReplaceAll(configMap, "TAG", "v2")}},
		{name: "many read it", before: append(many(7, "shared"), qa), edit: map[string]string{"shared/config.yaml": configMap},
			want: "shared/config.yaml is also read by t0-prod, t1-prod, t2-prod, t3-prod, t4-prod and maybe others, whose manifests it would change"},
		{name: "a reader that can't be rendered", before: []appset.Target{qa, target("web-prod", "remote")}, edit: map[string]string{"shared/config.yaml": configMap},
			want: "shared/config.yaml is also read by web-prod, and whether it would change their manifests can't be told (web-prod can't be rendered here: "},
		{name: "many that can't be rendered", before: append(many(7, "remote"), qa), edit: map[string]string{"shared/config.yaml": configMap},
			want: "t0-prod, t1-prod, t2-prod, t3-prod, t4-prod and 2 more, and whether it would change"},
		{name: "one that changes and one that can't be rendered", before: []appset.Target{qa, target("api-prod", "remote"), target("web-prod", "shared")}, edit: map[string]string{"shared/config.yaml": configMap},
			want: "shared/config.yaml is also read by web-prod, whose manifests it would change"},
		{name: "a reader that can't be rendered any more", before: []appset.Target{target("web-qa", "alone"), target("web-prod", "lenient")}, edit: map[string]string{"alone/config.yaml": ""},
			want: "alone/config.yaml is also read by web-prod, and whether it would change their manifests can't be told (web-prod can't be rendered here: "},
		{name: "a chart from elsewhere", before: []appset.Target{qa, with(target("web-prod", ""), func(t *appset.Target) {
			t.Sources = []appset.Source{{RepoURL: "https://charts.example.com", Chart: "web", TargetRevision: "1.0.0"}, {RepoURL: repoURL, Path: "shared", Here: true, TargetRevision: "HEAD"}}
		})}, edit: map[string]string{"shared/config.yaml": configMap}, want: "can't be told (web-prod can't be rendered here: "},
		{name: "only its generator reads the file, and it stays", before: []appset.Target{with(target("web-qa", "alone"), generated), with(target("web-prod", "remote"), generated)}, edit: map[string]string{"envs.json": `{"qa": "v2"}`}},
		{name: "another is generated otherwise", before: []appset.Target{qa, target("web-prod", "shared")},
			after: []appset.Target{qa, with(target("web-prod", "shared"), func(t *appset.Target) { t.Sources[0].TargetRevision = "v2" })}, edit: map[string]string{"envs.json": `{}`},
			want: "envs.json also decides what the ApplicationSets generate for web-prod"},
		{name: "in what only the whole manifest tells", before: []appset.Target{qa, with(target("web-prod", "shared"), func(t *appset.Target) { t.Application = []byte(`{"a":1}`) })},
			after: []appset.Target{qa, with(target("web-prod", "shared"), func(t *appset.Target) { t.Application = []byte(`{"a":2}`) })}, edit: map[string]string{"envs.json": `{}`},
			want: "also decides what the ApplicationSets generate for web-prod"},
		{name: "another comes", before: []appset.Target{qa}, after: []appset.Target{qa, target("web-prod", "shared")}, edit: map[string]string{"envs.json": `{}`}, want: "generate for web-prod"},
		{name: "another goes", before: []appset.Target{qa, target("web-prod", "shared")}, after: []appset.Target{qa}, edit: map[string]string{"envs.json": `{}`}, want: "generate for web-prod"},
		{name: "many are generated otherwise", before: append(many(7, "shared"), qa), after: []appset.Target{qa}, edit: map[string]string{"envs.json": `{}`},
			want: "generate for t0-prod, t1-prod, t2-prod, t3-prod, t4-prod and 2 more"},
		{name: "its own is generated otherwise", before: []appset.Target{qa}, after: []appset.Target{with(qa, func(t *appset.Target) { t.Sources[0].TargetRevision = "v2" }), target("web2-qa", "alone")}, edit: map[string]string{"envs.json": `{}`}},
		{name: "another pipeline has it, too", before: []appset.Target{with(qa, func(t *appset.Target) { t.Environment = "test" }), qa}, edit: map[string]string{"shared/config.yaml": configMap}},
		{name: "it can't be resolved any more", before: []appset.Target{qa}, problems: [2][]string{{"old"}, {"old", "argocd/shop.yaml: shop: no such file"}}, edit: map[string]string{"envs.json": ""},
			want: "which targets it would change can't be told: argocd/shop.yaml: shop: no such file"},
		{name: "what can't be resolved anyway", before: []appset.Target{qa}, problems: [2][]string{{"old"}, {"old"}}, edit: map[string]string{"shared/config.yaml": configMap}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.after == nil {
				tt.after = tt.before
			}
			e := edited(t, base, tt.edit, tt.before)
			e.Before.Problems, e.After.Problems, e.After.Targets = tt.problems[0], tt.problems[1], tt.after
			why, err := isolation.New(render.MemoOptions{Bytes: 1 << 20}).WhyNotIsolated(context.Background(), e)
			if err != nil || tt.want == "" && why != "" || !strings.Contains(why, tt.want) {
				t.Errorf("got %q, %v", why, err)
			}
		})
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if why, err := isolation.New(render.MemoOptions{Bytes: 1 << 20}).WhyNotIsolated(ended, edited(t, base, tests[1].edit, tests[1].before)); !errors.Is(err, context.Canceled) {
		t.Errorf("when its time is over: %q, %v", why, err)
	}
}

// edited is an edit of a tree, with who reads what as the engine has it.
func edited(t *testing.T, base fstest.MapFS, edit map[string]string, targets []appset.Target) *isolation.Edit {
	t.Helper()
	after := fstest.MapFS{}
	for name, file := range base {
		after[name] = file
	}
	e := &isolation.Edit{MayChange: inQA, Revision: "c0ffee"}
	for name, text := range edit {
		e.Files = append(e.Files, name)
		if after[name] = (&fstest.MapFile{Data: []byte(text), Mode: 0o644}); text == "" {
			delete(after, name)
		}
	}
	var readers []deps.Reader
	known := map[string]bool{}
	for i := range targets {
		if r := evaluate.Reader(&targets[i]); !known[r.ID] {
			known[r.ID] = true
			readers = append(readers, r)
		}
	}
	ix, err := deps.Build(context.Background(), base, readers)
	if err != nil {
		t.Fatal(err)
	}
	e.FilesByTarget = ix.AffectedReaders(e.Files)
	e.Before = isolation.Resolution{Tree: base, ID: identities(base), Targets: targets}
	e.After = isolation.Resolution{Tree: after, ID: identities(after), Targets: targets}
	return e
}
