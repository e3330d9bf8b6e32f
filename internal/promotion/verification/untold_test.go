package verification

import (
	"strings"
	"testing"
	"time"
)

// TestUntold says of a target whose state has been unknown for six timeouts without a break that a
// person should find out why, and convicts nothing by it.
func TestUntold(t *testing.T) {
	untell := map[string]func(s *scenario, on bool){
		"Unknown": func(s *scenario, on bool) {
			s.app.Health = map[bool]string{true: "Unknown", false: "Healthy"}[on]
		},
		"ComparisonError": func(s *scenario, on bool) {
			s.app.Conditions = nil
			if on {
				s.app.Conditions = []Condition{{Type: "ComparisonError", Message: "cluster is away"}}
			}
		},
		"unreachable": func(s *scenario, on bool) {
			s.e.Unreachable = map[bool]string{true: "connection refused"}[on]
		},
	}
	for name, set := range untell {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.deploy(0, "Healthy", Soaking)
			set(s, true)
			s.judgeAt(10*second, Unclear, "")
			set(s, false)
			s.judgeAt(59*minute, Soaking, "")
			set(s, true)
			s.judgeAt(60*minute-10*second, Unclear, "")
			v := s.judgeAt(2*time.Hour-11*second, Unclear, "")
			if v.Untold || strings.Contains(v.Reason, "for longer than") {
				t.Errorf("told after less than an hour: %+v", v)
			}
			if until := start.Add(2*time.Hour - 10*second); v.Next.After(until) {
				t.Errorf("it is looked at again at %v, want %v at the latest", v.Next, until)
			}
			if v = s.judgeAt(2*time.Hour-10*second, Unclear, "; it could not be told for longer than 1h"); !v.Untold {
				t.Error("not told after an hour")
			}
			set(s, false)
			if v = s.judgeAt(3*time.Hour, Soaking, ""); v.Untold {
				t.Error("told of what can be told again")
			}
			s.judgeAt(3*time.Hour+minute, Verified, "")
			set(s, true)
			s.judgeAt(3*time.Hour+2*minute, Verified, "")
			if v = s.judgeAt(4*time.Hour+2*minute, Verified, "it could not be told for longer than 1h"); !v.Untold || !v.Lapsed {
				t.Errorf("%+v, want one that was verified, of which nobody could tell for an hour", v)
			}
		})
	}
}

// TestUntoldInTurn asks nobody to look at a target that waits for its turn, however little
// is known of it.
func TestUntoldInTurn(t *testing.T) {
	s := newScenario(t)
	s.notice()
	s.operate("Running", windowMessage)
	s.app.Conditions = []Condition{{Type: "ComparisonError", Message: "cluster is away"}}
	s.judgeAt(0, Queued, "")
	if v := s.judgeAt(2*time.Hour, Queued, ""); v.Untold {
		t.Errorf("%+v, want nobody asked to look", v)
	}
}

// TestInconclusiveBelowARollout asks a person about a Rollout's analysis without a result, for
// which the Rollout pauses, when the timeout is over. It doesn't ask about one of a verified
// target.
func TestInconclusiveBelowARollout(t *testing.T) {
	tree := []Resource{{Group: "argoproj.io", Kind: "Rollout", Name: "web", Health: "Suspended", Descendants: []Descendant{{Kind: "AnalysisRun", Name: "web-1", Health: "Unknown", Message: "3 of 3 inconclusive"}}}}
	s := newScenario(t)
	s.deploy(0, "Suspended", Suspended)
	if !s.app.MayBeInconclusive() || s.app.WithInconclusive(nil) != nil {
		t.Error("a pause may be an analysis'")
	}
	s.app = s.app.WithInconclusive(tree)
	s.judgeAt(minute, Suspended, "AnalysisRun web-1 of Rollout web: 3 of 3 inconclusive came to no result")
	s.wantNext(10 * minute)
	s.judgeAt(10*minute, Failed, "came to no result, and hasn't for 10m")
	if s.app.MayBeInconclusive() {
		t.Error("it is known")
	}
	s.app.Inconclusive, s.app.Health = "", "Healthy"
	s.judgeAt(11*minute, Soaking, "")
	s.judgeAt(12*minute, Verified, "")
	s.app.Health = "Suspended"
	s.app = s.app.WithInconclusive(tree)
	s.judgeAt(13*minute, Verified, "suspended")
}

// TestFindInconclusive takes nothing for an analysis without a result that isn't one.
func TestFindInconclusive(t *testing.T) {
	below := func(kind, health string) Resource {
		return Resource{Group: "argoproj.io", Kind: "Rollout", Name: "web", Health: "Unknown", Descendants: []Descendant{{Kind: kind, Name: "web-1", Health: health}}}
	}
	for name, c := range map[string]struct {
		of   Resource
		want string
	}{
		"one":                            {below("AnalysisRun", "Unknown"), "AnalysisRun web-1 of Rollout web"},
		"one with a result":              {below("AnalysisRun", "Degraded"), ""},
		"something else that is Unknown": {below("ReplicaSet", "Unknown"), ""},
	} {
		if got := findInconclusive([]Resource{c.of}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestInconclusiveAnalysis asks a person about an analysis without a result when the
// timeout is over, and leaves what was verified.
func TestInconclusiveAnalysis(t *testing.T) {
	inconclude := func(s *scenario) {
		s.app.Health = "Unknown"
		s.app.Unhealthy = []Resource{{Group: "argoproj.io", Kind: "AnalysisRun", Name: "smoke", Health: "Unknown", Message: "3 of 3 inconclusive"}}
	}
	s := newScenario(t)
	s.deploy(0, "Healthy", Soaking)
	inconclude(s)
	s.judgeAt(10*second, Unclear, "AnalysisRun smoke: 3 of 3 inconclusive came to no result")
	s.wantNext(10*minute + 10*second)
	s.judgeAt(10*minute+9*second, Unclear, "")
	s.judgeAt(10*minute+10*second, Failed, "AnalysisRun smoke: 3 of 3 inconclusive came to no result, and hasn't for 10m")
	s.judgeAt(3*time.Hour, Failed, "for 10m")
	s.app.Health, s.app.Unhealthy = "Healthy", nil
	s.judgeAt(4*time.Hour, Soaking, "")
	s.judgeAt(4*time.Hour+minute, Verified, "")
	inconclude(s)
	s.judgeAt(5*time.Hour, Verified, "")
	s.judgeAt(5*time.Hour+20*minute, Verified, "")

	for name, r := range map[string]Resource{
		"another group": {Group: "example.com", Kind: "AnalysisRun", Name: "smoke", Health: "Unknown"},
		"another kind":  {Group: "argoproj.io", Kind: "Rollout", Name: "smoke", Health: "Unknown"},
		"under way":     {Group: "argoproj.io", Kind: "AnalysisRun", Name: "smoke", Health: "Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.deploy(0, "Healthy", Soaking)
			s.app.Health, s.app.Unhealthy = "Unknown", []Resource{r}
			s.judgeAt(10*second, Unclear, "")
			s.judgeAt(30*minute, Unclear, "")
		})
	}
}

// TestMayBeInconclusive reads a resource tree for an analysis without a result only where one may
// be why the Application isn't well, and nothing says so yet.
func TestMayBeInconclusive(t *testing.T) {
	syncing := func(message string) *Operation { return &Operation{Phase: "Running", Message: message} }
	run := []Resource{{Group: "argoproj.io", Kind: "AnalysisRun", Name: "smoke", Health: "Unknown"}}
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"healthy":                      {App{Health: "Healthy"}, false},
		"degraded":                     {App{Health: "Degraded"}, false},
		"suspended":                    {App{Health: "Suspended"}, true},
		"unknown":                      {App{Health: "Unknown"}, true},
		"which is said already":        {App{Health: "Unknown", Unhealthy: run}, false},
		"a sync waits for health":      {App{Health: "Progressing", Operation: syncing("waiting for healthy state of argoproj.io/AnalysisRun/smoke")}, true},
		"a sync waits for something":   {App{Health: "Progressing", Operation: syncing("waiting for completion of hook batch/Job/migrate")}, false},
		"a sync that waited has ended": {App{Health: "Progressing", Operation: &Operation{Phase: "Succeeded", Message: "waiting for healthy state of x", FinishedAt: time.Unix(1, 0)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.app.MayBeInconclusive(); got != c.want {
				t.Errorf("it is %v, want %v", got, c.want)
			}
		})
	}
}
