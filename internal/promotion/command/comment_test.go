package command

import (
	"strings"
	"testing"
	"time"
)

// TestCommentIsRead holds that what is said of a command, with its reason, is read as that
// command.
func TestCommentIsRead(t *testing.T) {
	end := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{Verb: Hold, Scope: ScopePR, For: 90 * time.Minute, Reason: "waits for it"}, "/liftlock hold pr for 1h30m0s"},
		{Command{Verb: Hold, Scope: ScopeEnvironment, Until: end, Reverts: true, Reason: "an incident"}, "/liftlock hold environment until 2026-03-02T09:00:00Z reverts"},
		{Command{Verb: Unhold, Scope: ScopePipeline}, "/liftlock unhold pipeline"},
		{Command{Verb: Promote, Environment: "prod"}, "/liftlock promote prod"},
		{Command{Verb: Revert, Reason: "orders are lost"}, "/liftlock revert"},
		{Command{Verb: Why, Environment: "prod"}, "/liftlock why prod"},
		{Command{Verb: Retry}, "/liftlock retry"},
		{Command{Verb: Skip, Gate: "soak", Reason: "the fix can't wait"}, "/liftlock skip soak"},
	} {
		got := Comment(c.command)
		if got != c.want {
			t.Errorf("%+v is said as %q, want %q", c.command, got, c.want)
		}
		read, errs := Parse(strings.TrimSpace(got+" "+c.command.Reason), false)
		if len(errs) > 0 || len(read) != 1 || read[0] != c.command {
			t.Errorf("%q is read as %+v, %v; want %+v", got, read, errs, c.command)
		}
	}
	if got := Comment(Command{Verb: Revert, Environment: "qa"}); got != "/liftlock revert" {
		t.Errorf("where the pull request says the environment: %q", got)
	}
}
