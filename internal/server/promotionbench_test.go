package server_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// callLatency is how long a call of the forge takes besides.
const callLatency = 50 * time.Millisecond

// benchHealthyFor is how long the pipeline has a target be healthy before it is verified. It is
// waited for, and not counted.
const benchHealthyFor = 100 * time.Millisecond

// benchPollInterval is how often the benchmark looks: seldom, as to look takes of the processor's
// time that is measured. When the pull request was created the forge says to the millisecond.
const benchPollInterval = 250 * time.Millisecond

// BenchmarkNextPullRequest takes the time from a merge on the forge to the pull request into the
// next environment, over an Argo CD that deploys at once. By turns with it, it takes the time of
// the unavoidable part: a push by git push and the creation of a pull request by the same driver.
// The ratio of the two is the cost of everything else: the webhook, the fetch, the look and the
// verification. Both end when the forge has created the pull request, by its own time. Every call
// of the forge's API takes 50 ms more, and every request of Git's too.
func BenchmarkNextPullRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		git  time.Duration
	}{{"latency=api", 0}, {"latency=api-and-git", callLatency}} {
		b.Run(c.name, func(b *testing.B) { benchmarkNextPullRequest(b, c.git) })
	}
}

func benchmarkNextPullRequest(b *testing.B, gitLatency time.Duration) {
	verify := fmt.Sprintf("{arriveWithin: 30s, timeout: 30s, healthyFor: %s, watch: 2m, debounce: 1ms}", benchHealthyFor)
	// An Argo CD that takes no time: its own is neither Liftlock's nor the forge's.
	timings := argoemulator.FastTimings()
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
		_, err = s.Forge.MergePull(repoName, number, "linus", "merge")
		s.must("merge it", err)
		p := s.awaitPromotionEvery(benchPollInterval, "web", "qa", tag)
		next += p.Created.Sub(s.readPull(number).MergedAt) - benchHealthyFor
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
	s      *harness
	clone  string
	url    string
	driver forge.Forge
}

func newPushAndCreate(b *testing.B, s *harness) *pushAndCreate {
	b.Helper()
	p := &pushAndCreate{s: s, clone: filepath.Join(b.TempDir(), "alone.git"), url: s.Forge.URL() + "/" + repoName + ".git"}
	p.git("clone", "-q", "--bare", p.url, p.clone)
	var err error
	p.driver, err = github.New(github.Options{URL: s.Forge.APIURL(), Token: botToken})
	s.must("make a driver", err)
	return p
}

// commit makes one that changes a file as deep as the one that a promotion edits: what is pushed is
// as much.
func (p *pushAndCreate) commit(n int) string {
	p.s.t.Helper()
	const file = "apps/web/overlays/qa/kustomization.yaml"
	name := filepath.Join(p.clone, "edited")
	p.s.must("write a file", os.WriteFile(name, fmt.Appendf(nil, "# %d\n", n), 0o600))
	blob := p.git("-C", p.clone, "hash-object", "-w", name)
	p.git("-C", p.clone, "read-tree", "main")
	p.git("-C", p.clone, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+file)
	return p.git("-C", p.clone, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", p.git("-C", p.clone, "write-tree"), "-p", "main", "-m", file)
}

// run does it once, and gives how long it took.
func (p *pushAndCreate) run(n int) time.Duration {
	p.s.t.Helper()
	branch, commit := fmt.Sprintf("alone-%d", n), p.commit(n)
	began := time.Now()
	p.git("-C", p.clone, "push", "-q", p.url, commit+":refs/heads/"+branch)
	pr, _, err := p.driver.CreatePullRequest(p.s.t.Context(), forge.Repo{Owner: "acme", Name: "fleet"}, forge.NewPullRequest{Title: branch, Branch: branch, Base: "main"})
	p.s.must("create a pull request", err)
	return p.s.readPull(pr.Number).Created.Sub(began)
}

// git runs git with the credentials where a mirror has them: Git then makes no request without
// them first.
func (p *pushAndCreate) git(args ...string) string {
	p.s.t.Helper()
	c := exec.Command("git", args...)
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + botToken))
	c.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic)
	out, err := c.Output()
	p.s.must("git "+args[0], err)
	return strings.TrimSpace(string(out))
}
