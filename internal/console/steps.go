package console

import (
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/event"
)

// progressStep is one step of a promotion's way.
type progressStep struct {
	Name string
	At   time.Time // zero: not reached, or when isn't known
	Is   string    // done, now or ahead
	Tone string
}

// buildSteps tells a promotion's way from its state and its events: opened, merged,
// verified; and where it went wrong, degraded and reverted.
func buildSteps(p *api.Promotion) []progressStep {
	at := map[string]time.Time{}
	for _, e := range p.Detail.Events {
		switch e.Kind {
		case event.Opened, event.RevertOpened:
			at["opened"] = e.At
		case event.Merged, event.Verified, event.Degraded, event.Closed:
			at[string(e.Kind)] = e.At
		}
	}
	if at["opened"].IsZero() {
		at["opened"] = p.CreatedAt
	}
	var way []string
	reached := 1 // how many of the way are behind
	switch p.State {
	case "open", "held", "waiting":
		way = []string{"opened", "merged", "verified"}
	case "merged", "verifying":
		way, reached = []string{"opened", "merged", "verified"}, 2
	case "verified":
		way, reached = []string{"opened", "merged", "verified"}, 3
	case "degraded", "failed":
		way, reached = []string{"opened", "merged", p.State, "reverted"}, 3
	case "reverting":
		way, reached = []string{"opened", "merged", "degraded", "reverted"}, 3
	case "reverted":
		way, reached = []string{"opened", "merged", "degraded", "reverted"}, 4
		at["reverted"] = p.UpdatedAt
	default: // closed, superseded
		way, reached = []string{"opened", p.State}, 2
		at[p.State] = p.UpdatedAt
	}
	out := make([]progressStep, 0, len(way))
	for i, name := range way {
		s := progressStep{Name: name, Is: "ahead", Tone: "quiet"}
		switch {
		case i < reached:
			s.Is, s.At, s.Tone = "done", at[name], stateTone(name)
			if name == "opened" {
				s.Tone = "ok"
			}
		case i == reached:
			s.Is = "now"
			s.Tone = "busy"
		}
		if s.Name == "degraded" && s.At.IsZero() && i < reached {
			continue // it was taken back by a person's word
		}
		out = append(out, s)
	}
	return out
}
