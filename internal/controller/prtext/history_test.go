package prtext

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

func TestDescribeHistory(t *testing.T) {
	arrival := func(by string, verified, degraded time.Time) promotion.Arrival {
		return promotion.Arrival{Release: newRelease, Name: "1.5.0", By: by, At: at(8, 0), VerifiedAt: verified, DegradedAt: degraded}
	}
	next := promotion.Arrival{Release: oldRelease, At: at(20, 5)}
	never := time.Time{}
	for _, c := range []struct {
		name    string
		history []promotion.Arrival
		want    string
	}{
		{"never there", []promotion.Arrival{next}, ""},
		{"there, not verified", []promotion.Arrival{arrival(promotion.ByPerson, never, never)}, "since 2026-03-09 08:00 UTC, by a commit; not verified"},
		{"there, verified", []promotion.Arrival{arrival(promotion.ByPromotion, at(8, 5), never)}, "since 2026-03-09 08:00 UTC, by a promotion; verified 2026-03-09 08:05 UTC, no degradation since"},
		{"gone, verified", []promotion.Arrival{next, arrival(promotion.ByRevert, at(8, 5), never)}, "from 2026-03-09 08:00 UTC until 2026-03-09 20:05 UTC, by a revert; verified 2026-03-09 08:05 UTC, healthy until it was replaced (12h)"},
		{"degraded", []promotion.Arrival{arrival(promotion.ByBaseline, at(8, 5), at(8, 35))}, "since 2026-03-09 08:00 UTC, from before the pipeline; verified 2026-03-09 08:05 UTC, healthy for 30m, then **degraded** 2026-03-09 08:35 UTC"},
		{"degraded at once", []promotion.Arrival{arrival("", never, at(8, 35))}, "since 2026-03-09 08:00 UTC; **degraded** 2026-03-09 08:35 UTC, never verified"},
		{"degraded, then well", []promotion.Arrival{arrival("", at(8, 50), at(8, 35))}, "since 2026-03-09 08:00 UTC; verified 2026-03-09 08:50 UTC, no degradation since"},
		{"twice: the newest speaks", []promotion.Arrival{arrival("", at(8, 5), never), next, arrival("", never, never)}, "since 2026-03-09 08:00 UTC; verified 2026-03-09 08:05 UTC, no degradation since"},
	} {
		if got := describeHistory(&promotion.Env{History: c.history}, newRelease); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a minute", 29 * time.Second: "less than a minute", -time.Hour: "less than a minute", time.Minute: "1m", 61 * time.Minute: "1h1m",
		10 * time.Minute: "10m", 100 * time.Hour: "100h", 30 * time.Hour: "30h",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestPreviousReleaseName(t *testing.T) {
	in := revertInput()
	if got := previousReleaseName(in); got != "1.4.2" {
		t.Errorf("by its one field: %q", got)
	}
	in.Changes = append(in.Changes, Change{Path: "sidecar", Old: "2", New: "1"})
	if got := previousReleaseName(in); got != "1.4.2" {
		t.Errorf("by the history: %q", got)
	}
	environmentOf(in).History = environmentOf(in).History[:1]
	if got := previousReleaseName(in); got != "" {
		t.Errorf("nobody knows, but it is %q", got)
	}
	if got, want := Render(in).Title, "Revert web in qa: take back 1.5.0"; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	in.Name, in.Release = "", ""
	if got, want := Render(in).Title, "Revert web in qa"; got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
}
