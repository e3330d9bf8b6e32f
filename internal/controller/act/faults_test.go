package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// failEach has one call of an action after the other fail, before and after its effect, and does
// the action again. The error says so, and in the end all is done, once. begin sets up the state
// before; failures of calls whose names begin like one of the tolerated stop nothing.
func (f *fixture) failEach(begin func() (do func() error, done func()), tolerated ...string) {
	f.t.Helper()
	for at := 0; ; at++ {
		for _, after := range []bool{false, true} {
			f.faults = faulttest.Faults{}
			do, done := begin()
			f.faults = faulttest.Faults{At: at + 1, After: after, Deep: true}
			err := do()
			hit := f.faults.Hit
			f.faults = faulttest.Faults{}
			switch {
			case hit == "":
				f.must(err)
				done()
				if at == 0 {
					f.t.Error("nothing was called")
				}
				return
			case hit == "context" && err == nil: // of what is only described, the text says that it isn't known
			case slices.ContainsFunc(tolerated, func(t string) bool { return strings.HasPrefix(hit, t) }):
				f.must(err)
			case !errors.Is(err, faulttest.ErrInjected) || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), hit):
				f.t.Errorf("call %d, %s, failed (after its effect: %v): %v", at+1, hit, after, err)
			}
			if err := do(); err != nil && !errors.Is(err, ErrStale) {
				f.t.Errorf("after call %d, %s, had failed (after its effect: %v): %v", at+1, hit, after, err)
			}
			done()
			if f.t.Failed() {
				f.t.Fatalf("that was after call %d, %s, had failed (after its effect: %v)", at+1, hit, after)
			}
		}
	}
}

// TestRowsThatCannotBeWritten holds that nothing is taken for written down that isn't,
// and nothing written down in part.
func TestRowsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	long := []promotion.Member{{Component: "web", Release: strings.Repeat("x", 600)}}
	bound := []promotion.Member{{Component: "web", Release: long[0].Release, CommandID: 1}}
	fails := func(ev *facts.Evaluation, d *promotion.Decision, actions ...promotion.Action) {
		t.Helper()
		before := len(w.events("")) // of every kind
		for _, a := range actions {
			if err := w.do(ev, d, a); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%T: %v", a, err)
			}
		}
		w.compare("events", len(w.events("")), before)
	}
	ev, d, open := w.ready("2.0.0")
	for _, m := range [][]promotion.Member{long, bound} {
		one := open
		one.Members = m
		fails(ev, d, one)
		w.forgetOpening()
	}
	w.must(w.do(ev, d, open))
	w.release("3.0.0")
	w.verifyDev()
	ev, d = w.evaluate()
	replace := decided[promotion.Replace](w, d)
	head := w.remoteHead(w.forge.pulls[1].Branch)
	one := replace
	one.Members = long
	fails(ev, d, one)
	w.setRemoteHead(w.forge.pulls[1].Branch, head)
	w.fetch()
	w.must(w.do(ev, d, replace))
	ev, d = w.evaluate()
	merge := w.merge(ev, 1)
	merge.Members = long
	fails(ev, d, merge)
	w.lookAgain() // it is merged, whatever could not be written
	ev, d = w.evaluate()
	arrival := &ev.Components[0].Env("qa").History[0]
	known := arrival.Release
	arrival.Release = long[0].Release
	fails(ev, d, promotion.Record{Environment: "qa", Release: arrival.Release, Commit: arrival.Commit, Verified: true})
	arrival.Release = known
	ev, d, revert := w.requestRevert()
	restored := revert.Members[0]
	revert.Members = []promotion.Member{restored, long[0]} // which is the same component once more
	fails(ev, d, revert)
}

// breakRemote takes the remote away, mendRemote brings it back.
func (f *fixture) breakRemote() { f.away = true }

func (f *fixture) mendRemote() { f.away = false }

// targets are the targets of the first component in an environment.
func (f *fixture) targets(env string) []appset.Target {
	f.t.Helper()
	ev, _ := f.evaluate()
	return ev.Components[0].Unit.Envs[env].Targets
}

// fetch brings the mirror to where the remote is.
func (f *fixture) fetch() {
	f.t.Helper()
	_, err := f.repo.Mirror.Fetch(f.ctx())
	f.must(err)
}

// forgetRow sets the row of the first component's part in a pull request to a state that
// no action writes.
func (f *fixture) forgetRow(pull int) {
	f.t.Helper()
	p := f.promotionOf(f.names[0], pull)
	p.State = "before"
	f.must(f.store.Tx(f.ctx(), "before", func(tx *store.Tx) error {
		_, err := tx.PutPromotion(f.ctx(), p)
		return err
	}))
}

const (
	freeing  = "store: free" // a slot that isn't given back comes free by itself
	deletion = "git: push"   // a branch that can't be deleted is a leftover, which the sweep deletes
)

func TestOpenFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	n := 0
	w.failEach(func() (func() error, func()) {
		if n = len(w.forge.pulls); n > 0 {
			w.forge.pulls[n].State = forge.Closed
		}
		w.setRemoteHead("liftlock/shop/qa/web", "")
		w.fetch()
		w.must(w.store.FreeSlot(w.ctx(), openSlot+"web", "me/"+unitName(w, "web")))
		return func() error { return w.do(ev, d, open) }, func() {
			w.compare("pull requests", len(w.forge.pulls), n+1)
			w.compare("the row", w.promotionOf("web", n+1).State, promotion.Opened)
			w.compare("events", len(w.events("opened")), n+1)
			w.compare("labels", w.forge.pulls[n+1].Labels, []string{"env/qa", "liftlock"})
		}
	}, freeing)
}

// lookAgain writes down and tidies up what the next look at the unit finds.
func (f *fixture) lookAgain() {
	f.t.Helper()
	f.fetch()
	ev, _ := f.evaluate()
	for _, c := range ev.Components {
		rows, events, err := f.gatherer.Records.ListChanged(f.ctx(), c)
		f.must(err)
		f.must(f.store.Tx(f.ctx(), "records", func(tx *store.Tx) error {
			for _, p := range rows {
				if _, err := tx.PutPromotion(f.ctx(), p); err != nil {
					return err
				}
			}
			_, err := tx.AddEvents(f.ctx(), events...)
			return err
		}))
	}
	f.must(f.actor.DeleteLeftovers(f.ctx(), ev))
}

func TestMergeFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	merge, opened := w.merge(ev, n), clonePull(w.forge.pulls[n])
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		w.forge.pulls[n] = &pr
		w.setRemoteHead("main", merge.Tip)
		w.setRemoteHead(pr.Branch, merge.Head)
		w.fetch()
		w.forgetRow(n)
		return func() error {
				err := w.do(ev, d, merge)
				if errors.Is(err, ErrStale) { // it landed before the failure: the next look finds that
					w.lookAgain()
				}
				return err
			}, func() {
				w.compare("pull request and branches", []any{w.forge.pulls[n].State, w.remoteHead("main"), w.remoteHead(pr.Branch)}, []any{forge.Merged, merge.Head, ""})
				w.compare("the row", w.promotionOf("web", n).State, "merged")
				w.compare("events", len(w.events("merged")), 1)
			}
	}, deletion)
	w.forge.pulls[n].State = forge.Open
	w.setRemoteHead("main", merge.Tip)
	w.setRemoteHead(opened.Branch, merge.Head)
	w.forge.merging = w.breakRemote
	if err := w.do(ev, d, merge); err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "fetch") {
		t.Errorf("a fetch that fails: %v", err)
	}
}

func TestCloseFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	opened := clonePull(w.forge.pulls[n])
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		w.forge.pulls[n] = &pr
		w.setRemoteHead(pr.Branch, pr.Head)
		w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
		clear(w.forge.comments)
		var err error
		return func() error {
				err = w.do(ev, d, promotion.Close{Environment: "qa", Pull: n, Why: "nobody needs it", Members: ev.OpenPulls[n].Members})
				return err
			}, func() {
				w.compare("state, label, comments", []any{pr.State, slices.Contains(w.forge.closed[n], promotion.LabelSuperseded), len(w.forge.comments[n])}, []any{forge.Closed, true, 1})
				if err == nil { // else the look after it writes that down
					w.compare("the row", w.promotionOf("web", n).State, "superseded")
				}
			}
	}, "forge: delete", deletion)
	w.compare("events", len(w.events("closed")), 1)
}

func TestReplaceFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	opened := clonePull(w.forge.pulls[n])
	w.release("3.0.0")
	w.verifyDev()
	ev, d := w.evaluate()
	replace := decided[promotion.Replace](w, d)
	heads := map[string]bool{}
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		w.forge.pulls[n] = &pr
		w.setRemoteHead(pr.Branch, opened.Head)
		w.fetch()
		w.forgetRow(n)
		var err error
		return func() error { err = w.do(ev, d, replace); return err }, func() {
			heads[w.remoteHead(pr.Branch)] = true
			if err == nil { // else the look after it brings that up to date
				w.compare("the row", w.promotionOf("web", n).State, promotion.Opened)
				w.compare("the title", strings.Contains(pr.Title, "3.0.0"), true)
			}
		}
	})
	w.compare("heads", []any{len(heads), heads[opened.Head]}, []any{1, false})
}

func TestRevertFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.metrics.recorded = nil
	n := 0
	var branch string
	w.failEach(func() (func() error, func()) {
		if n = len(w.forge.pulls); n > 1 {
			branch = w.forge.pulls[n].Branch
			w.forge.pulls[n].State, w.forge.pulls[n].CreatedAt = forge.Closed, w.now.Add(-1e12)
			w.setRemoteHead(branch, "")
			w.fetch()
			_, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, n)
			w.must(err)
			w.hideRow(n) // what is judged doesn't know that a person closed it
		}
		w.must(w.store.FreeSlot(w.ctx(), revertSlot, "me/"+unitName(w, "web")))
		w.forgetRow(1)
		w.forgetOpening()
		var err error
		return func() error { err = w.do(ev, d, revert); return err }, func() {
			w.compare("pull requests", len(w.forge.pulls), n+1)
			if err == nil { // else it counts by now, and the look after it writes it down
				w.compare("the rows", []string{w.promotionOf("web", 1).State, w.promotionOf("web", n+1).State}, []string{promotion.Reverting, promotion.Opened})
			}
		}
	}, freeing)
}

func TestRecomposeFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.must(w.do(ev, d, revert))
	opened := clonePull(w.forge.pulls[2])
	w.commit("Say who looks after it", map[string]string{kustomizationOf("web", "qa"): "# linus\n" + kustomization("web", "2.0.0")})
	ev, d = w.evaluate()
	again := decided[promotion.RecomposeRevert](w, d)
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		w.forge.pulls[2] = &pr
		w.setRemoteHead(pr.Branch, opened.Head)
		w.fetch()
		return func() error { return w.do(ev, d, again) }, func() {
			info, err := w.repo.Mirror.Commit(w.ctx(), w.remoteHead(pr.Branch))
			w.must(err)
			w.compare("parents", info.Parents, []string{again.Tip})
		}
	})
	ev.OpenPulls[2].Reverts.MergeCommit = strings.Repeat("0", 40)
	w.setRemoteHead(opened.Branch, opened.Head)
	if err := w.do(ev, d, again); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("what can't be composed: %v", err)
	}
}

func TestPresentFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	opened := clonePull(w.forge.pulls[n])
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		pr.Title, pr.Labels = "old", []string{"env/qa", promotion.LabelSuperseded}
		w.forge.pulls[n] = &pr
		w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
		clear(w.forge.comments)
		clear(w.forge.statuses)
		ev, d := w.evaluate()
		return func() error { return presentError(w.actor.Present(w.ctx(), ev, d)) }, func() {
			w.compare("what it shows", []any{pr.Title, pr.Body, pr.Labels, len(w.forge.comments[n]), w.forge.statuses[pr.Head].State}, []any{opened.Title, opened.Body, opened.Labels, 1, forge.StatusPending})
		}
	})
}

// TestPresentLandedFails is the same for the comments of what was merged.
func TestPresentLandedFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.must(w.do(ev, d, revert))
	ev, d = w.evaluate()
	w.must(w.do(ev, d, w.merge(ev, 2)))
	w.now = w.now.Add(landingGrace)
	w.failEach(func() (func() error, func()) {
		for n := range w.forge.pulls {
			w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
		}
		clear(w.forge.comments)
		ev, d := w.evaluate()
		return func() error { return presentError(w.actor.Present(w.ctx(), ev, d)) }, func() {
			w.compare("comments", []int{len(w.forge.comments[1]), len(w.forge.comments[2])}, []int{1, 1})
		}
	})
}

// TestStoreFails holds that what couldn't be written down is told, for what writes nothing
// else.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	ev, d := w.evaluate()
	env := ev.Components[0].Env("qa")
	for _, a := range []promotion.Action{
		promotion.Record{Environment: "qa", Release: env.Release.Value.ID, Commit: env.Landed.Value.Commit, Verified: true},
		promotion.RestartVerification{Environment: "qa"},
		promotion.RestartVerification{Environment: "qa", Resync: []string{env.Targets[0].Name}},
	} {
		if x, restarts := a.(promotion.RestartVerification); restarts && len(x.Resync) > 0 { // whose failed sync is remembered
			env.Targets[0].Verdict.Unsynced = &verification.Unsynced{LastSync: w.now}
		}
		before := len(w.events("verified")) + len(w.events("retry"))
		w.failEach(func() (func() error, func()) {
			return func() error { return w.do(ev, d, a) }, func() {}
		})
		if len(w.events("verified"))+len(w.events("retry")) == before {
			t.Errorf("%T did nothing", a)
		}
	}
}

// TestCommentsOfOthers holds what is kept up to date on pull requests that aren't ours.
func TestCommentsOfOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	head := 0
	update := func(text string, worth bool) []string { // of another head each time
		t.Helper()
		w.faults.Calls = nil
		head++
		w.must(presentError(w.actor.UpdateComment(w.ctx(), w.repo, 7, fmt.Sprint(head), text, worth)))
		return w.writes()
	}
	const one, two = "<!-- liftlock:status -->\none", "<!-- liftlock:status -->\ntwo"
	w.forge.say(7, "linus", one)
	w.compare("nothing worth it", update(one, false), []string(nil))
	w.compare("something", update(one, true), []string{"forge: comment #7", "store: commented"})
	w.compare("the same", update(one, true), []string(nil))
	w.compare("the same, not worth it any more", update(one, false), []string(nil))
	w.compare("another, not worth it", update(two, false), []string{"forge: recomment #7", "store: put record"})
	w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, 7))))
	w.compare("found, not worth it", update(one, false), []string{"forge: recomment #7", "store: put record"})
	w.compare("comments", []any{len(w.forge.comments[7]), w.forge.comments[7][1].Body}, []any{2, one})
	w.failEach(func() (func() error, func()) {
		w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, 7))))
		w.forge.comments[7][1].Body = one
		head++
		return func() error {
				return presentError(w.actor.UpdateComment(w.ctx(), w.repo, 7, fmt.Sprint(head), two, false))
			}, func() {
				w.compare("comments", []any{len(w.forge.comments[7]), w.forge.comments[7][1].Body}, []any{2, two})
			}
	})

	w.now = w.now.Add(commentInterval)
	for i, step := range []struct {
		head, text string
		put        bool
	}{{"a", one, true}, {"a", two, false}, {"b", two, true}, {"a", one, false}} {
		next, err := w.actor.UpdateComment(w.ctx(), w.repo, 7, step.head, step.text, true)
		w.must(err)
		if is := w.forge.comments[7][1].Body == step.text; is != step.put || next.IsZero() != step.put {
			t.Errorf("step %d: written %v, next %s", i, is, next)
		}
	}

	status := func(number int, commit string, st prtext.Status) []string {
		t.Helper()
		w.faults.Calls = nil
		w.must(w.actor.SetStatus(w.ctx(), w.repo, number, commit, st))
		return w.writes()
	}
	st := prtext.Status{State: "success", Description: "fine"}
	set := []string{"forge: status", "store: put record"}
	w.compare("a status", status(7, "c1", st), set)
	w.compare("the same", status(7, "c1", st), []string(nil))
	w.compare("it says", w.forge.statuses["c1"], forge.Status{Context: "liftlock", State: forge.StatusSuccess, Description: "fine", TargetURL: console})
	w.compare("another commit", status(7, "c2", st), set)
	w.compare("another pull request", status(8, "c2", st), set)
	st.State = "failure"
	w.compare("another state", status(7, "c2", st), set)
	st.Description = "bad"
	w.compare("another description", status(7, "c2", st), set)
	w.compare("a comment keeps it", append(update(one, true), status(7, "c2", st)...), []string{"forge: recomment #7", "store: put record"})
	i := 0
	w.failEach(func() (func() error, func()) {
		i++
		commit := fmt.Sprint("d", i)
		return func() error { return w.actor.SetStatus(w.ctx(), w.repo, 7, commit, st) }, func() {
			w.compare("it says", w.forge.statuses[commit].Description, "bad")
		}
	})
}
