package console

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
)

// TestPromotionChoices shows of a promotion in each state what applies then, the first being what the state calls for.
func TestPromotionChoices(t *testing.T) {
	p := &pages{}
	gates := []api.Gate{{Gate: "approvals"}}
	const revert = "Revert 1.1.0 in qa"
	for name, c := range map[string]struct {
		kind, state string
		gates       []api.Gate
		primary     string
		others      []string
	}{
		"it waits for people":          {"promotion", "open", gates, "Review #7", []string{"Hold", "Skip a gate", "Try again"}},
		"it waits for nothing":         {"promotion", "open", nil, "Review #7", []string{"Hold", "Try again"}},
		"it is held":                   {"promotion", "held", gates, "Lift the hold", []string{"Review #7", "Skip a gate", "Try again"}},
		"a revert waits":               {"revert", "open", gates, "Review #7", []string{"Hold", "Try again"}},
		"it is being verified":         {"promotion", "verifying", nil, "", []string{revert, "Try again"}},
		"it is verified":               {"promotion", "verified", nil, "", []string{revert}},
		"the environment moved on":     {"promotion", "verified", nil, "", nil},
		"it is degraded":               {"promotion", "degraded", nil, revert, []string{"Try again"}},
		"it failed":                    {"promotion", "failed", nil, "Try again", []string{revert}},
		"somebody closed it":           {"promotion", "closed", nil, "Try again", nil},
		"it is being taken back":       {"promotion", "reverting", nil, "", nil},
		"it was taken back":            {"promotion", "reverted", nil, "", nil},
		"another took its place":       {"promotion", "superseded", nil, "", nil},
		"a revert was merged":          {"revert", "merged", nil, "", []string{"Try again"}},
		"what a revert brought is bad": {"revert", "degraded", nil, "Try again", nil},
	} {
		pr := &api.Promotion{ID: 3, Kind: c.kind, State: c.state, Name: "1.1.0", Environment: "qa", Pull: &api.Pull{Number: 7, URL: "https://git.example/acme/fleet/pull/7"}}
		pr.Detail = &api.PromotionDetail{Gates: c.gates, Current: name != "the environment moved on"}
		got := p.promotionChoices(pr)
		primary, others := "", []string(nil)
		if got.Primary != nil {
			primary = got.Primary.Text
		}
		for _, o := range got.Others {
			others = append(others, o.Text)
		}
		if primary != c.primary || !slices.Equal(others, c.others) {
			t.Errorf("%s: first %q, then %q; want %q and %q", name, primary, others, c.primary, c.others)
		}
	}
}
