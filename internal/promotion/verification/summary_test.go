package verification

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	cases := []struct {
		name    string
		states  []State
		want    State
		reasons []string
	}{
		{"none", nil, Absent, []string{"there is no target"}},
		{"all verified", []State{Verified, Verified}, Verified, []string{"a: verified", "b: verified"}},
		{"one still soaks", []State{Verified, Soaking}, Soaking, []string{"b: soaking"}},
		{"the slowest", []State{Soaking, Syncing, Absent, Queued}, Absent, []string{"c: absent"}},
		{"unclear is slower than all", []State{Absent, Unclear}, Unclear, []string{"b: unclear"}},
		{"one failed", []State{Verified, Failed, Soaking}, Failed, []string{"b: failed"}},
		{"one broken region is enough", []State{Verified, Failed, Degraded}, Degraded, []string{"c: degraded"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			verdicts := map[string]Verdict{}
			for i, s := range c.states {
				verdicts[string(rune('a'+i))] = Verdict{State: s, Reason: string(s)}
			}
			got, reasons := Summary(verdicts)
			if got != c.want || !cmp.Equal(reasons, c.reasons) {
				t.Errorf("%s %q, want %s %q", got, reasons, c.want, c.reasons)
			}
		})
	}
}

func TestSummaryIsBounded(t *testing.T) {
	verdicts := map[string]Verdict{}
	for i := range 1000 {
		verdicts[fmt.Sprintf("web-%04d", i)] = Verdict{State: Degraded, Reason: "x"}
	}
	_, reasons := Summary(verdicts)
	if len(reasons) != maxReasons+1 || reasons[0] != "web-0000: x" || reasons[maxReasons] != "and 990 more" {
		t.Errorf("%q", reasons)
	}
}

func TestEvidence(t *testing.T) {
	s := newScenario(t)
	s.app.Destination = Destination{Name: "qa-eu"}
	s.app.Unhealthy = []Resource{
		{Kind: "Pod", Namespace: "qa", Name: "web-1", Health: "Progressing"},
		{Group: "apps", Kind: "Deployment", Namespace: "qa", Name: "web", Health: "Degraded", Message: "exceeded\n its progress   deadline"},
	}
	s.deploy(0, "Degraded", Progressing)
	s.app.HealthMessage = strings.Repeat("é", 1000)
	s.judgeAt(30*time.Second, Degraded, "")
	got := Evidence(s.app, s.mem)
	if got.Target != "web-qa" || got.Cluster != "qa-eu" || got.State != Degraded || !got.Since.Equal(start.Add(30*time.Second)) {
		t.Errorf("%+v", got)
	}
	if got.Resources[0].Kind != "Deployment" || got.Resources[0].Message != "exceeded its progress deadline" || s.app.Unhealthy[0].Kind != "Pod" {
		t.Errorf("%+v", got.Resources)
	}
	if len(got.HealthMessage) > maxReason+len("…") || !strings.HasSuffix(got.HealthMessage, "é…") {
		t.Errorf("%d bytes: %q", len(got.HealthMessage), got.HealthMessage)
	}
	var states []State
	for _, m := range got.Timeline {
		states = append(states, m.State)
	}
	if want := []State{Refreshing, Progressing, Degraded}; !cmp.Equal(states, want) {
		t.Errorf("%v, want %v", states, want)
	}

	many := make([]Resource, 50)
	if e := Evidence(&App{Unhealthy: many}, Memory{}); len(e.Resources) != maxResources || e.MoreResources != 30 {
		t.Errorf("%d resources and %d more", len(e.Resources), e.MoreResources)
	}
	if e := Evidence(nil, s.mem); e.State != Degraded || len(e.Timeline) != 3 {
		t.Errorf("%+v", e)
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 30 * time.Second: "30s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 61 * time.Second: "1m1s", 3601 * time.Second: "1h0m1s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
