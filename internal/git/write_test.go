package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWriteIsDeterministic(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	base := o.commit("main", "Base", map[string]string{"a/b": "1", "c": "2"})
	spec := CommitSpec{
		Parents: []string{base}, Base: base, When: when, Message: "Promote web\n\nWhy not.\n\nLiftlock-Kind: promotion\n\n\n",
		Files: []FileWrite{{Path: "a/b", Content: []byte("x")}, {Path: "d/e", Mode: Executable, Content: nil}, {Path: "c", Delete: true}},
	}
	var shas []string
	for range 2 { // in two mirrors, and in each twice
		m := open(t, Options{URL: o.url()})
		mustFetch(t, m)
		for range 2 {
			sha, err := m.Write(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			shas = append(shas, sha)
			slices.Reverse(spec.Files)
			spec.When = spec.When.In(time.FixedZone("", 3600)).Add(time.Millisecond)
		}
		raw := git(t, m.dir, "cat-file", "commit", shas[0])
		want := "tree " + git(t, m.dir, "rev-parse", shas[0]+"^{tree}") + "\nparent " + base +
			"\nauthor liftlock <liftlock@example.com> 1772366400 +0000\ncommitter liftlock <liftlock@example.com> 1772366400 +0000\n\nPromote web\n\nWhy not.\n\nLiftlock-Kind: promotion"
		if raw != want {
			t.Errorf("got %s\nwant %s", raw, want)
		}
		if got := git(t, m.dir, "ls-tree", "-r", shas[0]); strings.Count(got, "\n") != 1 || !strings.Contains(got, "100644 blob") || !strings.Contains(got, "100755 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\td/e") {
			t.Errorf("files: %s", got)
		}
		if refs := git(t, m.dir, "for-each-ref", "--format=%(refname)"); strings.Count(refs, "\n") != 1 || !strings.Contains(refs, keepPrefix) {
			t.Errorf("refs: %s", refs)
		}
		git(t, m.dir, "fsck", "--strict")
	}
	for _, sha := range shas {
		if sha != shas[0] {
			t.Errorf("the same spec made %s and %s", shas[0], sha)
		}
	}
}

// TestAWrittenCommitIsOnePack holds that a commit's objects aren't unpacked into a file each. A
// fetch joins the packs of many commits as those of many fetches.
func TestAWrittenCommitIsOnePack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	base := o.commit("main", "Base", map[string]string{"a/b": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	p := m.engine.(*mirrorPrograms)
	packs := func() int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(p.dir, "objects", "pack", "*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	before := packs()
	var shas []string
	for i := range maxPacks + 1 {
		sha, err := m.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "m", Files: []FileWrite{{Path: "a/b", Content: fmt.Append(nil, i)}}})
		if err != nil {
			t.Fatal(err)
		}
		shas = append(shas, sha)
	}
	if got := packs() - before; got != len(shas) {
		t.Errorf("%d commits are %d packs", len(shas), got)
	}
	if loose, err := filepath.Glob(filepath.Join(p.dir, "objects", "??", "*")); err != nil || len(loose) > 0 {
		t.Errorf("beside them are %v, %v", loose, err)
	}
	mustFetch(t, m)
	if got := packs(); got > before+1 {
		t.Errorf("after a fetch there are %d packs", got)
	}
	for _, sha := range shas {
		if _, err := m.Commit(ctx, sha); err != nil {
			t.Error(err)
		}
	}
}

// countedEngine counts the commits that are really written.
type countedEngine struct {
	mirrorEngine
	written int
}

func (c *countedEngine) writeCommit(ctx context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	c.written++
	return c.mirrorEngine.writeCommit(ctx, s, base, files)
}

// TestWriteOnce holds that a commit is written once a day, as long as its mirror is the
// same, and one that differs in anything by itself.
func TestWriteOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	base := o.commit("main", "Base", map[string]string{"a": "1"})
	now := when
	m := open(t, Options{URL: o.url(), Now: func() time.Time { return now }})
	mustFetch(t, m)
	engine := &countedEngine{mirrorEngine: m.engine}
	m.engine = engine
	same := CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "Promote web", Files: []FileWrite{{Path: "a", Content: []byte("2")}}}
	var first string
	for _, c := range []struct {
		name    string
		change  func(s *CommitSpec)
		written int
		same    bool
	}{
		{"the first", func(*CommitSpec) {}, 1, true},
		{"again", func(*CommitSpec) {}, 0, true},
		{"another message", func(s *CommitSpec) { s.Message = "Promote it" }, 1, false},
		{"another file", func(s *CommitSpec) { s.Files = []FileWrite{{Path: "b", Content: []byte("2")}} }, 1, false},
		{"another content", func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Content: []byte("3")}} }, 1, false},
		{"a deletion", func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Delete: true}} }, 1, false},
		{"another time", func(s *CommitSpec) { s.When = when.Add(time.Second) }, 1, false},
		{"somebody else", func(s *CommitSpec) { s.Committer = &Ident{"Ada", "ada@example.com"} }, 1, false},
		{"no parent", func(s *CommitSpec) { s.Parents = nil }, 1, false},
		{"the next day", func(*CommitSpec) { now = now.Add(24 * time.Hour) }, 1, true},
		{"a mirror made anew", func(*CommitSpec) { m.caches.forgetAll() }, 1, true},
	} {
		before, spec := engine.written, same
		c.change(&spec)
		sha, err := m.Write(t.Context(), spec)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if first == "" {
			first = sha
		}
		if engine.written-before != c.written || (sha == first) != c.same {
			t.Errorf("%s: %d were written, %s", c.name, engine.written-before, sha)
		}
	}
}

func TestWriteShapes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	a := o.commit("main", "A", map[string]string{"x": "1", "dir/y": "2"})
	b := o.commit("main", "B", map[string]string{"z": "3"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	file := []FileWrite{{Path: "new", Content: []byte("n")}}
	for name, tc := range map[string]struct {
		spec    CommitSpec
		parents []string
		files   []string
	}{
		"an orphan":              {CommitSpec{Files: file}, nil, []string{"new"}},
		"an empty orphan":        {CommitSpec{}, nil, nil},
		"nothing changed":        {CommitSpec{Parents: []string{b}, Base: b}, []string{b}, []string{"dir/y", "x", "z"}},
		"from nothing":           {CommitSpec{Parents: []string{b}, Files: file}, []string{b}, []string{"new"}},
		"an older commit's tree": {CommitSpec{Parents: []string{b}, Base: a, Files: file}, []string{b}, []string{"dir/y", "new", "x"}},
		"a tree":                 {CommitSpec{Parents: []string{b}, Base: git(t, o.work, "rev-parse", a+"^{tree}")}, []string{b}, []string{"dir/y", "x"}},
		"a merge":                {CommitSpec{Parents: []string{b, a}, Base: b}, []string{b, a}, []string{"dir/y", "x", "z"}},
		"a folder that empties":  {CommitSpec{Parents: []string{b}, Base: b, Files: []FileWrite{{Path: "dir/y", Delete: true}}}, []string{b}, []string{"x", "z"}},
		"everything goes":        {CommitSpec{Parents: []string{a}, Base: a, Files: []FileWrite{{Path: "dir/y", Delete: true}, {Path: "x", Delete: true}}}, []string{a}, nil},
		"what isn't there goes":  {CommitSpec{Parents: []string{a}, Base: a, Files: []FileWrite{{Path: "nope/y", Delete: true}, {Path: "x/y", Delete: true}}}, []string{a}, []string{"dir/y", "x"}},
		"a file for a folder":    {CommitSpec{Parents: []string{a}, Base: a, Files: []FileWrite{{Path: "dir/y", Delete: true}, {Path: "dir", Content: []byte("f")}}}, []string{a}, []string{"dir", "x"}},
		"a folder for a file":    {CommitSpec{Parents: []string{a}, Base: a, Files: []FileWrite{{Path: "x", Delete: true}, {Path: "x/y/z", Content: []byte("f")}}}, []string{a}, []string{"dir/y", "x/y/z"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.spec.When, tc.spec.AuthorTime, tc.spec.Message = when, when.Add(-time.Hour), "x"
			tc.spec.Author = &Ident{Name: "Ada", Email: "ada@example.com"}
			sha, err := m.Write(ctx, tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			c, err := m.Commit(ctx, sha)
			if err != nil || !reflect.DeepEqual(c.Parents, tc.parents) || c.Author != *tc.spec.Author || c.Committer.Name != "liftlock" ||
				!c.AuthorTime.Equal(when.Add(-time.Hour)) || !c.CommitTime.Equal(when) {
				t.Errorf("%+v, %v", c, err)
			}
			files, err := m.Files(ctx, sha, "")
			var got []string
			for _, f := range files {
				got = append(got, f.Path)
			}
			if err != nil || !reflect.DeepEqual(got, tc.files) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	base := newSpecialTree(t, o)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	unknown := strings.Repeat("1", 40)
	one := func(path string) []FileWrite { return []FileWrite{{Path: path, Content: []byte("x")}} }
	for name, tc := range map[string]struct {
		change func(s *CommitSpec)
		kind   error
	}{
		"no time":                       {func(s *CommitSpec) { s.When = time.Time{} }, ErrInvalid},
		"no message":                    {func(s *CommitSpec) { s.Message = "\n \n" }, ErrInvalid},
		"a zero byte in the message":    {func(s *CommitSpec) { s.Message = "a\x00b" }, ErrInvalid},
		"a long message":                {func(s *CommitSpec) { s.Message = strings.Repeat("a", maxMessage+1) }, ErrInvalid},
		"an author without address":     {func(s *CommitSpec) { s.Author = &Ident{Name: "a"} }, ErrInvalid},
		"an author that ends the line":  {func(s *CommitSpec) { s.Author = &Ident{Name: "a\ncommitter b", Email: "a"} }, ErrInvalid},
		"an author with a bracket":      {func(s *CommitSpec) { s.Author = &Ident{Name: "a", Email: "a> <b"} }, ErrInvalid},
		"an unknown parent":             {func(s *CommitSpec) { s.Parents = []string{unknown} }, ErrUnknownCommit},
		"a branch as parent":            {func(s *CommitSpec) { s.Parents = []string{"main"} }, ErrInvalid},
		"an unknown base":               {func(s *CommitSpec) { s.Base = unknown }, ErrUnknownCommit},
		"a branch as base":              {func(s *CommitSpec) { s.Base = "main" }, ErrInvalid},
		"a path twice":                  {func(s *CommitSpec) { s.Files = append(one("a"), FileWrite{Path: "a", Delete: true}) }, ErrInvalid},
		"out of the tree":               {func(s *CommitSpec) { s.Files = one("../a") }, ErrInvalid},
		"git's folder":                  {func(s *CommitSpec) { s.Files = one(".git/config") }, ErrInvalid},
		"a command in a path":           {func(s *CommitSpec) { s.Files = one("a\nM 100644 inline b") }, ErrInvalid},
		"a large file":                  {func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Content: make([]byte, MaxFileSize+1)}} }, ErrTooLarge},
		"a symbolic link":               {func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Mode: Symlink, Content: []byte("/etc/passwd")}} }, ErrInvalid},
		"a submodule":                   {func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Mode: Submodule}} }, ErrInvalid},
		"an odd mode":                   {func(s *CommitSpec) { s.Files = []FileWrite{{Path: "a", Mode: 0o100777}} }, ErrInvalid},
		"over a link":                   {func(s *CommitSpec) { s.Files = one("in") }, ErrInvalid},
		"through a link":                {func(s *CommitSpec) { s.Files = one("folder/x") }, ErrInvalid},
		"over a submodule":              {func(s *CommitSpec) { s.Files = one("sub") }, ErrInvalid},
		"into a submodule":              {func(s *CommitSpec) { s.Files = one("sub/x") }, ErrInvalid},
		"over a folder":                 {func(s *CommitSpec) { s.Files = one("dir") }, ErrInvalid},
		"below a file":                  {func(s *CommitSpec) { s.Files = one("run/x") }, ErrInvalid},
		"below a file of the same spec": {func(s *CommitSpec) { s.Files = append(one("n"), one("n/x")...) }, ErrInvalid},
		"a folder's deletion":           {func(s *CommitSpec) { s.Files = []FileWrite{{Path: "dir", Delete: true}} }, ErrInvalid},
		"over a folder half deleted":    {func(s *CommitSpec) { s.Files = append(one("dir"), FileWrite{Path: "dir/file", Delete: true}) }, ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "x"}
			tc.change(&s)
			if sha, err := m.Write(ctx, s); !errors.Is(err, tc.kind) {
				t.Errorf("%q, %v", sha, err)
			}
		})
	}
	if refs := git(t, m.dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("left behind: %s", refs)
	}
	// The mode stays as it was, unless the spec says otherwise.
	sha, err := m.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, When: when, Message: "x", Files: []FileWrite{{Path: "run", Content: []byte("new")}, {Path: "dir/file", Mode: Executable, Content: []byte("new")}, {Path: "in", Delete: true}}})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := m.Changed(ctx, base, sha)
	want := []FileChange{{"dir/file", 'M', Regular, Executable}, {"in", 'D', Symlink, 0}, {"run", 'M', Executable, Executable}}
	if err != nil || !reflect.DeepEqual(changed, want) {
		t.Errorf("%v, %v", changed, err)
	}
}

// Any sequence of writes reads back as a map of files would.
func TestWriteEqualsAModel(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	o.commit("main", "Base", map[string]string{"x": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	part := rapid.SampledFrom([]string{"a", "b", "a.b", "a-b", "ä", "with space", "$x"})
	pathOf := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/")
	})
	rapid.Check(t, func(rt *rapid.T) {
		model := map[string]string{}
		head := ""
		for step := range rapid.IntRange(1, 3).Draw(rt, "commits") {
			next := maps.Clone(model)
			var files []FileWrite
			for _, p := range rapid.SliceOfNDistinct(pathOf, 0, 5, rapid.ID).Draw(rt, "paths") {
				f := FileWrite{Path: p, Delete: rapid.IntRange(0, 3).Draw(rt, "delete") == 0}
				if f.Delete {
					delete(next, p)
				} else {
					f.Mode = rapid.SampledFrom([]Mode{Regular, Executable}).Draw(rt, "mode")
					f.Content = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "content")
					next[p] = f.Mode.String() + " " + string(f.Content)
				}
				files = append(files, f)
			}
			spec := CommitSpec{Base: head, When: when, Message: fmt.Sprint("commit ", step), Files: files}
			if head != "" {
				spec.Parents = []string{head}
			}
			sha, err := m.Write(ctx, spec)
			if err != nil {
				// Refused only where a file would be a folder, too.
				if !errors.Is(err, ErrInvalid) || !conflicts(model, next, files) {
					rt.Fatalf("%v refused: %v", files, err)
				}
				continue
			}
			got := map[string]string{}
			entries, err := m.Files(ctx, sha, "")
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range entries {
				data, err := m.Tree(sha).ReadFile(e.Path)
				if err != nil {
					rt.Fatal(err)
				}
				got[e.Path] = e.Mode.String() + " " + string(data)
			}
			if !maps.Equal(got, next) {
				rt.Fatalf("after %v on %v: %v, want %v", files, model, got, next)
			}
			model, head = next, sha
		}
	})
}

// conflicts says whether some path is both a file and a folder in what would
// be, or a deletion names a folder.
func conflicts(before, after map[string]string, files []FileWrite) bool {
	for p := range after {
		for in := range parentFolders(p) {
			if _, ok := after[in]; ok {
				return true
			}
		}
	}
	for _, f := range files {
		for p := range before {
			if f.Delete && strings.HasPrefix(p, f.Path+"/") {
				return true
			}
		}
	}
	return false
}
