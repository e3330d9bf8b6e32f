package act

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// stateFile is a file of the state branch; false when there is none.
func (f *fixture) stateFile(name string) (string, bool) {
	f.t.Helper()
	head, ok, err := f.repo.Mirror.Head(f.ctx(), history.StateBranch)
	f.must(err)
	if !ok || head != f.remoteHead(history.StateBranch) {
		return "", false
	}
	raw, err := f.repo.Mirror.Tree(head).ReadFile(name)
	return string(raw), err == nil
}

// setHold sets or lifts a hold on web, and gives what stands then.
func (f *fixture) setHold(h Hold) promotion.Hold {
	f.t.Helper()
	active, err := f.actor.SetHold(f.ctx(), f.repo, f.unit("web"), h)
	f.must(err)
	return active
}

// TestHoldsEnd holds that each holder's own hold stands until its end, whatever others set
// or lift, that none is made weaker, and that the strongest is told.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	start := w.now
	hour := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour).Truncate(time.Second) }
	hold := func(by string, until time.Time, reverts bool) promotion.Hold {
		return w.setHold(Hold{Scope: "component", By: by, Reason: "of " + by, Until: until, Reverts: reverts, Set: true})
	}
	check := func(what string, got promotion.Hold, by string, until time.Time, reverts bool) {
		t.Helper()
		all, err := history.ReadHolds(w.repo.Mirror.Tree(w.remoteHead(history.StateBranch)), "holds/shop/component/web.yaml")
		w.must(err)
		stored, held := promotion.FindStrongest(all)
		for _, h := range []promotion.Hold{got, stored.Hold} {
			if !held || h.By != by || h.Reason != "of "+by || !h.Until.Equal(until) || h.Reverts != reverts {
				t.Errorf("%s: %+v", what, h)
			}
		}
	}
	who := func(want ...string) {
		t.Helper()
		all, err := w.actor.ListHolds(w.ctx(), w.repo, w.unit("web"), "component", "")
		w.must(err)
		var got []string
		for _, h := range all {
			got = append(got, h.By)
		}
		w.compare("who holds", got, want)
	}
	check("for two hours", hold("ada", hour(2), false), "ada", hour(2), false)
	check("for one", hold("grace", hour(1), false), "ada", hour(2), false)
	head := w.remoteHead(history.StateBranch)
	check("for one again", hold("grace", hour(0), false), "ada", hour(2), false)
	w.compare("the branch", w.remoteHead(history.StateBranch), head)
	check("for three", hold("grace", hour(3), false), "grace", hour(3), false)
	check("of reverts", hold("ada", hour(1), true), "grace", hour(3), false)
	who("ada", "grace", "ada")
	ev, _ := w.evaluate()
	w.compare("holds", len(ev.Components[0].Facts.Holds.Value), 3)
	own := func(by string) promotion.Hold {
		return w.setHold(Hold{Scope: "component", By: by, Lift: promotion.Lift{OwnOnly: true, By: by}})
	}
	check("grace lifts her own", own("grace"), "ada", hour(2), false)
	check("and again", own("grace"), "ada", hour(2), false)
	w.compare("by a token of that name", w.setHold(Hold{Scope: "component", By: "ada", Lift: promotion.Lift{OwnOnly: true, By: "ada", Via: "api"}}).By, "ada")
	check("by who wrote long before", w.setHold(Hold{Scope: "component", By: "ken", Lift: promotion.Lift{Given: hour(-1)}}), "ada", hour(2), false)
	w.now = hour(2)
	who()
	check("after its end", hold("grace", hour(4), false), "grace", hour(4), false)
	check("without an end", hold("ada", time.Time{}, false), "ada", time.Time{}, false)
	check("once more", hold("ada", hour(9), false), "ada", time.Time{}, false)
	who("grace", "ada")
	w.compare("lifted", w.setHold(Hold{Scope: "component", By: "ken"}), promotion.Hold{})
	who()
}

func TestSetHold(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	for _, c := range []struct{ scope, file string }{
		{"component", "holds/shop/component/web.yaml"}, {"environment", "holds/shop/environment/qa.yaml"}, {"pipeline", "holds/shop/pipeline.yaml"},
	} {
		hold := Hold{Scope: c.scope, Environment: "qa", By: "ada", Reason: "a freeze", Set: true}
		w.setHold(hold)
		text, _ := w.stateFile(c.file)
		w.compare(c.file, text, fmt.Sprintf("by: ada\nreason: a freeze\nat: %q\n", w.now.Format("2006-01-02T15:04:05Z")))
		head := w.remoteHead(history.StateBranch)
		info, err := w.repo.Mirror.Commit(w.ctx(), head)
		w.must(err)
		message, signature, _ := strings.Cut(info.Message, "Liftlock-State: ")
		w.compare("signed by", len(strings.TrimSpace(signature)), 64)
		w.compare("message", message, "Hold "+strings.TrimSuffix(strings.TrimPrefix(c.file, "holds/"), ".yaml")+"\n\nBy: ada\n")
		w.setHold(hold)
		w.compare("held once more", w.remoteHead(history.StateBranch), head)
	}
	ev, _ := w.evaluate()
	w.compare("holds", len(ev.Components[0].Facts.Holds.Value), 3)
	before := w.remoteHead(history.StateBranch)
	lift := Hold{Scope: "environment", Environment: "qa", By: "grace"}
	w.setHold(lift)
	if _, held := w.stateFile("holds/shop/environment/qa.yaml"); held {
		t.Error("it is held still")
	}
	if _, held := w.stateFile("holds/shop/component/web.yaml"); !held {
		t.Error("another hold went with it")
	}
	head := w.remoteHead(history.StateBranch)
	info, err := w.repo.Mirror.Commit(w.ctx(), head)
	w.must(err)
	message, _, _ := strings.Cut(info.Message, "Liftlock-State: ")
	w.compare("lifted", []any{message, info.Parents}, []any{"Lift the hold on shop/environment/qa\n\nBy: grace\n", []string{before}})
	w.setHold(lift)
	w.compare("lifted once more", w.remoteHead(history.StateBranch), head)

	for _, h := range []Hold{{Scope: "environment"}, {Scope: "environment", Environment: "a/b"}, {Scope: "environment", Environment: `a\b`}} {
		h.Set = true
		if _, err := w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), h); err == nil || !strings.Contains(err.Error(), "hold a environment") {
			t.Errorf("%+v: %v", h, err)
		}
	}
	if _, err := w.actor.SetHold(w.ctx(), w.repo, w.unit(""), Hold{Scope: "component", Set: true}); err == nil {
		t.Error("nobody is held")
	}
	w.compare("nothing was written", w.remoteHead(history.StateBranch), head)
	_, err = w.actor.SetHold(w.ctx(), w.repo, w.unit(""), Hold{Scope: "pipeline", By: "ada"}) // which has a name of its own
	w.must(err)
	if _, held := w.stateFile("holds/shop/pipeline.yaml"); held {
		t.Error("the pipeline is held still")
	}
}

// TestLiftNothing holds that a hold which isn't there is lifted without a branch for it.
func TestLiftNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.setHold(Hold{Scope: "pipeline", By: "ada"})
	w.compare("the branch", w.remoteHead(history.StateBranch), "")
}

// TestLiftOthersHold holds that a hold which another process has set is lifted, and one that it
// has lifted is set again, though this one hasn't fetched since.
func TestLiftOthersHold(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.setHold(Hold{Scope: "pipeline", By: "ada", Set: true})
	held := w.remoteHead(history.StateBranch)
	w.setHold(Hold{Scope: "pipeline", By: "ada"})
	lifted := w.remoteHead(history.StateBranch)

	w.setRemoteHead(history.StateBranch, held)
	w.compare("what stands after lifting", w.setHold(Hold{Scope: "pipeline", By: "ada"}), promotion.Hold{})
	_, active := w.stateFile("holds/shop/pipeline.yaml")
	if active || w.remoteHead(history.StateBranch) == held {
		t.Error("the pipeline is held still")
	}
	w.setRemoteHead(history.StateBranch, held)
	_, err := w.repo.Mirror.Fetch(w.ctx())
	w.must(err)
	w.setRemoteHead(history.StateBranch, lifted)
	w.setHold(Hold{Scope: "pipeline", By: "ada", Set: true})
	if _, ok := w.stateFile("holds/shop/pipeline.yaml"); !ok {
		t.Error("the pipeline isn't held")
	}
}

// TestHoldsMeet holds that a hold is written over what somebody else wrote at the same
// moment, without losing that, a few times over.
func TestHoldsMeet(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	hold := Hold{Scope: "component", By: "ada", Set: true}
	m := w.repo.Mirror
	var theirs []string
	for i := range holdTries {
		spec := git.CommitSpec{Message: "Theirs", When: w.now, Files: []git.FileWrite{{Path: fmt.Sprintf("theirs-%d", i), Content: []byte("x")}}}
		if i > 0 {
			spec.Parents, spec.Base = theirs[i-1:], theirs[i-1]
		}
		commit, err := m.Write(w.ctx(), spec)
		w.must(err)
		w.must(m.Push(w.ctx(), git.PushSpec{Branch: "theirs", New: commit, Old: w.remoteHead("theirs")}))
		theirs = append(theirs, commit)
	}
	meet := func(times int) (pushes int, err error) {
		w.setRemoteHead(history.StateBranch, "")
		w.must(w.store.DeleteRecord(w.ctx(), branch.StateCommits.Key(record.Repository(w.repo.ID))))
		_, err = m.Fetch(w.ctx())
		w.must(err)
		w.beforePush = func() {
			if pushes < times {
				w.setRemoteHead(history.StateBranch, theirs[pushes])
			}
			pushes++
		}
		_, err = w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), hold)
		return pushes, err
	}
	pushes, err := meet(holdTries - 1)
	w.must(err)
	w.compare("pushes", pushes, holdTries)
	for _, name := range []string{"holds/shop/component/web.yaml", "theirs-3"} {
		if _, ok := w.stateFile(name); !ok {
			t.Errorf("%s is lost", name)
		}
	}
	if pushes, err = meet(holdTries); !errors.Is(err, git.ErrLeaseLost) || pushes != holdTries {
		t.Errorf("after %d pushes: %v", pushes, err)
	}
	w.beforePush = func() { w.breakRemote() } // not a race: it is told, and not tried again
	if _, err := w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), hold); err == nil || errors.Is(err, git.ErrLeaseLost) {
		t.Errorf("a remote that is away: %v", err)
	}
}
