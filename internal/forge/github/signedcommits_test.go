package github_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
)

// signingForge is a driver that may sign.
type signingForge interface {
	forge.Forge
	forge.CommitSigner
}

// newSigningMirror is a mirror of the repository fleet whose commits a driver has signed.
func newSigningMirror(t *testing.T, d signingForge) *git.Mirror {
	t.Helper()
	url, err := d.CloneURL(t.Context(), testRepoName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := git.Open(t.Context(), git.Options{
		Dir: filepath.Join(t.TempDir(), "mirror"), URL: url, Author: git.Ident{Name: "liftlock", Email: "liftlock@example.com"},
		Credentials: func(ctx context.Context) (string, string, error) { return d.GitAuth(ctx, testRepoName) },
		RemoteSigner: func(ctx context.Context, c git.RemoteCommit) (string, error) {
			n := forge.NewCommit{Message: c.Message, Parents: c.Parents, Tree: c.Tree, Base: c.Base}
			for _, w := range c.Changes {
				n.Changes = append(n.Changes, forge.FileChange{Path: w.Path, Executable: w.Mode == git.Executable, Content: w.Content, Delete: w.Delete})
			}
			return d.SignCommit(ctx, testRepoName, n)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if _, err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	blobsCall   = "POST /repos/{owner}/{repo}/git/blobs"
	treesCall   = "POST /repos/{owner}/{repo}/git/trees"
	commitsCall = "POST /repos/{owner}/{repo}/git/commits"
)

// TestAppSigns holds that GitHub signs for an App the commit that Git wrote, file by file with its
// mode. It takes two calls, and one more for a file that isn't text, and the calls are GitHub's.
func TestAppSigns(t *testing.T) {
	described := describeAll(t)
	w := newAppWorldWith(t, emulator.ForgeOptions{Record: func(x emulator.Exchange) {
		for _, d := range described {
			if strings.Contains(x.Route, "/git/") {
				for _, wrong := range d.Check(apishape.Call(x)) {
					t.Error(wrong)
				}
			}
		}
	}}, "acme")
	d := w.driver()
	m := newSigningMirror(t, d)
	head, _, err := m.Head(t.Context(), "main")
	w.must(err)
	for name, c := range map[string]struct {
		spec  git.CommitSpec
		blobs int
		trees int
	}{
		"text, modes and deletions": {git.CommitSpec{Parents: []string{head}, Base: head, Files: []git.FileWrite{
			{Path: "a/values.yaml", Content: []byte("image: \"<web> & café\"\r\n")}, {Path: "run.sh", Mode: git.Executable, Content: []byte("#!/bin/sh\n")}, {Path: "README.md", Delete: true},
		}}, 0, 1},
		"what isn't text": {git.CommitSpec{Parents: []string{head}, Base: head, Files: []git.FileWrite{
			{Path: "latin", Content: []byte("caf\xe9")}, {Path: "zero", Content: []byte("a\x00b")}, {Path: "empty"}, {Path: "text", Content: []byte("x")},
		}}, 3, 1},
		"an orphan":       {git.CommitSpec{Files: []git.FileWrite{{Path: "holds/a.yaml", Content: []byte("by: ada\n")}}}, 0, 1},
		"nothing is left": {git.CommitSpec{Parents: []string{head}, Base: head, Files: []git.FileWrite{{Path: "README.md", Delete: true}}}, 0, 0},
	} {
		c.spec.Message, c.spec.When = "Promote web\n\nLiftlock-Kind: promotion", w.clock()
		unsigned, err := m.Write(t.Context(), c.spec)
		w.must(err)
		w.ResetCalls()
		signed, err := m.Sign(t.Context(), unsigned)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w.wantCalls(name, map[string]int{blobsCall: c.blobs, treesCall: c.trees, commitsCall: 1})
		made, err := m.Commit(t.Context(), signed)
		w.must(err)
		me, err := d.Me(t.Context())
		w.must(err)
		if made.Author != (git.Ident{Name: me.Login, Email: me.Email}) || !d.IsSigner(made.Committer.Email) || d.IsSigner(made.Author.Email) {
			t.Errorf("%s: it is by %v, and %v committed it", name, made.Author, made.Committer)
		}
		w.must(m.Push(t.Context(), git.PushSpec{Branch: "liftlock/" + strings.ReplaceAll(name, " ", "-"), New: signed}))
	}
}

// TestSigningRefused holds what isn't signed, and that nothing refers to it then.
func TestSigningRefused(t *testing.T) {
	w := newAppWorld(t, "acme")
	app := w.driver()
	token, err := github.New(github.Options{URL: w.URL() + "/api/v3", Token: "linus-token"})
	w.must(err)
	head := newSigningMirror(t, app)
	base, _, err := head.Head(t.Context(), "main")
	w.must(err)
	info, err := head.Commit(t.Context(), base)
	w.must(err)
	large := make([]forge.FileChange, forge.MaxSignedFiles+1)
	for name, c := range map[string]struct {
		by    signingForge
		n     forge.NewCommit
		want  error
		says  string
		calls int
	}{
		"a user's":        {token, forge.NewCommit{Message: "x", Parents: []string{base}, Tree: info.Tree, Base: info.Tree}, forge.ErrUnsupported, "(unsigned); signing: forge needs a GitHub App", 1},
		"too many files":  {app, forge.NewCommit{Message: "x", Changes: large}, forge.ErrInvalid, "501 files with 0 KiB; GitHub is given at most 500 files and 8 MiB", 0},
		"too large":       {app, forge.NewCommit{Message: "x", Changes: []forge.FileChange{{Path: "x", Content: make([]byte, forge.MaxSignedBytes+1)}}}, forge.ErrInvalid, "1 files with 8192 KiB", 0},
		"another tree":    {app, forge.NewCommit{Message: "x", Parents: []string{base}, Tree: base, Base: info.Tree, Changes: []forge.FileChange{{Path: "x", Content: []byte("x")}}}, forge.ErrUnsupported, "and Git " + base, 0},
		"not there":       {app, forge.NewCommit{Message: "x", Parents: []string{base}, Tree: base, Base: info.Tree, Changes: []forge.FileChange{{Path: "gone", Delete: true}}}, forge.ErrInvalid, "BadObjectState", 0},
		"a parent's lost": {app, forge.NewCommit{Message: "x", Parents: []string{info.Tree}, Tree: info.Tree, Base: info.Tree}, forge.ErrInvalid, "Parent SHA does not exist", 1},
	} {
		w.ResetCalls()
		sha, err := c.by.SignCommit(t.Context(), testRepoName, c.n)
		if sha != "" || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %q, %v", name, sha, err)
		}
		w.wantCalls(name, map[string]int{commitsCall: c.calls})
	}
}
