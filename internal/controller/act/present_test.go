package act

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// present evaluates and presents, again when an edit of a comment was put off, and gives
// the writing calls that it took.
func (f *fixture) present() []string {
	f.t.Helper()
	ev, d := f.evaluate()
	f.faults.Calls = nil
	for {
		next, err := f.actor.Present(f.ctx(), ev, d)
		f.must(err)
		if next.IsZero() {
			return f.writes()
		}
		if !next.After(f.now) || next.Sub(f.now) > commentInterval {
			f.t.Fatalf("at %s an edit is put off until %s", f.now, next)
		}
		f.now = next
		calls := f.faults.Calls
		ev, d = f.evaluate()
		f.faults.Calls = calls
	}
}

// presentError is whether presenting failed.
func presentError(_ time.Time, err error) error { return err }

// writes are the calls so far that change something.
func (f *fixture) writes() []string {
	var out []string
	for _, c := range f.faults.Calls {
		if c != "store: record" && !strings.HasPrefix(c, "forge: read") && !strings.HasPrefix(c, "forge: comments") {
			out = append(out, c)
		}
	}
	return out
}

func TestPresentOpen(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		pr := w.forge.pulls[n]
		first := w.present()
		w.compare("the first time", first, []string{"forge: status", "store: put record", "store: put record", "forge: comment #1", "store: commented"})
		k, st := w.forge.comments[n], w.forge.statuses[pr.Head]
		if len(k) != 1 || !prtext.IsStatusComment(k[0].Body) {
			w.t.Fatalf("commented %+v", k)
		}
		if st.Context != StatusContext || st.State != forge.StatusPending || !strings.Contains(st.Description, "waiting for upstream") || !strings.HasPrefix(st.TargetURL, console+"/pipelines/shop") {
			w.t.Errorf("the status is %+v", st)
		}
		w.compare("nothing happened", w.present(), []string(nil))
		w.start()
		w.compare("after a restart", w.present(), []string(nil))

		pr.Title, pr.Body = "Mine", "All mine" // a person's words stay until ours change
		w.compare("a person wrote", w.present(), []string(nil))
		pr.Labels = slices.DeleteFunc(pr.Labels, func(l string) bool { return l == promotion.LabelOurs })
		w.compare("without our label", w.present(), []string{"forge: label #1 liftlock"})
		pr.Labels = append(pr.Labels, promotion.LabelSuperseded)
		w.compare("a close that was not ended", w.present(), []string{"forge: unlabel #1 " + promotion.LabelSuperseded})
		if pr.HasLabel(promotion.LabelSuperseded) || !pr.HasLabel(promotion.LabelOurs) {
			w.t.Errorf("it has the labels %q", pr.Labels)
		}
		pr.Labels = append(pr.Labels, promotion.LabelHold)
		if did := w.present(); !slices.Contains(did, "forge: recomment #1") || !slices.Contains(did, "forge: status") || slices.Contains(did, "forge: comment #1") {
			w.t.Errorf("a hold is shown by %q", did)
		}
		if now := w.forge.statuses[pr.Head]; now.Description == st.Description {
			w.t.Errorf("the status says %q still", now.Description)
		}
		w.compare("the hold stays", w.present(), []string(nil))
		w.forge.comments[n] = nil // and is told once more when there is something to tell
		w.compare("a deleted comment", w.present(), []string(nil))
		pr.Labels = slices.DeleteFunc(pr.Labels, func(l string) bool { return l == promotion.LabelHold })
		if did := w.present(); !slices.Contains(did, "forge: comment #1") || len(w.forge.comments[n]) != 1 {
			w.t.Errorf("a deleted comment comes back by %q: %+v", did, w.forge.comments[n])
		}
		w.compare("and stays", w.present(), []string(nil))
		w.compare("pull requests", len(w.forge.pulls), 1)
	})
}

// TestAWaitIsShownFirst holds that the commit status says that a pull request waits also where its
// comment can't be edited: the status alone keeps people from merging it.
func TestAWaitIsShownFirst(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	pr := w.forge.pulls[n]
	w.present()
	before := w.forge.statuses[pr.Head].Description
	pr.Labels = append(pr.Labels, promotion.LabelHold)
	w.now = w.now.Add(commentInterval)
	ev, d := w.evaluate()
	w.faults.Hook = func(call string) {
		if strings.HasPrefix(call, "forge: recomment") {
			w.faults.At = len(w.faults.Calls) // this very one fails
		}
	}
	if err := presentError(w.actor.Present(w.ctx(), ev, d)); !errors.Is(err, faulttest.ErrInjected) {
		t.Fatalf("that the comment can't be edited is told as %v", err)
	}
	if now := w.forge.statuses[pr.Head]; now.Description == before || now.State != forge.StatusPending {
		t.Errorf("on hold the status is %+v", now)
	}
}

// TestPresentAfterALostStore holds that a store that was lost has the forge's texts found and
// written again, once.
func TestPresentAfterALostStore(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	w.forge.say(n, "linus", w.forge.say(n, "linus", "<!-- liftlock:status -->\nmine").Body)
	w.forge.say(n, bot, "no status")
	w.present()
	ours := w.forge.comments[n][3]
	if len(w.forge.comments[n]) != 4 || ours.User != bot || !prtext.IsStatusComment(ours.Body) {
		t.Fatalf("commented %+v", w.forge.comments[n])
	}
	for _, lose := range []func() error{
		func() error { return w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))) },
		func() error {
			return w.store.PutRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n)), []byte("{"))
		},
	} {
		w.must(lose())
		w.forge.comments[n][3].Body = "<!-- liftlock:status -->\nold"
		w.compare("with nothing known", w.present(), []string{"forge: status", "store: put record", "store: put record", "forge: recomment #1", "store: put record"})
		w.compare("comments", []any{len(w.forge.comments[n]), w.forge.comments[n][3].ID, w.forge.comments[n][3].Body}, []any{4, ours.ID, ours.Body})
		w.compare("nothing happened", w.present(), []string(nil))
	}
	w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
	w.forge.pulls[n].Title = "old"
	if did := w.present(); !slices.Contains(did, "forge: update #1 text") || w.forge.pulls[n].Title == "old" {
		t.Errorf("an old title stays: %q", did)
	}
	w.must(w.store.DeleteRecord(w.ctx(), facts.Shown.Key(record.OfPull(w.repo.ID, n))))
	w.forge.pulls[n].Body = "old"
	if did := w.present(); !slices.Contains(did, "forge: update #1 text") || w.forge.pulls[n].Body == "old" {
		t.Errorf("an old body stays: %q", did)
	}
}

// TestPresentOthersHead holds that a head that somebody else made keeps its text, and
// is told that nothing is done with it.
func TestPresentOthersHead(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		pr := w.forge.pulls[n]
		m := w.repo.Mirror
		theirs, err := m.Write(w.ctx(), git.CommitSpec{Parents: []string{w.remoteHead("main")}, Base: w.remoteHead("main"), Message: "Mine", When: w.now, Files: []git.FileWrite{{Path: "x", Content: []byte("x")}}})
		w.must(err)
		w.must(m.Push(w.ctx(), git.PushSpec{Branch: pr.Branch, New: theirs, Old: pr.Head}))
		pr.Title, pr.UpdatedAt = "Mine", w.now.Add(1e9)
		w.must(w.gatherer.PullCache.RefreshPullRequests(w.ctx(), w.repo))
		did := w.present()
		if pr.Title != "Mine" || slices.Contains(did, "forge: update #1 text") || len(w.forge.comments[n]) != 1 || w.forge.statuses[theirs].State != forge.StatusFailure {
			w.t.Errorf("by %q it became %+v, %+v", did, *pr, w.forge.statuses)
		}
		w.compare("nothing happened", w.present(), []string(nil))
		ev, d := w.evaluate()
		if text, ok := w.actor.Diff(w.ctx(), ev, d, n); ok {
			w.t.Errorf("its difference is said to be %q", text)
		}
	})
}

// TestMarkOfAPushedHead has a person push another release over a pull request, well made and
// verified before. The pull request's mark isn't signed for that head: it would be proof that
// Liftlock had put it there.
func TestMarkOfAPushedHead(t *testing.T) {
	eachKind(t, func(w *fixture) {
		w.evaluate()
		w.release("2.0.0")
		w.verifyDev()
		n := w.open("3.0.0")
		pr, m := w.forge.pulls[n], w.repo.Mirror
		w.present()
		if !strings.Contains(pr.Body, " sig=") {
			w.t.Fatalf("what Liftlock put there isn't signed: %s", pr.Body)
		}
		var files []git.FileWrite
		for _, c := range w.names {
			files = append(files, git.FileWrite{Path: kustomizationOf(c, "qa"), Content: []byte(kustomization(c, "2.0.0"))})
		}
		theirs, err := m.Write(w.ctx(), git.CommitSpec{Parents: []string{w.remoteHead("main")}, Base: w.remoteHead("main"), Message: "Mine", When: w.now, Files: files})
		w.must(err)
		w.must(m.Push(w.ctx(), git.PushSpec{Branch: pr.Branch, New: theirs, Old: pr.Head}))
		pr.UpdatedAt = w.now.Add(1e9)
		w.must(w.gatherer.PullCache.RefreshPullRequests(w.ctx(), w.repo))
		w.present()
		if ev, _ := w.evaluate(); ev.OpenPulls[n].HeadState == promotion.HeadModified {
			w.t.Fatalf("it isn't taken for well made: %s", ev.OpenPulls[n].HeadReason)
		}
		if strings.Contains(pr.Body, " sig=") || !strings.Contains(pr.Body, "<!-- liftlock:promotion release=") {
			w.t.Errorf("its mark is signed, or gone: %s", pr.Body)
		}
	})
}

func TestDiff(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		text, ok := w.actor.Diff(w.ctx(), ev, d, n)
		for _, c := range w.names {
			if !ok || !strings.Contains(text, "`1.0.0` to `2.0.0`, in `"+kustomizationOf(c, "qa")+"`") {
				w.t.Errorf("%s: %q", c, text)
			}
		}
		if text, ok := w.actor.Diff(w.ctx(), ev, d, n+1); ok {
			w.t.Errorf("#2 says %q", text)
		}
		ev.OpenPulls[n].Batch = !ev.OpenPulls[n].Batch // of the other kind, it only waits to be closed
		if text, ok := w.actor.Diff(w.ctx(), ev, d, n); ok {
			w.t.Errorf("one of the other kind says %q", text)
		}
		w.faults.Calls = nil
		w.must(presentError(w.actor.Present(w.ctx(), ev, d)))
		w.compare("calls", w.writes(), []string(nil))
		ev.OpenPulls[n].Revert = true // but for a revert from when each moved alone
		if _, ok := w.actor.Diff(w.ctx(), ev, d, n); ok != !ev.OpenPulls[n].Batch {
			w.t.Errorf("a revert of the other kind: %v", ok)
		}
	})
}

// TestPresentRevert holds what the readers of a promotion and of its revert are told from
// its opening to its end.
func TestPresentRevert(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.land("2.0.0")
		did := w.present()
		if k := w.forge.comments[n]; len(k) != 1 || !slices.Contains(did, "forge: comment #1") || !strings.Contains(k[0].Body, "qa") || strings.Contains(k[0].Body, "Reverted:") {
			w.t.Fatalf("by %q: %+v", did, k)
		}
		w.compare("nothing happened", w.present(), []string(nil))
		ev, d, revert := w.requestRevert()
		w.must(w.do(ev, d, revert))
		opened := *w.forge.pulls[n+1]
		w.present()
		w.compare("title and body", []string{w.forge.pulls[n+1].Title, w.forge.pulls[n+1].Body}, []string{opened.Title, opened.Body})
		w.compare("comments", []int{len(w.forge.comments[n]), len(w.forge.comments[n+1])}, []int{1, 1})
		w.compare("nothing happened", w.present(), []string(nil))

		for _, k := range []store.RecordKey{stored.RevertReasons.Key(record.OfPull(w.repo.ID, n+1)), facts.Shown.Key(record.OfPull(w.repo.ID, n+1))} {
			w.must(w.store.DeleteRecord(w.ctx(), k))
		}
		w.forge.pulls[n+1].Title = "mine" // evidence that is lost is not made up
		w.present()
		w.compare("title and body", []string{w.forge.pulls[n+1].Title, w.forge.pulls[n+1].Body}, []string{"mine", opened.Body})
		w.must(w.store.PutRecord(w.ctx(), stored.RevertReasons.Key(record.OfPull(w.repo.ID, n+1)), []byte("{")))
		w.present() // nor is evidence that can't be read
		w.compare("title and body", []string{w.forge.pulls[n+1].Title, w.forge.pulls[n+1].Body}, []string{"mine", opened.Body})
		w.must(w.store.PutRecord(w.ctx(), stored.RevertReasons.Key(record.OfPull(w.repo.ID, n+1)), []byte(`{"evidence":[{"targets":[{"target":"web-qa","reason":"it burns"}]}]}`)))
		w.present()
		if pr := w.forge.pulls[n+1]; pr.Title != opened.Title || !strings.Contains(pr.Body, "it burns") {
			w.t.Errorf("the evidence is not shown: %+v", *pr)
		}

		ev, d = w.evaluate()
		w.must(w.do(ev, d, w.merge(ev, n+1)))
		did = w.present()
		for _, c := range []string{"forge: recomment #1", "forge: recomment #2"} {
			if !slices.Contains(did, c) {
				w.t.Errorf("there is no %s among %q", c, did)
			}
		}
		if k := w.forge.comments[n]; len(k) != 1 || !strings.Contains(k[0].Body, "**Reverted:** #2 took `"+ev.ReleaseName(revert.Members[0].Release)+"`") && !w.batch || !strings.Contains(k[0].Body, "**Reverted:** #2") {
			w.t.Errorf("the promotion's comment: %+v", k)
		}
		w.compare("nothing happened", w.present(), []string(nil))
	})
}
