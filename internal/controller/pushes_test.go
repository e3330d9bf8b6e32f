package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// pushes commits files to the tracked branch and gives the units that this wakes.
func (f *fixture) pushes(files map[string]string, remove ...string) []string {
	f.t.Helper()
	f.dropDue()
	_, err := f.forge.CommitAs(repoName, "linus", "main", "A push", files, remove...)
	f.must(err)
	f.runRepository()
	return f.dropDue()
}

// dropDue takes everything that is due out of the queue and names the units in it.
func (f *fixture) dropDue() []string {
	f.t.Helper()
	f.clock.Step(time.Second)
	var out []string
	for {
		claims, err := f.opts.Store.Claim(f.t.Context(), "others", 1000)
		f.must(err)
		if len(claims) == 0 {
			slices.Sort(out)
			return out
		}
		for _, c := range claims {
			f.must(f.opts.Store.Finish(f.t.Context(), "others", c, store.Outcome{}))
			if k, _ := wake.Parse(c.Key); k.Kind == wake.Unit {
				out = append(out, k.Component)
			}
		}
	}
}

// TestPushWakesChangedUnits holds whom a push, a hold and our own branches wake.
func TestPushWakesChangedUnits(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "db", "web")
	everybody := []string{"api", "db", "web"}
	shared := "resources: [../../../shared]\n"
	files := worldFiles(w.forge.CloneURL(repoName), "", manualQA, everybody)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"only documentation", map[string]string{"docs/README.md": "more"}, nil},
		{"a release", map[string]string{kustomizationOf("web", "dev"): kustomization("web", "2.0.0")}, []string{"web"}},
		{"files that two begin to read", map[string]string{"shared/kustomization.yaml": "resources: []\n",
			kustomizationOf("web", "qa"): shared + kustomization("web", "1.0.0"), kustomizationOf("api", "qa"): shared + kustomization("api", "1.0.0")}, []string{"api", "web"}},
		{"a file that two read", map[string]string{"shared/kustomization.yaml": "resources: []\nnamePrefix: a-\n"}, []string{"api", "web"}},
		{"one that ceases to read it", map[string]string{kustomizationOf("web", "qa"): kustomization("web", "1.0.0")}, []string{"api", "web"}},
		{"a component that is new", map[string]string{kustomizationOf("new", "dev"): kustomization("new", "1.0.0")}, []string{"new"}},
		{"the pipeline", map[string]string{".liftlock.yaml": strings.Replace(files[".liftlock.yaml"], "watch: 10m", "watch: 11m", 1)}, []string{"api", "db", "new", "web"}},
		{"the pipeline, broken", map[string]string{".liftlock.yaml": "nothing: [that is"}, []string{"api", "db", "new", "web"}},
		{"the pipeline, mended", map[string]string{".liftlock.yaml": files[".liftlock.yaml"]}, []string{"api", "db", "new", "web"}},
		{"the ApplicationSet", map[string]string{"argocd/shop.yaml": strings.Replace(files["argocd/shop.yaml"], "namespace: shop}", "namespace: other}", 1)}, []string{"api", "db", "new", "web"}},
	} {
		if got := w.pushes(c.files); !slices.Equal(got, c.want) {
			t.Errorf("%s wakes %v, not %v", c.name, got, c.want)
		}
	}
	if got := w.pushes(nil, kustomizationOf("new", "dev")); !slices.Equal(got, []string{"new"}) {
		t.Errorf("a component that is gone wakes %v", got)
	}
	head, err := w.forge.Head(repoName, "main")
	w.must(err)
	w.must(w.forge.SetBranch(repoName, "linus", "liftlock/shop/qa/db", head))
	w.runRepository()
	if got := w.dropDue(); !slices.Equal(got, []string{"db"}) {
		t.Errorf("a branch of ours wakes %v", got)
	}
	w.must(w.forge.SetBranch(repoName, "linus", "theirs", head))
	w.runRepository()
	if got := w.dropDue(); len(got) != 0 {
		t.Errorf("a branch of somebody's wakes %v", got)
	}
	hold := command.Command{Verb: command.Hold, Scope: command.ScopeComponent, Reason: "a freeze"}
	for i, c := range []string{"web", "db"} {
		_, err = w.command("ada", 1+i, c, hold)
		w.must(err)
		w.runRepository()
		if got := w.dropDue(); i > 0 && !slices.Equal(got, []string{c}) {
			t.Errorf("a hold of %s wakes %v", c, got)
		}
	}
}

// runDue runs what comes due within a time, as the loop would, and counts the runs.
func (f *fixture) runDue(within time.Duration) map[wake.Kind]int {
	f.t.Helper()
	out := map[wake.Kind]int{}
	for until := f.clock.Now().Add(within); f.clock.Now().Before(until); f.clock.Step(time.Second) {
		for {
			claims, err := f.claimKeys(f.t.Context(), 1, 0)
			f.must(err)
			if len(claims) == 0 {
				break
			}
			for _, c := range claims {
				k, _ := wake.Parse(c.Key)
				if out[k.Kind]++; out[k.Kind] > 10_000 {
					f.t.Fatalf("it doesn't come to rest: %v runs", out)
				}
				f.runClaim(f.t.Context(), c, f.clock.Now())
			}
		}
	}
	return out
}

// TestPushCostGrowsWithItsChanges counts runs among a thousand components.
func TestPushCostGrowsWithItsChanges(t *testing.T) {
	var components []string
	for i := range 1000 {
		components = append(components, fmt.Sprintf("c%04d", i))
	}
	w := newFixture(t, "", manualQA, components...)
	w.dropDue()
	w.must(w.run(wake.ForUnit(w.unit("c0500")))) // the baseline is written down
	push := func(name, text string) map[wake.Kind]int {
		_, err := w.forge.CommitAs(repoName, "linus", "main", "A push", map[string]string{name: text})
		w.must(err)
		w.must(w.opts.Store.Wake(t.Context(), wake.ForRepository(w.repo.ID).String()))
		return w.runDue(time.Minute)
	}
	if runs := push("docs/README.md", "more"); runs[wake.Unit] != 0 || runs[wake.Repository] != 1 {
		t.Errorf("a push of documentation cost %v", runs)
	}
	runs := push(kustomizationOf("c0500", "dev"), kustomization("c0500", "2.0.0"))
	for range 4 { // Argo CD takes it, and compares it a few times
		app, _ := (*worldApps)(w).Get("argocd", "c0500-dev")
		w.AppChanged(*app, false)
		if !w.storePending(t.Context(), w.wakePending) {
			t.Fatal("what was heard could not be stored")
		}
		for kind, n := range w.runDue(10 * time.Second) {
			runs[kind] += n
		}
	}
	total := 0
	for _, n := range runs {
		total += n
	}
	t.Logf("one release cost %v", runs)
	if total > 8 || len(w.pulls()) != 1 {
		t.Errorf("one release cost %v and led to %d pull requests", runs, len(w.pulls()))
	}
}

// TestConflictWithAnUnknownPush holds that a conflict with a push that nobody has told of is
// found by a fetch, once, and not by composing the same again and again.
func TestConflictWithAnUnknownPush(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	before := w.openOne("web", "1.1.0", "web")
	w.runDue(time.Minute)
	_, err := w.forge.CommitAs(repoName, "linus", "main", "A line beside it", map[string]string{kustomizationOf("web", "qa"): kustomization("web", "1.0.0") + "namePrefix: eu-\n"})
	w.must(err)
	w.must(w.opts.Store.Wake(t.Context(), wake.ForPull(w.repo.ID, before.Number).String()))
	if runs := w.runDue(time.Minute); runs[wake.Unit] > 12 {
		t.Errorf("runs: %v", runs)
	}
	head, _, err := w.repo.Mirror.Head(t.Context(), "main")
	w.must(err)
	after := w.pulls()[before.Number-1]
	info, err := w.repo.Mirror.Commit(t.Context(), after.Head)
	w.must(err)
	if after.Head == before.Head || len(info.Parents) != 1 || info.Parents[0] != head {
		t.Errorf("composed on %v, and not on %s", info.Parents, head)
	}
}
