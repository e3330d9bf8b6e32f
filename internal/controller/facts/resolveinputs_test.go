package facts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// fakeArgoCD is an Argo CD made of values.
type fakeArgoCD struct {
	sets        []argocd.ApplicationSet
	setsErr     error
	projects    []string
	clusters    []argocd.Cluster
	clustersErr error
	apps        []json.RawMessage
	listCalls   int
	version     argocd.Version
	ready       error
}

func (f *fakeArgoCD) Get(string, string) (*verification.App, bool) { return nil, false }
func (f *fakeArgoCD) Ready() error                                 { return f.ready }
func (f *fakeArgoCD) Sets() ([]argocd.ApplicationSet, error)       { return f.sets, f.setsErr }
func (f *fakeArgoCD) Projects() ([]string, error)                  { return f.projects, nil }
func (f *fakeArgoCD) Version() argocd.Version                      { return f.version }
func (f *fakeArgoCD) Clusters(context.Context) ([]argocd.Cluster, error) {
	return f.clusters, f.clustersErr
}
func (f *fakeArgoCD) Owned(context.Context, string, string) ([]json.RawMessage, error) {
	f.listCalls++
	return slices.Clone(f.apps), nil
}
func (f *fakeArgoCD) Selected(context.Context, string, string) ([]json.RawMessage, error) {
	f.listCalls++
	return slices.Clone(f.apps), nil
}
func (f *fakeArgoCD) Whole(context.Context, *verification.App) (json.RawMessage, error) {
	return nil, errors.New("there is none")
}
func (f *fakeArgoCD) Each(context.Context, func(json.RawMessage) error) error { return nil }

// testRepo is a repository in memory with its mirror. A commit goes on top of the one that
// is checked out, and is checked out then.
type testRepo struct {
	*branch.Repository
	t      *testing.T
	remote *git.MemoryRemote
	at     string
	when   time.Time
}

func newTestRepo(t *testing.T, name string, files map[string]string) *testRepo {
	t.Helper()
	c := &testRepo{t: t, remote: git.NewMemoryRemote(), when: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	m := git.OpenMemory(c.remote, git.MemoryOptions{Author: git.Ident{Name: "a", Email: "a@example.com"}})
	c.Repository = &branch.Repository{ID: "hub:acme/" + name, Branch: "main", Mirror: m, URLs: []string{"https://git.example/acme/" + name + ".git"}}
	c.commit("main", files)
	return c
}

// commit pushes files to a branch, and the mirror fetches it.
func (t *testRepo) commit(branch string, files map[string]string) string {
	t.t.Helper()
	spec := git.CommitSpec{Message: "x"}
	if t.at != "" {
		spec.Parents, spec.Base = []string{t.at}, t.at
	}
	for name, text := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	return t.write(branch, spec)
}

// write pushes a commit to a branch, and the mirror fetches it.
func (t *testRepo) write(branch string, spec git.CommitSpec) string {
	t.t.Helper()
	t.when = t.when.Add(time.Second)
	spec.When, spec.Author, spec.Committer = t.when, &git.Ident{Name: "a", Email: "a@example.com"}, &git.Ident{Name: "a", Email: "a@example.com"}
	sha, err := t.remote.Write(t.t.Context(), spec)
	if err != nil {
		t.t.Fatal(err)
	}
	t.at = sha
	t.push(branch)
	return sha
}

// push brings a branch to what is checked out, whatever it is at.
func (t *testRepo) push(branch string) {
	t.t.Helper()
	t.remote.SetRef("refs/heads/"+branch, t.at)
	fetchMirror(t.t, t)
}

// amend gives the commit that is checked out another message, on a branch.
func (t *testRepo) amend(branch, message string) string {
	t.t.Helper()
	info, err := t.Mirror.Commit(t.t.Context(), t.at)
	if err != nil {
		t.t.Fatal(err)
	}
	return t.write(branch, git.CommitSpec{Message: message, Parents: info.Parents, Base: t.at})
}

const externalPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: "argocd/*.yaml"}]
  component: web
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["*"]}]
  environments: [{name: dev}, {name: qa, after: [dev]}]
`

const externalAppSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - git: {repoURL: "https://git.example/acme/NAME", revision: REVISION, directories: [{path: "*"}]}
  template:
    metadata: {name: 'web-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: "https://git.example/acme/fleet", targetRevision: main, path: 'apps/{{ .path.basename }}'}
      destination: {server: SERVER}
`

func externalAppSetYAML(name, revision, server string) string {
	return strings.NewReplacer("NAME", name, "REVISION", revision, "SERVER", server).Replace(externalAppSet)
}

// snapshotTargets takes a snapshot and writes down its targets and problems.
func snapshotTargets(t *testing.T, o *Gatherer, r *branch.Repository) (*branch.Snapshot, string) {
	t.Helper()
	s, err := o.Targets.Snapshot(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Pipeline("shop")
	var out []string
	for _, t := range p.TargetSet.Targets {
		out = append(out, strings.TrimSuffix(t.Name+":"+t.DestNS, ":"))
	}
	return s, strings.Join(append(out, p.Problems...), " ")
}

func TestTargetsDependOnMoreThanTheirCommit(t *testing.T) {
	const inCluster = "https://kubernetes.default.svc"
	list := newTestRepo(t, "list", map[string]string{"dev/x": "x"})
	a := newTestRepo(t, "fleet", map[string]string{".liftlock.yaml": externalPipeline, "argocd/shop.yaml": externalAppSetYAML("list", "HEAD", inCluster)})
	clusters := filepath.Join(t.TempDir(), "clusters.yaml")
	hub, now := &fakeArgoCD{}, time.Now()
	o := New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{list.Repository, a.Repository}, Now: func() time.Time { return now },
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: hub, Namespace: "argocd", ClustersFile: clusters}}})
	hub.clustersErr = argocd.ErrClustersOff

	first, seen := snapshotTargets(t, o, a.Repository)
	if seen != "web-dev" {
		t.Fatalf("targets: %s", seen)
	}
	if again, _ := snapshotTargets(t, o, a.Repository); again != first {
		t.Error("nothing has changed, and it was built anew")
	}
	if got := o.Targets.Dependents(list.ID); !slices.Equal(got, []string{a.ID}) || len(o.Targets.Dependents(a.ID)) != 0 {
		t.Errorf("who depends on %s: %v", list.ID, got)
	}

	expect := func(what string, generation uint64, want string) {
		t.Helper()
		if got := o.Targets.Outdated(t.Context()); !slices.Equal(got, []string{a.ID}) {
			t.Errorf("%s: outdated are %v", what, got)
		}
		s, seen := snapshotTargets(t, o, a.Repository)
		if !strings.Contains(seen, want) || s.Generation != generation || s.Commit != first.Commit {
			t.Errorf("%s: turn %d at %.7s, %s; want turn %d, %s", what, s.Generation, s.Commit, seen, generation, want)
		}
		if got := o.Targets.Outdated(t.Context()); len(got) != 0 {
			t.Errorf("%s: still outdated: %v", what, got)
		}
	}
	list.commit("main", map[string]string{"qa/x": "x"})
	expect("the other repository moved", 1, "web-dev web-qa")
	hub.version.Sets++
	expect("a live set that has nothing to do with it", 1, "web-dev web-qa")
	hub.version.Projects++
	hub.projects = []string{"shop"}
	expect("the project is not there any more", 2, "web-dev web-qa argocd/shop.yaml: shop: ")
	hub.version.Projects++
	hub.projects = []string{"default"}
	expect("it is back", 3, "web-dev web-qa")
	if err := os.WriteFile(clusters, []byte("kind: List\nitems: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("a clusters file without clusters knows this one", 3, "web-dev web-qa")
	hub.version.Applications++
	if got := o.Targets.Outdated(t.Context()); len(got) != 0 {
		t.Errorf("no target is taken from live Applications, and %v is outdated", got)
	}
}

func TestTargetsFromLiveApplications(t *testing.T) {
	text := strings.Replace(externalPipeline, `applicationSets: [{path: "argocd/*.yaml"}]`, `applications: [{live: {selector: "team=shop"}}]`, 1)
	text = strings.NewReplacer("component: web", "component: '{{ .application.metadata.labels.app }}'", "{{ .path.basename }}", "{{ .application.metadata.labels.env }}").Replace(text)
	a := newTestRepo(t, "fleet", map[string]string{".liftlock.yaml": text})
	hub, now := &fakeArgoCD{}, time.Now()
	hub.apps = []json.RawMessage{json.RawMessage(`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"web-dev","namespace":"argocd","labels":{"app":"web","env":"dev"}},
		"spec":{"project":"default","source":{"repoURL":"https://git.example/acme/fleet","path":"apps/dev"},"destination":{"server":"https://kubernetes.default.svc"}},"status":{"history":["long"]}}`)}
	o := New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{a.Repository}, Now: func() time.Time { return now },
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: hub, Namespace: "argocd"}}})
	s, seen := snapshotTargets(t, o, a.Repository)
	if seen != "web-dev" || s.Pipeline("shop").Units["web"] == nil {
		t.Fatalf("targets: %s", seen)
	}
	if s.ValidUntil().IsZero() {
		t.Error("the running Argo CD may have others later")
	}
	now = s.ValidUntil()
	snapshotTargets(t, o, a.Repository)
	if hub.listCalls != 1 {
		t.Errorf("asked %d times although nothing was written into any Application", hub.listCalls)
	}
	hub.version.Applications++
	if got := o.Targets.Outdated(t.Context()); len(got) != 1 {
		t.Error("a change of an Application is news for targets that are taken from them")
	}
	hub.ready = errors.New("the watch is broken")
	if _, seen = snapshotTargets(t, o, a.Repository); !strings.HasPrefix(seen, "web-dev ") || !strings.Contains(seen, "the watch is broken") {
		t.Errorf("an Argo CD that is away leaves the last good targets in force and says so: %s", seen)
	}
	hub.ready = nil
	now = now.Add(time.Hour)
	if _, seen = snapshotTargets(t, o, a.Repository); seen != "web-dev" || hub.listCalls != 2 {
		t.Errorf("it is back: %s, asked %d times", seen, hub.listCalls)
	}
}

func TestOtherRepositories(t *testing.T) {
	list := newTestRepo(t, "list", map[string]string{"dev/x": "x"})
	branchName := list.commit("other", map[string]string{"qa/x": "x"})
	o := New(Options{Repos: []*branch.Repository{list.Repository}})
	sur := o.Targets.NewInputCollector(list.Repository)
	for name, c := range map[string]struct{ url, revision, want, wrong string }{
		"HEAD is the tracked branch":    {"https://git.example/acme/list.git", "HEAD", "", ""},
		"none is the tracked branch":    {"git@git.example:acme/list", "", "", ""},
		"a branch":                      {"https://git.example/acme/list", "other", branchName, ""},
		"a commit":                      {"https://git.example/acme/list", branchName, branchName, ""},
		"no such branch":                {"https://git.example/acme/list", "none", "", `has no branch or fetched commit "none"`},
		"a name that looks like option": {"https://git.example/acme/list", "--all", "", "invalid"},
		"another repository":            {"https://git.example/acme/secrets", "HEAD", "", "none of the repositories in the server's file that have been reached"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sur.ResolveRepository(t.Context(), c.url, c.revision)
			switch {
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("%v", err)
			case c.wrong == "" && (err != nil || c.want != "" && got.Commit != c.want || len(got.Commit) != 40):
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestClustersOfAFileAndOfArgoCD(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clusters.yaml")
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: file, labels: {argocd.argoproj.io/secret-type: cluster}}\nstringData: {name: of-file, server: https://one}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: both, labels: {argocd.argoproj.io/secret-type: cluster}}\nstringData: {name: both-in-file, server: https://both}\n"
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	live := []argocd.Cluster{{Secret: "live", Name: "of-live", Server: "https://two"}, {Secret: "l2", Name: "both-live", Server: "https://both"}}
	for name, c := range map[string]struct {
		file string
		hub  *fakeArgoCD
		want string // "unknown": nil
	}{
		"neither":                       {"", &fakeArgoCD{clustersErr: argocd.ErrClustersOff}, "unknown"},
		"only the file":                 {file, &fakeArgoCD{clustersErr: argocd.ErrClustersOff}, "both-in-file of-file"},
		"only what runs":                {"", &fakeArgoCD{clusters: live}, "of-live both-live"},
		"none run":                      {"", &fakeArgoCD{clusters: []argocd.Cluster{}}, ""},
		"both; what runs wins":          {file, &fakeArgoCD{clusters: live}, "of-live both-live of-file"},
		"what runs can't be asked":      {file, &fakeArgoCD{clustersErr: errors.New("forbidden")}, "unknown"},
		"what runs could be asked once": {"", &fakeArgoCD{clusters: live, clustersErr: errors.New("away")}, "of-live both-live"},
		"the file is gone":              {file + ".gone", &fakeArgoCD{clusters: live}, "unknown"},
		"no connection":                 {file, nil, "both-in-file of-file"},
	} {
		t.Run(name, func(t *testing.T) {
			a := branch.ArgoCD{ClustersFile: c.file}
			if c.hub != nil {
				a.Live = c.hub
			}
			o := New(Options{ArgoCDs: map[string]branch.ArgoCD{"hub": a}})
			got, _, err := o.Targets.MergeClusters(t.Context(), &a)
			if err != nil {
				t.Fatal(err)
			}
			text := "unknown"
			if got != nil {
				var names []string
				for _, k := range got {
					names = append(names, k.Name)
				}
				text = strings.Join(names, " ")
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
			if wrong := len(o.Targets.ClusterFileProblems()) > 0; wrong != (name == "the file is gone") {
				t.Errorf("troubles: %v", o.Targets.ClusterFileProblems())
			}
		})
	}
}

// TestVersionReachesResolution holds that the version that an Argo CD's kinds show decides how its
// sets are resolved, unless the server's file names one.
func TestVersionReachesResolution(t *testing.T) {
	for _, c := range []struct {
		file  appset.Version
		found string
		want  appset.Version
	}{
		{want: appset.Version{}},
		{found: "3.5", want: appset.Version{Major: 3, Minor: 5}},
		{file: appset.Version{Major: 2, Minor: 14, Patch: 21}, found: "3.5", want: appset.Version{Major: 2, Minor: 14, Patch: 21}},
	} {
		live := &fakeArgoCD{version: argocd.Version{Line: c.found}}
		targets := &branch.TargetGatherer{Argocds: &branch.ArgoCDs{ByName: map[string]branch.ArgoCD{"hub": {Live: live, Version: c.file}}, Main: "hub"}}
		s := &branch.InputCollector{Targets: targets, ResolveInputs: branch.ResolveInputs{Argocds: map[string]branch.ArgocdInputs{}}}
		in := appset.Input{ArgoCDs: map[string]appset.ArgoCD{}, Live: &appset.Live{Unknown: map[string]string{}}}
		if err := s.AddArgoCD(t.Context(), "hub", &in); err != nil || in.ArgoCDs["hub"].Version != c.want {
			t.Errorf("%v and %q: %v, %v", c.file, c.found, in.ArgoCDs["hub"].Version, err)
		}
	}
}

// The policy in the ApplicationSet controller's settings counts, unless the server's file
// says another.
func TestControllerPolicyReachesResolution(t *testing.T) {
	for _, c := range []struct{ file, found, want appset.ControllerPolicy }{
		{},
		{found: appset.ControllerPolicy{Sync: "create-only", Override: true}, want: appset.ControllerPolicy{Sync: "create-only", Override: true}},
		{file: appset.ControllerPolicy{Sync: "sync"}, found: appset.ControllerPolicy{Sync: "create-only", Override: true}, want: appset.ControllerPolicy{Sync: "sync"}},
	} {
		live := &fakeArgoCD{version: argocd.Version{SetPolicy: argocd.SetPolicy(c.found)}}
		targets := &branch.TargetGatherer{Argocds: &branch.ArgoCDs{ByName: map[string]branch.ArgoCD{"hub": {Live: live, Policy: c.file}}, Main: "hub"}}
		s := &branch.InputCollector{Targets: targets, ResolveInputs: branch.ResolveInputs{Argocds: map[string]branch.ArgocdInputs{}}}
		in := appset.Input{ArgoCDs: map[string]appset.ArgoCD{}, Live: &appset.Live{Unknown: map[string]string{}}}
		if err := s.AddArgoCD(t.Context(), "hub", &in); err != nil || in.ArgoCDs["hub"].Policy != c.want {
			t.Errorf("%+v and %+v: %+v, %v", c.file, c.found, in.ArgoCDs["hub"].Policy, err)
		}
	}
}
