package console

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/event"
)

func TestAges(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 s": 0, "59 s": 59*time.Second + 900*time.Millisecond, "1 min": time.Minute, "59 min": 59 * time.Minute, "1 h": 60 * time.Minute,
		"47 h": 47 * time.Hour, "2 d": 48 * time.Hour, "in 5 min": -5 * time.Minute,
	} {
		if got := formatAge(now, now.Add(-d)); got != want {
			t.Errorf("%v ago is told as %q, want %q", d, got, want)
		}
	}
}

func TestReleaseNames(t *testing.T) {
	for want, values := range map[string][]string{"": nil, "1": {"1"}, "1, 2": {"1", "2", "1", ""}, "1, 2 and 2 more": {"1", "2", "3", "4"}} {
		var fields []fieldedit.Field
		for _, v := range values {
			fields = append(fields, fieldedit.Field{Value: v})
		}
		if got := nameRelease(fields); got != want {
			t.Errorf("%v are called %q, want %q", values, got, want)
		}
	}
}

func TestStepsOfAPromotion(t *testing.T) {
	events := func(kinds ...string) (out []api.Event) {
		for _, k := range kinds {
			out = append(out, api.Event{Kind: event.Kind(k), At: now})
		}
		return out
	}
	for _, c := range []struct {
		state  string
		events []api.Event
		want   string
	}{
		{"open", events("opened"), "opened:done merged:now verified:ahead"},
		{"merged", events("opened", "merged"), "opened:done merged:done verified:now"},
		{"verified", events("opened", "merged", "verified"), "opened:done merged:done verified:done"},
		{"degraded", events("opened", "merged", "degraded"), "opened:done merged:done degraded:done reverted:now"},
		{"reverting", events("opened", "merged", "degraded"), "opened:done merged:done degraded:done reverted:now"},
		{"reverting", events("opened", "merged"), "opened:done merged:done reverted:now"},
		{"reverted", events("opened", "merged", "degraded"), "opened:done merged:done degraded:done reverted:done"},
		{"superseded", events("opened", "closed"), "opened:done superseded:done"},
		{"closed", nil, "opened:done closed:done"},
	} {
		got := ""
		for _, s := range buildSteps(&api.Promotion{State: c.state, CreatedAt: now, Detail: &api.PromotionDetail{Events: c.events}}) {
			if got != "" {
				got += " "
			}
			got += s.Name + ":" + s.Is
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.state, got, c.want)
		}
	}
}
