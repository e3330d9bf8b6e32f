package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// brokenFile has an unknown key on line 14, which is the first of the
// environments' own lines.
func brokenFile() string {
	return strings.Replace(pipelineYAML(nil), "      after: [dev]", "      aftre: [dev]", 1)
}

// lineOf is where a text stands in a file, counted from 1.
func lineOf(file, text string) int {
	for i, line := range strings.Split(file, "\n") {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	return 0
}

// TestBrokenPipelineFile pushes a broken file to the default branch. Opening and merging stop,
// observing and reverting go on with the last good one, and people are told where and why. Mended,
// everything goes on.
func TestBrokenPipelineFile(t *testing.T) {
	manual := strings.Replace(qa, "merge: auto", "merge: manual", 1)
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: pipelineYAML(nil, dev, manual, prod)})
	s.awaitJudged()
	// web waits in qa, api is in qa and will degrade there.
	s.commitRelease("web", "1.1.0")
	web := s.awaitPromotion("web", "qa", "1.1.0")
	s.commitRelease("api", "1.1.0-late-in-qa")
	bad := s.awaitPromotion("api", "qa", "1.1.0-late-in-qa")
	s.awaitPull(bad.Number, "is judged", func(p *emulator.PullRequest) bool { return liftlockStatus(p.Statuses).State != "" })
	broken := strings.Replace(pipelineYAML(nil, dev, manual, prod), "      after: [dev]", "      aftre: [dev]", 1)
	where := ".liftlock.yaml:" + itoa(lineOf(broken, "aftre"))
	commit := s.commitFiles("linus", "main", "Break the pipeline file", map[string]string{".liftlock.yaml": broken})
	s.awaitStatus(commit, "failure", where)
	// A person may still merge; what Liftlock does is observe and revert.
	if _, err := s.Forge.MergePull(repoName, bad.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.waitFor("the revert opens while the file is broken", func() (bool, string) {
		rs := s.listReverts("api", "qa")
		_, seen := s.readEnvironment("api", "qa")
		return len(rs) == 1, seen
	})
	s.commitRelease("web", "1.2.0")
	s.awaitVerified("web", "dev", "1.2.0")
	s.awaitEnvironment("web", "qa", "says that the file is broken", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, where) && strings.Contains(e.Text, "aftre")
	})
	var list api.Pipelines
	if _, err := s.getJSON("/api/v1/pipelines", &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Pipelines) != 1 || !strings.Contains(list.Pipelines[0].Broken, where) || len(list.Troubles) == 0 || !strings.Contains(list.Troubles[0].Message, where) {
		t.Errorf("the API says of the broken file: %+v", list)
	}
	if _, page := s.getText("/"); !strings.Contains(page, where) {
		t.Errorf("the console's first page doesn't name %s", where)
	}
	s.awaitIdle()
	if p := s.readPull(web.Number); !p.Open || p.Merged || strings.Contains(p.Title, "1.2.0") {
		t.Errorf("#%d was touched while the file is broken: %+v", p.Number, p)
	}
	if n := len(s.listPulls("web", "prod")) + len(s.listPulls("api", "prod")); n != 0 {
		t.Errorf("%d pull requests into prod were opened", n)
	}
	mended := s.commitFiles("linus", "main", "Mend the pipeline file", map[string]string{".liftlock.yaml": s.opts.pipeline})
	s.awaitStatus(mended, "success", "valid")
	s.awaitPull(web.Number, "is composed anew for 1.2.0", func(p *emulator.PullRequest) bool { return p.Open && strings.Contains(p.Title, "1.2.0") })
}

// TestBrokenFileStopsMerging breaks the file while a pull request that would
// merge by itself waits for its last approval.
func TestBrokenFileStopsMerging(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.approve(p.Number, "ada")
	s.awaitStatus(s.commitFiles("linus", "main", "Break the pipeline file", map[string]string{".liftlock.yaml": brokenFile()}), "failure", "aftre")
	s.approve(p.Number, "grace")
	s.awaitPull(p.Number, "waits for the file", func(p *emulator.PullRequest) bool {
		st := liftlockStatus(p.Statuses)
		return st.State == "pending" && strings.Contains(st.Description, "pipeline")
	})
	s.awaitIdle()
	if n := s.countMerges(); n != 1 {
		t.Errorf("%d merges were asked for, want 1 (qa's)", n)
	}
	// The approvals were given on a diff that is still the same.
	s.commitFiles("linus", "main", "Mend the pipeline file", map[string]string{".liftlock.yaml": s.opts.pipeline})
	s.awaitMerged(p.Number)
}

// TestOthersPullRequests gets the check of pipeline files as a status, from the
// repository and from forks, and never judges by what a pull request brings.
func TestOthersPullRequests(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	where := ".liftlock.yaml:" + itoa(lineOf(brokenFile(), "aftre"))
	loose := strings.Replace(pipelineYAML(nil), "count: 2", "count: 1", 1)
	fork, err := s.Forge.Fork(repoName, "rita")
	s.must("fork", err)
	for _, c := range []struct {
		name, branch string
		files        map[string]string
		state, text  string
	}{
		{"broken", "breaks", map[string]string{".liftlock.yaml": brokenFile()}, "failure", where},
		{"valid", "loosens", map[string]string{".liftlock.yaml": loose}, "success", "valid"},
		{"untouched", "readme", map[string]string{"README.md": "hello\n"}, "success", "touches no target"},
	} {
		s.commitFiles("linus", c.branch, "A change", c.files)
		n, err := s.Forge.OpenPull(repoName, "linus", c.branch, "main", "A change: "+c.name, "")
		s.must("open a pull request", err)
		s.awaitPull(n, "has the status of a change that is "+c.name, func(p *emulator.PullRequest) bool {
			st := liftlockStatus(p.Statuses)
			return st.State == c.state && strings.Contains(st.Description, c.text)
		})
	}
	_, err = s.Forge.CommitAs(fork, "rita", "theirs", "A change", map[string]string{".liftlock.yaml": brokenFile()})
	s.must("commit to the fork", err)
	n, err := s.Forge.OpenPullFrom(repoName, "rita", fork, "theirs", "main", "From a fork")
	s.must("open a pull request from the fork", err)
	s.awaitPull(n, "has the failing status though it is a fork's", func(p *emulator.PullRequest) bool {
		st := liftlockStatus(p.Statuses)
		if s.Forge.Face() == emulator.GitLab { // a fork's commits have their statuses there
			return slices.ContainsFunc(p.Comments, func(c emulator.Comment) bool { return c.User == s.bot && strings.Contains(c.Body, where) })
		}
		return st.State == "failure" && strings.Contains(st.Description, where)
	})
	// The open pull request that loosens the gate is no rule yet.
	s.commitRelease("web", "1.1.0")
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.approve(p.Number, "ada")
	s.awaitPull(p.Number, "waits for the second approval", func(p *emulator.PullRequest) bool {
		return countsApprovals(p, "1 of 2")
	})
	if s.readPull(p.Number).Merged {
		t.Error("a pull request changed the rules it is judged by")
	}
	s.awaitEnvironment("web", "prod", "is open", func(e *api.EnvironmentWhy) bool { return e.Incoming != nil && e.Incoming.State == promotion.Opened })
}
