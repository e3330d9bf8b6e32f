package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/emulator"
)

// TestWholeFilesTravelAndComeBack promotes a folder of configuration, with a file
// that is new, one that changed and one that is gone, and takes it back: the
// tree is then, byte for byte, what it was.
func TestWholeFilesTravelAndComeBack(t *testing.T) {
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := scenery(t, plan{
				pipeline: pipelineOf([]string{"  - files: {include: [\"config/**\"], exclude: [\"**/*.local\"]}", "    whenAbsent: add"}, dev, manualQA),
				files: map[string]string{
					overlay("web", "dev") + "/config/a.properties": "a=1\n", overlay("web", "dev") + "/config/gone.txt": "gone soon\n",
					overlay("web", "qa") + "/config/a.properties": "a=1\n", overlay("web", "qa") + "/config/gone.txt": "gone soon\n",
					overlay("web", "qa") + "/config/qa.local": "qa's own\n",
				},
			})
			s.start()
			s.quiet()
			_, err := s.Forge.CommitAs(repoName, "linus", "main", "A release of configuration", map[string]string{
				overlay("web", "dev") + "/config/a.properties": "a=2\n", overlay("web", "dev") + "/config/deep/new.bin": "\x00\xff new\n",
			}, overlay("web", "dev")+"/config/gone.txt")
			s.must("release", err)
			var p emulator.PullRequest
			s.until("the promotion is open", func() (bool, string) {
				all := s.pulls("web", "qa")
				if len(all) == 1 {
					p = all[0]
				}
				_, why := s.env("web", "qa")
				return len(all) == 1, why
			})
			released, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			if _, err := s.Forge.MergePull(repoName, p.Number, "linus", method); err != nil {
				t.Fatal(err)
			}
			now, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			for name, want := range map[string]string{
				"a.properties": released[overlay("web", "dev")+"/config/a.properties"], "deep/new.bin": released[overlay("web", "dev")+"/config/deep/new.bin"],
				"gone.txt": "", "qa.local": released[overlay("web", "qa")+"/config/qa.local"],
			} {
				if got := now[overlay("web", "qa")+"/config/"+name]; got != want {
					t.Errorf("%s is %q after the promotion, want %q", name, got, want)
				}
			}
			s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock revert wrong"), "+1")
			s.until("the revert is open", func() (bool, string) { return len(s.reverts("web", "qa")) == 1, "" })
			back := s.reverts("web", "qa")[0]
			if _, err := s.Forge.MergePull(repoName, back.Number, "linus", method); err != nil {
				t.Fatal(err)
			}
			again, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			if d := cmp.Diff(released, again); d != "" {
				t.Errorf("the way back (-want +got):\n%s", d)
			}
		})
	}
}
