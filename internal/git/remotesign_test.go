package git

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signingOrigin makes in a remote the commits that a mirror of it has signed.
type signingOrigin struct {
	t    *testing.T
	o    *origin
	made []RemoteCommit
	tree string // of what it makes; empty: as it should be
}

// sign makes a commit by another committer, and with a header that no commit of Write's has.
func (s *signingOrigin) sign(_ context.Context, c RemoteCommit) (string, error) {
	s.made = append(s.made, c)
	tree := s.tree
	if tree == "" {
		tree = s.editTree(c)
	}
	lines := "tree " + tree + "\n"
	for _, p := range c.Parents {
		lines += "parent " + p + "\n"
	}
	lines += "author bot <bot@forge.example> 1700000000 +0000\ncommitter Forge <noreply@forge.example> 1700000000 +0000\ngpgsig signature\n of the forge\n\n" + c.Message
	return gitIn(s.t, s.o.bare, []byte(lines), "hash-object", "-t", "commit", "-w", "--stdin"), nil
}

// editTree makes a tree of nothing but what it was given.
func (s *signingOrigin) editTree(c RemoteCommit) string {
	index := "GIT_INDEX_FILE=" + filepath.Join(s.t.TempDir(), "index")
	run := func(stdin string, args ...string) string {
		return gitWith(s.t, s.o.bare, []byte(stdin), []string{index}, args...)
	}
	if c.Base != "" {
		run("", "read-tree", c.Base)
	}
	for _, w := range c.Changes {
		line := "0 " + noCommit + "\t" + w.Path + "\n"
		if !w.Delete {
			line = w.Mode.String() + " " + run(string(w.Content), "hash-object", "-w", "--stdin") + "\t" + w.Path + "\n"
		}
		run(line, "update-index", "--index-info")
	}
	return run("", "write-tree")
}

// TestRemoteSigns holds that where the remote signs, its own version of a commit is pushed. It is
// made once, also after a restart, until nothing keeps it.
func TestRemoteSigns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	base := o.commit("main", "Base", map[string]string{"c": "2", "old": "x"})
	s := &signingOrigin{t: t, o: o}
	now := time.Now()
	options := Options{URL: o.url(), Dir: filepath.Join(t.TempDir(), "mirror"), Author: Ident{Name: "liftlock", Email: "liftlock@example.com"}, RemoteSigner: s.sign, Now: func() time.Time { return now }}
	spec := signedSpec
	spec.Parents, spec.Base = []string{base}, base
	spec.Files = append(spec.Files[:1:1], FileWrite{Path: "run", Mode: Executable, Content: []byte("#!\n")}, FileWrite{Path: "old", Delete: true})
	sign := func() (unsigned, signed string, m *Mirror) {
		t.Helper()
		m = open(t, options)
		mustFetch(t, m)
		unsigned, err := m.Write(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if signed, err = m.Sign(ctx, unsigned); err != nil {
			t.Fatal(err)
		}
		return unsigned, signed, m
	}
	unsigned, first, m := sign()
	if err := m.Push(ctx, PushSpec{Branch: "liftlock/x", New: first}); err != nil {
		t.Fatal(err)
	}
	if first == unsigned || o.head("liftlock/x") != first {
		t.Errorf("of %s it made %s, and the branch is at %s", unsigned, first, o.head("liftlock/x"))
	}
	if changed, err := m.Changed(ctx, unsigned, first); err != nil || len(changed) > 0 {
		t.Errorf("they differ in %v (%v)", changed, err)
	}
	if got := s.made[0]; len(got.Changes) != 3 || got.Changes[1].Path != "old" || !got.Changes[1].Delete || got.Changes[2].Mode != Executable {
		t.Errorf("it was given %+v", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	_, again, m := sign()
	if again != first || len(s.made) != 1 {
		t.Errorf("after a restart it is %s, made %d times", again, len(s.made))
	}
	now = now.Add(keepUnpushedFor + 25*time.Hour)
	if err := m.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if refs := git(t, m.dir, "for-each-ref", signedPrefix); refs != "" {
		t.Errorf("after two weeks there are %s", refs)
	}

	spec.Message = "Another"
	s.tree = git(t, o.bare, "rev-parse", base+"^{tree}")
	other, err := m.Write(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sign(ctx, other); !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "other files") {
		t.Errorf("a commit of other files is taken: %v", err)
	}
	s.tree = ""
	if signed, err := m.Sign(ctx, other); err != nil || signed == other {
		t.Errorf("it isn't signed once the remote makes what it should: %s, %v", signed, err)
	}
}

// TestMemoryMirrorSigns holds the same of the twin in memory, of an orphan, and of a signer that fails.
func TestMemoryMirrorSigns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	remote := NewMemoryRemote()
	calls, refused := 0, errors.New("refused")
	now := time.Now()
	m := OpenMemory(remote, MemoryOptions{Author: Ident{Name: "liftlock", Email: "liftlock@example.com"}, Now: func() time.Time { return now }, RemoteSigner: func(ctx context.Context, c RemoteCommit) (string, error) {
		if calls++; calls == 1 {
			return "", refused
		}
		return remote.Write(ctx, CommitSpec{Message: c.Message, Parents: c.Parents, Files: c.Changes, When: now})
	}})
	unsigned, err := m.Write(ctx, signedSpec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sign(ctx, unsigned); !errors.Is(err, refused) {
		t.Errorf("the signer's error is %v", err)
	}
	signed, err := m.Sign(ctx, unsigned)
	if err != nil || signed == unsigned {
		t.Fatalf("got %s, %v", signed, err)
	}
	if again, err := m.Sign(ctx, unsigned); err != nil || again != signed || calls != 2 {
		t.Errorf("again: %s, %v, %d calls", again, err, calls)
	}
	now = now.Add(keepUnpushedFor + 25*time.Hour)
	if err := m.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if refs, err := m.engine.listRefs(ctx, signedPrefix); err != nil || len(refs) != 0 {
		t.Errorf("after two weeks there are %v, %v", refs, err)
	}
	if _, err := m.Sign(ctx, unsigned); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("what the mirror doesn't have: %v", err)
	}
}
