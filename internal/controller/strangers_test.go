package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/webhooks"
)

// comment comments as somebody, delivers what the forge says of it, and runs what is due.
func (f *fixture) comment(login string, number int, body string) (id int64) {
	f.t.Helper()
	id, err := f.forge.Comment(repoName, number, login, body)
	f.must(err)
	ev := &webhooks.Event{Kind: webhooks.Comment, Number: number, Sender: login, Delivery: fmt.Sprint("comment ", id)}
	at, err := TimeOfEvent(f.t.Context(), f.opts.Store, f.repo.ID, ev, f.clock.Now())
	f.must(err)
	records, err := RecordsOfEvent(f.repo.ID, bot, ev)
	f.must(err)
	_, err = f.opts.Store.Accept(f.t.Context(), store.Delivery{Forge: "hub", ID: fmt.Sprint("comment ", id), Event: "issue_comment", Repo: repoName, ReceivedAt: f.clock.Now(),
		Keys: wake.Strings(KeysOfEvent(f.t.Context(), f.opts.Store, f.repo.ID, bot, ev)...), Urgency: UrgencyOfEvent(ev), DueAt: at, Records: records})
	f.must(err)
	f.runAllDue()
	return id
}

// runAllDue runs what is due, and what that makes due.
func (f *fixture) runAllDue() {
	f.t.Helper()
	for range 20 {
		claims, err := f.opts.Store.Claim(f.t.Context(), "me", 100)
		if f.must(err); len(claims) == 0 {
			return
		}
		for _, c := range claims {
			next, err := f.runKey(f.t.Context(), c.Key)
			if err != nil && !isStale(err) {
				f.t.Fatalf("%s: %v", c.Key, err)
			}
			f.must(f.opts.Store.Finish(f.t.Context(), "me", c, store.Outcome{Next: next}))
		}
	}
}

// reactionsTo are the reactions to a comment.
func (f *fixture) reactionsTo(number int, id int64) []string {
	f.t.Helper()
	i := slices.IndexFunc(f.pulls(), func(p emulator.PullRequest) bool { return p.Number == number })
	for _, k := range f.pulls()[i].Comments {
		if k.ID == id {
			return k.Reactions
		}
	}
	return nil
}

// TestStrangersCommentsCostLittle holds that a hundred comments of a person who may not write cost
// a few calls and at most one answer, whatever they say. A command of another person who may, and
// who is new, is served at once among them.
func TestStrangersCommentsCostLittle(t *testing.T) {
	for name, body := range map[string]string{
		"commands": "/liftlock promote qa", "what nobody knows": "/liftlock dance", "questions that may not be put": "/liftlock status", "talk": "I like it",
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			p := w.openOne("web", "2.0.0", "web")
			w.runAllDue()
			comments := len(w.pulls()[0].Comments)
			began, hers := w.calls.Load(), int64(0)
			for i := range 100 {
				w.clock.Step(time.Second)
				w.comment("mallory", p.Number, body)
				if i == 50 {
					before := w.calls.Load()
					if got := w.reactionsTo(p.Number, w.comment("ada", p.Number, "/liftlock hold")); !slices.Equal(got, []string{bot + " " + reactionDone}) {
						t.Errorf("ada's command got %v", got)
					}
					hers = w.calls.Load() - before
				}
			}
			calls := w.calls.Load() - began - hers
			t.Logf("%d calls for 100 comments, %d for ada's", calls, hers)
			if calls > 40 {
				t.Errorf("100 comments took %d calls to the forge", calls)
			}
			now := w.pulls()[0]
			if answers := len(now.Comments) - comments - 101; answers > 1 {
				t.Errorf("there are %d answers", answers)
			}
			if !slices.Contains(now.Labels, promotion.LabelHold) {
				t.Error("ada's hold is not set")
			}
		})
	}
}

// TestCommentsWaitForThePermission holds that a command of somebody of whom it can't be
// asked now what they may do is taken later, though nothing more is heard of it.
func TestCommentsWaitForThePermission(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	w.runAllDue()
	w.must(updateStrangers(t.Context(), w.opts.Store, w.repo.ID, func(s *command.Strangers) {
		for i := range 200 {
			s.Meet(fmt.Sprint("throwaway", i), w.clock.Now())
		}
	}))
	id := w.comment("ada", p.Number, "/liftlock hold")
	if got := w.reactionsTo(p.Number, id); len(got) != 0 {
		t.Fatalf("it was asked what ada may do: %v", got)
	}
	for range 3 {
		w.clock.Step(10 * time.Second)
		w.runAllDue()
	}
	if got := w.reactionsTo(p.Number, id); !slices.Equal(got, []string{bot + " " + reactionDone}) {
		t.Errorf("ada's command got %v", got)
	}
	if !strings.Contains(strings.Join(w.pulls()[0].Labels, " "), promotion.LabelHold) {
		t.Error("the hold is not set")
	}
}

// TestTalkWhereTheForgeShowsNoPermission has a forge that shows our account no permissions.
// People's talk among themselves is no failure there, on their own pull requests least of all.
func TestTalkWhereTheForgeShowsNoPermission(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	_, err := w.forge.CommitAs(repoName, "linus", "docs", "Write", map[string]string{"docs/x.md": "x\n"})
	w.must(err)
	own, err := w.forge.OpenPull(repoName, "linus", "docs", "main", "Docs", "")
	w.must(err)
	pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, own)
	w.must(err)
	w.must(w.opts.Store.PutRecord(t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, own)), []byte(`{"head":"`+pr.Head+`","refused":"`+"x"+`"}`))) // nothing is evaluated
	p := w.openOne("web", "2.0.0", "web")
	w.fail("read the permission", forge.ErrForbidden)
	for _, n := range []int{own, p.Number} {
		_, err := w.forge.Comment(repoName, n, "grace", "Looks good to me.")
		w.must(err)
		if err := w.run(wake.ForPull(w.repo.ID, n)); err != nil {
			t.Errorf("#%d: %v", n, err)
		}
	}
	_, err = w.forge.Comment(repoName, own, "grace", "/liftlock diff")
	w.must(err)
	if err := w.run(wake.ForPull(w.repo.ID, own)); err == nil {
		t.Error("a command that can't be authorised is no failure")
	}
}

// TestTalkersPermissionIsReadOnce holds that what somebody may do who only talks is read of the forge once, so that
// their first command doesn't wait for it.
func TestTalkersPermissionIsReadOnce(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	for _, c := range []struct{ text, done string }{{"Looks good to me.", ""}, {"Really.", ""}, {"/liftlock hold", bot + " " + reactionDone}} {
		w.clock.Step(time.Minute)
		id := w.comment("grace", p.Number, c.text)
		if got := strings.Join(w.reactionsTo(p.Number, id), " "); got != c.done {
			t.Errorf("%q is acknowledged by %q", c.text, got)
		}
		if n := w.callsFor("read the permission of grace"); c.done == "" && n != 1 {
			t.Errorf("after %q her permission was read %d times", c.text, n)
		}
	}
}

// TestClosedUserPullsAreForgotten holds that no record of people's own pull requests stays once
// they are closed, of which a repository may have thousands a month. That holds where an event told
// of the end and where only a sweep finds it.
func TestClosedUserPullsAreForgotten(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	for _, how := range []string{"event", "sweep"} {
		_, err := w.forge.CommitAs(repoName, "linus", how, "Write", map[string]string{"docs/" + how + ".md": "x\n"})
		w.must(err)
		n, err := w.forge.OpenPull(repoName, "linus", how, "main", "Docs", "")
		w.must(err)
		pr, err := w.repo.Forge.PullRequest(t.Context(), w.repo.Name, n)
		w.must(err)
		w.must(w.opts.Store.PutRecord(t.Context(), checkedHeads.Key(record.OfPull(w.repo.ID, n)), []byte(`{"head":"`+pr.Head+`","refused":"`+"x"+`"}`))) // nothing is evaluated
		w.must(w.opts.Actor.SetStatus(t.Context(), w.repo.Repository, n, pr.Head, prtext.OtherStatus("", false)))
		_, err = w.forge.Comment(repoName, n, "grace", "/liftlock help")
		w.must(err)
		w.must(w.run(wake.ForPull(w.repo.ID, n)))
		w.must(w.run(wake.ForSweep(w.repo.ID)))
		kept := func() (keys []string) {
			rows, err := w.opts.Store.Records(t.Context(), store.RecordFilter{Repo: w.repo.ID, Pull: n})
			w.must(err)
			for _, row := range rows {
				keys = append(keys, row.String())
			}
			return keys
		}
		if len(kept()) < 3 {
			t.Fatalf("by %s: of an open one only %q is kept", how, kept())
		}
		w.clock.Step(10 * time.Second)
		w.must(w.forge.ClosePull(repoName, n, "linus"))
		if how == "event" {
			w.must(w.run(wake.ForPull(w.repo.ID, n)))
		} else {
			w.must(w.run(wake.ForSweep(w.repo.ID)))
			w.runAllDue()
		}
		if left := kept(); len(left) != 0 {
			t.Errorf("by %s: %q is kept", how, left)
		}
	}
}
