package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// consoleCommand gives a command about a pull request as a user of the console does.
func (w *fixture) consoleCommand(by, role string, pull int, key string, c command.Command) error {
	w.t.Helper()
	_, err := w.ExecuteCommand(w.t.Context(), Command{Unit: w.unit("web"), Pull: pull, Command: c, By: by + " (console)", Role: role, Via: ViaConsole, Source: "console sub-" + by + " " + key})
	return err
}

// commentsWith counts the comments on the first pull request that have a text in them.
func (w *fixture) commentsWith(text string) (n int) {
	w.t.Helper()
	for _, k := range w.pulls()[0].Comments {
		if strings.Contains(k.Body, text) {
			n++
		}
	}
	return n
}

// What somebody does in the console is on record, and the pull request says who it was; sent
// again, it is neither done nor said a second time.
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
		by, role, verb string
		want           string // empty: it is taken
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
		if n := w.commentsWith(c.by + " (console)` gave `/liftlock " + c.verb); n > 0 && c.by != "ada" {
			t.Errorf("what %s was refused is said in the pull request", c.by)
		}
	}
	// A token of the API with a user's name is somebody else.
	_, err := w.ExecuteCommand(t.Context(), Command{Unit: w.unit("web"), Pull: p.Number, Command: command.Command{Verb: command.Hold, Environment: "qa"}, By: "ada (console)", Role: command.RoleOperator, Via: ViaAPI, Source: "api 1"})
	w.must(err)
	var refused *RefusedError
	if err := w.consoleCommand("ada", command.RoleOperator, p.Number, "own", command.Command{Verb: command.Unhold, Environment: "qa"}); !errors.As(err, &refused) {
		t.Errorf("a user lifts what a token holds: %v", err)
	}
}
