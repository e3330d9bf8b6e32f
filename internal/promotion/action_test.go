package promotion

import "testing"

// TestActionsNameTheirEnvironment holds that whoever logs, counts or joins actions is told
// where each is done.
func TestActionsNameTheirEnvironment(t *testing.T) {
	for _, a := range []Action{
		FactRequest{Environment: "qa"}, Record{Environment: "qa"}, Open{Environment: "qa"}, Replace{Environment: "qa"},
		Close{Environment: "qa"}, Merge{Environment: "qa"}, OpenRevert{Environment: "qa"}, RecomposeRevert{Environment: "qa"},
		Refresh{Environment: "qa"}, Sync{Environment: "qa"}, RestartVerification{Environment: "qa"}, RequestReviewers{Environment: "qa"},
		ResetEndpoints{Environment: "qa"}, LiftVeto{Environment: "qa"}, BindCommand{Environment: "qa"}, FinishCommand{Environment: "qa"},
	} {
		if got := EnvironmentOf(a); got != "qa" {
			t.Errorf("%T is done in %q", a, got)
		}
	}
}
