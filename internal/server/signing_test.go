package server_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/liftlock/liftlock/internal/world/emulator"
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

// TestSignaturesRequired: where the forge merges only signed commits, promotions merge with a key or
// where the forge signs an App's, and none opens without.
func TestSignaturesRequired(t *testing.T) {
	t.Parallel()
	key := "signing: {sshKeyFile: " + writeSigningKey(t) + "}\n"
	for name, c := range map[string]struct {
		face  emulator.Face
		lines string
		cure  string // that the environment names; empty: it merges
	}{
		"without a key":       {emulator.GitHub, "", "signing.sshKeyFile"},
		"with a key":          {emulator.GitHub, key, ""},
		"an App":              {emulator.GitHubApp, "", "signing: forge"},
		"an App with a key":   {emulator.GitHubApp, key, "signing: forge"},
		"an App by the forge": {emulator.GitHubApp, "signing: forge\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, qa), face: c.face, serverLines: c.lines})
			demanded := emulator.Protection{Signatures: true}
			if s.isApp() {
				demanded.Ruleset = "signed" // an App sees no classic protection
			}
			s.must("demand signatures", s.Forge.Protect(repoName, "main", demanded))
			s.awaitJudged()
			s.awaitIdle()
			s.Forge.ResetCalls()
			s.commitRelease("web", "1.1.0")
			if c.cure == "" {
				s.awaitVerified("web", "qa", "1.1.0")
				s.awaitMerged(1)
				made := 0
				if s.isApp() {
					made = 1
				}
				for _, call := range []string{"POST /repos/{owner}/{repo}/git/trees", "POST /repos/{owner}/{repo}/git/commits"} {
					if n := s.Forge.Calls()[call]; n != made {
						t.Errorf("%d calls of %s, want %d", n, call, made)
					}
				}
				return
			}
			s.awaitReason("web", "qa", "the forge merges only signed commits into main")
			s.awaitReason("web", "qa", c.cure)
			s.awaitIdle()
			if n := s.countOpenings(); n != 0 {
				t.Errorf("%d pull requests were opened that can't be merged", n)
			}
			if s.isApp() {
				return // it isn't told of rules
			}
			s.must("demand none", s.Forge.Protect(repoName, "main", emulator.Protection{}))
			s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
		})
	}
}
