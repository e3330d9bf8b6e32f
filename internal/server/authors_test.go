package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// approvedByAnybody is a prod that anybody who may write can approve, but the authors.
const approvedByAnybody = "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - approvals: {count: 1}\nverify: " + verifyFast

// commitUnder pushes a release into a branch as one person, and says in the commit that it
// is another's.
func (ha *harness) commitUnder(login, email, branch, tag, message string) string {
	ha.t.Helper()
	file := ha.overlayDir("web", "dev") + "/kustomization.yaml"
	text, ok, err := ha.Forge.File(repoName, "main", file)
	if err != nil || !ok {
		ha.t.Fatalf("read %s: %t %v", file, ok, err)
	}
	sha, err := ha.Forge.CommitUnder(repoName, login, branch, email, message, map[string]string{file: newTag.ReplaceAllString(text, "newTag: "+tag)})
	ha.must("commit", err)
	return sha
}

// awaitGate waits until the gate of the promotion to prod says something.
func (ha *harness) awaitGate(text string) (reason string) {
	ha.t.Helper()
	ha.awaitEnvironment("web", "prod", "has a gate that says "+text, func(e *api.EnvironmentWhy) bool {
		if e.Incoming == nil || len(e.Incoming.Gates) != 1 {
			return false
		}
		reason = e.Incoming.Gates[0].Reason
		return strings.Contains(reason, text)
	})
	return reason
}

// mergeAs opens a pull request as one person and merges it as another.
func (ha *harness) mergeAs(opener, merger, branch, method string) {
	ha.t.Helper()
	number, err := ha.Forge.OpenPull(repoName, opener, branch, "main", "Release", "")
	ha.must("open a pull request", err)
	_, err = ha.Forge.MergePull(repoName, number, merger, method)
	ha.must("merge", err)
}

// awaitUncounted approves a release in prod as authors of it, none of whom counts, and then
// as somebody else, with whom it merges.
func (ha *harness) awaitUncounted(tag, somebodyElse string, authors ...string) {
	ha.t.Helper()
	p := ha.awaitPromotion("web", "prod", tag)
	for _, login := range authors {
		ha.approve(p.Number, login)
		ha.awaitGate(login)
	}
	if reason := ha.awaitGate("authors of the release don't count"); !strings.Contains(reason, "0 of 1 approval") {
		ha.t.Fatalf("%s: the gate says %s", tag, reason)
	}
	if ha.readPull(p.Number).Merged {
		ha.t.Fatalf("%s was merged with the approvals of %v, who made it", tag, authors)
	}
	ha.approve(p.Number, somebodyElse)
	ha.awaitMerged(p.Number)
	ha.awaitVerified("web", "prod", tag)
}

// TestAuthorsDontCount lets nobody approve a release in whose making the forge saw him,
// whatever the commits say.
func TestAuthorsDontCount(t *testing.T) {
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, approvedByAnybody)})
	s.awaitJudged()

	s.commitUnder("grace", "linus@users.example", "main", "1.1.0", "Pushed by grace, under the name of linus")
	s.awaitUncounted("1.1.0", "ada", "grace", "linus")

	s.commitUnder("grace", "", "topic", "1.2.0", "In a pull request")
	s.mergeAs("grace", "linus", "topic", "squash")
	s.awaitUncounted("1.2.0", "ada", "grace", "linus")

	s.commitUnder("linus", "", "pushed-to", "1.3.0-draft", "In the pull request of linus")
	s.commitUnder("grace", "linus@users.example", "pushed-to", "1.3.0", "Pushed to it by grace, under the name of linus")
	s.mergeAs("linus", "linus", "pushed-to", "merge")
	s.awaitUncounted("1.3.0", "ada", "grace")

	noReply, err := s.Forge.NoReply("ada")
	s.must("find an address", err)
	s.commitUnder("linus", "", "main", "1.4.0", "With others\n\nCo-authored-by: Grace <grace@users.example>\nCo-authored-by: Ada <"+noReply+">")
	s.must("grant", s.Forge.Grant(repoName, "rita", emulator.Write))
	s.awaitUncounted("1.4.0", "rita", "grace", "ada")

	s.commitUnder("grace", "", "main", "1.5.0", "By who has another login later")
	p := s.awaitPromotion("web", "prod", "1.5.0")
	s.awaitGate("0 of 1 approval")
	s.must("rename", s.Forge.RenameUser("grace", "hopper"))
	s.approve(p.Number, "hopper")
	s.awaitGate("authors of the release don't count (hopper)")
}

// TestAuthorsOfSeveralCommits counts everybody who brought a value that the release has
// and the environment hasn't: not only who came last.
func TestAuthorsOfSeveralCommits(t *testing.T) {
	overlay := func(env string) string { return overlayPath("web", env) + "/kustomization.yaml" }
	files := map[string]string{"apps/web/base/deployment.yaml": strings.ReplaceAll(deploymentTemplate, "NAME", "web") + "        - name: side\n          image: registry.example/side\n"}
	for _, env := range []string{"dev", "qa", "prod"} {
		files[overlay(env)] = strings.NewReplacer("NAME", "web", "TAG", "1.0.0").Replace(kustomizationTemplate) + "  - name: registry.example/side\n    newTag: 1.0.0\n"
	}
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, approvedByAnybody), files: files})
	s.awaitJudged()
	text := strings.Replace(files[overlay("dev")], "newTag: 1.0.0", "newTag: 1.1.0", 1)
	s.commitFiles("grace", "main", "One image", map[string]string{overlay("dev"): text})
	text = strings.Replace(text, "newTag: 1.0.0", "newTag: 2.0.0", 1)
	s.commitFiles("linus", "main", "The other image", map[string]string{overlay("dev"): text})
	number := 0
	s.waitFor("a promotion of both to prod", func() (bool, string) {
		seen := ""
		for _, p := range s.listPulls("web", "prod") {
			text, _, err := s.Forge.File(repoName, p.Head, overlay("prod"))
			s.must("read a promotion", err)
			if seen = text; p.Open && strings.Contains(text, "newTag: 1.1.0") && strings.Contains(text, "newTag: 2.0.0") {
				number = p.Number
			}
		}
		return number != 0, seen
	})
	s.approve(number, "grace")
	s.approve(number, "linus")
	s.awaitGate("authors of the release don't count (grace, linus)")
	s.approve(number, "ada")
	s.awaitMerged(number)
}

// TestUnlinkedAuthors waits, also for the server's floor alone, where somebody who made
// the release belongs to no account; the server's file can say otherwise.
func TestUnlinkedAuthors(t *testing.T) {
	t.Parallel()
	const floor = "floor:\n  - {environments: [\"prod*\"], approvals: {count: 1}}\n"
	open := "name: prod\nafter: [qa]\nmerge: auto\nverify: " + verifyFast
	t.Run("wait", func(t *testing.T) {
		s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, open), serverLines: floor})
		s.awaitJudged()
		commit := s.commitUnder("grace", "grace@home.example", "main", "1.1.0", "From home")
		p := s.awaitPromotion("web", "prod", "1.1.0")
		s.approve(p.Number, "grace")
		if reason := s.awaitGate("grace <grace@home.example>, whom the commit " + commit[:12] + " names, belongs to no account"); !strings.Contains(reason, "ignoreUnlinked") {
			t.Errorf("the gate says %s", reason)
		}
		s.approve(p.Number, "ada")
		if a := s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock promote"), "confused"); !strings.Contains(a, "can't be told") {
			t.Errorf("a promote of what nobody knows who made: %q", a)
		}
		s.awaitIdle()
		if s.readPull(p.Number).Merged {
			t.Fatal("a release was merged of which the author isn't known")
		}
	})
	t.Run("ignored", func(t *testing.T) {
		s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa, open), serverLines: floor + "authors: {ignoreUnlinked: true}\n"})
		s.awaitJudged()
		s.commitUnder("grace", "grace@home.example", "main", "1.1.0", "From home")
		s.awaitUncounted("1.1.0", "ada", "grace")
	})
}
