package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// history puts many closed pull requests of a component after what there is.
func (f *fixture) history(many int, change func(i int, pr *forge.PullRequest)) {
	f.t.Helper()
	var rows []store.Pull
	for i := range many {
		at := f.clock.Now().Add(-2*time.Hour + time.Duration(i)*time.Second)
		pr := forge.PullRequest{Number: 1000 + i, Branch: promotion.Branch("shop", "qa", "web"), Base: "main", Head: fmt.Sprintf("%040x", i), Author: bot, State: forge.Closed,
			CreatedAt: at, UpdatedAt: at, ClosedAt: at}
		pr.Body = f.repo.Marks.Sign(f.repo.ID, pr.Branch, pr.Head, branch.Marker{Kind: promotion.KindPromotion, Release: fmt.Sprintf("%012x%052x", i, i)})
		if change != nil {
			change(i, &pr)
		}
		data, err := json.Marshal(map[string]any{"pr": pr})
		f.must(err)
		ref, _ := promotion.ParseBranch(pr.Branch)
		rows = append(rows, store.Pull{Repo: f.repo.ID, Number: pr.Number, Branch: pr.Branch, State: string(pr.State), Pipeline: ref.Pipeline, Environment: ref.Environment, Component: ref.Component,
			Revert: ref.Revert, Author: pr.Author, Head: pr.Head, MergeCommit: pr.MergeCommit, CreatedAt: pr.CreatedAt, ClosedAt: pr.ClosedAt, UpdatedAt: pr.UpdatedAt, Data: data})
	}
	f.must(f.opts.Store.PutPulls(f.t.Context(), rows...))
}

// staysClosed runs a component for a while and holds that nothing is opened.
func (f *fixture) staysClosed() {
	f.t.Helper()
	before := len(f.pulls())
	for range 4 {
		f.must(f.run(wake.ForUnit(f.unit("web"))))
		f.runRepository()
	}
	if n := len(f.pulls()); n != before {
		f.t.Errorf("%d pull requests were opened", n-before)
	}
}

// TestAVetoOutlivesAnyNumberOfOthers holds that what a person closed stays closed,
// however many other pull requests were closed since.
func TestAVetoOutlivesAnyNumberOfOthers(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	var err error
	w.repo.Marks, err = branch.NewMarkSigner([]byte("a secret of the server's, long enough"))
	w.must(err)
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.forge.ClosePull(repoName, p.Number, "ada"))
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.staysClosed()
	w.history(120, nil)
	w.staysClosed()
	unsettled, err := w.opts.Store.UnsettledPulls(t.Context(), w.repo.ID, "shop", store.PullsByRules{Component: "web", Rules: "a"})
	w.must(err)
	for _, row := range unsettled {
		if row.Rules == "" && row.Number >= 1000 {
			t.Fatalf("what #%d moved is worked out with every look", row.Number)
		}
	}
	w.clock.Step(2 * time.Hour) // its head can't be fetched any more: now it is settled
	w.staysClosed()
}

// TestAQuarantineOutlivesAnyNumberOfOthers holds the same of a release that was reverted.
func TestAQuarantineOutlivesAnyNumberOfOthers(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	var err error
	w.repo.Marks, err = branch.NewMarkSigner([]byte("a secret of the server's, long enough"))
	w.must(err)
	p := w.openOne("web", "2.0.0", "web")
	release := regexp.MustCompile(`release=([0-9a-f]{64})`).FindStringSubmatch(p.Body)[1]
	head, err := w.forge.Head(repoName, "main")
	w.must(err)
	w.must(w.forge.AddLabel(repoName, p.Number, bot, promotion.LabelSuperseded))
	w.must(w.opts.Store.Tx(t.Context(), "superseded", func(tx *store.Tx) error {
		row, _, err := tx.PromotionByPull(t.Context(), wake.UnitName(w.unit("web")), w.repo.ID, p.Number)
		if err == nil {
			row.State = "superseded"
			_, err = tx.PutPromotion(t.Context(), row)
		}
		return err
	}))
	w.must(w.forge.ClosePull(repoName, p.Number, bot))
	w.history(120, func(i int, pr *forge.PullRequest) {
		if i == 0 {
			pr.Branch, pr.State, pr.MergedAt, pr.MergeCommit = promotion.RevertBranch("shop", "qa", "web", release), forge.Merged, pr.ClosedAt, head
		}
	})
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.staysClosed()
	w.staysClosed()
}

// TestHolderMayLiftTheHold holds who lifts a hold on more than a pull request, where an environment
// has an approvals gate. An approver does, or the person who set it, and no other. A token of the
// API is not the person on the forge with its name.
func TestHolderMayLiftTheHold(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace]}}}]", 1)
	for _, scope := range []string{command.ScopeComponent, command.ScopeEnvironment, command.ScopePipeline} {
		t.Run(scope, func(t *testing.T) {
			w := newFixture(t, "", gated, "web")
			p := w.openOne("web", "2.0.0", "web")
			hold := command.Command{Verb: command.Hold, Scope: scope, Environment: "qa"}
			lift := command.Command{Verb: command.Unhold, Scope: scope, Environment: "qa"}
			var refused *RefusedError
			given := 0
			try := func(by, role string, c command.Command, allowed bool) {
				t.Helper()
				given++
				via := "comment"
				if role != "" {
					via = ViaAPI
				}
				_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, Command: c, By: by, Role: role, Via: via, Source: fmt.Sprint(by, role, c.Verb, given)})
				if (err == nil) != allowed || err != nil && !errors.As(err, &refused) {
					t.Errorf("%s %s by %s: %v", c.Verb, c.Scope, by, err)
				}
			}
			try("ada", "", hold, true)
			try("linus", "", lift, false)
			try("ada", command.RoleOperator, lift, false) // a token of that name
			try("ada", "", lift, true)
			try("ada", "", hold, true)
			try("grace", "", lift, true)
			try("ada", command.RoleOperator, hold, true)
			try("ada", "", lift, false)
			try("ada", command.RoleOperator, lift, true)
		})
	}
}

// TestAHoldEnds holds that a hold with an end keeps what it is about until then, and nothing
// longer: the label goes, and nobody takes that for somebody's doing.
func TestAHoldEnds(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	pull := wake.ForPull(w.repo.ID, p.Number)
	held := func() bool { return slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) }
	hold := func(by, text string) string {
		t.Helper()
		c, err := command.ParseArgs(strings.Fields("hold " + text))
		w.must(err)
		answer, err := w.command(by, p.Number, "web", c)
		w.must(err)
		w.must(w.run(pull))
		return answer
	}
	if got := hold("ada", "for 2h"); !strings.HasPrefix(got, "On hold by ada until 2026-") || !held() {
		t.Errorf("held: %t, %q", held(), got)
	}
	if got := hold("grace", "for 1h"); !strings.HasPrefix(got, "On hold by ada until 2026-") {
		t.Errorf("for less: %q", got)
	}
	comments := len(w.pulls()[0].Comments)
	w.clock.Step(119 * time.Minute)
	w.must(w.run(pull))
	if !held() {
		t.Error("it ended before its time")
	}
	w.clock.Step(time.Minute)
	for range 2 {
		w.must(w.run(pull))
		if held() || len(w.pulls()[0].Comments) != comments {
			t.Errorf("it stands after its end: %t, %+v", held(), w.pulls()[0].Comments)
		}
	}
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	if got := hold("ada", "for 1h"); got != "It is on hold by hand, by its label, without an end; `/liftlock unhold` lifts it." {
		t.Errorf("over a label: %q", got)
	}
	w.clock.Step(2 * time.Hour)
	if w.must(w.run(pull)); !held() {
		t.Error("somebody's own label was taken off")
	}
	var refused *RefusedError
	c := command.Command{Verb: command.Hold, Scope: command.ScopePipeline, Until: w.clock.Now().Add(-time.Minute)}
	if _, err := w.command("ada", p.Number, "web", c); !errors.As(err, &refused) || !strings.Contains(refused.Why, "is over") {
		t.Errorf("until a time that was: %v", err)
	}
}

// authorless is a forge that can't tell who made a commit.
type authorless struct{ forge.Forge }

var errAuthorless = &forge.Error{Op: "CommitAuthors", Kind: forge.ErrNotFound, Message: "no history tells"}

func (authorless) CommitAuthors(context.Context, forge.Repo, string, string) ([]forge.CommitAuthors, error) {
	return nil, errAuthorless
}

func (authorless) PullRequestAuthors(context.Context, forge.Repo, *forge.PullRequest) ([]forge.CommitAuthors, error) {
	return nil, errAuthorless
}

// TestHolderMayLiftWithUnknownAuthors holds that a hold doesn't stay for ever where the
// release's authors can't be told. The person who set it may lift it, and no other.
func TestHolderMayLiftWithUnknownAuthors(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1}}]", 1)
	w := newFixture(t, "", gated, "web")
	p := w.openOne("web", "2.0.0", "web")
	w.repo.Forge = authorless{w.repo.Forge}
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold, Scope: command.ScopePipeline})
	w.must(err)
	var refused *RefusedError
	if _, err := w.command("grace", p.Number, "web", command.Command{Verb: command.Unhold, Scope: command.ScopePipeline}); !errors.As(err, &refused) || !strings.Contains(refused.Why, "can't be told") {
		t.Errorf("grace lifts it: %v", err)
	}
	_, err = w.command("ada", p.Number, "web", command.Command{Verb: command.Unhold, Scope: command.ScopePipeline})
	w.must(err)
}

// TestALabelRemovedByHandComesBack holds that a hold set by a command is lifted only as the command
// would be. The label comes back with a sentence, and nothing takes the pull request for free
// meanwhile. The person who set it may lift it, and a label that a person set by hand a person
// takes off.
func TestALabelRemovedByHandComesBack(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace]}}}]", 1)
	w := newFixture(t, "", gated, "web")
	p := w.openOne("web", "2.0.0", "web")
	comments := len(w.pulls()[0].Comments)
	check := func(what string, label bool, sentences int) {
		t.Helper()
		now := w.pulls()[0]
		if got := slices.Contains(now.Labels, promotion.LabelHold); got != label {
			t.Errorf("%s: the label is there: %t", what, got)
		}
		if got := len(now.Comments) - comments; got != sentences || got > 0 && !strings.Contains(now.Comments[len(now.Comments)-1].Body, "ada set this hold by a command") {
			t.Errorf("%s: %d sentences: %+v", what, got, now.Comments)
		}
	}
	isHeld := func() bool {
		t.Helper()
		s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
		w.must(err)
		ev, _, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("web"), true)
		w.must(err)
		return ev.OpenPulls[p.Number].Held
	}
	pull := wake.ForPull(w.repo.ID, p.Number)
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold})
	w.must(err)
	w.must(w.run(pull))
	check("held", true, 0)
	w.must(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
	if !isHeld() {
		t.Error("it counts as free while the label is off")
	}
	for range 2 {
		w.must(w.run(pull))
		check("taken off by hand", true, 1)
	}
	var refused *RefusedError
	if _, err := w.command("linus", p.Number, "web", command.Command{Verb: command.Unhold, Environment: "qa"}); !errors.As(err, &refused) {
		t.Errorf("linus lifts it: %v", err)
	}
	_, err = w.command("ada", p.Number, "web", command.Command{Verb: command.Unhold, Environment: "qa"})
	w.must(err)
	w.must(w.run(pull))
	check("lifted", false, 1)
	if isHeld() {
		t.Error("it counts as held")
	}
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	w.must(w.run(pull))
	w.must(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
	w.must(w.run(pull))
	check("set and taken off by hand", false, 1)
}

// TestEverybodysHoldIsKept holds that the person who sets the first hold can't lift another's later
// one, nor the other way round. Each lifts their own, and a person who may lift all does.
func TestEverybodysHoldIsKept(t *testing.T) {
	t.Parallel()
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [ada]}}}]", 1)
	for scope, env := range map[string]string{"environment": "qa", "pr": "qa", "component": "qa", "pipeline": "qa"} {
		t.Run(scope, func(t *testing.T) {
			w := newFixture(t, "", gated, "web")
			p := w.openOne("web", "2.0.0", "web")
			give := func(by string, verb command.Verb, lasting time.Duration) (string, error) {
				t.Helper()
				w.clock.Step(2 * time.Minute)
				return w.command(by, p.Number, "web", command.Command{Verb: verb, Scope: scope, Environment: env, For: lasting})
			}
			waits := func(what string, want bool) {
				t.Helper()
				w.runRepository()
				if _, d := w.evaluate(); (d.Components[0].Env("qa").Promotion == promotion.Held) != want {
					t.Errorf("%s: it is %s", what, d.Components[0].Env("qa").Promotion)
				}
			}
			_, err := give("grace", command.Hold, time.Hour)
			w.must(err)
			_, err = give("ada", command.Hold, 0)
			w.must(err)
			answer, err := give("grace", command.Unhold, 0)
			w.must(err)
			if !strings.HasPrefix(answer, "It stays on hold by ada, without an end") {
				t.Errorf("grace lifted the hold of ada: %q", answer)
			}
			waits("grace lifted hers", true)
			var refused *RefusedError
			if _, err := give("grace", command.Unhold, 0); !errors.As(err, &refused) {
				t.Errorf("grace, who holds nothing, lifts: %v", err)
			}
			waits("grace tried again", true)
			_, err = give("linus", command.Hold, 0)
			w.must(err)
			_, err = w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, By: "ada", Via: "comment", Source: "late", At: w.clock.Now().Add(-3 * time.Minute),
				Command: command.Command{Verb: command.Unhold, Scope: scope, Environment: env}})
			w.must(err)
			waits("ada lifted what was there before linus held", true)
			_, err = give("ada", command.Unhold, 0)
			w.must(err)
			waits("ada lifted all", false)
		})
	}
}

// TestAnUnholdIsDoneAgain holds that a person who lifts a hold of their own, which takes no
// approver, may do so again where the outcome isn't known. That lifts no other's hold.
func TestAnUnholdIsDoneAgain(t *testing.T) {
	t.Parallel()
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [ada]}}}]", 1)
	for _, scope := range []string{command.ScopeEnvironment, command.ScopePR, command.ScopeComponent, command.ScopePipeline} {
		t.Run(scope, func(t *testing.T) {
			w := newFixture(t, "", gated, "web")
			p := w.openOne("web", "2.0.0", "web")
			give := func(by string, verb command.Verb, source string) error {
				t.Helper()
				w.clock.Step(2 * time.Minute)
				_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, By: by, Via: "comment", Source: source, At: w.clock.Now(),
					Command: command.Command{Verb: verb, Scope: scope, Environment: "qa"}})
				return err
			}
			isHeld := func() bool {
				w.runRepository()
				_, d := w.evaluate()
				return d.Components[0].Env("qa").Promotion == promotion.Held
			}
			var refused *RefusedError
			w.must(give("grace", command.Hold, "1"))
			if scope == command.ScopePR {
				w.fail("take the label", forge.ErrRetryable)
				if err := give("grace", command.Unhold, "2"); !errors.Is(err, forge.ErrRetryable) {
					t.Errorf("the forge can't take off the label: %v", err)
				}
				w.failNothing()
				if err := give("linus", command.Unhold, "another"); !errors.As(err, &refused) {
					t.Errorf("linus takes off a label that nobody is known to have set: %v", err)
				}
			}
			for range 2 {
				w.must(give("grace", command.Unhold, "2"))
				if isHeld() {
					t.Error("it is on hold after it was lifted")
				}
			}
			if scope == command.ScopePR { // it is on its way off while somebody else holds
				w.must(give("grace", command.Hold, "5"))
				w.fail("take the label", forge.ErrRetryable)
				if err := give("grace", command.Unhold, "6"); !errors.Is(err, forge.ErrRetryable) {
					t.Errorf("the forge can't take off the label: %v", err)
				}
				w.failNothing()
			}
			_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold, Scope: scope, Environment: "qa", For: time.Hour})
			w.must(err)
			for _, source := range []string{"2", "6"} {
				if err := give("grace", command.Unhold, source); !errors.As(err, &refused) || !isHeld() {
					t.Errorf("grace lifts the hold of ada: %v", err)
				}
			}
			w.must(give("ada", command.Unhold, "4"))
			if scope == command.ScopePR {
				w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
				if err := give("grace", command.Unhold, "2"); !errors.As(err, &refused) {
					t.Errorf("grace takes off what somebody set by hand: %v", err)
				}
			}
		})
	}
}

// TestAHoldOfRevertsEnds holds that a hold with an end that stops reverts too does so until its end,
// also where who set it holds promotions without an end.
func TestAHoldOfRevertsEnds(t *testing.T) {
	w := newFixture(t, "", strings.Replace(autoQA, "merge: auto", "merge: auto, onDegraded: revert-and-merge", 1), "web")
	p := w.openOne("web", "2.0.0", "web")
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
	for _, c := range []command.Command{{Verb: command.Hold, Scope: command.ScopeComponent}, {Verb: command.Hold, Scope: command.ScopeComponent, For: time.Hour, Reverts: true}} {
		_, err := w.command("ada", p.Number, "web", c)
		w.must(err)
		w.runRepository()
	}
	w.mu.Lock()
	w.health["web-qa"] = "Degraded"
	w.mu.Unlock()
	isReverted := func() bool {
		return slices.ContainsFunc(w.pulls(), func(p emulator.PullRequest) bool {
			return strings.HasPrefix(p.Branch, promotion.RevertPrefix) && p.Merged
		})
	}
	w.settle("web", "the revert is open", func() bool { return len(w.pulls()) > 1 })
	for range 4 {
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	if isReverted() {
		t.Fatal("reverts are on hold, and one was merged")
	}
	w.clock.Step(time.Hour)
	w.settle("web", "the revert is merged", isReverted)
	active, err := w.opts.Actor.ListHolds(t.Context(), w.repo.Repository, w.unit("web"), command.ScopeComponent, "")
	if w.must(err); len(active) != 1 || active[0].Reverts || !active[0].Until.IsZero() {
		t.Errorf("the hold of promotions isn't what it was: %+v", active)
	}
}

// TestALateUnholdLeavesALabelSetByHand holds that an unhold that is carried out long after
// it was written doesn't take off a label that may be newer, and says so.
func TestALateUnholdLeavesALabelSetByHand(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	unhold := func(source string, age time.Duration) error {
		_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, By: "ada", Via: "comment", Source: source, At: w.clock.Now().Add(-age),
			Command: command.Command{Verb: command.Unhold, Environment: "qa"}})
		return err
	}
	var refused *RefusedError
	if err := unhold("late", 3*time.Minute); !errors.As(err, &refused) || !strings.Contains(refused.Why, "write it again") {
		t.Errorf("a late unhold: %v", err)
	}
	if !slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) {
		t.Error("a late unhold took off a label that may be newer")
	}
	w.must(unhold("now", 0))
	if slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) {
		t.Error("an unhold left the label")
	}
}

// TestLateHoldIsLiftedByLaterUnhold holds that the times at which a hold
// and its unhold were written count. A hold that is only carried out when its unhold has been
// written is lifted by that, and one that was written after it stays.
func TestLateHoldIsLiftedByLaterUnhold(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"environment", "pr", "component", "pipeline"} {
		t.Run(scope, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			p := w.openOne("web", "2.0.0", "web")
			written := w.clock.Now()
			give := func(verb command.Verb, minute int) string {
				t.Helper()
				answer, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, By: "ada", Via: "comment", Source: fmt.Sprint(verb, minute),
					At: written.Add(time.Duration(minute) * time.Minute), Command: command.Command{Verb: verb, Scope: scope, Environment: "qa"}})
				w.must(err)
				return answer
			}
			w.clock.Step(20 * time.Minute)
			give(command.Hold, 0)
			if answer := give(command.Unhold, 10); answer != "" {
				t.Errorf("an unhold that was written after the hold: %q", answer)
			}
			give(command.Hold, 11)
			if answer := give(command.Unhold, 10); !strings.HasPrefix(answer, "It stays on hold by ada") {
				t.Errorf("an unhold that was written before the hold: %q", answer)
			}
		})
	}
}
