package server_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
)

// callLatency is how long a call of the forge takes besides.
const callLatency = 50 * time.Millisecond

// BenchmarkNextPullRequest takes the time from a merge on the forge to the pull request into the
// next environment, over an Argo CD that deploys at once; and, by turns with it, that of what it
// can't do without: the push of a branch and the creation of a pull request, by the same Git and the
// same driver. The ratio of the two is what everything else costs: the webhook, the fetch, the look
// and the verification. Every call of the forge's API takes 50 ms more, and every request of Git's
// too: of those a fetch makes three and a push two.
func BenchmarkNextPullRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		git  time.Duration
	}{{"latency=api", 0}, {"latency=api-and-git", callLatency}} {
		b.Run(c.name, func(b *testing.B) { benchmarkNextPullRequest(b, c.git) })
	}
}

func benchmarkNextPullRequest(b *testing.B, gitLatency time.Duration) {
	const verify = "{arriveWithin: 30s, timeout: 30s, healthyFor: 1ms, watch: 2m, debounce: 1ms}"
	// An Argo CD that takes no time: its own is neither Liftlock's nor the forge's.
	timings := emulator.FastTimings()
	timings.Compare, timings.Sync, timings.Rollout, timings.HealthLag, timings.Resync, timings.Tick = 0, 0, 0, 0, 0, time.Millisecond
	timings.Notice = time.Hour // it looks when Liftlock has it look
	s := startHarness(b, harnessOptions{face: emulator.GitHub, timings: timings,
		pipeline: pipelineYAML(nil, "name: dev\nverify: "+verify, "name: qa\nafter: [dev]\nmerge: manual\nverify: "+verify)})
	s.awaitJudged()
	alone := newPushAndCreate(b, s)
	far := func(yes bool) { // a promotion's other calls aren't measured, and needn't take long
		s.Forge.SetLatency(map[bool]time.Duration{true: callLatency}[yes])
		s.Forge.SetGitLatency(map[bool]time.Duration{true: gitLatency}[yes])
	}
	var next, least time.Duration
	release := 0
	for b.Loop() {
		release++
		tag := fmt.Sprintf("1.%d.0", release)
		branch := "release-" + tag
		s.editTagOn("linus", branch, "web", "dev", tag)
		number, err := s.Forge.OpenPull(repoName, "linus", branch, "main", "Release "+tag, "")
		s.must("open a pull request", err)
		s.awaitIdle()

		far(true)
		merged := time.Now()
		_, err = s.Forge.MergePull(repoName, number, "linus", "merge")
		s.must("merge it", err)
		p := s.awaitPromotion("web", "qa", tag)
		next += p.Created.Sub(merged)
		far(false)

		s.awaitIdle()
		_, err = s.Forge.MergePull(repoName, p.Number, "linus", "merge")
		s.must("merge the promotion", err)
		s.awaitVerified("web", "qa", tag)
		s.awaitIdle()

		far(true)
		least += alone.run(release)
		far(false)
		s.awaitIdle()
	}
	n := float64(b.N)
	b.ReportMetric(next.Seconds()*1000/n, "ms/next-pull-request")
	b.ReportMetric(least.Seconds()*1000/n, "ms/push-and-create")
	b.ReportMetric(next.Seconds()/least.Seconds(), "ratio")
}

// pushAndCreate pushes branches and opens their pull requests, and does nothing else.
type pushAndCreate struct {
	b      *testing.B
	clone  string
	url    string
	driver forge.Forge
}

func newPushAndCreate(b *testing.B, s *harness) *pushAndCreate {
	b.Helper()
	p := &pushAndCreate{b: b, clone: filepath.Join(b.TempDir(), "alone.git"), url: strings.Replace(s.Forge.URL(), "://", "://x-access-token:"+botToken+"@", 1) + "/" + repoName + ".git"}
	p.git("clone", "-q", "--bare", p.url, p.clone)
	var err error
	p.driver, err = github.New(github.Options{URL: s.Forge.APIURL(), Token: botToken})
	s.must("make a driver", err)
	return p
}

// run does it once, and gives how long it took.
func (p *pushAndCreate) run(n int) time.Duration {
	p.b.Helper()
	branch := fmt.Sprintf("alone-%d", n)
	commit := p.git("-C", p.clone, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "main^{tree}", "-p", "main", "-m", branch)
	began := time.Now()
	p.git("-C", p.clone, "push", "-q", p.url, commit+":refs/heads/"+branch)
	if _, _, err := p.driver.CreatePullRequest(p.b.Context(), forge.Repo{Owner: "acme", Name: "fleet"}, forge.NewPullRequest{Title: branch, Branch: branch, Base: "main"}); err != nil {
		p.b.Fatal(err)
	}
	return time.Since(began)
}

func (p *pushAndCreate) git(args ...string) string {
	p.b.Helper()
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		p.b.Fatalf("git %s: %v", args[0], err)
	}
	return strings.TrimSpace(string(out))
}
