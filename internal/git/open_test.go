package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest/observer"
)

func logged(logs *observer.ObservedLogs, text string) bool {
	return logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, text) }).Len() > 0
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "First", map[string]string{"a": "1"})
	dir := filepath.Join(t.TempDir(), "deep", "mirror")
	if err := os.MkdirAll(dir, 0o755); err != nil { // an empty folder is fine
		t.Fatal(err)
	}
	mustFetch(t, open(t, Options{Dir: dir, URL: o.url()}))
	log, logs := newObservedLogger()
	m := open(t, Options{Dir: dir, URL: o.url(), Log: log})
	if got, ok, err := m.Head(t.Context(), "main"); got != sha || !ok || err != nil {
		t.Errorf("the mirror was not kept: %q %v %v", got, ok, err)
	}
	if logs.Len() > 0 {
		t.Errorf("nothing was wrong, yet: %v", logs.All())
	}
	other := newOrigin(t)
	m = open(t, Options{Dir: dir, URL: other.url(), Log: log})
	if heads, err := m.Heads(t.Context(), ""); err != nil || len(heads) != 0 {
		t.Errorf("another repository's branches are shown: %v, %v", heads, err)
	}
	if !logged(logs, "another address") {
		t.Errorf("it does not say so: %v", logs.All())
	}
}

// TestOpenFormerDir says which folder of an earlier version becomes the mirror.
func TestOpenFormerDir(t *testing.T) {
	t.Parallel()
	o, other := newOrigin(t), newOrigin(t)
	sha := o.commit("main", "First", map[string]string{"a": "1"})
	for name, c := range map[string]struct {
		formerOf string // whose mirror the former folder is; empty: there is none
		there    bool   // a mirror is in the new one already
		moved    bool
	}{
		"ours":            {formerOf: o.url(), moved: true},
		"another address": {formerOf: other.url()},
		"none":            {},
		"both are there":  {formerOf: o.url(), there: true},
	} {
		t.Run(name, func(t *testing.T) {
			former, dir := filepath.Join(t.TempDir(), "former.git"), filepath.Join(t.TempDir(), "new.git")
			if c.formerOf != "" {
				m := open(t, Options{Dir: former, URL: c.formerOf})
				mustFetch(t, m)
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if c.there {
				if err := open(t, Options{Dir: dir, URL: o.url()}).Close(); err != nil {
					t.Fatal(err)
				}
			}
			m := open(t, Options{Dir: dir, FormerDir: former, URL: o.url()})
			head, known, err := m.Head(t.Context(), "main")
			if err != nil || known != c.moved || (known && head != sha) {
				t.Errorf("its main is %q (known: %t, %v)", head, known, err)
			}
			if _, err := os.Stat(former); (err == nil) != (c.formerOf != "" && !c.moved) {
				t.Errorf("the former folder: %v", err)
			}
		})
	}
}

func TestOpenLeavesOtherFoldersAlone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "First", map[string]string{"a": "1"})
	if _, err := tryOpen(t, Options{Dir: o.bare, URL: "https://git.example/x.git"}); err == nil || !strings.Contains(err.Error(), "no mirror of Liftlock's") {
		t.Errorf("got %v", err)
	}
	if o.head("main") != sha {
		t.Error("the repository was touched")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no address":             {},
		"a relative path":        {URL: "some/where"},
		"ssh":                    {URL: "ssh://git@git.example/x.git"},
		"scp-like":               {URL: "git@git.example:x.git"},
		"an external helper":     {URL: "ext::sh -c id"},
		"an option":              {URL: "--upload-pack=id"},
		"a query":                {URL: "https://git.example/x.git?token=abc"},
		"a password":             {URL: "https://me:hunter22@git.example/x.git"},
		"a user":                 {URL: "https://hunter22@git.example/x.git"},
		"control characters":     {URL: "https://git.example/x\n.git"},
		"a file URL with a host": {URL: "file://host/x"},
		"an author without name": {URL: "https://git.example/x.git", Author: Ident{Email: "a@b"}},
		"an author with a break": {URL: "https://git.example/x.git", Author: Ident{Name: "a\nb", Email: "a@b"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryOpen(t, o)
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// unpack turns a mirror's packs into loose objects, which can be damaged one
// by one.
func unpack(t *testing.T, dir string) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal("no packs", err)
	}
	for _, pack := range packs {
		data, err := os.ReadFile(pack)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{pack, strings.TrimSuffix(pack, ".pack") + ".idx"} {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		gitIn(t, dir, data, "unpack-objects", "-q")
	}
}

// Every way in which a mirror is found damaged ends in one that works.
func TestOpenAndFetchRepair(t *testing.T) {
	t.Parallel()
	loose := func(dir, sha string) string { return filepath.Join(dir, "objects", sha[:2], sha[2:]) }
	write := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(name) // objects are read-only
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		damage func(t *testing.T, dir string, commit, tree, blob string)
		says   string // in the log of Open; "" where only a read or fetch notices
	}{
		"stale locks": {says: "killed git", damage: func(t *testing.T, dir, _, _, _ string) {
			for _, f := range []string{"packed-refs.lock", "packed-refs.new", "HEAD.lock", "config.lock", "shallow.lock", "refs/heads/main.lock", "objects/info/commit-graphs/commit-graph-chain.lock", "gc.pid", "objects/pack/pack-x.keep", "objects/pack/tmp_pack_x", "objects/aa/tmp_obj_x", "fast_import_crash_1", "objects/incoming-x/pack/y"} {
				write(t, filepath.Join(dir, f), "")
			}
		}},
		"half made":  {says: "", damage: func(t *testing.T, dir, _, _, _ string) { write(t, dir+".new/HEAD", "ref: x") }},
		"no HEAD":    {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) { os.Remove(filepath.Join(dir, "HEAD")) }},
		"no objects": {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) { os.RemoveAll(filepath.Join(dir, "objects")) }},
		"only the marker": {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) {
			os.RemoveAll(dir)
			write(t, filepath.Join(dir, markerFile), "")
		}},
		"configuration overwritten": {damage: func(t *testing.T, dir, _, _, _ string) { write(t, filepath.Join(dir, "config"), "\x00[") }},
		"empty reference":           {says: "reference", damage: func(t *testing.T, dir, _, _, _ string) { write(t, filepath.Join(dir, "refs/heads/main"), "") }},
		"cut reference":             {says: "reference", damage: func(t *testing.T, dir, c, _, _ string) { write(t, filepath.Join(dir, "refs/heads/main"), c[:20]) }},
		"reference into nothing": {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) {
			write(t, filepath.Join(dir, "refs/heads/main"), strings.Repeat("1", 40)+"\n")
		}},
		"commit empty":   {says: "anew", damage: func(t *testing.T, dir, c, _, _ string) { write(t, loose(dir, c), "") }},
		"commit garbage": {says: "anew", damage: func(t *testing.T, dir, c, _, _ string) { write(t, loose(dir, c), "garbage") }},
		"tree missing":   {says: "anew", damage: func(t *testing.T, dir, _, tr, _ string) { os.Remove(loose(dir, tr)) }},
		"tree garbage":   {says: "anew", damage: func(t *testing.T, dir, _, tr, _ string) { write(t, loose(dir, tr), "garbage") }},
		"pack gone": {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) {
			git(t, dir, "repack", "-a", "-d", "-q")
			packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
			os.Remove(packs[0])
		}},
		"pack cut": {says: "anew", damage: func(t *testing.T, dir, _, _, _ string) {
			git(t, dir, "repack", "-a", "-d", "-q")
			packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
			write(t, packs[0], "PACK")
		}},
		"file missing": {damage: func(t *testing.T, dir, _, _, b string) { os.Remove(loose(dir, b)) }},
		"file garbage": {damage: func(t *testing.T, dir, _, _, b string) { write(t, loose(dir, b), "garbage") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			o := newOrigin(t)
			sha := o.commit("main", "First", map[string]string{"a": "1", "b/c": "2"})
			// Names that look like leftovers, but are branches.
			for _, branch := range []string{"tmp_fix", "pack-1.keep", "incoming-x", "gc.pid"} {
				git(t, o.work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
			}
			dir := filepath.Join(t.TempDir(), "mirror")
			before := open(t, Options{Dir: dir, URL: o.url()})
			mustFetch(t, before)
			unpack(t, dir)
			tc.damage(t, dir, sha, git(t, o.work, "rev-parse", "HEAD^{tree}"), git(t, o.work, "rev-parse", "HEAD:a"))
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			if name == "only the marker" {
				write(t, filepath.Join(dir, markerFile), o.url()+"\n")
			}

			log, logs := newObservedLogger()
			m := open(t, Options{Dir: dir, URL: o.url(), Log: log})
			if tc.says != "" && !logged(logs, tc.says) {
				t.Errorf("Open logs %v, not %q", logs.All(), tc.says)
			}
			if name == "stale locks" {
				for _, pattern := range []string{"*.lock", "packed-refs.new", "*/*.lock", "*/*/*.lock", "objects/*/tmp_*", "gc.pid", "objects/pack/*.keep", "fast_import*", "objects/incoming*"} {
					if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				}
			}
			// A damage that Open could not see shows in a read, and goes with the next fetch.
			if strings.HasPrefix(name, "file ") {
				if _, err := m.Tree(sha).ReadFile("a"); !errors.Is(err, ErrCorrupt) {
					t.Errorf("reading the damaged file: %v", err)
				}
			}
			o.commit("main", "Second", map[string]string{"a": "3"})
			second := o.head("main")
			mustFetch(t, m)
			heads, err := m.Heads(ctx, "")
			if err != nil || len(heads) != 5 || heads["main"] != second || heads["pack-1.keep"] != sha {
				t.Errorf("branches: %v, %v", heads, err)
			}
			for _, c := range []string{sha, second} {
				if _, err := m.Tree(c).ReadFile("a"); err != nil {
					t.Error(err)
				}
				if _, err := m.Tree(c).ReadFile("b/c"); err != nil {
					t.Error(err)
				}
			}
			w, err := m.Write(ctx, CommitSpec{Parents: []string{second}, Base: second, When: when, Message: "x", Files: []FileWrite{{Path: "a", Content: []byte("4")}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A repository on a volume that belongs to another user can be mirrored.
func TestRemoteFolderOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	o := newOrigin(t)
	sha := o.commit("main", "First", map[string]string{"a": "1"})
	for _, dir := range []string{o.bare, o.work, filepath.Join(o.work, ".git")} {
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{o.bare, o.work} {
		m := open(t, Options{URL: dir})
		mustFetch(t, m)
		if got, _, err := m.Head(t.Context(), "main"); got != sha || err != nil {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
	}
}

// TestUndamagedMirrorIsKept holds that a failure that only looks like damage (a git that got no
// memory) costs a check, not the mirror.
func TestUndamagedMirrorIsKept(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	base := o.commit("main", "First", map[string]string{"a": "1"})
	log, logs := newObservedLogger()
	m := open(t, Options{URL: o.url(), Log: log})
	mustFetch(t, m)
	sha, err := m.Write(t.Context(), CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	programsOf(m).damaged.Store(true)
	mustFetch(t, m)
	if ok, err := m.Has(t.Context(), sha); !ok || err != nil || programsOf(m).damaged.Load() || !logged(logs, "sound") {
		t.Errorf("the mirror was thrown away: %v, %v, %v", ok, err, logs.All())
	}
}
