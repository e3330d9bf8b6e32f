//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// release pushes new tags of a component's images straight to main, as a build
// job does.
func (s *story) release(component, env, tag string, images ...string) string {
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
	commit := s.push(dev, fmt.Sprintf("Release %s %s into %s", component, tag, env), map[string]edit{overlay(component, env): change})
	s.Logf("        %s releases %s %s into %s: %.10s", dev, component, tag, env, commit)
	return commit
}

// push edits files on main.
func (s *story) push(login, message string, edits map[string]edit) string {
	s.Helper()
	commit, err := s.clone.push(s.ctx, s.w.people[login], "main", "main", message, edits)
	s.must(err)
	return commit
}

// tag is what an environment has on main.
func (s *story) tag(component, env string) string {
	s.Helper()
	file, err := s.clone.show(s.ctx, s.w.people[dev], "origin/main", overlay(component, env))
	s.must(err)
	return tagIn(file, component)
}

// runs waits until the cluster runs a component's tag.
func (s *story) runs(component, env, tag string) {
	s.Helper()
	eventually(s, fmt.Sprintf("the cluster runs %s %s in %s", component, tag, env), func() (bool, error) {
		image, err := s.w.image(s.ctx, s.prefix+"-"+env, component)
		if err == nil && image != "registry.example/"+component+":"+tag {
			err = fmt.Errorf("it runs %q", image)
		}
		return true, err
	})
}

// never fails when Liftlock ever opened a pull request on such a branch.
func (s *story) never(branch string) {
	s.Helper()
	pulls, err := s.mine(branch)
	s.must(err)
	for _, p := range pulls {
		s.Errorf("there is a pull request on %s: #%d %s", branch, p.Index, p.Title)
	}
}

// oneEnvironment checks a merged pull request: it changed one environment's
// overlay of one component, and as many lines as fields moved. It returns the
// commits before and after.
func (s *story) oneEnvironment(p *gitea.PullRequest, component, env string, fields int) (before, after string) {
	s.Helper()
	s.must(isMerged(p))
	after = *p.MergedCommitID
	before = after + "^1"
	diffs, err := s.clone.numstat(s.ctx, s.w.people[dev], before, after)
	s.must(err)
	want := fileDiff{file: overlay(component, env), added: fields, removed: fields}
	if len(diffs) != 1 || diffs[0] != want {
		s.Errorf("#%d changed %+v, wanted only %+v", p.Index, diffs, want)
	}
	return before, after
}

// restores checks that a revert brought an overlay back byte for byte.
func (s *story) restores(before, after, component, env string) {
	s.Helper()
	s.gits("fetch", "-q", "origin")
	out := s.gits("diff", before, after, "--", strings.TrimSuffix(overlay(component, env), "/kustomization.yaml"))
	if out != "" {
		s.Errorf("the revert did not restore %s of %s:\n%s", env, component, out)
	}
}

// changesOneLineIn checks that a merge changed one line in each of some files.
func (s *story) changesOneLineIn(before, after string, files ...string) {
	s.Helper()
	got, err := s.clone.numstat(s.ctx, s.w.people[dev], before, after)
	s.must(err)
	var want []fileDiff
	for _, f := range files {
		want = append(want, fileDiff{file: f, added: 1, removed: 1})
	}
	if !slices.Equal(got, want) {
		s.Errorf("the merge changed %+v, wanted %+v", got, want)
	}
}
