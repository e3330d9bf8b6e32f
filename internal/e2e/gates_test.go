//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
)

// gatedSteps is threeSteps with other gates in qa and prod, each a line of the list.
func gatedSteps(qa, prod []string) string {
	list := func(gates []string) string {
		if len(gates) == 0 {
			return ""
		}
		return "      gates:\n        - " + strings.Join(gates, "\n        - ") + "\n"
	}
	return strings.NewReplacer(
		"      onDegraded: revert-and-merge\n", "      onDegraded: revert-and-merge\n"+list(qa),
		"      gates:\n        - approvals: {count: 2, from: {users: [ada, grace]}}\n", list(prod),
	).Replace(threeSteps)
}

// setPipeline pushes the pipeline file of a fixture.
func (s *scenario) setPipeline(f repoFixture) {
	s.Helper()
	s.pushEdits(dev, "Other gates", map[string]edit{".liftlock.yaml": func(string) string { return f.renderFiles(s.prefix, s.clone.url)[".liftlock.yaml"] }})
}

// setStatus is a program's commit status on a pull request's head.
func (s *scenario) setStatus(login string, p *gitea.PullRequest, name string) {
	s.Helper()
	_, _, err := s.cluster.accounts[login].api.CreateStatus(s.cluster.org, s.repo, p.Head.Sha, gitea.CreateStatusOption{State: gitea.StatusSuccess, Context: name})
	s.must(err)
	s.Logf("        %s says that %s is well on #%d", login, name, p.Index)
}

// createTeam makes a team of the organisation that reads the story's repository.
func (s *scenario) createTeam(name string, members ...string) {
	s.Helper()
	admin := s.cluster.accounts[admins].api
	team, _, err := admin.CreateTeam(s.cluster.org, gitea.CreateTeamOption{Name: name, Permission: gitea.AccessModeWrite, Units: []gitea.RepoUnitType{gitea.RepoUnitCode, gitea.RepoUnitPulls}})
	s.must(err)
	_, err = admin.AddTeamRepository(team.ID, s.cluster.org, s.repo)
	s.must(err)
	for _, login := range members {
		_, err = admin.AddTeamMember(team.ID, login)
		s.must(err)
	}
}

// notified is a pipeline's line about who is told of what; see newUnreliableReceiver.
const notified = "  notify: [{to: bus, on: [opened, merged, verified, degraded, reverted, skipped]}]\n"

// A release waits in qa for its images' names, a check, the end of a freeze and a window that opens
// in a few minutes. In prod it waits for a team's approval and half a minute of health in qa. The
// next one fails before that is over and never gets there. A receiver that is down half the time
// gets all messages.
func TestGatesOpenOneAfterAnother(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.spec = notified
	s := newScenario(t, normalCluster, "gates", f)
	bus := newUnreliableReceiver(s)
	s.server.further = bus.channelYAML()
	s.createTeam("reviewers", ada, bot) // Gitea tells only members who else is in a team
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	// The freeze mustn't be over before two releases have come to it, one after the other.
	opens := time.Now().UTC().Add(3*time.Minute - time.Second).Truncate(time.Minute)
	thaws := opens.Add(-15 * time.Second)
	f.environments = strings.ReplaceAll(gatedSteps([]string{
		`expression: 'size(release.images) > 0 && release.images.all(i, i.tag.startsWith("1."))'`,
		`checks: {require: ["ci/*"], from: [linus]}`,
		fmt.Sprintf(`freeze: {from: 2020-01-01T00:00:00Z, to: %q, reason: stocktaking}`, thaws.Format(time.RFC3339)),
		fmt.Sprintf(`window: {cron: "%d %d * * *", duration: 2h, timezone: UTC}`, opens.Minute(), opens.Hour()),
	}, []string{
		`approvals: {count: 1, from: {teams: [` + s.cluster.org + `/reviewers]}}`,
		`soak: {environment: qa, for: 90s}`,
	}), "timeout: 90s", "timeout: 30s") // see TestFailureAfterItWasHealthyIsReverted
	s.setPipeline(f)

	s.pushRelease("web", "dev", "2.0.0")
	s.awaitOpen("web", "qa", "2.0.0", 0)
	s.awaitGate("web", "qa", "expression", "wait")
	s.pushRelease("web", "dev", "1.1.0")
	qa := s.awaitOpen("web", "qa", "1.1.0", 0)
	for _, gate := range []string{"checks", "freeze", "window"} {
		s.awaitGate("web", "qa", gate, "wait")
	}
	s.awaitGate("web", "qa", "expression", "pass")
	s.setStatus(dev, s.getPull(qa.Index), "ci/build")
	s.awaitGate("web", "qa", "checks", "pass")
	s.awaitGate("web", "qa", "freeze", "pass")
	qa = s.awaitMerged("web", "qa", "1.1.0", 0)
	if qa.Merged.Before(opens) {
		t.Errorf("#%d was merged at %s, and the window opened at %s", qa.Index, qa.Merged.UTC(), opens)
	}

	prod := s.awaitOpen("web", "prod", "1.1.0", 0)
	s.awaitGate("web", "prod", "soak", "wait")
	eventually(s, "the team is asked for a review", func() (bool, error) {
		reviews, _, err := s.cluster.accounts[admins].api.ListPullReviews(s.cluster.org, s.repo, prod.Index, gitea.ListPullReviewsOptions{})
		for _, r := range reviews {
			if r.State == gitea.ReviewStateRequestReview && r.ReviewerTeam != nil && r.ReviewerTeam.Name == "reviewers" {
				return true, nil
			}
		}
		return false, fmt.Errorf("of %d reviews none is requested from it (%w)", len(reviews), err)
	})
	s.approve(grace, prod) // of no team
	s.awaitGate("web", "prod", "approvals", "wait")
	s.approve(ada, prod)
	prod = s.awaitMerged("web", "prod", "1.1.0", 0)
	if soaked := prod.Merged.Sub(*qa.Merged); soaked < 90*time.Second {
		t.Errorf("#%d was merged %s after #%d", prod.Index, soaked, qa.Index)
	}
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)

	const late = "1.2.0-late-in-qa"
	s.pushRelease("web", "dev", late)
	next := s.awaitOpen("web", "qa", late, qa.Index)
	s.setStatus(dev, next, "ci/build")
	s.awaitMerged("web", "qa", late, qa.Index)
	s.approve(ada, s.awaitOpen("web", "prod", late, prod.Index))
	s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	if got := s.readTag("web", "prod"); got != "1.1.0" {
		t.Errorf("prod has %s", got)
	}
	bus.checkNothingLost()
}

// A release waits in prod for a Prometheus that says that all is well and for a change
// board, which is away when it could be merged. The next one goes past the metric: one
// person says so, and another approves.
func TestMetricAndEndpointAreQueriedBeforeTheMerge(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.spec = notified + "  breakGlass: {users: [grace]}\n"
	f.environments = gatedSteps(nil, []string{
		`approvals: {count: 1, from: {users: [ada]}}`,
		`metric: {prometheus: main, query: 'max(errors{env={{ .environment }}})', when: "value < 0.5", for: 20s, every: 10s}`,
		`http: {endpoint: board, path: /prod, every: 10s, maxAge: 1m}`,
	})
	s := newScenario(t, normalCluster, "measured", f)
	bus, service, prometheus := newUnreliableReceiver(s), newApprovalService(s), startPrometheus(s)
	s.server.further = bus.channelYAML() + service.endpointYAML() + prometheus.serverYAML()
	s.applySets(f, nil)
	s.awaitSettled()
	s.startServer()

	prometheus.errors.Store(1)
	s.pushRelease("web", "dev", "1.1.0")
	prod := s.awaitOpen("web", "prod", "1.1.0", 0)
	s.awaitGate("web", "prod", "http", "wait")
	s.awaitGate("web", "prod", "metric", "wait")
	service.says.Store("pass")
	s.awaitGate("web", "prod", "http", "pass")
	prometheus.errors.Store(0)
	s.awaitGate("web", "prod", "metric", "pass")

	service.says.Store("")
	failures := service.refused.Load()
	eventually(s, "the board is asked while it is away", func() (bool, error) {
		if service.refused.Load() == failures {
			return false, fmt.Errorf("it was asked %d times", service.requests.Load())
		}
		return true, nil
	})
	s.approve(ada, prod)
	s.awaitGate("web", "prod", "approvals", "pass")
	s.awaitGate("web", "prod", "http", "wait")
	if p := s.getPull(prod.Index); p.HasMerged {
		t.Errorf("#%d was merged while the board was away", p.Index)
	}
	service.says.Store("pass")
	s.awaitMerged("web", "prod", "1.1.0", 0)
	s.awaitState("web", "prod", "1.1.0", promotion.Verified)

	prometheus.errors.Store(1)
	s.pushRelease("web", "dev", "1.2.0")
	next := s.awaitOpen("web", "prod", "1.2.0", prod.Index)
	s.awaitGate("web", "prod", "metric", "wait")
	s.approve(ada, next)
	s.awaitGate("web", "prod", "approvals", "pass")
	s.awaitGate("web", "prod", "http", "pass")
	s.awaitGate("web", "prod", "metric", "wait")
	s.addComment(grace, next.Index, "/liftlock skip metric the load test counts as errors")
	s.awaitMerged("web", "prod", "1.2.0", prod.Index)
	s.awaitState("web", "prod", "1.2.0", promotion.Verified)
	bus.checkNothingLost()
}
