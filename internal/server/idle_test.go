package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestFirstDay starts on a repository whose 50 components already differ between environments. It
// opens nothing and says so, asks Argo CD for nothing, and the next release of one component moves
// that one only.
func TestFirstDay(t *testing.T) {
	if raceDetector && !*runLong {
		t.Skip("fifty components' times are too short for the race detector")
	}
	var components []string
	for i := range 50 {
		components = append(components, fmt.Sprintf("c%02d", i))
	}
	s := startHarness(t, harnessOptions{components: components, tag: func(_, env string) string {
		return map[string]string{"dev": "1.2.0", "qa": "1.1.0", "prod": "1.0.0"}[env]
	}})
	s.awaitJudged()
	s.awaitIdle()
	for _, c := range components {
		for _, env := range []string{"qa", "prod"} {
			e, seen := s.readEnvironment(c, env)
			if e == nil || e.State != promotion.Baseline || e.Incoming != nil && e.Incoming.Pull != nil || !hasCode(e.Why, "baseline") || !strings.Contains(e.Text, "adopt: baseline") {
				t.Fatalf("%s in %s on the first day: %s", c, env, seen)
			}
		}
	}
	if n := s.countOpenings(); n != 0 {
		t.Errorf("%d pull requests were opened on the first day", n)
	}
	if n := s.ArgoCD.Requests()["PATCH applications"]; n != 0 {
		t.Errorf("Argo CD was asked for %d refreshes on the first day", n)
	}
	s.commitRelease("c07", "1.3.0")
	s.awaitMerged(s.awaitPromotion("c07", "qa", "1.3.0").Number)
	s.awaitVerified("c07", "qa", "1.3.0")
	s.awaitPromotion("c07", "prod", "1.3.0")
	s.awaitIdle()
	all, err := s.ownPulls()
	s.must("list the pull requests", err)
	if len(all) != 2 {
		t.Errorf("%d pull requests after one release, want 2 (qa's and prod's)", len(all))
	}
	if n := s.ArgoCD.Requests()["PATCH applications"]; n == 0 || n > 10 {
		t.Errorf("Argo CD was asked for %d refreshes of one release", n)
	}
}

func hasCode(why []api.Reason, code string) bool {
	return slices.ContainsFunc(why, func(r api.Reason) bool { return string(r.Code) == code })
}

// idleCalls are the calls of the forge's API in a sweep, for an open pull request, where a webhook
// is managed, and once an hour. The hourly ones come in any case, and for open pull requests.
type idleCalls struct{ sweep, open, hook, hourly, rules []string }

// githubRules are read as its commits have no signatures: whether any are demanded.
var githubRules = []string{"GET /repos/{owner}/{repo}", "GET /repos/{owner}/{repo}/branches/{branch}/protection", "GET /repos/{owner}/{repo}/rules/branches/{branch}"}

var idleCallsByFace = map[emulator.Face]idleCalls{
	emulator.GitHub: {
		sweep: []string{"GET /repos/{owner}/{repo}", "GET /repos/{owner}/{repo}/pulls"},
		open:  []string{"POST /graphql"},
		hook:  []string{"GET /repos/{owner}/{repo}/hooks", "GET /repos/{owner}/{repo}/hooks/{id}/deliveries"},
		rules: githubRules,
	},
	emulator.GitHubApp: {
		sweep:  []string{"GET /repos/{owner}/{repo}", "GET /repos/{owner}/{repo}/pulls"},
		open:   []string{"POST /graphql"},
		hook:   []string{"GET /app", "GET /app/installations", "GET /app/hook/config", "GET /app/hook/deliveries"}, // for all its repositories
		hourly: []string{"POST /app/installations/{id}/access_tokens"},
		rules:  append([]string{"GET /repos/{owner}/{repo}/branches/{branch}"}, githubRules...), // it is shown no protection
	},
	emulator.GitLab: {
		sweep: []string{"GET /projects/{id}", "GET /projects/{id}/merge_requests"},
		open: []string{"GET /projects/{id}/merge_requests/{merge_request_iid}", "GET /projects/{id}/merge_requests/{merge_request_iid}/approvals",
			"GET /projects/{id}/merge_requests/{merge_request_iid}/reviewers", "GET /projects/{id}/merge_requests/{noteable_id}/notes"},
		hook: []string{"GET /projects/{id}/hooks", "GET /projects/{id}/hooks/{hook_id}/events"},
	},
}

// TestIdleForgeCalls counts an hour's calls to the forge with nothing new: the poll's,
// the sweep's and the hook's, to the last one, and the same in /metrics.
func TestIdleForgeCalls(t *testing.T) {
	t.Parallel()
	const polls, sweeps, hooks = 20, 12, 6
	for _, c := range []struct {
		name  string
		begin func(*harness)
		open  bool // a pull request is, which adds to the sweep's calls
	}{
		{"with nothing open", func(s *harness) { s.awaitJudged() }, false},
		{"right after a story", func(s *harness) { s.runStory() }, false},
		{"with a pull request that waits for approvals", func(s *harness) {
			s.awaitJudged()
			s.commitRelease("web", "1.1.0")
			s.awaitVerified("web", "qa", "1.1.0")
			s.awaitPromotion("web", "prod", "1.1.0")
			s.awaitEnvironment("web", "prod", "waits for approvals", func(e *api.EnvironmentWhy) bool { return e.Incoming != nil && len(e.Incoming.Gates) > 0 })
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newSteppedClock()
			s := startHarness(t, harnessOptions{clock: clock, poll: 3 * time.Minute, sweep: 5 * time.Minute, manageHook: true})
			c.begin(s)
			// Work that was under way comes to its end: the watch, the forge's whole seconds.
			for range 10 {
				clock.Step(2 * time.Minute)
				s.awaitIdle()
			}
			before := s.countForgeCalls()
			s.Forge.ResetCalls()
			for range 60 {
				clock.Step(time.Minute)
				s.awaitIdle()
			}
			want := map[string]int{
				"POST /{owner}/{repo}.git/git-upload-pack": polls,
			}
			rest, calls := 0, idleCallsByFace[s.opts.face]
			add := func(routes []string, times int) {
				for _, route := range routes {
					want[route] += times
					rest += times
				}
			}
			add(calls.hook, hooks)
			add(calls.sweep, sweeps)
			add(calls.hourly, 1)
			if c.open {
				add(calls.open, sweeps)
				add(calls.rules, 1) // remembered for an hour
			}
			got := s.Forge.Calls()
			if !maps.Equal(got, want) {
				t.Errorf("an hour at rest made these calls:\n%s\nwant:\n%s", formatCalls(got), formatCalls(want))
			}
			if n := s.countForgeCalls() - before; n != rest {
				t.Errorf("/metrics counts %d calls of the API, want %d", n, rest)
			}
		})
	}
}

func formatCalls(calls map[string]int) string {
	var b strings.Builder
	for _, route := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(&b, "%6d %s\n", calls[route], route)
	}
	return b.String()
}

// countForgeCalls is what /metrics counts of calls to the forge.
func (ha *harness) countForgeCalls() int {
	ha.t.Helper()
	_, page := ha.getText("/metrics")
	sum := 0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "liftlock_forge_calls_total{") {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
			ha.must("read a metric", err)
			sum += n
		}
	}
	return sum
}
