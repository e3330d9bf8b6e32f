package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// consoleCommand gives a command about a pull request as a user of the console does.
func (f *fixture) consoleCommand(by, role string, pull int, key string, c command.Command) error {
	f.t.Helper()
	_, err := f.ExecuteCommand(f.t.Context(), Command{Unit: f.unit("web"), Pull: pull, Command: c, By: by + " (console)", Subject: "sub-" + by, Role: role, Via: ViaConsole, Source: "console sub-" + by + " " + key})
	return err
}

// commentsWith counts the comments on the first pull request that have a text in them.
func (f *fixture) commentsWith(text string) (n int) {
	f.t.Helper()
	for _, k := range f.pulls()[0].Comments {
		if strings.Contains(k.Body, text) {
			n++
		}
	}
	return n
}

// TestConsoleCommandsAreOnRecord holds that a user's command in the console is on record, and that
// the pull request says who it was. Sent again, it is neither done nor said a second time.
func TestConsoleCommandsAreOnRecord(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	isHeld := func() bool { return slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) }
	hold := command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa", Reason: "waits for *the* certificate @acme/sre"}
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "1", hold))
	if !isHeld() {
		t.Fatal("it isn't held")
	}
	if n := w.commentsWith("`ada (console)` gave `/liftlock hold pr`: waits for \\*the\\* certificate"); n != 1 {
		t.Errorf("%d comments say who it was: %+v", n, w.pulls()[0].Comments)
	}
	audit := func() []store.Audit {
		t.Helper()
		all, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{Via: ViaConsole}, 0)
		w.must(err)
		return all
	}
	if all := audit(); len(all) != 1 || all[0].Actor != "ada (console)" || all[0].Verb != "hold" || all[0].Environment != "qa" || all[0].Outcome != "taken" || all[0].Reason != hold.Reason {
		t.Errorf("the audit trail has %+v", all)
	}
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "2", command.Command{Verb: command.Unhold, Scope: command.ScopePR, Environment: "qa"}))
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "1", hold))
	if isHeld() || len(audit()) != 2 || w.commentsWith("hold pr`: waits") != 1 {
		t.Errorf("sent again, it is held: %t; %d entries", isHeld(), len(audit()))
	}
	// The key of a command is no cover for another.
	var refused *RefusedError
	if err := w.consoleCommand("ada", command.RoleOperator, p.Number, "2", hold); !errors.As(err, &refused) || !strings.Contains(refused.Why, "key of another command") || isHeld() {
		t.Errorf("another command with a key that was used: %v, held %t", err, isHeld())
	}
}

func TestConsoleCommandsAreAuthorised(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace]}}}]", 1)
	w := newFixture(t, "", gated, "web")
	p := w.openOne("web", "2.0.0", "web")
	for i, c := range []struct {
		by, role string
		verb     command.Verb
		want     string // empty: it is taken
	}{
		{"eve", command.RoleViewer, command.Hold, "it takes the role operator, and this is viewer"},
		{"ada", command.RoleOperator, command.Promote, "approvals gate"},
		{"ada", command.RoleOperator, command.Hold, ""},
		{"rita", command.RoleOperator, command.Unhold, "approvals gate"},
		{"ada", command.RoleOperator, command.Unhold, ""},                  // their own
		{"grace", command.RoleOperator, command.Promote, "approvals gate"}, // a name is no account on the forge
		{"oncall", command.RoleBreakGlass, command.Promote, ""},
		{"ada", "root", command.Hold, "unknown role"},
	} {
		err := w.consoleCommand(c.by, c.role, p.Number, fmt.Sprint(i), command.Command{Verb: c.verb, Environment: "qa"})
		var refused *RefusedError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Why, c.want)) {
			t.Errorf("%s by %s, %s: %v, want %q", c.verb, c.by, c.role, err, c.want)
		}
		if c.want == "" {
			continue
		}
		if all, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{}, 1); err != nil || !strings.HasPrefix(all[0].Outcome, "refused: ") || all[0].Actor != c.by+" (console)" {
			t.Errorf("the refusal of %s isn't on record: %+v, %v", c.by, all, err)
		}
		if n := w.commentsWith(c.by + " (console)` gave `/liftlock " + string(c.verb)); n > 0 && c.by != "ada" {
			t.Errorf("what %s was refused is said in the pull request", c.by)
		}
	}
	// A user with another's name is somebody else, on a pull request and a component.
	for i, scope := range []string{command.ScopePR, command.ScopeComponent} {
		w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, fmt.Sprint("namesake ", i), command.Command{Verb: command.Hold, Scope: scope, Environment: "qa"}))
		_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Unhold, Scope: scope, Environment: "qa"},
			By: "ada (console)", Subject: "sub-other", Role: command.RoleOperator, Via: ViaConsole, Source: fmt.Sprint("console sub-other ", i)})
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
			t.Errorf("a namesake lifts the hold %s: %v", scope, err)
		}
		w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, fmt.Sprint("own ", i), command.Command{Verb: command.Unhold, Scope: scope, Environment: "qa"}))
	}
	// A token of the API with a user's name is somebody else.
	_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Hold, Environment: "qa"}, By: "ada (console)", Role: command.RoleOperator, Via: ViaAPI, Source: "api 1"})
	w.must(err)
	var refused *RefusedError
	if err := w.consoleCommand("ada", command.RoleOperator, p.Number, "own", command.Command{Verb: command.Unhold, Environment: "qa"}); !errors.As(err, &refused) {
		t.Errorf("a user lifts what a token holds: %v", err)
	}
}

// brokenComments is a forge that takes no comments, after which nobody waits for an answer.
type brokenComments struct {
	forge.Forge
	leave context.CancelFunc
}

// AddLabels implements forge.Forge: the browser leaves while the command is carried out.
func (b brokenComments) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	b.leave()
	return b.Forge.AddLabels(ctx, r, number, labels...)
}

// CreateComment implements forge.Forge.
func (b brokenComments) CreateComment(context.Context, forge.Repo, int, string) (*forge.Comment, error) {
	return nil, forge.ErrRetryable
}

// A command of the console that has begun is carried out and on record, also where its browser
// leaves meanwhile and the pull request takes no comment.
func TestConsoleCommandsOutliveTheirRequest(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	ctx, leave := context.WithCancel(t.Context())
	w.repo.Forge = brokenComments{w.repo.Forge, leave}
	_, err := w.ExecuteCommand(ctx, Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"},
		By: "ada (console)", Role: command.RoleOperator, Via: ViaConsole, Source: "console sub-ada 1"})
	if err != nil || ctx.Err() == nil {
		t.Errorf("it is answered with %v, its request ended with %v", err, ctx.Err())
	}
	if !slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) || !slices.Equal(w.outcomes(), []string{"ada (console) hold: taken"}) {
		t.Errorf("it has the labels %q and left %q", w.pulls()[0].Labels, w.outcomes())
	}
}

// countedLabels is a forge that says when labels are added, and may fail to.
type countedLabels struct {
	forge.Forge
	before func() error // each time, before labels are added
}

// AddLabels implements forge.Forge.
func (c countedLabels) AddLabels(ctx context.Context, r forge.Repo, number int, labels ...string) error {
	if err := c.before(); err != nil {
		return err
	}
	return c.Forge.AddLabels(ctx, r, number, labels...)
}

// TestConsoleCommandsRunOnce sends a command twice at the same time, and one is carried out. One
// that failed, or whose process died, may be sent again, and has the time of its first coming.
func TestConsoleCommandsRunOnce(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	hold := Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"},
		By: "ada (console)", Role: command.RoleOperator, Via: ViaConsole, Source: "console sub-ada 1"}
	driver, calls, broken := w.repo.Forge, 0, errors.New("it rains")
	w.repo.Forge = countedLabels{driver, func() error {
		if calls++; calls > 1 {
			return nil
		}
		answer, err := w.ExecuteCommand(t.Context(), hold) // a double click, or on another replica
		if err != nil || answer != inProgressText {
			t.Errorf("sent again while it is carried out: %q, %v", answer, err)
		}
		return broken
	}}
	first := w.clock.Now()
	if _, err := w.ExecuteCommand(t.Context(), hold); !errors.Is(err, broken) || calls != 1 {
		t.Errorf("it is carried out %d times: %v", calls, err)
	}
	if got := w.outcomes(); len(got) != 1 || !strings.HasPrefix(got[0], "ada (console) hold: failed: ") || !strings.Contains(got[0], "it rains") {
		t.Errorf("what failed left %q", got)
	}
	w.clock.Step(time.Minute)
	if _, err := w.ExecuteCommand(t.Context(), hold); err != nil || calls != 2 || !slices.Equal(w.outcomes(), []string{"ada (console) hold: taken"}) {
		t.Errorf("sent again it is carried out %d times: %v; %q", calls, err, w.outcomes())
	}
	holds, err := facts.ReadPullHolds(t.Context(), w.opts.Store, w.repo.ID, p.Number)
	if w.must(err); len(holds) != 1 || holds[0].At.Sub(first).Abs() > time.Second {
		t.Errorf("it holds since %v, not since %v", holds, first)
	}
	// A process that dies leaves its claim.
	hold.Source = "console sub-ada 2"
	begun, _, err := w.claimCommand(t.Context(), &hold)
	if w.must(err); begun == "" {
		t.Fatal("it can't be claimed")
	}
	if answer, err := w.ExecuteCommand(t.Context(), hold); err != nil || answer != inProgressText || calls != 2 {
		t.Errorf("soon after: %q, %v", answer, err)
	}
	w.clock.Step(claimLease)
	if _, err := w.ExecuteCommand(t.Context(), hold); err != nil || calls != 3 || w.outcomes()[0] != "ada (console) hold: taken" {
		t.Errorf("later it is carried out %d times: %v; %q", calls, err, w.outcomes())
	}
}

// A command that was refused is refused for the same reason when it is sent again, and stays on
// record once.
func TestConsoleCommandsAreRefusedAgain(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	for range 2 {
		var refused *RefusedError
		if err := w.consoleCommand("eve", command.RoleViewer, p.Number, "1", command.Command{Verb: command.Hold, Environment: "qa"}); !errors.As(err, &refused) || !strings.HasPrefix(refused.Why, "eve (console) may not") {
			t.Errorf("it ended with %v", err)
		}
	}
	if all := w.outcomes(); len(all) != 1 {
		t.Errorf("on record are %q", all)
	}
}

// An unhold from the console spares what somebody set after it came.
func TestConsoleUnholdKeepsLaterHolds(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "1", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"}))
	w.clock.Step(time.Second)
	unhold := Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Unhold, Scope: command.ScopePR, Environment: "qa"},
		By: "ada (console)", Role: command.RoleOperator, Via: ViaConsole, Source: "console sub-ada 2"}
	_, _, err := w.claimCommand(t.Context(), &Command{Unit: unhold.Unit, Pull: p.Number, Command: unhold.Command, By: unhold.By, Role: unhold.Role, Via: ViaConsole, Source: unhold.Source, At: w.clock.Now()})
	w.must(err)
	w.clock.Step(claimLease)
	w.must(w.consoleCommand("grace", command.RoleOperator, p.Number, "3", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"}))
	_, err = w.ExecuteCommand(t.Context(), unhold)
	w.must(err)
	holds, err := facts.ReadPullHolds(t.Context(), w.opts.Store, w.repo.ID, p.Number)
	if w.must(err); len(holds) != 1 || holds[0].By != "grace (console)" {
		t.Errorf("it is held by %+v", holds)
	}
}

// lateComments is a forge that says of its first comments that it takes none for the moment,
// although it may have taken them.
type lateComments struct {
	forge.Forge
	away  *int // how many it still refuses
	takes bool // those too
}

// CreateComment implements forge.Forge.
func (l lateComments) CreateComment(ctx context.Context, r forge.Repo, number int, body string) (*forge.Comment, error) {
	if *l.away == 0 {
		return l.Forge.CreateComment(ctx, r, number, body)
	}
	*l.away--
	if l.takes {
		if _, err := l.Forge.CreateComment(ctx, r, number, body); err != nil {
			return nil, err
		}
	}
	return nil, forge.ErrRetryable
}

// A skip that was given while the forge took no label is said in the pull request once, however
// often the command is sent again.
func TestASkipWithoutItsLabelIsSaid(t *testing.T) {
	w := newFixture(t, "  breakGlass: {users: [ada]}\n", soakedQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	skip := command.Command{Verb: command.Skip, Gate: "soak", Reason: "the outage of today"}
	w.fail("label", forge.ErrRetryable)
	if err := w.consoleCommand("oncall", command.RoleBreakGlass, p.Number, "1", skip); !errors.Is(err, forge.ErrRetryable) {
		t.Errorf("without the label it ends with %v", err)
	}
	w.failNothing()
	for range 2 {
		w.must(w.consoleCommand("oncall", command.RoleBreakGlass, p.Number, "1", skip))
		if n := w.commentsWith("the outage of today"); n != 1 {
			t.Errorf("%d comments say who skipped a gate", n)
		}
	}
}

// TestConsoleCommandsAreSaidLater holds that the pull request names the author of a console's
// command once the forge is back. It does so once, also where the forge had taken the comment
// without answering.
func TestConsoleCommandsAreSaidLater(t *testing.T) {
	for name, takes := range map[string]bool{"the forge was away": false, "its answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "  breakGlass: {users: [ada]}\n", soakedQA, "web")
			p := w.openOne("web", "2.0.0", "web")
			away := 2
			w.repo.Forge = lateComments{w.repo.Forge, &away, takes}
			w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "1", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa", Reason: "the certificate"}))
			w.must(w.consoleCommand("oncall", command.RoleBreakGlass, p.Number, "1", command.Command{Verb: command.Skip, Gate: "soak", Reason: "the outage of today"}))
			if away != 0 || !slices.Equal(w.outcomes(), []string{"oncall (console) skip: taken", "ada (console) hold: taken"}) {
				t.Errorf("the forge refuses %d more; on record are %q", away, w.outcomes())
			}
			hold, skip := "`ada (console)` gave `/liftlock hold pr`: the certificate", "the outage of today"
			for range 2 { // the second look finds nothing to say
				w.clock.Step(announcementRetry)
				w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
				if w.commentsWith(hold) != 1 || w.commentsWith(skip) != 1 {
					t.Errorf("%d comments say who holds it, %d who skipped a gate: %+v", w.commentsWith(hold), w.commentsWith(skip), w.pulls()[0].Comments)
				}
			}
			rest, err := announcements.List(t.Context(), w.opts.Store, record.Within{})
			if w.must(err); len(rest) != 0 {
				t.Errorf("still to be said: %v", rest)
			}
		})
	}
	// The pull request's own key runs for it, and after a day no more.
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	away := 1
	w.repo.Forge = lateComments{w.repo.Forge, &away, false}
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "1", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"}))
	w.clock.Step(announcementRetry)
	key := wake.ForPull(w.repo.ID, p.Number).String()
	due, err := w.opts.Store.Claim(t.Context(), "test", 100)
	w.must(err)
	if !slices.ContainsFunc(due, func(c store.Claim) bool { return c.Key == key }) {
		t.Errorf("due are %v, not %s", due, key)
	}
	w.clock.Step(maxAnnouncementAge)
	w.must(w.announceRest(t.Context(), w.repo, p.Number))
	if n := w.commentsWith("gave `/liftlock hold"); n != 0 {
		t.Errorf("a day later it is said %d times", n)
	}
	away = 1
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "2", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"}))
	w.clock.Step(maxAnnouncementAge)
	w.must(w.announceRest(t.Context(), w.repo, p.Number))
	if n := w.commentsWith("gave `/liftlock hold"); n != 1 {
		t.Errorf("at the end of the day it is said %d times", n)
	}
	// Where the forge takes no comment for good, it isn't tried again.
	w.fail("comment on", forge.ErrForbidden)
	w.must(w.consoleCommand("ada", command.RoleOperator, p.Number, "3", command.Command{Verb: command.Hold, Scope: command.ScopePR, Environment: "qa"}))
	w.failNothing()
	if rest, err := announcements.List(t.Context(), w.opts.Store, record.Within{}); err != nil || len(rest) != 0 {
		t.Errorf("still to be said: %v, %v", rest, err)
	}
}
