package policies

import (
	"strings"
	"testing"
	"time"
)

// TestSettled waits while a target differs from Git, and for one that can't be told, where it is to
// block; and only says so where it isn't.
func TestSettled(t *testing.T) {
	since := time.Date(2026, 3, 2, 9, 10, 0, 0, time.UTC)
	inSync := func(target string) TargetDrift { return TargetDrift{Target: target, InSync: true} }
	differs := func(target string) TargetDrift {
		return TargetDrift{Target: target, Differs: "differs from Git in 2 resources: Deployment web (different), Job old (extra)", Since: since}
	}
	untold := func(target string) TargetDrift {
		return TargetDrift{Target: target, Err: "Argo CD can't be asked:\nconnection refused"}
	}
	const euDiffers = "web-eu differs from Git in 2 resources: Deployment web (different), Job old (extra), since Mon 2026-03-02 09:10 UTC"
	for name, c := range map[string]struct {
		targets []TargetDrift
		reason  string
		passes  bool // also where it is to block
	}{
		"as Git says": {[]TargetDrift{inSync("web-eu"), inSync("web-us")}, "as Git says on 2 targets", true},
		"one differs": {[]TargetDrift{inSync("web-us"), differs("web-eu")}, euDiffers, false},
		"one differs, nobody knows which resources": {[]TargetDrift{{Target: "web-eu", Differs: "differs from Git"}}, "web-eu differs from Git", false},
		"one can't be told":                         {[]TargetDrift{inSync("web-us"), untold("web-eu")}, "whether web-eu is as Git says can't be told: Argo CD can't be asked: connection refused", false},
		"one that nobody looked at":                 {[]TargetDrift{inSync("web-us"), {Target: "web-eu"}}, "whether web-eu is as Git says can't be told: nobody has looked yet", false},
		"what differs is named first":               {[]TargetDrift{untold("web-us"), differs("web-eu")}, euDiffers + "; whether web-us is as Git says can't be told: Argo CD can't be asked: connection refused", false},
		"many differ":                               {[]TargetDrift{differs("web-eu"), differs("b"), differs("c"), differs("d"), untold("e")}, "; and 2 targets more", false},
		"four differ":                               {[]TargetDrift{differs("web-eu"), differs("b"), differs("c"), differs("d")}, "; and 1 target more", false},
		"three differ, and all are named":           {[]TargetDrift{differs("web-eu"), differs("b"), differs("c")}, "c differs from Git in 2 resources: Deployment web (different), Job old (extra), since Mon 2026-03-02 09:10 UTC", false},
		"no target is known":                        {nil, "no target of the environment is known", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, drift := range []string{DriftBlock, DriftWarn} {
				gate, want := Gate{Settled: &Settled{Drift: drift}}, Wait
				if c.passes || drift == DriftWarn {
					want = Pass
				}
				r := gate.Evaluate(Facts{Drift: c.targets})
				if strings.Contains(r.Reason, "0 target") {
					t.Errorf("it counts none: %s", r.Reason)
				}
				if strings.Contains(r.Reason, "0001") {
					t.Errorf("it is said since when, which nobody knows: %s", r.Reason)
				}
				if r.Gate != "settled" || r.Outcome != want || !strings.Contains(r.Reason, c.reason) || !r.Until.IsZero() {
					t.Errorf("drift: %s: %+v; want %s: …%s…", drift, r, want, c.reason)
				}
				isAdvised := strings.HasSuffix(r.Reason, "; sync what differs, or put into Git what was changed")
				if wantsAdvice := drift == DriftBlock && strings.Contains(c.reason, "differs") || drift == DriftBlock && strings.Contains(c.reason, "more"); isAdvised != wantsAdvice {
					t.Errorf("drift: %s: what is to be done is told: %t: %s", drift, isAdvised, r.Reason)
				}
				if isSaid := strings.HasSuffix(r.Reason, " (drift: warn)"); isSaid != (drift == DriftWarn && !c.passes) {
					t.Errorf("drift: %s: %s", drift, r.Reason)
				}
			}
		})
	}
	long := TargetDrift{Target: "web-eu", Differs: "differs from Git in 900 resources: " + strings.Repeat("x", 1000), Since: since}
	if r := (&Gate{Settled: &Settled{Drift: DriftBlock}}).Evaluate(Facts{Drift: []TargetDrift{long, long, long, long}}); len(r.Reason) > 600 || !strings.Contains(r.Reason, "in 900 resources") || !strings.Contains(r.Reason, "sync what differs") {
		t.Errorf("%d characters: %s", len(r.Reason), r.Reason)
	}
}

// TestSettledIsRefused names what it doesn't know.
func TestSettledIsRefused(t *testing.T) {
	for drift, want := range map[string]string{
		"":      "settled.drift: is missing: block, to wait while a target differs from Git, or warn",
		"Block": `settled.drift: must be block or warn; it is "Block"`,
	} {
		gate := Gate{Settled: &Settled{Drift: drift}}
		if err := gate.Validate(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", drift, err, want)
		}
		if r := gate.Evaluate(Facts{Drift: []TargetDrift{{InSync: true}}}); r.Outcome != Fail {
			t.Errorf("%q: %+v", drift, r)
		}
	}
	for drift, want := range map[string]string{DriftBlock: "targets that are in the cluster as Git says (drift: block)", DriftWarn: "targets that differ from Git are only told of (drift: warn)"} {
		if got := (&Gate{Settled: &Settled{Drift: drift}}).Describe(); got != want {
			t.Errorf("%s asks for %q", drift, got)
		}
	}
}
