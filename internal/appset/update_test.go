package appset

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// setsByFile are generators of which what comes of a file depends on no other, and some that
// look so and aren't. FILES stands for a git file generator.
var setsByFile = map[string]string{
	"files":                  `[FILES]`,
	"two of them":            `[FILES, FILES2]`,
	"values and a selector":  `[{git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: "apps/*/config.json"}], values: {tag: VALUE}}, selector: {matchLabels: {tier: gold}}}]`,
	"with clusters":          `[{matrix: {generators: [FILES, {clusters: {selector: {matchLabels: {env: prod}}}}]}}]`,
	"clusters first":         `[{matrix: {generators: [{clusters: {}}, FILES]}}]`,
	"with a list of its own": `[{matrix: {generators: [FILES, {list: {elements: [{part: "1"}, {part: TIER}]}}]}}]`,
	"merged into":            `[{merge: {mergeKeys: [app], generators: [FILES, {list: {elements: [{app: a, tier: iron}, {app: b, part: "9"}]}}]}}]`,
	"merged into a list":     `[{merge: {mergeKeys: [app], generators: [{list: {elements: [{app: a, tier: iron}, {app: b, part: "9"}]}}, FILES]}}]`,
	"files with files":       `[{matrix: {generators: [FILES, FILES2]}}]`,
	"nested":                 `[{matrix: {generators: [FILES, {merge: {mergeKeys: [server], generators: [{clusters: {}}, {list: {elements: [{server: "https://a", part: "2"}]}}]}}]}}]`,
	"and a list alone":       `[FILES, {list: {elements: [{app: alone, tier: gold}]}}]`,
}

const (
	filesGenerator  = `{git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: "apps/*/config.json"}, {path: "apps/c*/more.json"}]}}`
	filesGenerator2 = `{git: {repoURL: "https://git.example.com/acme/fleet.git", revision: main, pathParamPrefix: second, files: [{path: "apps/b*/config.json"}]}}`
)

// TestChangedFilesAlone follows commits in which generator files say something else: what is
// resolved of those alone is always what a resolver says that has seen nothing yet.
func TestChangedFilesAlone(t *testing.T) {
	updated, lists := map[string]int{}, &atomic.Int32{}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"files", "two of them", "values and a selector", "with clusters", "clusters first", "with a list of its own", "merged into", "merged into a list", "files with files", "nested", "and a list alone"}).Draw(t, "kind")
		goTemplate := rapid.Bool().Draw(t, "goTemplate")
		name, value, tier := `'{{app}}-{{tier}}-{{name}}-{{part}}'`, `'{{path.basename}}'`, `'{{tier}}'`
		if goTemplate {
			name, value, tier = `'{{ .app }}-{{ dig "tier" "" . }}-{{ dig "name" "" . }}-{{ dig "part" "" . }}'`, `'{{ .path.basename }}'`, `'{{ dig "tier" "" . }}'`
		}
		text := strings.NewReplacer("FILES2", filesGenerator2, "FILES", filesGenerator, "VALUE", value, "TIER", tier).Replace(setsByFile[kind])
		contents := map[string]string{"sets/a.yaml": fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: files, namespace: argocd}
spec:
  goTemplate: %t
  generators: %s
  template:
    metadata: {name: %s}
    spec:
      project: default
      source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: x}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`, goTemplate, text, name)}
		names := []string{"apps/a/config.json", "apps/b/config.json", "apps/c/config.json", "apps/c/more.json", "apps/a/more.json", "docs/readme.md"}
		own := []string{`{"app": "OWN", "tier": "gold", "n": 0}`, `{"app": "OWN", "tier": "gold", "n": 1}`, `{"app": "OWN", "tier": "gold", "n": 2}`}
		odd := []string{`{"app": "a", "tier": "gold", "n": 1}`, `{"app": "OWN", "tier": "tin"}`, `{"app": "OWN", "tier": "gold", "part": "7"}`, "app: OWN\ntier: gold\nname: ''\n",
			`[{"app": "d", "tier": "gold"}, {"app": "e", "tier": "gold"}]`, `[]`, "not: [json", "-> ../b/config.json"}
		say := func(file, content string) {
			contents[file] = strings.ReplaceAll(content, "OWN", strings.NewReplacer("apps/", "", "/config.json", "", "/more.json", "more", "docs/", "").Replace(file))
		}
		for _, n := range names {
			say(n, own[0])
		}
		p := shop("sets/*.yaml")
		p.Spec.Component, p.Spec.Environment = "web", "dev"
		r := New(Options{CacheSize: 1})
		trees := map[string]identifiedTree{}
		for commit := range rapid.IntRange(2, 10).Draw(t, "commits") {
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				list := own
				if rapid.IntRange(0, 9).Draw(t, "odd") == 9 {
					list = odd
				}
				say(rapid.SampledFrom(names).Draw(t, "file"), rapid.SampledFrom(list).Draw(t, "content"))
			}
			tree, revision := withFileIDs(contents), fmt.Sprintf("%040d", commit)
			trees[revision] = tree
			in := Input{Pipeline: p, Tree: countingTree{tree, trees, lists}, Revision: revision, Branch: "main", RepoURLs: []string{repoURL}, Manifests: rapid.Bool().Draw(t, "manifests"),
				Clusters: []Cluster{{Secret: "a", Name: "a", Server: "https://a", Labels: map[string]string{"env": "prod"}}, {Secret: "b", Name: "b", Server: "https://b", Labels: map[string]string{"env": "prod"}}}}
			lists.Store(0)
			again, err := r.Resolve(context.Background(), in)
			must(t, err)
			if commit > 0 && lists.Load() == 0 && tree.read("apps/") > 0 {
				updated[kind]++
			}
			if got, want := targetSetText(t, again), targetSetText(t, mustResolveUncached(t, in)); got != want {
				t.Fatalf("%s, commit %d: resolved from what was there before:\n%s\nanew:\n%s", kind, commit, got, want)
			}
		}
	})
	t.Logf("made of changed files alone: %v", updated)
	if len(updated) < 2 {
		t.Error("hardly anything was made of changed files alone")
	}
	for _, kind := range []string{"files with files", "nested", "merged into a list", "and a list alone"} {
		if updated[kind] > 0 {
			t.Errorf("%s: %d times made of changed files alone", kind, updated[kind])
		}
	}
}
