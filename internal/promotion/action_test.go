package promotion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestActionsNameTheirEnvironment holds that code that logs, counts or joins actions is told where
// each is done.
func TestActionsNameTheirEnvironment(t *testing.T) {
	for _, a := range []Action{
		FactRequest{Environment: "qa"}, Record{Environment: "qa"}, Open{Environment: "qa"}, Replace{Environment: "qa"},
		Close{Environment: "qa"}, Merge{Environment: "qa"}, OpenRevert{Environment: "qa"}, RecomposeRevert{Environment: "qa"},
		Refresh{Environment: "qa"}, Sync{Environment: "qa"}, RestartVerification{Environment: "qa"}, RequestReviewers{Environment: "qa"},
		ResetEndpoints{Environment: "qa"}, RejoinQueue{Environment: "qa"}, LiftVeto{Environment: "qa"}, BindCommand{Environment: "qa"}, FinishCommand{Environment: "qa"},
	} {
		if got := EnvironmentOf(a); got != "qa" {
			t.Errorf("%T is done in %q", a, got)
		}
	}
}

// TestActionsNameTheirPullRequest holds which pull request an action is told to be about, and
// whom it moves.
func TestActionsNameTheirPullRequest(t *testing.T) {
	who := makeMembers("api r2", "web r2")
	for name, c := range map[string]struct {
		action PullAction
		pull   int
	}{
		"what is opened has no number yet":       {Open{Members: who}, 0},
		"a promotion is composed anew":           {Replace{Pull: 7, Members: who}, 7},
		"one is closed":                          {Close{Pull: 7, Members: who}, 7},
		"one is merged":                          {Merge{Pull: 7, Members: who}, 7},
		"a revert is opened of a promotion":      {OpenRevert{Pull: 5, Members: who}, 5},
		"a revert that is open is composed anew": {RecomposeRevert{Pull: 9, Members: who}, 9},
	} {
		if pull, members := c.action.Subject(); pull != c.pull || !cmp.Equal(members, who) {
			t.Errorf("%s: it is about #%d and moves %v, want #%d and %v", name, pull, members, c.pull, who)
		}
	}
}
