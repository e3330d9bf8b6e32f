package server_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// releaseID is the identity of a component's release with this tag.
func releaseID(component, tag string) string {
	return fieldedit.Release{Fields: []fieldedit.Field{{Kind: fieldedit.KindImage, File: "kustomization.yaml",
		Path: "images[registry.example/" + component + "].newTag", Value: tag}}}.ID()
}

// forgeHead pushes over an open promotion, as somebody who may write can: another
// release, composed just as we would, and a body that names it.
func (ha *harness) forgeHead(p *emulator.PullRequest, tag string) {
	ha.t.Helper()
	body := ha.readPull(p.Number).Body
	if !strings.Contains(body, "release="+releaseID("web", "1.1.0")) {
		ha.t.Fatalf("the body's mark is of another form than this test forges:\n%s", body)
	}
	head := ha.editTagOn("grace", "somewhere-else", "web", "prod", tag)
	ha.must("push over a branch of ours", ha.Forge.SetBranch(repoName, "grace", p.Branch, head))
	ha.must("write it anew", ha.Forge.EditPull(repoName, p.Number, "grace", strings.ReplaceAll(p.Title, "1.1.0", tag),
		strings.ReplaceAll(body, releaseID("web", "1.1.0"), releaseID("web", tag))))
	ha.approve(p.Number, "ada")
	ha.approve(p.Number, "grace")
}

// TestForgedRelease never merges an unverified release, however well its pull request is made. It
// doesn't while the store knows the pushes, nor after the database is gone.
func TestForgedRelease(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"with the database": false, "without the database": true} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{})
			p := s.releaseToProd("1.1.0")
			if lost {
				s.deleteDatabase()
			}
			s.forgeHead(&p, "6.6.6")
			if lost {
				s.start()
			}
			s.awaitPull(p.Number, "is stopped", func(p *emulator.PullRequest) bool {
				return strings.Contains(liftlockStatus(p.Statuses).Description, "another release than the one that Liftlock put there")
			})
			s.awaitIdle()
			if s.readPull(p.Number).Merged {
				t.Fatal("a release that nobody verified was merged into prod")
			}
			// A retry doesn't take the body's word either.
			s.awaitReaction(p.Number, s.addComment(p.Number, "ada", "/liftlock retry"), "+1")
			s.awaitIdle()
			for _, p := range s.listPulls("web", "prod") {
				if text, _, err := s.Forge.File(repoName, p.Head, overlayPath("web", "prod")+"/kustomization.yaml"); err != nil || strings.Contains(text, "6.6.6") && p.Open {
					t.Errorf("#%d carries what was forged: %v\n%s", p.Number, err, text)
				}
			}
		})
	}
}

// TestSignedMarkOutlivesTheDatabase goes on with a promotion that we signed where the database is
// gone and the source has moved on since. Where a person has replaced the release upstream meanwhile,
// nothing says any more that it wasn't taken back: it waits, and says so.
func TestSignedMarkOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	for name, byHand := range map[string]bool{"upstream has it": false, "upstream was changed by hand": true} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{})
			p := s.releaseToProd("1.1.0")
			s.deleteDatabase()
			s.editTag("linus", "web", "dev", "1.2.0-broken")
			if byHand {
				s.editTag("linus", "web", "qa", "1.1.9")
			}
			s.start()
			s.awaitIdle()
			s.approve(p.Number, "ada")
			s.approve(p.Number, "grace")
			if !byHand {
				s.awaitMerged(p.Number)
				return
			}
			s.awaitPull(p.Number, "waits", func(p *emulator.PullRequest) bool {
				return strings.Contains(liftlockStatus(p.Statuses).Description, "whether 1.1.0 was taken back there is not known any more")
			})
			s.awaitIdle()
			if s.readPull(p.Number).Merged {
				t.Fatal("a release that a person replaced upstream was merged into prod")
			}
		})
	}
}
