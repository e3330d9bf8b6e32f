package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

func TestHydratedFrom(t *testing.T) {
	const dry, old = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	ours := []string{"https://git.example/acme/fleet.git"}
	for name, c := range map[string]struct {
		tree   fstest.MapFS
		folder string
		want   string
	}{
		"the folder's own":            {fstest.MapFS{"envs/qa/hydrator.metadata": file(`{"drySha":"` + dry + `"}`), "hydrator.metadata": file(`{"drySha":"` + old + `"}`)}, "envs/qa", dry},
		"the root's":                  {fstest.MapFS{"hydrator.metadata": file(`{"repoURL":"git@git.example:acme/fleet","drySha":"` + dry + `"}`)}, "./envs/qa/", dry},
		"deployed from the root":      {fstest.MapFS{"hydrator.metadata": file(`{"drySha":"` + dry + `"}`)}, ".", dry},
		"the folder's is another's":   {fstest.MapFS{"envs/qa/hydrator.metadata": file(`{"repoURL":"https://git.example/acme/other","drySha":"` + dry + `"}`), "hydrator.metadata": file(`{"drySha":"` + dry + `"}`)}, "envs/qa", ""},
		"another repository's":        {fstest.MapFS{"hydrator.metadata": file(`{"repoURL":"https://git.example/acme/other","drySha":"` + dry + `"}`)}, ".", ""},
		"JSON, and its address isn't": {fstest.MapFS{"hydrator.metadata": file(`{"drySha":"` + dry + `","repoURL":7}`)}, ".", ""},
		"not JSON":                    {fstest.MapFS{"hydrator.metadata": file(`drySha: x`)}, ".", ""},
		"an enormous one":             {fstest.MapFS{"hydrator.metadata": {Data: make([]byte, maxHydratorFile+1)}}, ".", ""},
		"the folder's is enormous":    {fstest.MapFS{"envs/qa/hydrator.metadata": {Data: make([]byte, maxHydratorFile+1)}, "hydrator.metadata": file(`{"drySha":"` + dry + `"}`)}, "envs/qa", ""},
		"no hydrated tree":            {fstest.MapFS{"README.md": file("x")}, "envs/qa", ""},
		"a folder that climbs away":   {fstest.MapFS{"README.md": file("x")}, "../..", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hydratedFrom(c.tree, c.folder, ours); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// hydrationFixture is qa of web, whose manifests the source hydrator writes.
type hydrationFixture struct {
	t          *testing.T
	remotes    map[*branch.Repository]*git.MemoryRemote
	own, other *branch.Repository // the other is only tracked where a test says so
	before     string             // the commit before what landed
	landed     string
	o          *Gatherer
	look       *targetLook
	at         *branch.ResolvedEnv
	target     appset.Target
	app        *verification.App
}

func newHydrationFixture(t *testing.T) *hydrationFixture {
	f := &hydrationFixture{t: t, remotes: map[*branch.Repository]*git.MemoryRemote{}}
	f.own, f.other = f.newRepository("hub:acme/fleet", repositoryURL), f.newRepository("hub:acme/hydrated", "https://git.example/acme/hydrated.git")
	f.before = f.commit(f.own, "main", "", map[string]string{"apps/web/qa/deploy.yaml": deployment("web:1.0.0", 1)})
	f.landed = f.commit(f.own, "main", f.before, map[string]string{"apps/web/qa/deploy.yaml": deployment("web:1.1.0", 1)})
	f.target = appset.Target{Name: "web-qa", Namespace: "argocd", Component: "web", Environment: "qa", Hydration: &appset.Hydration{Branch: "env/qa", Path: "web"},
		Sources: []appset.Source{{RepoURL: repositoryURL, Path: "apps/web/qa", TargetRevision: "main", Here: true}}}
	f.app = &verification.App{Name: "web-qa", HydratedPath: "web"}
	f.o = &Gatherer{Releases: branch.NewReleaseReader(nil), Repos: &branch.TrackedRepositories{List: []*branch.Repository{f.own}}, Renderer: isolation.New(render.MemoOptions{Bytes: 1 << 20}), Hydrated: branch.NewCache[[sha256.Size]byte, string](nil, "hydrated", 100)}
	p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}}
	c := &branch.ComponentBasis{Basis: &branch.Basis{Now: time.Unix(0, 0), Pipeline: p, Snapshot: &branch.Snapshot{Repo: f.own}, Contents: map[string]fieldedit.Release{
		"r": {Fields: []fieldedit.Field{{Kind: fieldedit.KindYAML, File: "deploy.yaml", Path: "spec.image", Value: "web:1.1.0"}}}}}}
	env := &promotion.Env{Name: "qa", Branch: "main", Release: promotion.Sure(promotion.Release{ID: "r"}), Landed: promotion.Sure(promotion.Landed{Commit: f.landed, Parent: f.before, By: promotion.ByPromotion})}
	f.at = &branch.ResolvedEnv{Targets: []appset.Target{f.target}}
	f.look = &targetLook{ctx: t.Context(), c: c, env: env}
	return f
}

// carryImage carries the image of the fixture's Deployment.
var carryImage = []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"deploy.yaml"}, Paths: []string{"spec.image"}}}}

func deployment(image string, replicas int) string {
	raw, _ := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"image": image, "replicas": replicas}})
	return string(raw) + "\n" // JSON is YAML
}

func (h *hydrationFixture) newRepository(id, url string) *branch.Repository {
	remote := git.NewMemoryRemote()
	r := &branch.Repository{ID: id, URLs: []string{url}, Branch: "main", Mirror: git.OpenMemory(remote, git.MemoryOptions{})}
	h.remotes[r] = remote
	return r
}

// commit makes a commit on a branch, and fetches it.
func (h *hydrationFixture) commit(r *branch.Repository, branch, parent string, files map[string]string) string {
	h.t.Helper()
	s := git.CommitSpec{Message: "m", When: time.Unix(1_700_000_000, 0)}
	if parent != "" {
		s.Parents, s.Base = []string{parent}, parent
	}
	for name, text := range files {
		s.Files = append(s.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	remote := h.remotes[r]
	sha, err := remote.Write(h.t.Context(), s)
	if err == nil {
		err = remote.Update(branch, sha, parent)
	}
	if err == nil {
		_, err = r.Mirror.Fetch(h.t.Context())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return sha
}

// hydrate makes the hydrator's commit in a repository: these manifests, of which its file says
// what they were made from.
func (h *hydrationFixture) hydrate(r *branch.Repository, manifest, dry string) string {
	h.t.Helper()
	files := map[string]string{"web/manifest.yaml": manifest, "web/README.md": "x"}
	if dry != "" {
		files["web/hydrator.metadata"] = `{"drySha":"` + dry + `"}`
	}
	sha := h.commit(r, "env/qa", "", files)
	h.app.Revisions = []string{sha}
	return sha
}

// addNote makes what the hydrator notes on a commit.
func (h *hydrationFixture) addNote(r *branch.Repository, hydrated, dry string) {
	h.t.Helper()
	h.remotes[r].SetRef("refs/notes/hydrator.metadata", h.commit(r, "notes", "", map[string]string{hydrated: `{"drySha":"` + dry + `"}`}))
	if _, err := r.Mirror.Fetch(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// TestHydratedRelation believes that a hydrated commit has what landed only where something
// says so and its manifests show it.
func TestHydratedRelation(t *testing.T) {
	const differs = "don't have what"
	for _, c := range []struct {
		name string
		make func(f *hydrationFixture)
		want verification.Relation
		why  string
	}{
		{"the file says so, and the manifests show it", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.1.0", 1), f.landed) }, verification.Holds, ""},
		{"the status says so", func(f *hydrationFixture) {
			f.app.HydratedFrom = []verification.HydratedCommit{{Hydrated: f.hydrate(f.own, deployment("web:1.1.0", 1), ""), Dry: f.landed}}
		}, verification.Holds, ""},
		{"the status says so of what was there before", func(f *hydrationFixture) {
			f.app.HydratedFrom = []verification.HydratedCommit{{Hydrated: f.hydrate(f.own, deployment("web:1.0.0", 1), f.before), Dry: f.landed}}
		}, verification.Unresolved, differs},
		{"the file says so of what was there before", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.0.0", 1), f.landed) }, verification.Unresolved, "Deployment web (spec.image) differs"},
		{"nothing says so", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.1.0", 1), "") }, verification.Unresolved, "nothing says which commit"},
		{"the status is about another commit", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 1), "")
			f.app.HydratedFrom = []verification.HydratedCommit{{Hydrated: f.landed, Dry: f.landed}}
		}, verification.Unresolved, "nothing says which commit"},
		{"it was made before", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.0.0", 1), f.before) }, verification.Before, ""},
		{"the note says so later than the file", func(f *hydrationFixture) {
			f.addNote(f.own, f.hydrate(f.own, deployment("web:1.1.0", 1), f.before), f.landed)
		}, verification.Holds, ""},
		{"the note says so, and nothing shows it", func(f *hydrationFixture) {
			f.addNote(f.own, f.hydrate(f.own, deployment("web:1.0.0", 1), f.before), f.landed)
		}, verification.Unresolved, differs},
		{"the hydrator compared it, and had nothing to change", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 1), f.before)
			f.app.ComparedDry = f.landed
		}, verification.Holds, ""},
		{"something else differs from what is rendered here", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.1.0", 7), f.landed) }, verification.Holds, ""},
		{"something else differs, and what landed is the first commit", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 7), f.landed)
			f.look.env.Landed.Value.Parent = ""
		}, verification.Unresolved, "Deployment web differs"},
		{"the object isn't there at all", func(f *hydrationFixture) { f.hydrate(f.own, "{}\n", f.landed) }, verification.Unresolved, "Deployment web differs"},
		{"the manifests can't be read", func(f *hydrationFixture) {
			f.hydrate(f.own, "{}", f.landed)
			f.app.HydratedPath = "nowhere"
			f.app.HydratedFrom = []verification.HydratedCommit{{Hydrated: f.app.Revisions[0], Dry: f.landed}}
		}, verification.Unresolved, "the hydrated manifests can't be read"},
		{"a plugin renders it, and its value is there", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 7), f.landed)
			f.target.Sources[0].Options = json.RawMessage(`{"plugin":{}}`)
		}, verification.Holds, ""},
		{"a plugin renders it, and its value isn't there", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.0.0", 7), f.landed)
			f.target.Sources[0].Options = json.RawMessage(`{"plugin":{}}`)
		}, verification.Unresolved, "the hydrated manifests don't have web:1.1.0 of spec.image"},
		{"a plugin renders it, and a longer value is there", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0-rc.1", 7), f.landed)
			f.target.Sources[0].Options = json.RawMessage(`{"plugin":{}}`)
		}, verification.Unresolved, "the hydrated manifests don't have web:1.1.0 of spec.image"},
		{"a plugin renders it, and it carries whole files", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 7), f.landed)
			f.target.Sources[0].Options = json.RawMessage(`{"plugin":{}}`)
			f.look.c.Contents["r"] = fieldedit.Release{Fields: []fieldedit.Field{{Kind: fieldedit.KindFile, Value: "100644 1"}}}
		}, verification.Unresolved, "so it can't be told"},
		{"what was there when the pipeline came in", func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.0.0", 1), f.landed)
			f.look.env.Landed.Value.By = promotion.ByBaseline
		}, verification.Holds, ""},
		{"another repository, which is tracked", func(f *hydrationFixture) {
			f.hydrate(f.other, deployment("web:1.1.0", 1), f.landed)
			f.app.HydratedRepo, f.o.Repos.List = "git@git.example:acme/hydrated.git", append(f.o.Repos.List, f.other)
		}, verification.Holds, ""},
		{"another repository, which isn't", func(f *hydrationFixture) {
			f.hydrate(f.other, deployment("web:1.1.0", 1), f.landed)
			f.app.HydratedRepo = "git@git.example:acme/hydrated.git"
		}, verification.Unresolved, "it is hydrated into git@git.example:acme/hydrated.git, which is none of the repositories in the server's file"},
		{"the hydrated commit isn't fetched yet", func(f *hydrationFixture) { f.app.Revisions = []string{landedHash} }, verification.Unresolved, ""},
		{"the file says so with a name that is none", func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.1.0", 1), "--all") }, verification.Unresolved, "nothing says which commit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newHydrationFixture(t)
			c.make(f)
			for range 2 { // the second answer is remembered
				got, why := f.o.revisionRelations(f.look, f.at, &f.target, f.app, f.app.Revisions, false)
				if len(got) != 1 || got[0] != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
					t.Errorf("%v: %q, want %s: %q", got, why, c.want, c.why)
				}
			}
		})
	}
}

// TestHydratedChild has an Application of an app of apps, whose manifests can't be shown to have a
// release. Only Git's content and comparisons are believed, and not its status alone.
func TestHydratedChild(t *testing.T) {
	for name, c := range map[string]struct {
		make func(f *hydrationFixture)
		want verification.Relation
	}{
		"the file says so": {func(f *hydrationFixture) { f.hydrate(f.own, deployment("web:1.1.0", 1), f.landed) }, verification.Holds},
		"the note says so": {func(f *hydrationFixture) {
			f.addNote(f.own, f.hydrate(f.own, deployment("web:1.1.0", 1), f.before), f.landed)
		}, verification.Holds},
		"the hydrator compared it": {func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.1.0", 1), f.before)
			f.app.ComparedDry, f.app.Hydration = f.landed, &verification.Hydration{Phase: "Hydrated", Dry: f.before}
		}, verification.Holds},
		"the hydrator compared it, and failed to hydrate it": {func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.0.0", 1), f.before)
			f.app.ComparedDry, f.app.Hydration = f.landed, &verification.Hydration{Phase: "Failed", Dry: f.landed}
		}, verification.Before},
		"the hydrator compared it, and is at it": {func(f *hydrationFixture) {
			f.hydrate(f.own, deployment("web:1.0.0", 1), f.before)
			f.app.ComparedDry, f.app.Hydration = f.landed, &verification.Hydration{Phase: "Hydrating", Dry: f.landed}
		}, verification.Before},
		"only the status says so": {func(f *hydrationFixture) {
			f.app.HydratedFrom = []verification.HydratedCommit{{Hydrated: f.hydrate(f.own, deployment("web:1.0.0", 1), f.before), Dry: f.landed}}
		}, verification.Before},
	} {
		f := newHydrationFixture(t)
		c.make(f)
		if got, why := f.o.revisionRelations(f.look, f.at, &f.target, f.app, f.app.Revisions, true); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v %q, want %s", name, got, why, c.want)
		}
	}
}

// TestHydratedFetches has the repository fetched that a hydrated commit is in, and again when
// the hydrator has been at work without a new commit: its notes are on no branch.
func TestHydratedFetches(t *testing.T) {
	f := newHydrationFixture(t)
	f.app.HydratedRepo, f.o.Repos.List = f.other.URLs[0], append(f.o.Repos.List, f.other)
	f.app.Revisions = []string{landedHash}
	f.o.revisionRelations(f.look, f.at, &f.target, f.app, f.app.Revisions, false)
	if got := f.look.out.FetchRequests[f.other.ID]; len(got) != 1 || got[0] != landedHash {
		t.Errorf("asked for %v", f.look.out.FetchRequests)
	}
	f.look.out.FetchRequests = nil
	f.hydrate(f.other, deployment("web:1.0.0", 1), f.before)
	f.app.Hydration = &verification.Hydration{Phase: "Hydrating"}
	f.o.revisionRelations(f.look, f.at, &f.target, f.app, f.app.Revisions, false)
	if f.look.out.FetchRequests != nil {
		t.Errorf("asked for %v while it is at work", f.look.out.FetchRequests)
	}
	f.app.Hydration = &verification.Hydration{Phase: "Hydrated", Dry: f.landed}
	f.o.revisionRelations(f.look, f.at, &f.target, f.app, f.app.Revisions, false)
	if got := f.look.out.FetchRequests[f.other.ID]; len(got) != 1 || !strings.Contains(got[0], f.landed) {
		t.Errorf("asked for %v", f.look.out.FetchRequests)
	}
}

// TestHydratedBeforeAMerge takes a hydrated target that already has a pull request's release
// for one that was merged.
func TestHydratedBeforeAMerge(t *testing.T) {
	f := newHydrationFixture(t)
	f.look.env.Open = &promotion.Pull{Release: "another"}
	f.hydrate(f.own, deployment("web:1.1.0", 1), f.landed)
	f.look.c.Pipeline.Spec.Carry = carryImage
	f.at.Roots = []string{"apps/web/qa"}
	if f.o.isDeployed(context.Background(), f.look.c, f.at, f.look.env, &f.target, f.app) {
		t.Error("it has another release")
	}
	f.look.env.Open.Release = f.o.Releases.ReleaseIDAt(f.own, f.landed, f.look.c.Pipeline, f.at)
	if f.look.env.Open.Release == "" || !f.o.isDeployed(context.Background(), f.look.c, f.at, f.look.env, &f.target, f.app) {
		t.Error("it has the release")
	}
}

// FuzzHydratorFile reads what anybody may have written into a hydrated tree or a note.
func FuzzHydratorFile(f *testing.F) {
	f.Add([]byte(`{"repoURL":"https://git.example/acme/fleet","drySha":"1111111111111111111111111111111111111111"}`))
	f.Add([]byte(`{"drySha":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got := decodeHydratorFile(raw, []string{repositoryURL}); got != "" && len(got) > len(raw) {
			t.Errorf("%q out of %q", got, raw)
		}
	})
}

// TestHydratedValues holds that a value counts only as a whole or as a word of a text.
func TestHydratedValues(t *testing.T) {
	for _, c := range []struct {
		json, value string
		want        bool
	}{
		{`{"image":"registry.example/web:1.4.1"}`, "1.4.1", true}, {`{"image":"registry.example/web:1.4.10"}`, "1.4.1", false},
		{`{"image":"registry.example/web:1.4.10","args":["-v","1.4.1"]}`, "1.4.1", true}, {`"1.4.10 1.4.1"`, "1.4.1", true},
		{`"web:1.4.1@sha256:ab"`, "1.4.1", true}, {`"web-1.4.1"`, "1.4.1", true}, {`"v1.4.1"`, "1.4.1", true}, {`"rev1.4.1"`, "1.4.1", false},
		{`"1.4.1-rc.2"`, "1.4.1", false}, {`"1.4.1.2"`, "1.4.1", false}, {`"1.4.1+build"`, "1.4.1", false}, {`"21.4.1"`, "1.4.1", false}, {`"0.1.4.1"`, "1.4.1", false},
		{`"It is 1.4.1."`, "1.4.1", true}, {`"a\n1.4.1\nb"`, "1.4.1", true}, {`"1.4.1é"`, "1.4.1", false}, {`"é1.4.1"`, "1.4.1", false},
		{`{"replicas":3}`, "3", true}, {`{"replicas":30}`, "3", false}, {`{"replicas":3.5}`, "3", false}, {`{"on":true}`, "true", true}, {`{"on":"untrue"}`, "true", false}, {`{"on":null}`, "null", false},
		{`"aaab"`, "aab", false}, {`"\u00e9"`, "é", true}, {`{"1.4.1":"x"}`, "1.4.1", false}, {`{`, "1.4.1", false},
	} {
		written := &render.Manifests{Objects: []render.Object{{JSON: json.RawMessage(c.json)}}}
		why := whyValuesMissing(written, fieldedit.Release{Fields: []fieldedit.Field{{Kind: fieldedit.KindImage, Path: "k.yaml", Value: c.value}}}, "a plugin")
		if (why == "") != c.want {
			t.Errorf("%s in %s: %q", c.value, c.json, why)
		}
	}
}
