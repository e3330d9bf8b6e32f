//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// pushRelease pushes new tags of a component's images straight to main, as a build
// job does.
func (s *scenario) pushRelease(component, env, tag string, images ...string) string {
	s.Helper()
	if len(images) == 0 {
		images = []string{component}
	}
	change := func(file string) string {
		for _, image := range images {
			file = setTag(image, tag)(file)
		}
		return file
	}
	commit := s.pushEdits(dev, fmt.Sprintf("Release %s %s into %s", component, tag, env), map[string]edit{overlayFile(component, env): change})
	s.Logf("        %s releases %s %s into %s: %.10s", dev, component, tag, env, commit)
	return commit
}

// pushEdits edits files on main.
func (s *scenario) pushEdits(login, message string, edits map[string]edit) string {
	s.Helper()
	commit, err := s.clone.push(s.ctx, s.cluster.accounts[login], "main", "main", message, edits)
	s.must(err)
	return commit
}

// readTag is what an environment has on main.
func (s *scenario) readTag(component, env string) string {
	s.Helper()
	file, err := s.clone.readFile(s.ctx, s.cluster.accounts[dev], "origin/main", overlayFile(component, env))
	s.must(err)
	return tagIn(file, component)
}

// awaitRunning waits until the cluster runs a component's tag.
func (s *scenario) awaitRunning(component, env, tag string) {
	s.Helper()
	eventually(s, fmt.Sprintf("the cluster runs %s %s in %s", component, tag, env), func() (bool, error) {
		image, err := s.cluster.deployedImage(s.ctx, s.prefix+"-"+env, component)
		if err == nil && image != "registry.example/"+component+":"+tag {
			err = fmt.Errorf("it runs %q", image)
		}
		return true, err
	})
}

// checkNoPull fails when Liftlock ever opened a pull request on such a branch.
func (s *scenario) checkNoPull(branch string) {
	s.Helper()
	pulls, err := s.liftlockPulls(branch)
	s.must(err)
	for _, p := range pulls {
		s.Errorf("there is a pull request on %s: #%d %s", branch, p.Index, p.Title)
	}
}

// checkOneEnvironment checks a merged pull request: it changed one environment's
// overlay of one component, and as many lines as fields moved. It returns the
// commits before and after.
func (s *scenario) checkOneEnvironment(p *gitea.PullRequest, component, env string, fields int) (before, after string) {
	s.Helper()
	s.must(isMerged(p))
	after = *p.MergedCommitID
	before = after + "^1"
	diffs, err := s.clone.diffStat(s.ctx, s.cluster.accounts[dev], before, after)
	s.must(err)
	want := fileDiff{file: overlayFile(component, env), added: fields, removed: fields}
	if len(diffs) != 1 || diffs[0] != want {
		s.Errorf("#%d changed %+v, wanted only %+v", p.Index, diffs, want)
	}
	return before, after
}

// checkRestored checks that a revert brought an overlay back byte for byte.
func (s *scenario) checkRestored(before, after, component, env string) {
	s.Helper()
	s.runGit("fetch", "-q", "origin")
	out := s.runGit("diff", before, after, "--", strings.TrimSuffix(overlayFile(component, env), "/kustomization.yaml"))
	if out != "" {
		s.Errorf("the revert did not restore %s of %s:\n%s", env, component, out)
	}
}

// checkOneLineIn checks that a merge changed one line in each of some files.
func (s *scenario) checkOneLineIn(before, after string, files ...string) {
	s.Helper()
	got, err := s.clone.diffStat(s.ctx, s.cluster.accounts[dev], before, after)
	s.must(err)
	var want []fileDiff
	for _, f := range files {
		want = append(want, fileDiff{file: f, added: 1, removed: 1})
	}
	if !slices.Equal(got, want) {
		s.Errorf("the merge changed %+v, wanted %+v", got, want)
	}
}
