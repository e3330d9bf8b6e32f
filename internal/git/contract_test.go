package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
)

// contractFixture is a remote with a mirror of it and one of somebody else.
type contractFixture struct {
	t              *testing.T
	mirror, person *Mirror
	deleteRef      func(ref string)
	setRef         func(ref, sha string) // to a commit that the remote has
	// addLinks makes a commit on no branch of the remote with a link, a submodule
	// and a file, and points a ref to it.
	addLinks func(ref string) string
}

// linkSubmodule is the commit of the submodule.
const linkSubmodule = "1111111111111111111111111111111111111111"

// eachEngine runs a test over git's programs and over objects in memory.
func eachEngine(t *testing.T, test func(f *contractFixture)) {
	t.Helper()
	t.Parallel()
	author := Ident{Name: "liftlock", Email: "liftlock@example.com"}
	t.Run("programs", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		test(&contractFixture{t: t, mirror: open(t, Options{URL: o.url(), Author: author}), person: open(t, Options{URL: o.url(), Author: author}),
			deleteRef: func(ref string) { git(t, o.bare, "update-ref", "-d", ref) },
			setRef:    func(ref, sha string) { git(t, o.bare, "update-ref", ref, sha) },
			addLinks: func(ref string) string {
				stream := fmt.Sprintf("commit %s\ncommitter a <a@example.com> 1700000000 +0000\ndata 5\nLinks\nM 120000 inline dir/link\ndata 7\n../file\nM 160000 %s module\nM 100644 inline file\ndata 2\nhi\n", ref, linkSubmodule)
				gitIn(t, o.bare, []byte(stream), "fast-import", "--quiet", "--force")
				return git(t, o.bare, "rev-parse", ref)
			}})
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		r := NewMemoryRemote()
		test(&contractFixture{t: t, mirror: OpenMemory(r, MemoryOptions{Author: author}), person: OpenMemory(r, MemoryOptions{Author: author}), deleteRef: func(ref string) { r.SetRef(ref, "") }, setRef: r.SetRef,
			addLinks: func(ref string) string {
				o := r.engine.objects
				dir := o.storeFolder([]treeEntry{{"link", Symlink, o.storeBlob([]byte("../file"))}})
				tree := o.storeFolder([]treeEntry{{"file", Regular, o.storeBlob([]byte("hi"))}, {"dir", Directory, dir}, {"module", Submodule, linkSubmodule}})
				sha, err := r.Write(t.Context(), CommitSpec{Base: tree, Message: "Links", When: when})
				if err != nil {
					t.Fatal(err)
				}
				r.SetRef(ref, sha)
				return sha
			}})
	})
}

// push has somebody else commit files ("" deletes) to a branch.
func (c *contractFixture) push(branch, message string, files map[string]string) string {
	c.t.Helper()
	mustFetch(c.t, c.person)
	old, ok, err := c.person.Head(c.t.Context(), branch)
	if err != nil {
		c.t.Fatal(err)
	}
	s := CommitSpec{Message: message, When: when}
	if ok {
		s.Parents, s.Base = []string{old}, old
	}
	for name, text := range files {
		s.Files = append(s.Files, FileWrite{Path: name, Content: []byte(text), Delete: text == ""})
	}
	sha, err := c.person.Write(c.t.Context(), s)
	if err == nil {
		err = c.person.Push(c.t.Context(), PushSpec{Branch: branch, New: sha, Old: old})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return sha
}

func (c *contractFixture) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *contractFixture) isKind(what string, err, kind error) {
	c.t.Helper()
	if !errors.Is(err, kind) {
		c.t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

func (c *contractFixture) compare(what string, got, want any) {
	c.t.Helper()
	if !reflect.DeepEqual(got, want) {
		c.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestContractFetch(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		f.compare("nothing is there", mustFetch(f.t, f.mirror), []RefChange(nil))
		one := f.push("main", "One", map[string]string{"a": "1"})
		topic := f.push("topic/x", "Topic", map[string]string{"b": "1"})
		f.compare("new branches", mustFetch(f.t, f.mirror), []RefChange{{"main", "", one}, {"topic/x", "", topic}})
		f.compare("nothing new", mustFetch(f.t, f.mirror), []RefChange(nil))
		two := f.push("main", "Two", map[string]string{"a": "2"})
		f.must(f.person.Push(ctx, PushSpec{Branch: "topic/x", Old: topic}))
		f.must(f.person.Push(ctx, PushSpec{Branch: "topic", New: topic}))
		heads, err := f.mirror.Heads(ctx, "")
		f.must(err)
		f.compare("before", heads, map[string]string{"main": one, "topic/x": topic})
		f.compare("moved, gone and new", mustFetch(f.t, f.mirror), []RefChange{{"main", one, two}, {"topic", "", topic}, {"topic/x", topic, ""}})
		heads, err = f.mirror.Heads(ctx, "to")
		f.must(err)
		f.compare("after", heads, map[string]string{"topic": topic})
		f.deleteRef("refs/heads/topic")
		f.deleteRef("refs/heads/main")
		_, err = f.mirror.Fetch(ctx)
		f.isKind("all branches are gone", err, ErrRemote)
		sha, ok, err := f.mirror.Head(ctx, "main")
		f.compare("the mirror keeps them", []any{sha, ok, err}, []any{two, true, nil})
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = f.mirror.Fetch(ended)
		f.isKind("a context that has ended", err, context.Canceled)
	})
}

// TestContractHydratorNotes reads what the source hydrator noted, however deep git has sorted
// the notes, and nothing that it didn't.
func TestContractHydratorNotes(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		one := f.push("main", "One", map[string]string{"a": "1"})
		two := f.push("main", "Two", map[string]string{"a": "2"})
		three := f.push("main", "Three", map[string]string{"a": "3"})
		four := f.push("main", "Four", map[string]string{"a": "4"})
		mustFetch(f.t, f.mirror)
		note := func(what, commit, want string) {
			f.t.Helper()
			got, ok, err := f.mirror.HydratorNote(ctx, commit)
			f.must(err)
			f.compare(what, []any{string(got), ok}, []any{want, want != ""})
		}
		note("there are no notes", one, "")
		first := f.push("notes", "Notes", map[string]string{one: "n1", two[:2] + "/" + two[2:]: "n2", three[:2] + "/" + three[2:4] + "/" + three[4:]: "n3"})
		f.setRef("refs/notes/hydrator.metadata", first)
		note("they aren't fetched yet", one, "")
		f.compare("notes are no branch", mustFetch(f.t, f.mirror), []RefChange{{"notes", "", first}})
		note("at once", one, "n1")
		note("in a folder", two, "n2")
		note("in a folder's folder", three, "n3")
		note("none", four, "")
		second := f.push("notes", "Notes", map[string]string{one: "n4"})
		f.setRef("refs/notes/hydrator.metadata", second)
		mustFetch(f.t, f.mirror)
		note("another one", one, "n4")
		f.deleteRef("refs/notes/hydrator.metadata")
		mustFetch(f.t, f.mirror)
		note("they are gone", one, "")
		_, _, err := f.mirror.HydratorNote(ctx, "main")
		f.isKind("no commit's name", err, ErrInvalid)
	})
}

func TestContractUnknownCommits(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		known := f.push("main", "One", map[string]string{"a": "1"})
		mustFetch(f.t, f.mirror)
		unknown := f.push("main", "Two", map[string]string{"a": "2"})
		m := f.mirror
		has, err := m.Has(ctx, unknown)
		f.compare("Has", []any{has, err}, []any{false, nil})
		for name, call := range map[string]func() error{
			"Commit":      func() error { _, err := m.Commit(ctx, unknown); return err },
			"Log":         func() error { _, err := m.Log(ctx, LogQuery{From: unknown}); return err },
			"Log until":   func() error { _, err := m.Log(ctx, LogQuery{From: known, Until: unknown}); return err },
			"IsAncestor":  func() error { _, err := m.IsAncestor(ctx, known, unknown); return err },
			"MergeBase":   func() error { _, _, err := m.MergeBase(ctx, unknown, known); return err },
			"Changed":     func() error { _, err := m.Changed(ctx, known, unknown); return err },
			"Changed all": func() error { _, err := m.Changed(ctx, "", unknown); return err },
			"Diff":        func() error { _, err := m.Diff(ctx, known, unknown); return err },
			"PatchID":     func() error { _, err := m.PatchID(ctx, unknown, known); return err },
			"Files":       func() error { _, err := m.Files(ctx, unknown, ""); return err },
			"TreeHash":    func() error { _, err := m.TreeHash(ctx, unknown, ""); return err },
			"ReadFile":    func() error { _, err := m.Tree(unknown).ReadFile("a"); return err },
			"Grep":        func() error { _, err := m.Tree(unknown).Grep(ctx, "1"); return err },
			"Write": func() error {
				_, err := m.Write(ctx, CommitSpec{Parents: []string{unknown}, Message: "x", When: when})
				return err
			},
			"Write on": func() error { _, err := m.Write(ctx, CommitSpec{Base: unknown, Message: "x", When: when}); return err },
			"Push":     func() error { return m.Push(ctx, PushSpec{Branch: "x", New: unknown}) },
		} {
			f.isKind(name, call(), ErrUnknownCommit)
		}
		for _, sha := range []string{"", "main", unknown[:39], strings.ToUpper(unknown)} {
			_, err := m.Commit(ctx, sha)
			f.isKind("Commit "+sha, err, ErrInvalid)
		}
		mustFetch(f.t, m)
		_, err = m.Commit(ctx, unknown)
		f.must(err)
	})
}

func TestContractPush(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		base := f.push("main", "Base", map[string]string{"f": "0"})
		mustFetch(f.t, f.mirror)
		shas := map[string]string{"": "", "base": base}
		for _, name := range []string{"a", "b", "c"} {
			sha, err := f.mirror.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, Message: name, When: when})
			f.must(err)
			shas[name] = sha
			theirs, err := f.person.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, Message: name, When: when})
			f.must(err)
			f.compare("the same spec", theirs, sha)
		}
		for i, tc := range []struct {
			now, old, new string
			kind          error
		}{
			{"", "", "a", nil}, {"a", "", "a", nil}, {"b", "", "a", ErrLeaseLost}, {"base", "base", "a", nil}, {"a", "a", "b", nil}, {"a", "base", "a", nil},
			{"c", "base", "a", ErrLeaseLost}, {"", "base", "a", ErrLeaseLost}, {"a", "a", "", nil}, {"", "a", "", nil}, {"b", "a", "", ErrLeaseLost}, {"", "", "", nil}, {"b", "", "", ErrLeaseLost},
		} {
			branch := fmt.Sprintf("case/%d", i)
			if tc.now != "" {
				f.must(f.person.Push(ctx, PushSpec{Branch: branch, New: shas[tc.now]}))
			}
			err := f.mirror.Push(ctx, PushSpec{Branch: branch, New: shas[tc.new], Old: shas[tc.old]})
			want := tc.new
			if tc.kind != nil {
				want = tc.now
			}
			if !errors.Is(err, tc.kind) {
				f.t.Errorf("%+v: %v", tc, err)
			}
			heads, err := f.person.RemoteHeads(ctx, branch)
			f.must(err)
			f.compare(fmt.Sprintf("%+v", tc), heads[branch], shas[want])
			if tc.kind == nil {
				head, _, err := f.mirror.Head(ctx, branch)
				f.must(err)
				f.compare("the mirror's own", head, shas[want])
			}
		}
		f.must(f.mirror.Push(ctx, PushSpec{Branch: "folder/x", New: base}))
		f.isKind("a branch above another", f.mirror.Push(ctx, PushSpec{Branch: "folder", New: base}), ErrRejected)
		f.isKind("a bad name", f.mirror.Push(ctx, PushSpec{Branch: "a..b", New: base}), ErrInvalid)
		heads, err := f.mirror.RemoteHeads(ctx, "main", "none", "folder/x")
		f.compare("RemoteHeads", []any{heads, err}, []any{map[string]string{"main": base, "folder/x": base}, nil})
	})
}

// TestContractPushPastALease holds that nothing is pushed for a run whose lease is over.
func TestContractPushPastALease(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		base := f.push("main", "Base", map[string]string{"f": "0"})
		mustFetch(f.t, f.mirror)
		now := when
		lease := lock.NewLease(time.Minute, func() time.Time { return now }, now)
		ctx := lock.WithLease(f.t.Context(), lease)
		push := func(branch string) error { return f.mirror.Push(ctx, PushSpec{Branch: branch, New: base}) }
		f.must(push("in/time"))
		now = now.Add(time.Minute)
		f.isKind("past the lease", push("too/late"), lock.ErrLeaseOver)
		f.isKind("a removal past the lease", f.mirror.Push(ctx, PushSpec{Branch: "in/time", Old: base}), lock.ErrLeaseOver)
		heads, err := f.mirror.RemoteHeads(ctx, "in/time", "too/late")
		f.compare("the remote's", []any{heads, err}, []any{map[string]string{"in/time": base}, nil})
	})
}

func TestContractWriteRefuses(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		base := f.push("main", "Base", map[string]string{"a/b": "1", "c": "2"})
		mustFetch(f.t, f.mirror)
		ok := func(files ...FileWrite) CommitSpec {
			return CommitSpec{Parents: []string{base}, Base: base, Message: "x", When: when, Files: files}
		}
		file := func(path string) FileWrite { return FileWrite{Path: path, Content: []byte("x")} }
		gone := func(path string) FileWrite { return FileWrite{Path: path, Delete: true} }
		for name, tc := range map[string]struct {
			spec CommitSpec
			kind error
			want []string // the files, where it is not refused
		}{
			"no time":                 {CommitSpec{Message: "x"}, ErrInvalid, nil},
			"no message":              {CommitSpec{Message: "\n", When: when}, ErrInvalid, nil},
			"git's folder":            {ok(file("a/.git/x")), ErrInvalid, nil},
			"twice":                   {ok(file("x"), file("x")), ErrInvalid, nil},
			"below a file":            {ok(file("c/x")), ErrInvalid, nil},
			"a folder":                {ok(file("a")), ErrInvalid, nil},
			"a folder deleted":        {ok(gone("a")), ErrInvalid, nil},
			"each other's way":        {ok(file("n"), file("n/x")), ErrInvalid, nil},
			"a link's mode":           {ok(FileWrite{Path: "l", Mode: Symlink}), ErrInvalid, nil},
			"too large":               {ok(FileWrite{Path: "l", Content: bytes.Repeat([]byte("x"), MaxFileSize+1)}), ErrTooLarge, nil},
			"a bad committer":         {CommitSpec{Message: "x", When: when, Committer: &Ident{Name: "a<", Email: "a@b"}}, ErrInvalid, nil},
			"a folder becomes a file": {ok(gone("a/b"), file("a")), nil, []string{"a", "c"}},
			"a file becomes a folder": {ok(gone("c"), file("c/d")), nil, []string{"a/b", "c/d"}},
			"a folder empties":        {ok(gone("a/b")), nil, []string{"c"}},
			"gone already":            {ok(gone("x"), gone("c/y")), nil, []string{"a/b", "c"}},
			"an orphan of nothing":    {CommitSpec{Message: "x", When: when}, nil, []string{}},
			"an executable":           {ok(FileWrite{Path: "c", Mode: Executable, Content: []byte("2")}), nil, []string{"a/b", "c"}},
		} {
			sha, err := f.mirror.Write(ctx, tc.spec)
			if tc.kind != nil {
				f.isKind(name, err, tc.kind)
				continue
			}
			f.must(err)
			files, err := f.mirror.Files(ctx, sha, "")
			f.must(err)
			names := []string{}
			for _, e := range files {
				names = append(names, e.Path)
			}
			f.compare(name, names, tc.want)
		}
		sha, err := f.mirror.Write(ctx, CommitSpec{Base: base, Message: "x", When: when, Author: &Ident{"ada", "ada@example.com"}, Committer: &Ident{"web", "web@example.com"}})
		f.must(err)
		c, err := f.mirror.Commit(ctx, sha)
		f.must(err)
		f.compare("who", []Ident{c.Author, c.Committer}, []Ident{{"ada", "ada@example.com"}, {"web", "web@example.com"}})
	})
}

func TestContractTree(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		sha := f.push("main", "One", map[string]string{"README": "hello", "a/b/c.yaml": "c: 1\n", "a/b-c": "x", "a/b.d/e": "y"})
		mustFetch(f.t, f.mirror)
		tree := f.mirror.Tree(sha)
		if err := fstest.TestFS(tree, "README", "a/b/c.yaml", "a/b-c", "a/b.d/e"); err != nil {
			f.t.Error(err)
		}
		data, err := tree.ReadFile("README")
		f.must(err)
		data[0] = 'X' // the caller's
		data, err = tree.ReadFile("README")
		f.compare("again", []any{string(data), err}, []any{"hello", nil})
		var listed []string
		var ids []string
		f.must(tree.List(ctx, func(path string, mode fs.FileMode, id string) error {
			listed, ids = append(listed, fmt.Sprint(path, mode)), append(ids, id)
			return nil
		}))
		f.compare("List", listed, []string{"README-r--r--r--", "a/b-c-r--r--r--", "a/b.d/e-r--r--r--", "a/b/c.yaml-r--r--r--"})
		var blobs []string
		f.must(tree.ReadBlobs(ctx, ids, 4, func(_ int, data []byte, err error) error {
			blobs = append(blobs, fmt.Sprint(string(data), errors.Is(err, ErrTooLarge)))
			return nil
		}))
		f.compare("ReadBlobs", blobs, []string{"true", "xfalse", "yfalse", "true"})
		f.isKind("a missing blob", tree.ReadBlobs(ctx, []string{linkSubmodule}, 4, func(int, []byte, error) error { return nil }), ErrCorrupt)
		ahead, err := tree.ReadAhead(ctx, []string{".", "a", "nothing"}, func(string) bool { return true })
		f.must(err)
		data, err = ahead.ReadFile("a/b-c")
		f.compare("read ahead", []any{string(data), err}, []any{"x", nil})
		found, err := tree.Identities(ctx, []string{"README", "nothing", "README/x"})
		f.must(err)
		f.compare("Identities", found, []string{"100644 b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0", "", BelowFile})
		hash, err := f.mirror.TreeHash(ctx, sha, "a/b")
		other, oerr := f.mirror.TreeHash(ctx, sha, ".")
		f.must(errors.Join(err, oerr))
		f.compare("hashes", []string{hash, other}, []string{"f7db08c903b218422adc691c7a09a9d90214aa8c", mustCommit(f, sha).Tree})
	})
}

func mustCommit(f *contractFixture, sha string) *CommitInfo {
	f.t.Helper()
	c, err := f.mirror.Commit(f.t.Context(), sha)
	f.must(err)
	return c
}

// TestContractLinks also fetches a commit that is on no branch.
func TestContractLinks(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		base := f.push("main", "Base", map[string]string{"a": "1"})
		mustFetch(f.t, f.mirror)
		const ref = "refs/pull/7/head"
		links := f.addLinks(ref)
		mustFetch(f.t, f.mirror)
		_, err := f.mirror.Commit(ctx, links)
		f.isKind("on no branch", err, ErrUnknownCommit)
		f.isKind("another commit there", f.mirror.FetchRef(ctx, ref, strings.Repeat("a", 40)), ErrUnknownCommit)
		f.must(f.mirror.FetchRef(ctx, ref, links))
		f.must(f.mirror.FetchRef(ctx, "refs/pull/8/head", links)) // it is here already
		f.isKind("no such ref", f.mirror.FetchRef(ctx, "refs/pull/8/head", strings.Repeat("a", 40)), ErrRemote)
		f.isKind("no ref at all", f.mirror.FetchRef(ctx, "main", links), ErrInvalid)
		f.compare("the branches", mustFetch(f.t, f.mirror), []RefChange(nil))

		tree := f.mirror.Tree(links)
		for name, want := range map[string]fs.FileMode{"dir/link": fs.ModeSymlink | 0o777, "module": fs.ModeIrregular, "file": 0o444, "dir": fs.ModeDir | 0o555} {
			info, err := tree.Stat(name)
			f.must(err)
			f.compare(name, info.Mode(), want)
		}
		to, err := tree.ReadLink("dir/link")
		f.compare("ReadLink", []any{to, err}, []any{"../file", nil})
		for _, name := range []string{"dir/link", "dir/link/x", "module", "module/x"} {
			_, err := tree.ReadFile(name)
			f.isKind(name, err, ErrNotFollowed)
		}
		files, err := f.mirror.Files(ctx, links, "")
		f.must(err)
		modes := map[string]Mode{}
		for _, e := range files {
			modes[e.Path] = e.Mode
		}
		f.compare("Files", modes, map[string]Mode{"dir/link": Symlink, "file": Regular, "module": Submodule})
		names, err := tree.Grep(ctx, "[a-z]")
		f.compare("Grep", []any{names, err}, []any{[]string{"file"}, nil})
		_, err = f.mirror.Write(ctx, CommitSpec{Base: links, Message: "x", When: when, Files: []FileWrite{{Path: "dir/link"}}})
		f.isKind("write over a link", err, ErrInvalid)
		sha, err := f.mirror.Write(ctx, CommitSpec{Base: links, Message: "x", When: when, Files: []FileWrite{{Path: "dir/link", Delete: true}, {Path: "module", Delete: true}, {Path: "dir/x"}}})
		f.must(err)
		diff, err := f.mirror.Diff(ctx, links, sha, "dir", "module")
		f.must(err)
		for _, part := range []string{"deleted file mode 120000", "-../file\n\\ No newline at end of file\n", "deleted file mode 160000", "-Subproject commit " + linkSubmodule, "new file mode 100644"} {
			if !strings.Contains(diff, part) {
				f.t.Errorf("the diff lacks %q:\n%s", part, diff)
			}
		}
		_, ok, err := f.mirror.MergeBase(ctx, base, links)
		f.compare("nothing in common", []any{ok, err}, []any{false, nil})
	})
}

// TestContractPatchIDs holds when two changes are the same.
func TestContractPatchIDs(t *testing.T) {
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		long := func(first, middle string) string {
			return first + "\n" + strings.Repeat("x\n", 9) + middle + "\n" + strings.Repeat("y\n", 9)
		}
		one := f.push("main", "One", map[string]string{"f": long("a", "old"), "bin": "a\x00b"})
		two := f.push("main", "Two", map[string]string{"f": long("a", "new")})
		three := f.push("main", "Three", map[string]string{"f": long("moved\nb", "old")})
		four := f.push("main", "Four", map[string]string{"f": long("moved\nb", "new")})
		five := f.push("main", "Five", map[string]string{"f": long("moved\nb", "new ")})
		six := f.push("main", "Six", map[string]string{"bin": "a\x00c"})
		seven := f.push("main", "Seven", map[string]string{"bin": "a\x00d"})
		mustFetch(f.t, f.mirror)
		id := func(a, b string) string {
			id, err := f.mirror.PatchID(ctx, a, b)
			f.must(err)
			return id
		}
		f.compare("elsewhere in the file", id(one, two) == id(three, four), true)
		f.compare("nothing", id(one, one), "")
		twins := func(first, second string) string {
			return "a\n" + strings.Repeat("x\n", 3) + first + "\n" + strings.Repeat("x\n", 9) + second + "\n" + strings.Repeat("x\n", 3) + "b\n"
		}
		eight := f.push("main", "Eight", map[string]string{"f": twins("old", "old")})
		nine := f.push("main", "Nine", map[string]string{"f": twins("new", "old")})
		ten := f.push("main", "Ten", map[string]string{"f": twins("old", "new")})
		eleven := f.push("main", "Eleven", map[string]string{"f": "c\n" + twins("old", "old")})
		twelve := f.push("main", "Twelve", map[string]string{"f": "c\n" + twins("old", "new")})
		mustFetch(f.t, f.mirror)
		f.compare("one of two places that look alike, and the other", id(eight, nine) == id(eight, ten), false)
		f.compare("the same of two places that look alike, elsewhere in the file", id(eight, ten) == id(eleven, twelve), true)
		ids := map[string]bool{id(one, two): true, id(two, one): true, id(four, five): true, id(three, five): true, id(five, six): true, id(five, seven): true, id("", one): true}
		f.compare("all different", len(ids), 7)
	})
}

// hunkContext is git's guess at the function that a hunk is in, which isn't made in
// memory.
var hunkContext = regexp.MustCompile(`(?m)^(@@ .* @@).*$`)

func TestContractDiff(t *testing.T) {
	const want = `diff --git a/dir/new b/dir/new
new file mode 100755
index 0000000..d00491f
--- /dev/null
+++ b/dir/new
@@ -0,0 +1 @@
+1
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
diff --git a/f b/f
index 27df8b9..970cff0 100644
--- a/f
+++ b/f
@@ -1,4 +1,4 @@
-a
+A
 b
 c
 d
@@ -9,3 +9,4 @@
 i
 j
 k
+l
\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
index d8263ee..0000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-2
\ No newline at end of file
diff --git a/mode b/mode
old mode 100644
new mode 100755
`
	eachEngine(t, func(f *contractFixture) {
		ctx := f.t.Context()
		one := f.push("main", "One", map[string]string{"f": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n", "gone": "2", "mode": "3"})
		mustFetch(f.t, f.mirror)
		two, err := f.mirror.Write(ctx, CommitSpec{Parents: []string{one}, Base: one, Message: "Two", When: when, Files: []FileWrite{
			{Path: "f", Content: []byte("A\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl")}, {Path: "gone", Delete: true},
			{Path: "mode", Mode: Executable, Content: []byte("3")}, {Path: "dir/new", Mode: Executable, Content: []byte("1\n")}, {Path: "empty"}}})
		f.must(err)
		diff, err := f.mirror.Diff(ctx, one, two)
		f.must(err)
		f.compare("the diff", hunkContext.ReplaceAllString(diff, "$1"), want)
		diff, err = f.mirror.Diff(ctx, one, two, "dir", "nothing")
		f.must(err)
		f.compare("of a folder", diff, want[:strings.Index(want, "diff --git a/empty")])
		large, err := f.mirror.Write(ctx, CommitSpec{Message: "Large", When: when, Files: []FileWrite{{Path: "large", Content: bytes.Repeat([]byte("x\n"), MaxDiff)}}})
		f.must(err)
		diff, err = f.mirror.Diff(ctx, "", large)
		f.must(err)
		if len(diff) > MaxDiff+100 || !strings.HasSuffix(diff, " bytes\n") {
			f.t.Errorf("%d bytes that end in %q", len(diff), diff[len(diff)-50:])
		}
	})
}

// TestMemoryRemoteCalls holds what the hooks of a mirror in memory are for.
func TestMemoryRemoteCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := NewMemoryRemote()
	sha, err := r.Write(ctx, CommitSpec{Message: "One", When: when, Files: []FileWrite{{Path: "a", Content: []byte("1")}}})
	if err == nil {
		err = r.Update("main", sha, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	r.SetRef("refs/pull/1/head", sha)
	var calls []string
	errBefore, errAfter := errors.New("before"), errors.New("after")
	var before, after error
	m := OpenMemory(r, MemoryOptions{Author: remoteIdent,
		BeforeRemote: func(_ context.Context, op string) error { calls = append(calls, op); return before },
		AfterRemote:  func(context.Context, string) error { return after }})
	for _, call := range []func() error{
		func() error { return m.FetchRef(ctx, "refs/pull/1/head", sha) },
		func() error { _, err := m.Fetch(ctx); return err },
		func() error { _, err := m.RemoteHeads(ctx, "main"); return err },
		func() error { return m.Push(ctx, PushSpec{Branch: "x", New: sha}) },
	} {
		before, after = errBefore, nil
		if err := call(); !errors.Is(err, errBefore) {
			t.Errorf("before: %v", err)
		}
		before = nil
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"fetch-ref", "fetch-ref", "fetch", "fetch", "heads", "heads", "push", "push"}; !slices.Equal(calls, want) {
		t.Errorf("calls: %v", calls)
	}
	after = errAfter
	if err := m.Push(ctx, PushSpec{Branch: "y", New: sha}); !errors.Is(err, errAfter) {
		t.Errorf("after: %v", err)
	}
	if heads := r.Heads(); !maps.Equal(heads, map[string]string{"main": sha, "x": sha, "y": sha}) {
		t.Errorf("the push didn't arrive: %v", heads)
	}
	if _, ok, err := m.Head(ctx, "y"); ok || err != nil {
		t.Errorf("the mirror knows that it arrived: %v", err)
	}
}
