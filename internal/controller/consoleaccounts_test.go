package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// accountCommand is consoleCommand of somebody whose account on the forge is known.
func (f *fixture) accountCommand(by, account, role string, pull int, key string, c command.Command) error {
	f.t.Helper()
	_, err := f.ExecuteCommand(f.t.Context(), Command{Unit: f.unit("web"), Pull: pull, Command: c, By: by + " (console)", Subject: "sub-" + by, Account: account, Role: role, Via: ViaConsole, Source: "console sub-" + by + " " + key})
	return err
}

// TestConsoleUsersAreTheirAccounts holds that a user whose account on the forge is known may do in
// the console what a comment of theirs may, and no more. An approver's word counts, an author's and
// a stranger's don't.
func TestConsoleUsersAreTheirAccounts(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace, linus, rita]}}}]", 1)
	w := newFixture(t, "", gated, "web")
	p := w.openOne("web", "2.0.0", "web") // linus made it
	for i, c := range []struct {
		account, role string
		verb          command.Verb
		want          string // empty: it is carried out
	}{
		{"", command.RoleOperator, command.Promote, "approvals gate"},
		{"ada", command.RoleOperator, command.Promote, "approvals gate"},    // not an approver
		{"linus", command.RoleOperator, command.Promote, "approvals gate"},  // an author
		{"rita", command.RoleOperator, command.Promote, "approvals gate"},   // may only read
		{"nobody", command.RoleOperator, command.Promote, "approvals gate"}, // no account
		{"grace", command.RoleViewer, command.Promote, "it takes the role operator"},
		{"grace", command.RoleOperator, command.Promote, ""},
	} {
		err := w.accountCommand("somebody", c.account, c.role, p.Number, fmt.Sprint(i), command.Command{Verb: c.verb, Environment: "qa"})
		var refused *RefusedError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Why, c.want)) {
			t.Errorf("%s with the account %q, %s: %v, want %q", c.verb, c.account, c.role, err, c.want)
		}
	}
	// The person who asked for the promotion is known by their account: their approval doesn't
	// count.
	given, err := w.opts.Store.PendingCommands(t.Context(), "hub:acme/fleet|shop|web")
	w.must(err)
	if len(given) != 1 || given[0].By != "grace" {
		t.Errorf("it was promoted by %+v", given)
	}
	all, err := w.opts.Store.AuditTrail(t.Context(), store.AuditFilter{Verb: string(command.Promote)}, 1)
	w.must(err)
	if all[0].Actor != "somebody (console)" {
		t.Errorf("the audit trail has %+v", all[0])
	}
}

// An author of the release lets it past no gate in the console either; of whom no account is
// known, nobody can tell.
func TestConsoleSkipTakesASecondPerson(t *testing.T) {
	skip := command.Command{Verb: command.Skip, Gate: "soak", Reason: "the outage of today"}
	w := newFixture(t, "", soakedQA+"  breakGlass: {users: [ada]}\n", "web")
	p := w.openOne("web", "2.0.0", "web")
	var refused *RefusedError
	if err := w.accountCommand("linus", "Linus", command.RoleBreakGlass, p.Number, "1", skip); !errors.As(err, &refused) || !strings.Contains(refused.Why, "is an author of the release") {
		t.Errorf("an author skips a gate: %v", err)
	}
	w.must(w.accountCommand("grace", "grace", command.RoleBreakGlass, p.Number, "1", skip))
	w.settle("web", "merged past the gate", func() bool { return w.pulls()[0].Merged })
}
