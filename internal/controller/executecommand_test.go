package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// outcomes are the audit trail's, newest first.
func (f *fixture) outcomes() []string {
	f.t.Helper()
	trail, err := f.opts.Store.AuditTrail(f.t.Context(), store.AuditFilter{}, 0)
	f.must(err)
	var out []string
	for _, a := range trail {
		out = append(out, a.Actor+" "+a.Verb+": "+a.Outcome)
	}
	return out
}

// TestCommandsAreRecorded holds the records of a command. It has an entry in the audit trail,
// whether it is taken or refused, once for each place in which it was given, and the record for the
// decision.
func TestCommandsAreRecorded(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			p := w.openOne(c.key, "2.0.0", c.components...)
			retry := command.Command{Verb: command.Retry, Environment: "qa", Reason: "it was the network"}
			for range 2 {
				answer, err := w.command("ada", p.Number, c.key, retry)
				if w.must(err); answer != "" {
					t.Errorf("answered %q", answer)
				}
			}
			if got := w.outcomes(); !slices.Equal(got, []string{"ada retry: taken"}) {
				t.Errorf("the trail is %q", got)
			}
			for _, component := range c.components {
				pending, err := w.opts.Store.PendingCommands(t.Context(), wake.UnitName(w.unit(component)))
				if w.must(err); len(pending) != 1 || pending[0].Verb != string(command.Retry) || pending[0].Environment != "qa" || pending[0].By != "ada" || pending[0].Reason != retry.Reason {
					t.Errorf("%s has %+v", component, pending)
				}
			}
			var refused *RefusedError
			for i, b := range []struct {
				by, unit string
				c        command.Command
				why      string
			}{
				{"ada", c.key, command.Command{Verb: command.Retry, Environment: "nowhere"}, "no environment"},
				{"ada", c.key, command.Command{Verb: command.Hold, Scope: command.ScopeEnvironment, Environment: "nowhere"}, "no environment"},
				{"ada", "gone", command.Command{Verb: command.Retry, Environment: "qa"}, "no component gone"},
				{"rita", c.key, command.Command{Verb: command.Retry, Environment: "qa"}, ""},
				{"nobody", c.key, command.Command{Verb: command.Hold}, ""},
				{"ada", c.key, command.Command{Verb: "dance"}, ""},
			} {
				_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit(b.unit), Pull: p.Number, Command: b.c, By: b.by, Via: "comment", Source: fmt.Sprint("refused ", i)})
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), b.why) {
					t.Errorf("%+v: %v", b, err)
					continue
				}
				if got := w.outcomes()[0]; !strings.HasPrefix(got, b.by+" "+string(b.c.Verb)) || !strings.HasSuffix(got, "refused: "+refused.Why) {
					t.Errorf("%+v left %q", b, got)
				}
			}
			if _, err := w.ExecuteCommand(t.Context(), Command{Unit: promotion.Unit{Repo: "hub:acme/other"}, Command: retry, By: "ada"}); !errors.As(err, &refused) {
				t.Errorf("another repository: %v", err)
			}
		})
	}
}

// TestCommandsAreOfWhenTheyWereWritten holds that a command that is read late is about the release
// at its writing. A clock that is ahead makes none of later.
func TestCommandsAreOfWhenTheyWereWritten(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	now := w.opts.Clock.Now()
	for i, c := range []struct {
		verb    command.Verb
		written time.Time
		want    time.Time
	}{
		{command.Promote, now.Add(-5 * time.Minute), now.Add(-5*time.Minute + time.Second)},
		{command.Promote, now.Add(time.Hour), now},
		{command.Promote, time.Time{}, now},
		{command.Retry, now.Add(-5 * time.Minute), now.Add(-5*time.Minute + time.Second)},
		{command.Revert, now.Add(-5 * time.Minute), now.Add(-5*time.Minute + time.Second)},
	} {
		source := fmt.Sprint("written ", i)
		_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: c.verb, Environment: "qa"}, By: "ada", Via: "comment", Source: source, At: c.written})
		w.must(err)
		pending, err := w.opts.Store.PendingCommands(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		k := slices.IndexFunc(pending, func(k store.PendingCommand) bool { return k.Source == source })
		if k < 0 || pending[k].At.Sub(c.want).Abs() > time.Minute {
			t.Errorf("%s written at %v is of %+v, want %v", c.verb, c.written, pending, c.want)
		}
	}
}

// TestHoldsComeAndGo holds that each scope of a hold is set and lifted where it belongs,
// and that who looks after it is woken.
func TestHoldsComeAndGo(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	labelled := func() bool { return slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) }
	for _, scope := range []string{"", command.ScopePR} {
		for _, verb := range []command.Verb{command.Hold, command.Unhold} {
			_, err := w.command("ada", p.Number, "web", command.Command{Verb: verb, Scope: scope})
			if w.must(err); labelled() != (verb == command.Hold) {
				t.Errorf("after %s %s it has the labels %q", verb, scope, w.pulls()[0].Labels)
			}
		}
	}
	var refused *RefusedError
	if _, err := w.command("ada", 0, "web", command.Command{Verb: command.Hold}); !errors.As(err, &refused) || !strings.Contains(refused.Why, "which pull request?") {
		t.Errorf("a hold of no pull request: %v", err)
	}
	for _, scope := range []string{command.ScopeComponent, command.ScopeEnvironment, command.ScopePipeline} {
		for _, verb := range []command.Verb{command.Hold, command.Unhold} {
			_, err := w.command("ada", p.Number, "web", command.Command{Verb: verb, Scope: scope, Environment: "qa"})
			w.must(err)
			head, _, err := w.repo.Mirror.Head(t.Context(), history.StateBranch)
			w.must(err)
			holds, err := history.Holds(w.repo.Mirror.Tree(head), "shop", "web")
			if w.must(err); (len(holds) == 1 && holds[0].Scope == scope) != (verb == command.Hold) {
				t.Errorf("after %s %s: %+v", verb, scope, holds)
			}
		}
	}
	answer, err := w.command("rita", p.Number, "web", command.Command{Verb: command.Diff})
	if w.must(err); !strings.Contains(answer, "2.0.0") {
		t.Errorf("the difference is %q", answer)
	}
	if _, err = w.command("rita", p.Number+1, "web", command.Command{Verb: command.Diff}); !errors.As(err, &refused) || !strings.Contains(refused.Why, "is not an open pull request") {
		t.Errorf("the difference of none: %v", err)
	}
	for range 100 { // questions cost, and have an end
		if _, err = w.command("rita", p.Number, "web", command.Command{Verb: command.Help}); err != nil {
			break
		}
		w.clock.Step(-2e9)
	}
	if !errors.As(err, &refused) || refused.Why != rateLimitedText {
		t.Errorf("a hundred questions at once: %v", err)
	}
}

// TestAuditSaysTheEnvironment holds that the audit trail has the one environment of a command, also
// where only its pull request tells. It has none where the command was about several.
func TestAuditSaysTheEnvironment(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			p := w.openOne(c.key, "2.0.0", c.components...)
			for i, k := range []struct {
				pull int
				c    command.Command
				want string
			}{
				{p.Number, command.Command{Verb: command.Retry, Environment: "qa"}, "qa"},
				{p.Number, command.Command{Verb: command.Hold}, "qa"},
				{p.Number, command.Command{Verb: command.Unhold, Scope: command.ScopePR}, "qa"},
				{p.Number, command.Command{Verb: command.Hold, Scope: command.ScopeComponent, Environment: "qa"}, ""},
				{p.Number, command.Command{Verb: command.Hold, Scope: command.ScopePipeline}, ""},
				{0, command.Command{Verb: command.Hold, Scope: command.ScopeEnvironment, Environment: "qa"}, "qa"},
				{0, command.Command{Verb: command.Retry, Environment: "dev"}, "dev"},
				{0, command.Command{Verb: command.Status}, ""},
				{999, command.Command{Verb: command.Status}, ""},
				{p.Number, command.Command{Verb: command.Retry, Environment: strings.Repeat("x", 100)}, ""},
			} {
				_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit(c.key), Pull: k.pull, Command: k.c, By: "ada", Via: "comment", Source: fmt.Sprint("said ", i)})
				if refused := (*RefusedError)(nil); err != nil && !errors.As(err, &refused) {
					t.Fatalf("%+v: %v", k, err)
				}
				trail, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{}, 1)
				if w.must(err); trail[0].Source != fmt.Sprint("said ", i) || trail[0].Environment != k.want {
					t.Errorf("%+v left %+v", k.c, trail[0])
				}
			}
		})
	}
}

// TestRevertIsForItsPullRequest holds that a revert in the thread of a promotion that a newer one
// has replaced reverts nothing. One in the newer's thread does.
func TestRevertIsForItsPullRequest(t *testing.T) {
	w := newFixture(t, "", autoQA, "web")
	merge := func(tag string) int {
		p := w.openOne("web", tag, "web")
		w.settle("web", "it is verified", func() bool {
			all, err := w.opts.Store.Promotions(t.Context(), store.PromotionFilter{Pulls: []int{p.Number}})
			w.must(err)
			return len(all) > 0 && all[0].State == promotion.Verified
		})
		return p.Number
	}
	first := merge("2.0.0")
	second := merge("3.0.0")
	revert := command.Command{Verb: command.Revert, Environment: "qa", Reason: "it leaks"}
	var refused *RefusedError
	want := fmt.Sprintf("what #%d brought isn't in qa any more: #%d has brought 3.0.0 since", first, second)
	if _, err := w.command("ada", first, "web", revert); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
		t.Errorf("of the one before: %v, want %q", err, want)
	}
	if _, err := w.command("ada", second, "web", revert); err != nil {
		t.Errorf("of what is there: %v", err)
	}
	w.settle("web", "the revert is open", func() bool {
		all := w.pulls()
		return len(all) == 3 && strings.HasPrefix(all[2].Title, "Revert")
	})
}

// TestTeamsThatCannotBeRead holds that a command is refused with the reason where the forge doesn't
// say whether its author is in a team. It fails, to be tried again, where the forge is only away.
func TestTeamsThatCannotBeRead(t *testing.T) {
	env := strings.Replace(soakedQA, "gates: [", "gates: [{approvals: {count: 1, from: {teams: [acme/sre]}}}, ", 1)
	w := newFixture(t, "  breakGlass: {teams: [acme/sre]}\n", env, "web")
	w.must(w.forge.SetTeam("acme/sre", "", "ada"))
	p := w.openOne("web", "2.0.0", "web")
	w.clock.Step(time.Hour) // what was read of the team is out of date
	for verb, want := range map[command.Verb]string{command.Promote: "whether the approval of ada would count can't be told", command.Skip: "whether ada may skip gates can't be told"} {
		c := command.Command{Verb: verb, Environment: "qa"}
		if verb == command.Skip {
			c.Environment, c.Gate, c.Reason = "", "soak", "the outage of today"
		}
		w.fail("is in acme/sre", forge.ErrForbidden)
		var refused *RefusedError
		if _, err := w.command("ada", p.Number, "web", c); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
			t.Errorf("%s where the forge doesn't say it: %v", verb, err)
		}
		w.fail("is in acme/sre", forge.ErrRetryable)
		if _, err := w.command("ada", p.Number, "web", c); errors.As(err, &refused) || !errors.Is(err, forge.ErrRetryable) {
			t.Errorf("%s where the forge is away: %v", verb, err)
		}
	}
}
