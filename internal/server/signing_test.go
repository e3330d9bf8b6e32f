package server_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/liftlock/liftlock/internal/emulator"
)

// writeSigningKey writes a private key that ssh-keygen might have made, and gives its file.
func writeSigningKey(t *testing.T) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))), "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSignaturesRequired: where the forge merges only signed commits, promotions merge with a key, and
// none opens without.
func TestSignaturesRequired(t *testing.T) {
	for name, key := range map[string]bool{"without a key": false, "with a key": true} {
		t.Run(name, func(t *testing.T) {
			o := harnessOptions{pipeline: pipelineYAML(nil, dev, qa), face: emulator.GitHub}
			if key {
				o.serverLines = "signing: {sshKeyFile: " + writeSigningKey(t) + "}\n"
			}
			s := startHarness(t, o)
			s.must("demand signatures", s.Forge.Protect(repoName, "main", emulator.Protection{Signatures: true}))
			s.awaitJudged()
			s.awaitIdle()
			s.commitRelease("web", "1.1.0")
			if key {
				s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
				s.awaitVerified("web", "qa", "1.1.0")
				return
			}
			s.awaitReason("web", "qa", "the forge merges only signed commits into main")
			s.awaitReason("web", "qa", "signing.sshKeyFile")
			s.awaitIdle()
			if n := s.countOpenings(); n != 0 {
				t.Errorf("%d pull requests were opened that can't be merged", n)
			}
			s.must("demand none", s.Forge.Protect(repoName, "main", emulator.Protection{}))
			s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
		})
	}
}
