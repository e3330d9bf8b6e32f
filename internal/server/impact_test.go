package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// openUserPull opens a person's pull request with the files, from a branch of its own.
func (ha *harness) openUserPull(branch string, files map[string]string, remove ...string) int {
	ha.t.Helper()
	head, err := ha.Forge.Head(repoName, "main")
	ha.must("read main", err)
	ha.must("make a branch", ha.Forge.SetBranch(repoName, "linus", branch, head))
	_, err = ha.Forge.CommitAs(repoName, "linus", branch, "Change "+branch, files, remove...)
	ha.must("commit", err)
	n, err := ha.Forge.OpenPull(repoName, "linus", branch, "main", "Change "+branch, "")
	ha.must("open a pull request", err)
	return n
}

// awaitImpactCheck waits until the check of a person's pull request says so in its
// commit status and, with comment, in its one comment.
func (ha *harness) awaitImpactCheck(number int, state, status string, comment ...string) emulator.PullRequest {
	ha.t.Helper()
	p := ha.awaitPull(number, "is checked: "+status, func(p *emulator.PullRequest) bool {
		st := liftlockStatus(p.Statuses)
		return st.State == state && strings.Contains(st.Description, status)
	})
	ha.waitFor("the comment says it", func() (bool, string) {
		p = ha.readPull(number)
		if len(comment) == 0 {
			return len(p.Comments) == 0, ""
		}
		if len(p.Comments) != 1 {
			return false, "no comment"
		}
		for _, want := range comment {
			if !strings.Contains(p.Comments[0].Body, want) {
				return false, p.Comments[0].Body
			}
		}
		return true, ""
	})
	return p
}

// TestImpact says on people's pull requests what they do to which targets, and
// is done with it: the same is not judged twice.
func TestImpact(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	qa := overlayPath("web", "qa") + "/kustomization.yaml"

	one := s.openUserPull("one", map[string]string{qa: "resources:\n  - ../../base\nimages:\n  - name: registry.example/web\n    newTag: 1.0.1\n"})
	s.awaitImpactCheck(one, "success", "touches qa: 1 changed", "| qa | changed | `web-qa` |", "`"+qa+"`",
		"### Rendered manifests", "- `web-qa`: 1 changed", "\n  - spec.template.spec.containers[name=web].image: registry.example/web:1.0.0\n  + spec.template.spec.containers[name=web].image: registry.example/web:1.0.1\n")

	base := s.openUserPull("base", map[string]string{"apps/web/base/kustomization.yaml": "resources:\n  - deployment.yaml\nnamePrefix: y-\n"})
	s.awaitImpactCheck(base, "success", "careful, it reaches 3 environments", "reaches 3 environments of shop at once: dev, qa and prod")

	more := s.openUserPull("more", map[string]string{overlayPath("api", "qa") + "/kustomization.yaml": "images:\n  - name: registry.example/api\n    newTag: 1.0.0\n"})
	s.awaitImpactCheck(more, "success", "qa: 1 created", "| qa | created | `api-qa` |")

	fewer := s.openUserPull("fewer", nil, overlayPath("web", "prod")+"/kustomization.yaml")
	s.awaitImpactCheck(fewer, "success", "prod: 1 deleted", "| prod | deleted | `web-prod` |")

	nothing := s.openUserPull("nothing", map[string]string{"docs/readme.md": "Nothing that is deployed.\n"})
	s.awaitImpactCheck(nothing, "success", "touches no target")

	// The next head is judged anew, in the same comment.
	_, err := s.Forge.CommitAs(repoName, "linus", "base", "Take it back", map[string]string{"apps/web/base/kustomization.yaml": "resources:\n  - deployment.yaml\n", "docs/x.md": "x\n"})
	s.must("commit", err)
	s.awaitImpactCheck(base, "success", "touches no target", "touches no target")

	s.awaitIdle()
	s.waitFor("all is judged", func() (bool, string) {
		return s.countLogged("a pull request was checked") == 6, itoa(s.countLogged("a pull request was checked"))
	})
	s.addComment(one, "ada", "Looks good to me.")
	s.awaitIdle()
	if n := s.countLogged("a pull request was checked"); n != 6 {
		t.Errorf("%d checks, want 6: nothing had changed after the sixth", n)
	}
	// The main job goes on beside it.
	s.commitRelease("web", "1.1.0")
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestImpactOfHostileChanges judges heads that would keep a server busy, or that can't be
// understood. Each ends in a failed status that names the reason, and the rest of the server isn't
// affected.
func TestImpactOfHostileChanges(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	set, ok, err := s.Forge.File(repoName, "main", "argocd/shop.yaml")
	if err != nil || !ok {
		t.Fatalf("read the set: %v", err)
	}
	for _, c := range []struct{ name, from, to, status string }{
		{"bomb", "  template:", "  templatePatch: '{{ repeat 1000000000 \"x\" }}'\n  template:", "new problem"},
		{"loop", "  template:", "  templatePatch: '{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}'\n  template:", "new problem"},
		{"unknown", "spec:\n", "spec:\n  tomorrow: true\n", "tomorrow"},
		{"broken", "spec:\n", "spec: [\n", "new problem"},
	} {
		n := s.openUserPull(c.name, map[string]string{"argocd/shop.yaml": strings.Replace(set, c.from, c.to, 1)})
		p := s.awaitImpactCheck(n, "failure", c.status, "argocd/shop.yaml")
		if body := p.Comments[0].Body; strings.Contains(body, "deleted") {
			t.Errorf("%s: what can't be resolved is not deleted:\n%s", c.name, body)
		}
	}
	rules := s.openUserPull("rules", map[string]string{".liftlock.yaml": "kind: Pipeline\nspec: {gate: []}\n"})
	s.awaitImpactCheck(rules, "failure", ".liftlock.yaml", "don't hold", ".liftlock.yaml:")

	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestAChangeOfSeveralEnvironmentsFails holds that a pipeline can have the check fail a change that
// reaches several environments at once, by the rules of the tracked branch.
func TestAChangeOfSeveralEnvironmentsFails(t *testing.T) {
	rules := pipelineYAML([]string{"impact: {failOn: several}"})
	s := startHarness(t, harnessOptions{pipeline: rules})
	s.awaitJudged()
	wide := s.openUserPull("wide", map[string]string{"apps/web/base/kustomization.yaml": "resources:\n  - deployment.yaml\nnamePrefix: y-\n", ".liftlock.yaml": pipelineYAML(nil)})
	s.awaitImpactCheck(wide, "failure", "it reaches 3 environments of shop at once (dev, qa and prod); split it", "**This fails the check: it reaches 3 environments of shop at once: dev, qa and prod.**")

	_, err := s.Forge.CommitAs(repoName, "linus", "wide", "Only qa", map[string]string{"apps/web/base/kustomization.yaml": "resources:\n  - deployment.yaml\n", ".liftlock.yaml": rules,
		overlayPath("web", "qa") + "/kustomization.yaml": "resources:\n  - ../../base\nimages:\n  - name: registry.example/web\n    newTag: 1.0.1\n"})
	s.must("commit", err)
	s.awaitImpactCheck(wide, "success", "touches qa: 1 changed", "This change touches qa: 1 changed.")
}

// TestCommandsOnAPersonsPull holds that commands on people's own pull requests are answered, once, and
// that those about promotions are refused with where to give them.
func TestCommandsOnAPersonsPull(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	n := s.openUserPull("one", map[string]string{overlayPath("web", "qa") + "/kustomization.yaml": "resources:\n  - ../../base\nimages:\n  - name: registry.example/web\n    newTag: 1.0.1\n"})
	s.awaitImpactCheck(n, "success", "touches qa: 1 changed", "This change touches qa")
	for _, c := range []struct{ command, reaction, want string }{
		{"diff", "+1", "```diff\n@@ apps/v1 Deployment web @@\n- spec.template.spec.containers[name=web].image: registry.example/web:1.0.0\n+ spec.template.spec.containers[name=web].image: registry.example/web:1.0.1\n```"},
		{"status", "+1", "- `dev`: `1.0.0` baseline"},
		{"why qa", "+1", "`qa`: `1.0.0` baseline"},
		{"help", "+1", "`/liftlock diff`: what this change does"},
		{"promote qa", "confused", "promote is about a promotion"},
		{"nonsense", "confused", "nonsense"},
	} {
		answer := s.awaitReaction(n, s.addComment(n, "ada", "/liftlock "+c.command), c.reaction)
		if !strings.Contains(answer, c.want) {
			t.Errorf("%s is answered with\n%s\nwant %s", c.command, answer, c.want)
		}
	}
	s.addComment(n, "ada", "Looks good to me.")
	s.awaitIdle()
	if all := s.readPull(n).Comments; len(all) != 1+6*2+1 {
		t.Errorf("there are %d comments", len(all))
	}
	// A comment with many commands is one evaluation: a stranger decides how long that takes.
	const evaluated = "a pull request was evaluated for a command"
	before := s.countLogged(evaluated)
	answer := s.awaitReaction(n, s.addComment(n, "linus", "/liftlock diff\n/liftlock status\n/liftlock diff"), "+1")
	if got := s.countLogged(evaluated) - before; got != 1 || strings.Count(answer, "```diff") != 2 || !strings.Contains(answer, "`dev`: `1.0.0`") {
		t.Errorf("%d evaluations for three commands, answered with\n%s", got, answer)
	}
	nothing := s.openUserPull("nothing", map[string]string{"docs/readme.md": "Nothing that is deployed.\n"})
	for command, want := range map[string]string{"diff": "This change touches no target", "status": "touches no component"} {
		if answer := s.awaitReaction(nothing, s.addComment(nothing, "grace", "/liftlock "+command), "+1"); !strings.Contains(answer, want) {
			t.Errorf("%s is answered with %s", command, answer)
		}
	}
}
