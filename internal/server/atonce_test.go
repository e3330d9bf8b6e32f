package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestPromotionsAtOnce has 500 releases promoted at once on a GitLab that enforces the limits that
// gitlab.com publishes. All end, by one merge request each, and none is reverted for the wait. The
// cost grows with their number, and not with its square, though each merge has GitLab work out anew
// whether the others can be merged. The short form has 60, and fewer calls an account and minute,
// so that they wait too.
func TestPromotionsAtOnce(t *testing.T) {
	promotions, perMinute := 60, 240
	if *runLong {
		promotions, perMinute = 500, emulator.DefaultGitLabRateLimit
	}
	s := startAtOnce(t, promotions, harnessOptions{face: emulator.GitLab, publicLimits: true, rateLimit: perMinute, forgeLines: "    publicLimits: true\n"})
	took := s.promoteAtOnce(5*time.Second, func() { s.awaitIdleEvery(idleInterval) })
	calls, sum := s.Forge.Calls(), 0
	for route, n := range calls {
		if !strings.Contains(route, ".git/") { // which the limit isn't about
			sum += n
		}
	}
	if reads := calls["GET /projects/{id}/merge_requests/{merge_request_iid}"]; reads > 5*promotions {
		t.Errorf("%d merge requests were read %d times", promotions, reads)
	}
	if sum <= perMinute || took < time.Minute {
		t.Errorf("%d calls within %s say nothing about a limit of %d a minute", sum, took, perMinute)
	}
}

// idleInterval is how often is looked whether a server with much to do rests: that takes long itself.
const idleInterval = 200 * time.Millisecond

// startAtOnce starts a server that looks after so many components.
func startAtOnce(t *testing.T, components int, o harnessOptions) *harness {
	t.Helper()
	const verify = "{arriveWithin: 1h, timeout: 1h, healthyFor: 50ms, watch: 2h, debounce: 1m}"
	for i := range components {
		o.components = append(o.components, fmt.Sprintf("c%03d", i))
	}
	o.clock = newSteppedClock()
	// Argo CD compares all Applications after a push: after each of hundreds that would be most of
	// the work here. A refresh is requested for waiting Applications.
	o.timings = argoemulator.FastTimings()
	o.timings.Tick, o.timings.Notice, o.timings.Resync = 50*time.Millisecond, time.Minute, 3*time.Minute
	o.pipeline = pipelineYAML([]string{"limits: {openPerEnvironment: 1000, mergesPerHour: 1000}"},
		"name: dev\nverify: "+verify, "name: qa\nafter: [dev]\nmerge: auto\nverify: "+verify)
	s := startHarness(t, o)
	s.awaitJudged()
	s.awaitIdleEvery(idleInterval)
	return s
}

// promoteAtOnce releases all components in one commit and waits until each is verified in qa, by one
// pull request of its own. The clock goes on in steps, after each of which the server comes to rest.
// It gives how long that took by the clock.
func (ha *harness) promoteAtOnce(step time.Duration, rest func()) (took time.Duration) {
	ha.t.Helper()
	released := map[string]string{}
	for _, c := range ha.opts.components {
		released[overlayPath(c, "dev")+"/kustomization.yaml"] = newTag.ReplaceAllString(ha.overlayText(c, "dev"), "newTag: 1.1.0")
	}
	ha.Forge.ResetCalls()
	clock, promotions := ha.opts.clock, len(ha.opts.components)
	began := clock.Now()
	ha.commitFiles("linus", "main", "Release everything", released)
	verified := 0
	for deadline := time.Now().Add(patience); verified < promotions; {
		if time.Now().After(deadline) {
			ha.t.Fatalf("%d of %d promotions have ended after %s", verified, promotions, took)
		}
		clock.Step(step)
		rest()
		took = clock.Now().Sub(began)
		var shop api.Pipeline // all of it at once: each component by itself would be most of what the test does
		if _, err := ha.getJSON("/api/v1/pipelines/shop", &shop); err != nil {
			ha.t.Fatal(err)
		}
		verified = 0
		for _, c := range shop.Components {
			for _, e := range c.Environments {
				if e.Environment == "qa" && e.Name == "1.1.0" && e.State == promotion.Verified && e.Incoming == nil {
					verified++
				}
			}
		}
	}
	all, err := ha.ownPulls()
	ha.must("list the pull requests", err)
	for _, p := range all {
		if !p.Merged {
			ha.t.Errorf("#%d %q is not merged", p.Number, p.Title)
		}
	}
	if len(all) != promotions {
		ha.t.Errorf("%d pull requests for %d promotions", len(all), promotions)
	}
	ha.t.Logf("%d promotions ended within %s; %d calls were refused; calls:\n%s", promotions, took, ha.Forge.Limited(), formatCalls(ha.Forge.Calls()))
	return took
}

// awaitNothingDue waits until no key is due or running and no webhook is under way, twice in a row:
// Argo CD looks in between. The clock goes on only for runs that wait for it. Where keys get one
// turn after the other for hours, there would always be one that is due.
func (ha *harness) awaitNothingDue() {
	ha.t.Helper()
	tick := time.NewTicker(2 * ha.opts.timings.Tick)
	defer tick.Stop()
	for rest, deadline := 0, time.Now().Add(patience); rest < 2; {
		<-tick.C
		ha.must("wait for the webhooks", ha.Forge.WaitIdle(ha.t.Context()))
		_, page := ha.getText("/metrics")
		due, running := findMetric(page, `liftlock_queue_keys{state="due"}`), findMetric(page, `liftlock_queue_keys{state="running"}`)
		rest++
		if due != "0" || running != "0" {
			rest = 0
		}
		if due == "0" && running != "0" {
			ha.opts.clock.Step(pollInterval)
		}
		if time.Now().After(deadline) {
			ha.t.Fatalf("keys are due all the time: due %s, running %s", due, running)
		}
	}
}

// overlayText is what an overlay says on its branch.
func (ha *harness) overlayText(component, env string) string {
	ha.t.Helper()
	text, ok, err := ha.Forge.File(repoName, ha.branchOf(env), ha.overlayDir(component, env)+"/kustomization.yaml")
	if err != nil || !ok {
		ha.t.Fatalf("read the overlay of %s in %s: %t %v", component, env, ok, err)
	}
	return text
}
