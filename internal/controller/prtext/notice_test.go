package prtext

import (
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// TestOpenNotice holds which comments of an open pull request are told at once.
func TestOpenNotice(t *testing.T) {
	for name, want := range map[string]string{
		"promotion-waits": "approvals of grace", "promotion-ready": "", "promotion-manual": "merge by hand", "promotion-new": "", "promotion-held": "held",
		"promotion-blocked": "blocked by approvals", "promotion-only-forge-blocks": "", "promotion-foreign": "stopped", "revert-manual": "merge by hand", "revert-asked": "",
	} {
		if got := Render(pages()[name]).Notice; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	in := promotionInput()
	st := stateOf(in)
	st.Gates = append(st.Gates, policies.Result{Gate: "soak", Outcome: policies.Wait, Reason: "27m of 2h"})
	was := Render(in)
	st.Gates[1].Reason = "28m of 2h"
	if now := Render(in); now.Notice != was.Notice || now.Comment == was.Comment {
		t.Errorf("a soak that goes on asks for something else: %q, then %q", was.Notice, now.Notice)
	}
	st.Gates[0].Who = []string{"ada", "grace"}
	if now := Render(in); now.Notice == was.Notice {
		t.Errorf("others are asked, and the notice is %q still", now.Notice)
	}
}

// TestLandedNotice holds that after the merge each state is told at once, but not what
// moves within it.
func TestLandedNotice(t *testing.T) {
	for name, want := range map[string]string{
		"landed-verified": "landed verified", "landed-verifying": "landed verifying", "landed-degraded": "landed degraded #15", "landed-degraded-hold": "landed degraded hold",
		"landed-failed": "landed failed", "landed-untold": "landed verifying untold", "landed-by-hand": "landed diverged",
	} {
		if got := LandedNotice(merged()[name]); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	in := batchLandedInput()
	if got := LandedNotice(in); got != "landed verified;and others to come" {
		t.Errorf("one of two is verified: %q", got)
	}
	st := in.Members[1].Decision.Env("qa")
	st.State = promotion.Verified
	if got := LandedNotice(in); got != "landed verified" {
		t.Errorf("both are verified, which is told at once: %q", got)
	}
	st.State = promotion.Degraded
	if got := LandedNotice(in); got != "landed degraded;verified" {
		t.Errorf("one of two is degraded: %q", got)
	}
	st.LandedPull++
	if got := LandedNotice(in); got != "landed verified" {
		t.Errorf("the other has moved on: %q", got)
	}
}
