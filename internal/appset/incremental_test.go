package appset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// identifiedTree is a tree that knows its files' ids, as a mirror's does. A
// file whose content is "-> x" is a symbolic link to x.
type identifiedTree struct {
	fstest.MapFS
	reads *sync.Map // names of files that were read
}

func withFileIDs(contents map[string]string) identifiedTree {
	t := identifiedTree{MapFS: fstest.MapFS{}, reads: &sync.Map{}}
	for name, data := range contents {
		f := &fstest.MapFile{Data: []byte(data)}
		if to, link := strings.CutPrefix(data, "-> "); link {
			f.Data, f.Mode = []byte(to), fs.ModeSymlink
		}
		t.MapFS[name] = f
	}
	return t
}

func (i identifiedTree) List(_ context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	for _, name := range slices.Sorted(maps.Keys(i.MapFS)) {
		f := i.MapFS[name]
		if err := do(name, f.Mode, fmt.Sprintf("%x", sha256.Sum256(f.Data))); err != nil {
			return err
		}
	}
	return nil
}

// countingTree is one of several commits' trees, that know how they differ.
type countingTree struct {
	identifiedTree
	commits map[string]identifiedTree
	lists   *atomic.Int32 // how often one was listed
}

func (c countingTree) List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error {
	c.lists.Add(1)
	return c.identifiedTree.List(ctx, do)
}

func (c countingTree) Differing(_ context.Context, commit string, do func(path string, both bool) error) error {
	before, ok := c.commits[commit]
	if !ok {
		return errors.New("no such commit")
	}
	for _, name := range slices.Sorted(maps.Keys(before.MapFS)) {
		if now, there := c.MapFS[name]; there && string(now.Data) == string(before.MapFS[name].Data) && now.Mode == before.MapFS[name].Mode {
			continue
		} else if err := do(name, there && now.Mode == before.MapFS[name].Mode); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.MapFS)) {
		if before.MapFS[name] == nil {
			if err := do(name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i identifiedTree) ReadFile(name string) ([]byte, error) {
	i.reads.Store(name, true)
	return i.MapFS.ReadFile(name)
}

func (i identifiedTree) read(prefix string) int {
	n := 0
	i.reads.Range(func(name, _ any) bool {
		if strings.HasPrefix(name.(string), prefix) {
			n++
		}
		return true
	})
	return n
}

// The sets of a repository whose resolutions are followed over many commits.
const incrementalSets = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: files, namespace: argocd, labels: {team: x}}
spec:
  goTemplate: GO
  generators:
  - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: "apps/**/config.json"}, {path: "apps/*/dev/*.json"}], values: {tag: VALUE}, template: {metadata: {labels: {first: "1"}}, spec: {project: default, destination: {}}}}
  - matrix:
      generators:
      - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, directories: [{path: "apps/*"}, {path: "apps/b*", exclude: true}], pathParamPrefix: dir}
      - matrix:
          generators:
          - clusters: {selector: {matchLabels: {env: prod}}}
          - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: main, files: [{path: "INNER/config.json"}]}
  - merge:
      mergeKeys: [name, part]
      generators:
      - matrix:
          generators:
          - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: "more/*.yaml"}]}
          - list: {elements: [{part: "1", deep: {a: "1"}}, {part: "2", deep: {b: "2"}}]}
      - list: {elements: [{name: x, part: "1", deep: {c: "3"}}, {name: y, part: "2"}]}
  template:
    metadata: {name: NAME, labels: {a: b}}
    spec:
      project: PROJECT
      source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: x, helm: {valuesObject: {all: ALL}}}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`

var incrementalGo = strings.NewReplacer("GO", "true", "VALUE", "'{{ .path.basename }}'", "INNER", "{{ .dir.path.path }}/*",
	"NAME", `'{{ dig "path" "path" "n" . | replace "/" "-" }}-{{ dig "name" "n" . }}-{{ dig "part" "" . }}{{ with .dir }}-{{ .path.basename }}{{ end }}'`, "ALL", "'{{ toJson . }}'")

var incrementalFast = strings.NewReplacer("GO", "false", "VALUE", "'{{path.basename}}'", "INNER", "{{dir.path}}/*", "deep: {a: \"1\"}", "deep: a", "deep: {b: \"2\"}", "deep: b", "deep: {c: \"3\"}", "deep: c",
	"NAME", `'{{path[0]}}-{{path[1]}}-{{path.basename}}-{{name}}-{{part}}-{{dir.path.basename}}'`, "ALL", "'{{app}} {{values.tag}} {{server}} {{deep}} {{n}}'")

// TestIncremental follows random commits: what is resolved from what was there
// before is always what a resolver says that has seen nothing yet.
func TestIncremental(t *testing.T) {
	commits, resolved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		replacer := rapid.SampledFrom([]*strings.Replacer{incrementalGo, incrementalFast}).Draw(t, "templates")
		project := "default"
		contents := map[string]string{}
		clusters := []Cluster{{Secret: "a", Name: "a", Server: "https://a", Labels: map[string]string{"env": "prod"}}}
		manifest := func() {
			contents["sets/a.yaml"] = strings.ReplaceAll(replacer.Replace(incrementalSets), "PROJECT", project)
		}
		manifest()
		names := []string{"apps/web/dev/config.json", "apps/web/qa/config.json", "apps/api/dev/config.json", "apps/bot/dev/config.json", "apps/web/dev/extra.json", "more/x.yaml", "more/y.yaml", "other/file", ".hidden/config.json"}
		said := []string{`{"app": "web", "n": 1}`, `{"app": "api", "n": 2}`, `[{"app": "a", "name": "p"}, {"app": "b", "name": "q"}]`, "name: x\ndeep: {d: 4}\n", "name: y\n", "not: [json", "[]", "-> config.json", "-> ../../api/dev/config.json"}
		for _, n := range names[:6] {
			contents[n] = said[0]
		}
		p := shop("sets/*.yaml")
		p.Spec.Component, p.Spec.Environment = "web", "dev"
		r := New(Options{CacheSize: 1})
		trees := map[string]identifiedTree{}
		for commit := range rapid.IntRange(2, 12).Draw(t, "commits") {
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				switch rapid.IntRange(0, 9).Draw(t, "change") {
				case 0:
					delete(contents, rapid.SampledFrom(names).Draw(t, "removed"))
				case 1:
					clusters = slices.Clone(clusters)
					if len(clusters) > 1 {
						clusters = clusters[:1]
					} else {
						clusters = append(clusters, Cluster{Secret: "b", Name: "b", Server: "https://b", Labels: map[string]string{"env": rapid.SampledFrom([]string{"prod", "dev"}).Draw(t, "env")}})
					}
				case 2:
					project = rapid.SampledFrom([]string{"default", "gone"}).Draw(t, "project")
					manifest()
				case 3:
					p.Spec.Component = rapid.SampledFrom([]string{"web", "{{ .name }}", "{{ .application.metadata.name }}"}).Draw(t, "component")
				default:
					contents[rapid.SampledFrom(names).Draw(t, "file")] = rapid.SampledFrom(said).Draw(t, "content")
				}
			}
			copied := *p
			tree, revision := withFileIDs(contents), fmt.Sprintf("%040d", commit)
			trees[revision] = tree
			in := Input{Pipeline: &copied, Tree: countingTree{tree, trees, &atomic.Int32{}}, Revision: revision, Branch: "main", RepoURLs: []string{repoURL},
				Clusters: clusters, Projects: []string{"default"}, Manifests: true}
			again, err := r.Resolve(context.Background(), in)
			must(t, err)
			fresh, err := New(Options{}).Resolve(context.Background(), in)
			must(t, err)
			if commits++; len(fresh.Targets) > 3 {
				resolved++
			}
			got, want := targetSetText(t, again), targetSetText(t, fresh)
			if got != want {
				t.Fatalf("commit %d: resolved from what was there before:\n%s\nanew:\n%s", commit, got, want)
			}
			if in.Tree = tree; targetSetText(t, mustResolveUncached(t, in)) != want {
				t.Fatalf("commit %d: other targets where the tree doesn't know how it differs", commit)
			}
			in.Revision, in.Tree = "", withFileIDs(contents).MapFS
			if plain := targetSetText(t, mustResolveUncached(t, in)); plain != want {
				t.Fatalf("commit %d: without the tree's ids:\n%s\nwith them:\n%s", commit, plain, want)
			}
		}
	})
	if resolved < commits/8 {
		t.Errorf("only %d of %d commits had targets", resolved, commits)
	}
}

func mustResolveUncached(t rapid.TB, in Input) *TargetSet {
	f, err := New(Options{}).Resolve(context.Background(), in)
	must(t, err)
	return f
}

// targetSetText is everything that a fleet says.
func targetSetText(t rapid.TB, f *TargetSet) string {
	raw, err := json.MarshalIndent(f, "", " ")
	must(t, err)
	return string(raw)
}

// TestOnlyChangedTargetsAreBuilt counts what a push makes a resolver read, and
// holds that fleets share what they have in common.
func TestOnlyChangedTargetsAreBuilt(t *testing.T) {
	contents := map[string]string{"sets/a.yaml": strings.ReplaceAll(incrementalGo.Replace(incrementalSets), "PROJECT", "default")}
	for i := range 100 {
		contents[fmt.Sprintf("apps/app-%d/dev/config.json", i)] = fmt.Sprintf(`{"app": "app-%d"}`, i)
	}
	contents["more/x.yaml"] = "name: z"
	p := shop("sets/*.yaml")
	p.Spec.Component, p.Spec.Environment = "{{ .app | default \"none\" }}", "dev"
	r := New(Options{})
	commits := 0
	resolve := func() (*TargetSet, identifiedTree) {
		t.Helper()
		commits++
		tree := withFileIDs(contents)
		f, err := r.Resolve(context.Background(), Input{Pipeline: p, Tree: tree, Revision: fmt.Sprintf("%040d", commits), Branch: "main", RepoURLs: []string{repoURL}, Clusters: []Cluster{}})
		if err != nil || len(f.Targets) < 100 || !slices.IsSortedFunc(f.Targets, func(a, b Target) int { return cmp.Compare(a.Name, b.Name) }) {
			t.Fatal(err, len(f.Targets), f.Problems)
		}
		return f, tree
	}
	first, tree := resolve()
	if n := tree.read("apps/"); n != 100 {
		t.Errorf("%d generator files were read at first, want 100", n)
	}
	contents["docs/readme.md"] = "x"
	same, tree := resolve()
	if n := tree.read("apps/"); n > 0 || &same.Targets[0] != &first.Targets[0] {
		t.Errorf("a commit that changed none of them read %d generator files and gave other targets", n)
	}
	contents["apps/app-7/dev/config.json"] = `{"app": "other"}`
	changed, tree := resolve()
	if n := tree.read("apps/"); n != 1 {
		t.Errorf("%d generator files were read after one changed", n)
	}
	differ := 0
	for i := range changed.Targets {
		a, b := &first.Targets[i], &changed.Targets[i]
		if &a.Sources[0] != &b.Sources[0] {
			differ++
		}
	}
	if differ != 1 {
		t.Errorf("%d targets were made anew, want 1", differ)
	}
}

// TestChangedFilesAffectQueries holds that a file that is said not to concern a
// question doesn't change its answer, over random trees and paths.
func TestChangedFilesAffectQueries(t *testing.T) {
	concerned, spared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab](/[ab.]{1,2}){0,3}`)
		draw := func(label string) (countingTree, *commit) {
			contents := map[string]string{}
			names := rapid.SliceOfN(name, 0, 8).Draw(t, label)
			for _, n := range names {
				if !slices.ContainsFunc(names, func(o string) bool { return strings.HasPrefix(o, n+"/") }) && fs.ValidPath(n) {
					contents[n] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, n)
				}
			}
			tree := countingTree{withFileIDs(contents), map[string]identifiedTree{}, &atomic.Int32{}}
			return tree, &commit{tree: tree, urls: []string{repoURL}, revision: label, branch: "main"}
		}
		before, old := draw("before")
		after, now := draw("after")
		after.commits["before"] = before.identifiedTree
		q := repoQuery{repoURL, "HEAD", rapid.StringMatching(`(\./)?[ab*](/[ab*.{},]{1,3}){0,3}/?`).Draw(t, "path"), rapid.Bool().Draw(t, "folders")}
		if q.folders {
			q.path = literalPrefix(q.path)
		}
		globbing := rapid.SampledFrom([]string{GlobbingGit, GlobbingDoublestar}).Draw(t, "globbing")
		answer := func(at *commit) *cachedOutcome {
			repos := &commitRepos{ctx: context.Background(), commit: at, globbing: globbing}
			trail := newQueryLog()
			var files []fileAt
			var folders []string
			var err error
			if q.folders {
				folders, err = repos.listFolders(q.url, q.revision, strings.Split(q.path, "\x00"))
			} else {
				files, err = repos.locateFiles(q.url, q.revision, q.path)
			}
			trail.recordQuery(q, files, folders, err)
			return trail.toCachedOutcome("", repos, setOutcome{})
		}
		first, again := answer(old), answer(now)
		if first == nil {
			return // an error is no answer, and is asked for again
		}
		repos := &commitRepos{ctx: context.Background(), commit: now, globbing: globbing}
		if !first.isUnchanged(repos) {
			concerned++
			return
		}
		spared++
		if again == nil || again.answers != first.answers || !first.repeatQueries(repos) {
			t.Fatalf("nothing that differs concerns %+v, and the answer is another one", q)
		}
	})
	enough := 10
	if testing.Short() { // rapid draws a fifth then
		enough = 1
	}
	if concerned < enough || spared < enough {
		t.Errorf("%d differences concerned a question, %d did not", concerned, spared)
	}
}

// TestUnchangedTreeIsNotListed holds that a push without a file that concerns a generator lists
// nothing and gives the same list, of several sets too. The next push is compared with that result.
func TestUnchangedTreeIsNotListed(t *testing.T) {
	contents := map[string]string{
		"argocd/shop.yaml": directoriesSet, "argocd/more.yaml": strings.NewReplacer("name: shop", "name: more", "apps/*", "jobs/*").Replace(directoriesSet),
		"apps/web/dev/x": "1", "apps/web/qa/x": "1", "jobs/a/dev/x": "1",
	}
	trees, lists := map[string]identifiedTree{}, &atomic.Int32{}
	r := New(Options{CacheSize: 1})
	resolve := func(commit int) *TargetSet {
		t.Helper()
		revision := fmt.Sprintf("%040d", commit)
		trees[revision] = withFileIDs(contents)
		in := input(countingTree{trees[revision], trees, lists}, shop("argocd/*.yaml"))
		in.Revision = revision
		f, err := r.Resolve(context.Background(), in)
		if err != nil || len(f.Problems) > 0 || len(f.Targets) < 2 {
			t.Fatal(err, f)
		}
		return f
	}
	first := resolve(1)
	for commit := range 5 {
		contents["apps/web/dev/x"] = fmt.Sprint(commit)
		lists.Store(0)
		if f := resolve(2 + commit); &f.Targets[0] != &first.Targets[0] || len(f.Targets) != len(first.Targets) || lists.Load() != 0 {
			t.Errorf("commit %d was listed %d times, or gave other targets", commit, lists.Load())
		}
		delete(trees, fmt.Sprintf("%040d", 1+commit)) // the next is not compared with this one
	}
	contents["apps/web/prod/x"] = "1"
	if f := resolve(9); lists.Load() == 0 || len(f.Targets) != len(first.Targets)+1 {
		t.Errorf("a new folder: listed %d times, %d targets", lists.Load(), len(f.Targets))
	}
}

// TestConcurrentCallsShareAResolution holds that callers that ask for the same are answered by
// one resolution, and that one who stops waiting doesn't end it.
func TestConcurrentCallsShareAResolution(t *testing.T) {
	tree := countingTree{withFileIDs(map[string]string{"argocd/shop.yaml": directoriesSet, "apps/web/dev/x": "", "apps/web/qa/x": ""}), nil, &atomic.Int32{}}
	in := input(tree, shop("argocd/*.yaml"))
	in.Revision = strings.Repeat("a", 40)
	r := New(Options{})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i%4 == 0 {
				_, _ = r.Resolve(ended, in)
				return
			}
			if f, err := r.Resolve(context.Background(), in); err != nil || len(f.Targets) != 2 {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if n := tree.lists.Load(); n != 1 {
		t.Errorf("the commit was listed %d times", n)
	}
}

// TestQueryIsAffectedBy are questions that random ones rarely are.
func TestQueryIsAffectedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		path, file, globbing string
		want                 bool
	}{
		"below it":                           {"a/*", "a/b", GlobbingDoublestar, true},
		"beside it":                          {"a/*", "ab", GlobbingDoublestar, false},
		"a file where it looks for a folder": {"a/*", "a", GlobbingDoublestar, true},
		"its path with a slash too many":     {"a/", "a", GlobbingDoublestar, true},
		"its path by a detour":               {"a/../b", "b", GlobbingDoublestar, true},
		"elsewhere":                          {"a/b/*.json", "b/c.json", GlobbingDoublestar, false},
		"git: below it":                      {"a/*.json", "a/b/c.json", GlobbingGit, true},
		"git: elsewhere":                     {"a/*.json", "b/c.json", GlobbingGit, false},
	} {
		q := repoQuery{url: repoURL, revision: "HEAD", path: tc.path}
		if got := q.isAffectedBy(changedFile{path: tc.file}, tc.globbing); got != tc.want {
			t.Errorf("%s: %q concerns %q: %t", name, tc.file, tc.path, got)
		}
	}
}
