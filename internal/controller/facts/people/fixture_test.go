package people

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/store"
	"go.uber.org/zap"
)

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

// merge merges a commit into the one that is checked out, on a branch.
func (t *testRepo) merge(branch, message, other string) string {
	t.t.Helper()
	tree, conflicts, err := t.remote.Merge(t.t.Context(), t.at, other)
	if err != nil || len(conflicts) > 0 {
		t.t.Fatal(conflicts, err)
	}
	return t.write(branch, git.CommitSpec{Message: message, Parents: []string{t.at, other}, Base: tree})
}

// branchPipeline has dev and qa on branches of their own and prod on main.
const branchPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  layout: branches
  applicationSets: [{path: "argocd/*.yaml"}]
  component: '{{ .component }}'
  environment: '{{ .env }}'
  carry: [{kustomizeImages: ["*"]}]
  environments:
    - {name: dev, branch: env/dev}
    - {name: qa, after: [dev], branch: env/qa}
    - {name: prod, after: [qa], branch: main}
`

// newBranchRepo is a repository with web and api on each.
func newBranchRepo(t *testing.T, more map[string]string) *testRepo {
	t.Helper()
	var elements []string
	for _, c := range []string{"web", "api"} {
		elements = append(elements, listElement(c, "dev", "env/dev"), listElement(c, "qa", "env/qa"), listElement(c, "prod", "main"))
	}
	files := map[string]string{
		".liftlock.yaml":          branchPipeline,
		"argocd/s.yaml":           appSetYAML("s", "{list: {elements: ["+strings.Join(elements, ", ")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}'}"),
		"base/kustomization.yaml": "resources: [d.yaml]\n", "base/d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: d, image: x}]}}}\n",
		"base/common/kustomization.yaml": "kind: Component\nimages: [{name: x, newTag: '1'}]\n",
	}
	for _, c := range []string{"web", "api"} {
		files["apps/"+c+"/kustomization.yaml"] = "resources: [../../base]\nimages: [{name: x, newTag: '1'}]\n"
	}
	maps.Copy(files, more)
	c := newTestRepo(t, "fleet", files)
	for _, b := range []string{"env/dev", "env/qa"} {
		c.push(b)
	}
	return c
}

// checkoutBranch checks a branch out, so that commit goes on top of it.
func (t *testRepo) checkoutBranch(branch string) {
	t.t.Helper()
	t.at, _ = t.remote.Head(branch)
}

func fetchMirror(t *testing.T, c *testRepo) {
	t.Helper()
	if _, err := c.Mirror.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// testGatherer gathers what is known of authors, and what that needs of branches.
type testGatherer struct {
	Authors  *AuthorGatherer
	Releases *branch.ReleaseReader
	targets  *branch.TargetGatherer
}

func newTestGatherer(c *testRepo) *testGatherer {
	releases := branch.NewReleaseReader(nil)
	return &testGatherer{Authors: NewAuthorGatherer(branch.NewGitGatherer(releases, nil, nil), nil, time.Now, false, nil), Releases: releases,
		targets: branch.NewTargetGatherer(&branch.TargetOptions{Resolver: appset.New(appset.Options{}), Repos: []*branch.Repository{c.Repository}, Now: time.Now, Log: zap.NewNop()}, &branch.ArgoCDs{Main: "hub"}, releases)}
}

func takeSnapshot(t *testing.T, o *testGatherer, c *testRepo) *branch.Snapshot {
	t.Helper()
	s, err := o.targets.Snapshot(t.Context(), c.Repository)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// storedRecords are the store's, by key.
type storedRecords map[store.RecordKey]string

func (s storedRecords) Record(_ context.Context, key store.RecordKey) ([]byte, bool, error) {
	v, ok := s[key]
	return []byte(v), ok, nil
}

// appSetYAML is an ApplicationSet whose generators and source are given.
func appSetYAML(name, generators, source string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: ` + name + `, namespace: argocd}
spec:
  goTemplate: true
  generators: [` + generators + `]
  template:
    metadata: {name: '` + name + `-{{ .component }}-{{ .env }}'}
    spec:
      project: default
      ` + source + `
      destination: {server: https://kubernetes.default.svc, namespace: x}
`
}

const repoURL = "https://git.example/acme/fleet.git"

func listElement(component, env, branch string) string {
	return "{component: " + component + ", env: " + env + ", branch: " + branch + "}"
}

// componentOf makes what one look has of a component, of a whole.
func componentOf(b *branch.Basis, c branch.ComponentBasis) *branch.ComponentBasis {
	c.Basis = b
	return &c
}
