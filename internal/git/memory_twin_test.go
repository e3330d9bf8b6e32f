package git

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// twins are a mirror over git's programs and one in memory that are given the same.
type twins struct {
	t       testing.TB
	cli     *Mirror
	memory  *Mirror
	commits []CommitInfo
	stream  bytes.Buffer // what git is to import
}

func newTwins(t testing.TB) *twins {
	o := newOrigin(t)
	author := Ident{Name: "liftlock", Email: "liftlock@example.com"}
	return &twins{t: t, cli: open(t, Options{URL: o.url(), Author: author}), memory: OpenMemory(NewMemoryRemote(), MemoryOptions{Author: author})}
}

// write writes a commit into memory, and for git to import.
func (tw *twins) write(rt rapid.TB, s CommitSpec) {
	sha, err := tw.memory.Write(tw.t.Context(), s)
	if err != nil {
		rt.Fatal(err)
	}
	c, err := tw.memory.Commit(tw.t.Context(), sha)
	if err != nil {
		rt.Fatal(err)
	}
	tw.commits = append(tw.commits, *c)
	base, files, err := tw.memory.planCommit(tw.t.Context(), &s, tw.memory.author)
	if err != nil {
		rt.Fatal(err)
	}
	var one strings.Builder
	streamSpec(&one, s, base, files)
	// Git finds its own written commits by their marks alone.
	marks := []string{"mark :1\n", fmt.Sprintf("mark :%d\n", len(tw.commits))}
	for i, c := range tw.commits {
		marks = append(marks, "from "+c.SHA, fmt.Sprintf("from :%d", i+1), "merge "+c.SHA, fmt.Sprintf("merge :%d", i+1))
	}
	fmt.Fprintf(&tw.stream, "reset %s\n\n%s", newRef, strings.NewReplacer(marks...).Replace(one.String()))
}

// importAll has git make the same commits, which must have the same ids.
func (tw *twins) importAll(rt rapid.TB) {
	p := programsOf(tw.cli)
	c := p.gitCommand("fast-import", "--quiet", "--force", "--date-format=raw")
	c.Stdin = tw.stream.Bytes()
	if _, err := p.runGit(tw.t.Context(), c); err != nil {
		rt.Fatal(err)
	}
	tw.stream.Reset()
	for i := range tw.commits {
		c, err := tw.cli.Commit(tw.t.Context(), tw.commits[i].SHA)
		if err != nil || !reflect.DeepEqual(*c, tw.commits[i]) {
			rt.Fatalf("git has %+v, %v; in memory it is %+v", c, err, tw.commits[i])
		}
	}
}

// drawHistory writes commits with merges, edits, deletions and renames.
func (tw *twins) drawHistory(rt *rapid.T) {
	tw.commits = nil
	start := when.Add(time.Duration(rapid.IntRange(0, 1<<20).Draw(rt, "start")) * time.Hour) // no history has another one's commits
	for i := range rapid.IntRange(2, 9).Draw(rt, "commits") {
		s := CommitSpec{When: start, Message: rapid.SampledFrom([]string{"One", "Two\n\nKind: promotion", "Kind: promotion\n\nby hand"}).Draw(rt, "message") + fmt.Sprintf("\n\n%d", i)} // no commit is there twice
		parents := 0
		if i > 0 {
			parents = rapid.SampledFrom([]int{1, 1, 1, 1, 2, 2, 3, 0}).Draw(rt, "parents")
		}
		var from []CommitInfo
		for range min(parents, i) {
			// Mostly of the newest, so that lines run side by side.
			c := tw.commits[max(0, i-1-rapid.IntRange(0, 3).Draw(rt, "back"))]
			if !slices.Contains(s.Parents, c.SHA) {
				s.Parents = append(s.Parents, c.SHA)
				from = append(from, c)
			}
			if c.CommitTime.After(s.When) {
				s.When = c.CommitTime
			}
		}
		s.When = s.When.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1, 60}).Draw(rt, "later")) * time.Second)
		have := map[string]string{}
		if len(from) > 0 {
			s.Base = rapid.SampledFrom(from).Draw(rt, "base").SHA
			have = tw.readFiles(rt, s.Base)
		}
		s.Files = drawWrites(rt, have)
		tw.write(rt, s)
	}
	tw.importAll(rt)
}

func (tw *twins) readFiles(rt *rapid.T, commit string) map[string]string {
	files, err := tw.memory.Files(tw.t.Context(), commit, "")
	out := map[string]string{}
	for _, f := range files {
		data, rerr := tw.memory.Tree(commit).ReadFile(f.Path)
		if err != nil || rerr != nil {
			rt.Fatal(err, rerr)
		}
		out[f.Path] = string(data)
	}
	return out
}

var twinPaths = []string{"a", "b", "d/x", "d/y", "d/e/z", "d.x"}

func drawWrites(rt *rapid.T, have map[string]string) []FileWrite {
	var out []FileWrite
	paths := rapid.SliceOfNDistinct(rapid.SampledFrom(twinPaths), 0, 2, rapid.ID).Draw(rt, "paths")
	for _, p := range paths {
		text, is := have[p]
		kind := rapid.SampledFrom([]string{"edit", "edit", "edit", "delete", "mode"}).Draw(rt, "kind")
		switch {
		case kind == "delete" && is:
			out = append(out, FileWrite{Path: p, Delete: true})
		case kind == "mode":
			out = append(out, FileWrite{Path: p, Mode: rapid.SampledFrom([]Mode{Regular, Executable}).Draw(rt, "mode"), Content: []byte(text)})
		default:
			out = append(out, FileWrite{Path: p, Content: []byte(drawEdit(rt, text))})
		}
	}
	return out
}

// drawEdit changes one line of a text, or adds or removes one.
func drawEdit(rt *rapid.T, text string) string {
	lines := strings.SplitAfter(text, "\n")
	if text == "" {
		for i := range rapid.IntRange(0, 14).Draw(rt, "lines") {
			lines = append(lines, fmt.Sprintf("key%d: v\n", i))
		}
	}
	at := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
	value := rapid.SampledFrom([]string{"one\n", "two\n", "three: 3\n", "end"}).Draw(rt, "value")
	switch rapid.IntRange(0, 2).Draw(rt, "edit") {
	case 0:
		lines[at] = value
	case 1:
		lines = slices.Insert(lines, at, value)
	default:
		lines = slices.Delete(lines, at, at+1)
	}
	return strings.Join(lines, "")
}

// compareAnswers compares what the two answer.
func compareAnswers[T any](w *twins, rt *rapid.T, question string, query func(m *Mirror) (T, error)) {
	want, err := query(w.cli)
	got, merr := query(w.memory)
	if err != nil || merr != nil {
		rt.Fatalf("%s: git says %v, in memory it is %v\n%s", question, err, merr, w)
	}
	if !reflect.DeepEqual(got, want) {
		rt.Fatalf("%s:\ngit says     %+v\nin memory it is %+v\n%s", question, want, got, w)
	}
}

// String draws the history, for the message of a failure.
func (tw *twins) String() string {
	var b strings.Builder
	for _, c := range tw.commits {
		changed, err := tw.memory.PathsChanged(tw.t.Context(), []CommitInfo{c})
		fmt.Fprintf(&b, "%.7s %v at %s of %.7s, changes %v %v\n", c.SHA, c.Subject, c.CommitTime.Format("15:04:05"), c.Parents, changed, err)
	}
	return b.String()
}

func idsOf(list []CommitInfo, err error) ([]string, error) {
	ids := []string{}
	for _, c := range list {
		ids = append(ids, c.SHA[:7])
	}
	return ids, err
}

// TestMemoryIsGitsTwin holds that a mirror in memory answers as git does.
func TestMemoryIsGitsTwin(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newTwins(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.drawHistory(rt)
		pick := func(label string) string { return rapid.SampledFrom(w.commits).Draw(rt, label).SHA }
		for range 6 {
			q := LogQuery{From: pick("from"), FirstParent: rapid.Bool().Draw(rt, "first parent"), Limit: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(rt, "limit"),
				Paths: rapid.SliceOfNDistinct(rapid.SampledFrom(append(twinPaths, "d", "d/e", "nothing", ".")), 0, 2, rapid.ID).Draw(rt, "paths"),
				Grep:  rapid.SampledFrom([]string{"", "", "", "Kind: ", "hand", "none"}).Draw(rt, "grep")}
			if rapid.Bool().Draw(rt, "limited") {
				q.Until = pick("until")
			}
			w.cli.line = rapid.SampledFrom([]int{0, 1, 2, 4, maxLine}).Draw(rt, "line")
			compareAnswers(w, rt, fmt.Sprintf("Log %+v", q), func(m *Mirror) ([]string, error) { return idsOf(m.Log(ctx, q)) })
		}
		a, b := pick("a"), pick("b")
		compareAnswers(w, rt, "IsAncestor "+a+" "+b, func(m *Mirror) (bool, error) { return m.IsAncestor(ctx, a, b) })
		compareAnswers(w, rt, "Changed "+a+" "+b, func(m *Mirror) ([]FileChange, error) { return m.Changed(ctx, a, b) })
		prefix := rapid.SampledFrom(append(twinPaths, "", "d", "d/e")).Draw(rt, "prefix")
		compareAnswers(w, rt, "Files "+a+" "+prefix, func(m *Mirror) ([]FileEntry, error) { return m.Files(ctx, a, prefix) })
		compareAnswers(w, rt, "PathsChanged", func(m *Mirror) ([][]string, error) { return m.PathsChanged(ctx, w.commits) })
		expression := rapid.SampledFrom([]string{"one", "^key[0-9]+: v$", "^(two|end)$", "[[:space:]]3$", "nothing"}).Draw(rt, "expression")
		globs := rapid.SliceOfN(rapid.SampledFrom([]string{"*x", "d", "d/?", "a", "*.[xy]", "d/*/z"}), 0, 2).Draw(rt, "globs")
		compareAnswers(w, rt, fmt.Sprintf("Grep %s %q %q", a, expression, globs), func(m *Mirror) ([]string, error) { return m.Tree(a).Grep(ctx, expression, globs...) })
		pairs := [][2]string{{a, b}, {pick("old"), pick("new")}, {pick("old"), pick("new")}, {w.commits[0].SHA, w.commits[1].SHA}}
		compareAnswers(w, rt, fmt.Sprintf("which changes are the same of %v", pairs), func(m *Mirror) ([]int, error) { return sameChanges(ctx, m, pairs) })
		w.compareMergeBase(rt, a, b)
	})
}

// sameChanges gives, for each of some changes, the first one that is the same, or -1
// for one of nothing. The ids themselves may differ: where lines repeat there are
// several ways to write a change.
func sameChanges(ctx context.Context, m *Mirror, pairs [][2]string) ([]int, error) {
	var ids []string
	var first []int
	for _, pair := range pairs {
		id, err := m.PatchID(ctx, pair[0], pair[1])
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		at := slices.Index(ids, id)
		if id == "" {
			at = -1
		}
		first = append(first, at)
	}
	return first, nil
}

// compareMergeBase compares them where there is only one.
func (tw *twins) compareMergeBase(rt *rapid.T, a, b string) {
	x, y, err := tw.memory.engine.(*memoryMirror).findPair(a, b)
	if err != nil {
		rt.Fatal(err)
	}
	if len(findMergeBases(x, y)) > 1 {
		return
	}
	compareAnswers(tw, rt, "MergeBase "+a+" "+b, func(m *Mirror) (string, error) {
		sha, _, err := m.MergeBase(tw.t.Context(), a, b)
		return sha, err
	})
}
