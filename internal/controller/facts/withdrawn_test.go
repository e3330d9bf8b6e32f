package facts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// reset pushes a branch back to a commit.
func (sto *story) reset(branch, commit string) {
	sto.t.Helper()
	sto.must(sto.forge.Push(storyRepo, "ada", branch, commit, true))
	sto.fetch()
}

// withdrawn are the tags of the releases that were taken back from an environment.
func withdrawn(env *promotion.Env) (out []string) {
	for i := range env.History {
		if !env.History[i].WithdrawnAt.IsZero() {
			out = append(out, env.History[i].Name)
		}
	}
	return out
}

func (sto *story) checkWithdrawn(what string, env *promotion.Env, want ...string) {
	sto.t.Helper()
	if got := withdrawn(env); fmt.Sprint(got) != fmt.Sprint(want) {
		sto.t.Errorf("%s: taken back from %s are %q, want %q", what, env.Name, got, want)
	}
}

// TestResetBranch has releases that were reset away from a branch withdrawn. The reset is a
// person's word where promotions bring releases, until the release is there again. A release that
// only another replica has seen yet is not gone.
func TestResetBranch(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	before := w.head("main")
	landed := w.merge(n, "linus")
	ev, _ := w.evaluate("web", false)
	qa := ev.Components[0].Env("qa")
	if qa.Landed.Value.By != promotion.ByPromotion || len(qa.History) != 2 {
		t.Fatalf("qa has %+v", qa.Landed.Value)
	}
	w.checkWithdrawn("before", qa)

	stale := w.openMirror()
	_, err := stale.Fetch(w.ctx())
	w.must(err)
	w.release("ada", "dev", "1.2.0", "web")
	w.evaluate("web", false)
	fresh := w.repo.Mirror
	w.release("ada", "dev", "1.0.0", "web") // as it was at first: it takes back the two
	ev, _ = w.evaluate("web", false)
	w.checkWithdrawn("gone back", ev.Components[0].Env("dev"), "1.2.0", "1.1.0")
	w.repo.Mirror = stale
	s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
	w.must(err)
	if _, _, err := w.o.Evaluate(w.ctx(), s, w.unit("web"), false); !errors.Is(err, forge.ErrConflict) {
		t.Errorf("a replica that knows less is judged on: %v", err)
	}
	ev, _ = w.evaluate("web", false)
	w.checkWithdrawn("a replica that knew less", ev.Components[0].Env("dev"), "1.2.0", "1.1.0")
	w.repo.Mirror = fresh
	w.release("ada", "dev", "1.2.0", "web")
	w.evaluate("web", false)

	w.reset("main", before)
	ev, d := w.evaluate("web", false)
	qa = ev.Components[0].Env("qa")
	dev := ev.Components[0].Env("dev")
	w.checkWithdrawn("reset", dev, "1.2.0", "1.0.0", "1.2.0")
	w.checkWithdrawn("reset", qa, "1.1.0")
	if l, st := qa.Landed.Value, d.Components[0].Env("qa"); l.By != promotion.ByPerson || st.State != promotion.Diverged || !strings.Contains(st.Reason, "reset its branch, so that 1.1.0 is gone") {
		t.Errorf("qa was reset: %+v, %s: %s", l, st.State, st.Reason)
	}
	if slices.ContainsFunc(d.Actions, func(a promotion.Action) bool { return strings.HasPrefix(a.Describe(), "open") }) {
		t.Errorf("a reset is undone: %v", d.Actions)
	}
	w.startProcess()
	for range branch.MaxMergeTries - 1 { // the merge that is gone is waited for first
		s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
		w.must(err)
		_, _, _ = w.o.Evaluate(w.ctx(), s, w.unit("web"), false)
	}
	ev, d = w.evaluate("web", false)
	if l := ev.Components[0].Env("qa").Landed.Value; l.By != promotion.ByPerson || d.Components[0].Env("qa").State != promotion.Diverged {
		t.Errorf("another process takes what was reset for %+v", l)
	}

	w.reset("main", landed)
	ev, _ = w.evaluate("web", false)
	if l := ev.Components[0].Env("qa").Landed.Value; l.By != promotion.ByPromotion {
		t.Errorf("what is there again is %+v", l)
	}
	w.checkWithdrawn("there again", ev.Components[0].Env("qa"))
}

// TestResetToBeforeARollback has what a person rolled back stay so where the branch is reset to before the
// release that they took back: the same is there as they left it.
func TestResetToBeforeARollback(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	before := w.head("main")
	w.merge(n, "linus")
	w.evaluate("web", false)
	w.release("ada", "qa", "1.0.0", "web")
	w.evaluate("web", false)
	w.reset("main", before)
	for range 2 { // the second goes by what the first wrote down
		ev, d := w.evaluate("web", false)
		qa, st := ev.Components[0].Env("qa"), d.Components[0].Env("qa")
		w.checkWithdrawn("reset to before both", qa, "1.0.0", "1.1.0") // the commit that put 1.0.0 there by hand is gone too
		if l := qa.Landed.Value; l.By != promotion.ByPerson || st.State != promotion.Diverged {
			t.Errorf("qa has %+v, %s: %s", l, st.State, st.Reason)
		}
		if slices.ContainsFunc(d.Actions, func(a promotion.Action) bool { return strings.HasPrefix(a.Describe(), "open") }) {
			t.Errorf("what was rolled back is brought again: %v", d.Actions)
		}
	}
}

// TestOlderArrivals has what is known of a release hold however much arrived since: in the environment, that
// it degraded there, and what was there before.
func TestOlderArrivals(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	w.evaluate("web", false)
	first := w.release("ada", "dev", "1.1.0", "web")
	ev, _ := w.evaluate("web", false)
	unit, bad := wake.UnitName(w.unit("web")), ev.Components[0].Env("dev").History[0]
	w.must(w.store.Tx(w.ctx(), "degrade", func(tx *store.Tx) error {
		bad.MarkDegraded(w.now)
		row, err := ev.Components[0].ArrivalRow("dev", &bad)
		if err == nil {
			_, err = tx.PutArrival(w.ctx(), row)
		}
		for i := 0; err == nil && i < store.RecentArrivals+10; i++ {
			row.Release, row.Commit = release(fmt.Sprint("r", i)), first
			row.DegradedAt, row.Data = row.VerifiedAt, []byte(`{"by":"person"}`)
			_, err = tx.PutArrival(w.ctx(), row)
		}
		return err
	}))
	w.release("ada", "dev", "1.2.0", "web")
	w.release("linus", "qa", "1.1.0", "web")
	ev, _ = w.evaluate("web", false)
	dev := ev.Components[0].Env("dev")
	i := slices.IndexFunc(dev.History, func(a promotion.Arrival) bool { return a.Release == bad.Release && a.Commit == bad.Commit })
	if i < store.RecentArrivals || !dev.History[i].IsDegraded() {
		t.Fatalf("of the %d arrivals in dev that are known none says that it degraded: %d", len(dev.History), i)
	}
	w.release("ada", "dev", "1.0.0", "web") // as it was before all of them
	ev, _ = w.evaluate("web", false)
	rows, err := w.store.OlderArrivals(w.ctx(), unit, bad.Release, release("r0"))
	w.must(err)
	if len(rows) != 2 || rows[0].WithdrawnAt.IsZero() || rows[1].WithdrawnAt.IsZero() {
		t.Errorf("what is back in dev took back, of what was there long ago, %+v", rows)
	}
	w.checkWithdrawn("it is there", &promotion.Env{Name: "dev", History: ev.Components[0].Env("dev").History[:1]})
}

// TestFindWithdrawn finds in Git releases that were withdrawn while no process looked, or ever,
// once the database is lost. An earlier release took their place, and they didn't come again since.
func TestFindWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		env      string
		released []string // after 1.0.0, which is there since before the pipeline
		want     []string
		seen     int // how many of them there are at a look, before that happens again; 0: there is no look
	}{
		"nothing":                       {"dev", []string{"1.1.0", "1.2.0"}, nil, 0},
		"the baseline is back":          {"dev", []string{"1.1.0", "1.0.0"}, []string{"1.1.0"}, 0},
		"back by several":               {"dev", []string{"1.1.0", "1.2.0", "1.3.0", "1.1.0"}, []string{"1.3.0", "1.2.0"}, 0},
		"another came since":            {"dev", []string{"1.1.0", "1.2.0", "1.1.0", "1.3.0"}, []string{"1.2.0"}, 0},
		"it came again":                 {"dev", []string{"1.1.0", "1.2.0", "1.1.0", "1.2.0"}, []string{"1.1.0"}, 0},
		"it came again and went":        {"dev", []string{"1.1.0", "1.2.0", "1.1.0", "1.2.0", "1.0.0"}, []string{"1.2.0", "1.1.0", "1.2.0", "1.1.0"}, 0},
		"where promotions bring them":   {"qa", []string{"1.1.0", "1.0.0"}, []string{"1.1.0"}, 0},
		"seen, and replaced":            {"dev", []string{"1.1.0", "1.2.0", "1.3.0"}, nil, 1},
		"seen, back and then another":   {"dev", []string{"1.1.0", "1.0.0", "1.2.0"}, []string{"1.1.0"}, 1},
		"seen, back and again":          {"dev", []string{"1.1.0", "1.0.0", "1.1.0", "1.2.0"}, nil, 1},
		"another came and went, unseen": {"dev", []string{"1.1.0", "1.2.0", "1.1.0", "1.3.0"}, nil, 1},
		"seen, and back by several":     {"dev", []string{"1.1.0", "1.2.0", "1.3.0", "1.1.0", "1.4.0"}, []string{"1.3.0", "1.2.0"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
			for i, tag := range c.released {
				if i <= c.seen && c.seen > 0 {
					w.evaluate("web", false)
				}
				w.release("ada", c.env, tag, "web")
			}
			for range 2 { // the second finds it on record
				ev, _ := w.evaluate("web", false)
				env := ev.Components[0].Env(c.env)
				w.checkWithdrawn("then", env, c.want...)
				if last := c.released[len(c.released)-1]; env.History[0].Name != last || !env.History[0].WithdrawnAt.IsZero() {
					t.Errorf("what is there is %+v", env.History[0])
				}
			}
		})
	}
}

// TestBackToBeforeTheDatabase has a person go back to a release that was there only before the
// database was lost. The release that they leave counts as withdrawn, however often that has been
// read since.
func TestBackToBeforeTheDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		before, since []string // the database is lost between them
		want          []string
	}{
		"before":                 {[]string{"1.1.0", "1.2.0", "1.3.0"}, []string{"1.1.0"}, []string{"1.2.0", "1.3.0"}},
		"the baseline":           {[]string{"1.1.0", "1.2.0"}, []string{"1.3.0", "1.0.0"}, []string{"1.1.0", "1.3.0", "1.2.0"}},
		"another came":           {[]string{"1.1.0", "1.2.0"}, []string{"1.3.0", "1.1.0", "1.4.0"}, []string{"1.3.0", "1.2.0"}},
		"while nobody looked":    {[]string{"1.1.0", "1.2.0", "1.3.0"}, []string{"unseen 1.1.0", "1.4.0"}, []string{"1.2.0", "1.3.0"}},
		"taken back before":      {[]string{"1.1.0", "1.2.0", "1.1.0", "1.3.0", "1.4.0"}, []string{"1.0.0"}, []string{"1.3.0", "1.1.0", "1.4.0", "1.2.0"}},
		"nothing that was there": {[]string{"1.1.0", "1.2.0"}, []string{"1.3.0"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
			for _, tag := range c.before {
				w.evaluate("web", false)
				w.release("ada", "dev", tag, "web")
			}
			w.evaluate("web", false)
			w.restart()
			w.evaluate("web", false)
			for _, tag := range c.since {
				tag, isUnseen := strings.CutPrefix(tag, "unseen ")
				if w.release("ada", "dev", tag, "web"); !isUnseen {
					w.evaluate("web", false)
				}
			}
			ev, _ := w.evaluate("web", false)
			w.checkWithdrawn("then", ev.Components[0].Env("dev"), c.want...)
		})
	}
}

// TestReleaseMovesWithFolder has a release that comes with the commit that moves its folder arrive there, and
// what only moves be there as it was.
func TestReleaseMovesWithFolder(t *testing.T) {
	move := func(w *story, devTag string) {
		w.t.Helper()
		set, err := w.repo.Mirror.Tree(w.head("main")).ReadFile("argocd/shop.yaml")
		w.must(err)
		files := map[string]string{"argocd/shop.yaml": strings.Replace(string(set), "apps/*/*", "services/*/*", 1)}
		for env, tag := range map[string]string{"dev": devTag, "qa": "1.0.0", "prod": "1.0.0"} {
			files[overlayFile("web", env)] = ""
			files[strings.Replace(overlayFile("web", env), "apps/", "services/", 1)] = overlayText("web", tag)
		}
		w.commit("ada", "Move the folder", files)
	}
	for name, c := range map[string]struct {
		released, moved string
		dev, qa         string // by what they have what is there then
	}{
		"a release with the move":   {"1.0.0", "1.2.0", promotion.ByPerson, promotion.ByBaseline},
		"a release before the move": {"1.1.0", "1.1.0", promotion.ByPerson, promotion.ByBaseline},
		"both":                      {"1.1.0", "1.2.0", promotion.ByPerson, promotion.ByBaseline},
		"a move alone":              {"1.0.0", "1.0.0", promotion.ByBaseline, promotion.ByBaseline},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
			w.evaluate("web", false)
			if c.released != "1.0.0" {
				w.release("ada", "dev", c.released, "web")
				w.evaluate("web", false)
			}
			move(w, c.moved)
			for range 2 { // the second finds it on record
				ev, _ := w.evaluate("web", false)
				dev, qa := ev.Components[0].Env("dev"), ev.Components[0].Env("qa")
				if dev.Landed.Value.By != c.dev || qa.Landed.Value.By != c.qa {
					t.Errorf("what is in dev came by %s, and in qa by %s: %+v", dev.Landed.Value.By, qa.Landed.Value.By, dev.History)
				}
			}
		})
	}
}
