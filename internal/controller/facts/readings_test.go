package facts

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

const readingsPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: "argocd/*.yaml"}]
  component: '{{ .app }}'
  environment: '{{ .env }}'
  carry:
    - kustomizeImages: ["r/*"]
    - yaml: {files: ["values*.yaml"], paths: ["image.tag"]}
    - files: {include: ["config/**"]}
    CARRY
  environments: [{name: dev}, {name: qa, after: [dev]}]
`

const readingsSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - list: {elements: [{app: web, env: dev}, {app: web, env: qa}, {app: api, env: dev}, {app: api, env: qa}]}
  template:
    metadata: {name: '{{ .app }}-{{ .env }}'}
    spec:
      project: default
      sources:
        - {repoURL: "https://git.example/acme/fleet", targetRevision: main, path: 'apps/{{ .app }}/{{ .env }}', helm: {valueFiles: ["../../../common/x.yaml"]}}
        - {repoURL: "https://git.example/acme/fleet", targetRevision: main, path: 'more/{{ .env }}'}
      destination: {server: "https://kubernetes.default.svc"}
`

// TestCachedReadingsAreCurrent follows random pushes. A cached reading of an environment is the
// same as a new one, at the newest commit and at older ones. Folders become files and links and
// come back.
func TestCachedReadingsAreCurrent(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261121, 0))
	dir := t.TempDir()
	bare := filepath.Join(dir, "fleet.git")
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", bare).CombinedOutput(); err != nil { // links are written by git alone
		t.Fatalf("%v\n%s", err, out)
	}
	m, err := git.Open(t.Context(), git.Options{Dir: filepath.Join(dir, "mirror.git"), URL: "file://" + bare, Author: git.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	r := &branch.Repository{ID: "hub:acme/fleet", Branch: "main", Mirror: m, URLs: []string{"https://git.example/acme/fleet"}}
	hub := &fakeArgoCD{clustersErr: argocd.ErrClustersOff}
	o := New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{r}, Now: time.Now, ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: hub, Namespace: "argocd"}}})

	files := map[string]string{".liftlock.yaml": strings.Replace(readingsPipeline, "CARRY", "", 1), "argocd/shop.yaml": readingsSet}
	paths := []string{"common/x.yaml", "common/tags.yaml", "common/.argocd-source.yaml", "more/dev/values.yaml", "more/dev/.argocd-source.yaml", "docs/x", "common", "apps", "more/dev"}
	for _, app := range []string{"web", "api"} {
		for _, env := range []string{"dev", "qa"} {
			at := "apps/" + app + "/" + env
			files[at+"/kustomization.yaml"] = "images:\n- {name: r/x, newTag: v1}\n"
			paths = append(paths, at+"/kustomization.yaml", at+"/values.yaml", at+"/values-x.yaml", at+"/config/a/b", at+"/.argocd-source-"+app+"-"+env+".yaml", at+"/readme", at, at+"/config")
		}
	}
	texts := []string{
		"images:\n- {name: r/x, newTag: v1}\n", "images:\n- {name: r/x, newTag: v2}\n", "image: {tag: v1}\n", "image: {tag: v2} # x\n", "image: [\n", "dev: {tag: v1}\nqa: {tag: v2}\n",
		"dev: {tag: v3}\nqa: {tag: v2}\n", "kustomize: {images: [\"r/x:v9\"]}\n", "helm: {parameters: [{name: image.tag, value: v9}]}\n", "-> dev", "-> kustomization.yaml",
	}
	var commits []string
	push := func() {
		var s bytes.Buffer
		s.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 1\nx\n")
		if len(commits) > 0 {
			fmt.Fprintf(&s, "from %s\n", commits[len(commits)-1])
		}
		s.WriteString("deleteall\n")
		for _, name := range slices.Sorted(maps.Keys(files)) {
			mode, text := "100644", files[name]
			if to, link := strings.CutPrefix(text, "-> "); link {
				mode, text = "120000", to
			}
			fmt.Fprintf(&s, "M %s inline %s\ndata %d\n%s\n", mode, name, len(text), text)
		}
		cmd := exec.Command("git", "fast-import", "--quiet", "--force")
		cmd.Dir, cmd.Stdin = bare, &s
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		changed, err := m.Fetch(t.Context())
		if err != nil || len(changed) != 1 {
			t.Fatal(changed, err)
		}
		commits = append(commits, changed[0].New)
	}
	change := func() {
		name := paths[rng.IntN(len(paths))]
		if _, there := files[name]; there && rng.IntN(3) == 0 {
			delete(files, name)
			return
		}
		for other := range files { // a file and a folder can't have one name
			if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
				delete(files, other)
			}
		}
		files[name] = texts[rng.IntN(len(texts))]
	}
	said := func(rel fieldedit.Release, err error) string {
		text := fmt.Sprintf("%q", rel.Fields)
		if err != nil {
			text = err.Error()
		}
		return text
	}
	known, refused := 0, 0
	for i := range 60 {
		if i == 20 { // from now on fields of shared files count, too
			files[".liftlock.yaml"] = strings.Replace(readingsPipeline, "CARRY", `- yaml: {files: ["tags.yaml"], paths: ["{{environment}}.tag"]}`, 1)
		}
		for range rng.IntN(3) {
			if i == 41 {
				break
			}
			change()
		}
		if i%7 == 6 { // and they come back
			delete(files, "apps")
			for _, app := range []string{"web", "api"} {
				for _, env := range []string{"dev", "qa"} {
					delete(files, "apps/"+app+"/"+env)
					files["apps/"+app+"/"+env+"/kustomization.yaml"] = "images:\n- {name: r/x, newTag: v1}\n"
				}
			}
		}
		switch i { // a folder that all environments share and that has nothing of theirs
		case 40:
			maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "common") })
		case 41:
			files["common"] = "-> apps"
		case 42:
			delete(files, "common")
		}
		push()
		s, err := o.Targets.Snapshot(t.Context(), r)
		if err != nil || s.PipelineErr != "" || len(s.Pipelines) != 1 || len(s.Pipelines[0].Problems) > 0 {
			t.Fatalf("%v %+v", err, s)
		}
		p := s.Pipelines[0]
		old := commits[rng.IntN(len(commits))]
		for component, u := range p.Units {
			for env, e := range u.Envs {
				rel, readErr := fieldedit.Read(m.Tree(s.Commit), e.Overlay(p.Pipeline))
				want := said(rel, readErr)
				if diff := cmp.Diff(want, said(o.Releases.ReadCurrent(r, s.Commit, p, e))); diff != "" {
					t.Fatalf("push %d: %s in %s (-want +got):\n%s", i, component, env, diff)
				}
				if _, ok := p.Readings[e]; ok {
					if known++; readErr != nil {
						refused++
					}
				}
				then, thenErr := fieldedit.Read(m.Tree(old), e.Overlay(p.Pipeline))
				if diff := cmp.Diff(said(then, thenErr), said(o.Releases.ReadRelease(r, old, p, e))); diff != "" {
					t.Fatalf("push %d: %s in %s at an older commit (-want +got):\n%s", i, component, env, diff)
				}
				if id := o.Releases.ReleaseIDAt(r, old, p, e); thenErr == nil && id != then.ID() || thenErr != nil && id != "" {
					t.Fatalf("push %d: the identity of %s in %s is %q", i, component, env, id)
				}
			}
		}
	}
	if known < 150 || refused < 20 {
		t.Errorf("only %d readings were known, %d of them refusals", known, refused)
	}
}

// TestReadingsAreBounded fills the memory of readings: what is used stays.
func TestReadingsAreBounded(t *testing.T) {
	m := branch.NewReleaseReader(nil).Readings
	m.Put("used", branch.Reading{Id: "x"})
	rel := fieldedit.Release{Fields: make([]fieldedit.Field, 999)}
	for i := range 2 * branch.MaxReadingBytes / (1000 * branch.ReadingBytes) {
		m.Put(fmt.Sprint(i), branch.Reading{Release: rel})
		if _, ok := m.Get("used"); !ok {
			t.Fatalf("what is used all the time was forgotten after %d", i)
		}
	}
	if s := m.Stats(); s.Bytes > branch.MaxReadingBytes || s.Entries > branch.MaxReadingBytes/(1000*branch.ReadingBytes)+1 {
		t.Errorf("%d are remembered, with %d bytes", s.Entries, s.Bytes)
	}
	if _, ok := m.Get("0"); ok {
		t.Error("what was not used for long is still there")
	}
}
