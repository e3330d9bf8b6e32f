package facts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/promotion"
)

// blame says which commits changed since what landed what the targets of web in qa read.
func (sto *story) blame(change func(c *ComponentEvaluation, env *promotion.Env)) map[string][]string {
	sto.t.Helper()
	ev, _ := sto.evaluate("web", false)
	c := ev.Components[0]
	qa := c.Env("qa")
	if change != nil {
		change(c, qa)
	}
	sto.must(sto.o.answerBlame(sto.ctx(), c, qa))
	out := map[string][]string{}
	for _, t := range qa.Targets {
		if !t.ChangedSince.OK {
			sto.t.Errorf("of %s nothing is known: %s", t.Name, t.ChangedSince.Err)
		}
		for _, sha := range t.ChangedSince.Value {
			out[t.Name] = append(out[t.Name], sto.names[sha])
		}
		slices.Sort(out[t.Name])
	}
	return out
}

// TestBlame holds which commits may be to blame beside the landed one. Those are later ones that
// changed files that a target reads. It isn't known what an Application below a target reads. So
// every commit counts that changed files above it, or files of this repository that it may read
// itself.
func TestBlame(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	w.commit("ada", "Before", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n"})
	w.promote("1.1.0")
	expect := func(what string, want map[string][]string, change func(c *ComponentEvaluation, env *promotion.Env)) {
		t.Helper()
		if diff := cmp.Diff(want, w.blame(change)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing since", map[string][]string{}, nil)
	w.commit("ada", "Docs", map[string]string{"docs": "x"})
	w.commit("ada", "Another's", map[string]string{"base/api/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec: {replicas: 1}\n"})
	expect("what it doesn't read", map[string][]string{}, nil)
	w.commit("ada", "Its base", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"})
	w.commit("ada", "Once more", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"})
	expect("what it reads", map[string][]string{"web-qa": {"Its base", "Once more"}}, nil)
	below := func(here bool) func(c *ComponentEvaluation, env *promotion.Env) {
		return func(c *ComponentEvaluation, env *promotion.Env) {
			c.children["qa"] = []live.ChildTarget{{Target: appset.Target{Name: "part", Namespace: "argocd", Sources: []appset.Source{{RepoURL: repoURL, Here: here}}}, Label: "part", Parent: "web-qa"}}
			env.Targets = append(env.Targets, promotion.Target{Name: "part"}, promotion.Target{Name: "gone"})
		}
	}
	expect("what is read above it", map[string][]string{"web-qa": {"Its base", "Once more"}, "part": {"Its base", "Once more"}}, below(false))
	expect("anything that it may read itself", map[string][]string{"web-qa": {"Its base", "Once more"}, "part": {"Another's", "Docs", "Its base", "Once more"}}, below(true))
	w.must(w.forge.Push(storyRepo, "ada", "liftlock/other", w.head("main"), false))
	expect("a branch that nothing follows", map[string][]string{"web-qa": {"Its base", "Once more"}}, nil)
}

// TestBlameOfUnknownReaders says so where it isn't known what targets read.
func TestBlameOfUnknownReaders(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.promote("1.1.0")
	w.commit("ada", "Since", map[string]string{"docs": "x"})
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	for branchName, ix := range c.Pipeline.ReaderIndexes {
		c.Pipeline.ReaderIndexes[branchName] = branch.NewLazyIndex(w.repo, branchName, landedHash, ix.Targets, nil)
	}
	qa := c.Env("qa")
	w.must(w.o.answerBlame(w.ctx(), c, qa))
	if known := qa.Targets[0].ChangedSince; known.OK || !strings.Contains(known.Err, "find out what the targets read") {
		t.Errorf("it is known: %+v", known)
	}
}

// TestBlameOfOtherBranches counts of another branch than the environment's own, which what landed isn't
// on, what is no older than that.
func TestBlameOfOtherBranches(t *testing.T) {
	set := appSetYAML("s", "{list: {elements: ["+listElement("web", "qa", "env/qa")+"]}}",
		"sources: [{repoURL: '"+repoURL+"', path: 'apps/web', targetRevision: '{{ .branch }}'}, {repoURL: '"+repoURL+"', path: base, targetRevision: main}]")
	repo := newBranchRepo(t, map[string]string{"argocd/s.yaml": set})
	o := newTestGatherer(repo)
	repo.checkoutBranch("main")
	repo.commit("main", map[string]string{"base/d.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n"})
	older := repo.amend("main", "Older")
	newer := repo.commit("main", map[string]string{"base/d.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\n"})
	landed, _, err := repo.Mirror.Head(t.Context(), "env/qa")
	if err != nil {
		t.Fatal(err)
	}
	when := map[string]time.Time{}
	for _, sha := range []string{older, newer} {
		info, err := repo.Mirror.Commit(t.Context(), sha)
		if err != nil {
			t.Fatal(err)
		}
		when[sha] = info.CommitTime
	}
	if !when[older].Before(when[newer]) {
		t.Fatalf("the commits are of %v", when)
	}
	s := takeSnapshot(t, o, repo)
	for name, c := range map[string]struct {
		at   time.Time
		want []string
	}{
		"before both":           {when[older].Add(-time.Second), []string{newer, older}},
		"in the older's moment": {when[older], []string{newer, older}},
		"between them":          {when[newer].Add(-time.Nanosecond), []string{newer}},
		"after both":            {when[newer].Add(time.Second), nil},
	} {
		env := &promotion.Env{Name: "qa", Branch: "env/qa", Tip: s.BranchTips["env/qa"], Targets: []promotion.Target{{Name: "s-web-qa"}}, Landed: promotion.Sure(promotion.Landed{Commit: landed, At: c.at})}
		comp := componentOf(&Evaluation{Basis: branch.Basis{Snapshot: s, Pipeline: s.Pipelines[0]}}, branch.ComponentBasis{Unit: s.Pipelines[0].Units["web"]})
		if err := o.answerBlame(t.Context(), comp, env); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, env.Targets[0].ChangedSince.Value); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
