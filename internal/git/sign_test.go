package git

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// testKey is the signing key of a seed.
func testKey(t *testing.T, seed byte) *sshsig.Key {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize))), "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshsig.ParseKey(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// verifyCommit has git verify that a commit is signed with the key.
func verifyCommit(t *testing.T, m *Mirror, key *sshsig.Key, sha string) error {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("git verifies signatures by ssh-keygen, which isn't there")
	}
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte(m.Committer().Email+` namespaces="git" `+key.PublicKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := programsOf(m)
	_, err := p.runGit(t.Context(), p.gitCommand("-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", sha))
	return err
}

var signedSpec = CommitSpec{When: when, Message: "Promote web\n\nWhy not: überall.\n\nLiftlock-Kind: promotion", Files: []FileWrite{{Path: "a/b", Content: []byte("x")}}}

func TestWriteSigns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	spec := signedSpec
	base := o.commit("main", "Base", map[string]string{"c": "2"})
	spec.Parents, spec.Base = []string{base}, base
	author := Ident{Name: "liftlock", Email: "liftlock@example.com"}
	key := testKey(t, 'a')
	var shas []string
	for range 2 {
		m := open(t, Options{URL: o.url(), Author: author, SigningKey: key})
		mustFetch(t, m)
		sha, err := m.Write(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		shas = append(shas, sha)
		if err := verifyCommit(t, m, key, sha); err != nil {
			t.Errorf("git doesn't verify it: %v", err)
		}
		if err := verifyCommit(t, m, testKey(t, 'b'), sha); err == nil {
			t.Error("git verifies it as one by another key")
		}
		c, err := m.Commit(ctx, sha)
		if err != nil {
			t.Fatal(err)
		}
		if c.Message != spec.Message+"\n" || c.Trailers["Liftlock-Kind"] != "promotion" || len(c.Parents) != 1 || c.Parents[0] != base {
			t.Errorf("it is %+v", c)
		}
		if refs := git(t, m.dir, "for-each-ref", "--format=%(refname)", keepPrefix); !strings.HasSuffix(refs, "/"+sha) || strings.Contains(refs, "\n") {
			t.Errorf("kept are %s, want %s alone", refs, sha)
		}
		git(t, m.dir, "fsck", "--strict")
		if err := m.Push(ctx, PushSpec{Branch: "liftlock/x", New: sha}); err != nil { // the second time it is there
			t.Error(err)
		}
	}
	if shas[0] != shas[1] {
		t.Errorf("the same spec made %s and %s", shas[0], shas[1])
	}
	m := open(t, Options{URL: o.url(), Author: author, SigningKey: testKey(t, 'b')})
	mustFetch(t, m)
	if sha, err := m.Write(ctx, spec); err != nil || sha == shas[0] {
		t.Errorf("with another key: %s, %v", sha, err)
	}
}

// TestMemorySignsAlike shows that the twin in memory makes the commits that git's programs make.
func TestMemorySignsAlike(t *testing.T) {
	t.Parallel()
	author := Ident{Name: "liftlock", Email: "liftlock@example.com"}
	key := testKey(t, 'a')
	programs := open(t, Options{URL: newOrigin(t).url(), Author: author, SigningKey: key})
	memory := OpenMemory(NewMemoryRemote(), MemoryOptions{Author: author, SigningKey: key})
	want, err := programs.Write(t.Context(), signedSpec)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := memory.Write(t.Context(), signedSpec); err != nil || got != want {
		t.Errorf("in memory it is %s (%v), by git's programs %s", got, err, want)
	}
}
