package evaluate

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// branchedShop has the ApplicationSet on main, and dev on a branch of its own with the file that
// the set makes its targets of. in is ready for a change there.
func branchedShop(t *testing.T, edited fs.FS) (fstest.MapFS, Input) {
	t.Helper()
	p := shopPipeline(t)
	p.Spec.Layout = pipeline.LayoutBranches
	p.Spec.Component, p.Spec.Environment = "{{ .path.basename }}", "{{ .env }}"
	p.Spec.Environments[0].Branch, p.Spec.Environments[1].Branch = "env/dev", "main"
	set := strings.NewReplacer(`  - git:
      repoURL: https://git.example/acme/fleet.git
      revision: HEAD
      directories: [{path: apps/*/overlays/*}]
`, `  - matrix:
      generators:
      - list: {elements: [{env: dev, branch: env/dev}, {env: prod, branch: main}]}
      - git: {repoURL: https://git.example/acme/fleet.git, revision: '{{ .branch }}', files: [{path: apps/*/config.json}]}
`, "{{ index .path.segments 1 }}-{{ .path.basename }}", "{{ .path.basename }}-{{ .env }}", "targetRevision: HEAD", "targetRevision: '{{ .branch }}'",
		"namespace: '{{ index .path.segments 1 }}'", "namespace: '{{ .tag }}'").Replace(string(shop()["argocd/shop.yaml"].Data))
	main := fstest.MapFS{"argocd/shop.yaml": {Data: []byte(set)}, "apps/web/config.json": {Data: []byte(`{"tag": "v1"}`)}}
	in := shopInput(t)
	in.Pipelines, in.Changed = []*pipeline.Pipeline{p}, []string{"apps/web/config.json", "argocd/shop.yaml"}
	in.Revision, in.Branch = strings.Repeat("a", 40), "main"
	in.On, in.Edited = "env/dev", appset.ExternalRef{Tree: edited, Commit: strings.Repeat("b", 40)}
	return main, in
}

// TestChangeOnEnvironmentBranch evaluates it with the sets of the tracked
// branch: only what follows the branch is touched, and what a set makes of the
// branch's files is told.
func TestChangeOnEnvironmentBranch(t *testing.T) {
	t.Parallel()
	dev := fstest.MapFS{"apps/web/config.json": {Data: []byte(`{"tag": "v2"}`)}, "apps/new/config.json": {Data: []byte(`{"tag": "v2"}`)},
		"argocd/shop.yaml": {Data: []byte("a copy that counts for nothing: [")}}
	main, in := branchedShop(t, dev)
	p := bothWays(t, main, in).Pipelines["shop"]
	var got []string
	for _, x := range p.TargetSet.Targets {
		got = append(got, x.Name+" "+x.DestNS)
	}
	if d := cmp.Diff([]string{"new-dev v2", "web-dev v2", "web-prod v1"}, got); d != "" || len(p.TargetSet.Problems) != 0 {
		t.Errorf("%v (-want +got):\n%s", p.TargetSet.Problems, d)
	}
	changed := map[string][]string{}
	for id, files := range p.ChangedFiles {
		changed[id[strings.LastIndexByte(id, '/')+1:]] = files
	}
	if d := cmp.Diff(map[string][]string{"web-dev": {"apps/web/config.json"}}, changed); d != "" {
		t.Errorf("touched (-want +got):\n%s", d)
	}

	// The same files, changed on the tracked branch, are others' reading.
	in.On, in.Edited = "", appset.ExternalRef{}
	in.OpenExternal = func(context.Context, string, string) (*appset.ExternalRef, error) {
		return &appset.ExternalRef{Tree: fstest.MapFS{"apps/web/config.json": {Data: []byte(`{"tag": "v3"}`)}}, Commit: strings.Repeat("c", 40)}, nil
	}
	p = bothWays(t, main, in).Pipelines["shop"]
	if len(p.ChangedFiles) != 1 || p.TargetSet.Targets[0].DestNS != "v3" {
		t.Errorf("touched %v, first target %+v", p.ChangedFiles, p.TargetSet.Targets[0])
	}
	for id := range p.ChangedFiles {
		if !strings.HasSuffix(id, "/web-prod") {
			t.Errorf("%s is touched", id)
		}
	}
}

func TestChangeOnImplausibleBranch(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Input){
		"no files":          func(in *Input) { in.Edited.Tree = nil },
		"the sets' branch":  func(in *Input) { in.On = in.Branch },
		"no address at all": func(in *Input) { in.RepoURLs = nil },
	} {
		main, in := branchedShop(t, fstest.MapFS{})
		change(&in)
		if _, err := InProcess(t.Context(), appset.New(appset.Options{}), main, in); err == nil || !strings.Contains(err.Error(), "a change on the branch") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Only the branch in question is lent, at the commit in question.
	_, in := branchedShop(t, fstest.MapFS{})
	l := &fileServer{in: &in}
	for _, words := range []string{`["edited", "env/qa", "` + in.Edited.Commit + `"]`, `["edited", "env/dev", "x"]`, `["edited", "env/dev"]`} {
		if _, err := l.serveTree(t.Context(), words); err == nil {
			t.Errorf("%s is lent", words)
		}
	}
}
