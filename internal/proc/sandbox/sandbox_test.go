package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// newTestRunner starts this test binary. Under the race detector the program's own
// bookkeeping passes any limit on memory.
func newTestRunner(t testing.TB, l Limits, args ...string) *Runner {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if l.Memory == 0 && raceDetector {
		l.Memory = 1 << 46
	}
	return New(Options{Program: program, Args: append([]string{childArg}, args...), Limits: l})
}

var smallTree = fstest.MapFS{
	"a/file":     {Data: []byte("hello")},
	"a/b/c/deep": {Data: []byte("deep")},
	"empty":      {},
	"large":      {Data: make([]byte, maxPrefetchFile+1)},
	"ä ö/ü\n\"'": {Data: []byte("name")},
	"link":       {Data: []byte("a/file"), Mode: fs.ModeSymlink},
	"folder":     {Data: []byte("a"), Mode: fs.ModeSymlink},
	"loop":       {Data: []byte("loop"), Mode: fs.ModeSymlink},
	"out":        {Data: []byte("../../etc/passwd"), Mode: fs.ModeSymlink},
	"--help":     {Data: []byte("no option")},
}

func TestTheChildSeesTheTree(t *testing.T) {
	t.Parallel()
	many := fstest.MapFS{}
	for i := range 3000 {
		many[fmt.Sprintf("apps/%02d/overlays/%04d/kustomization.yaml", i%40, i)] = &fstest.MapFile{Data: []byte(fmt.Sprint(i))}
	}
	valid := fstest.MapFS{}
	for name, f := range smallTree {
		if name != "loop" && name != "out" && fs.ValidPath(name) {
			valid[name] = f
		}
	}
	for name, tree := range map[string]fs.FS{"small": smallTree, "not UTF-8": nonUTF8Tree{smallTree}, "many": many, "empty": fstest.MapFS{}, "on disk": os.DirFS("testdata")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := readAll(tree)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			if err := newTestRunner(t, Limits{}).Run(t.Context(), "walk", Trees{Main: tree}, nil, &got); err != nil {
				t.Fatal(err)
			}
			for n, w := range want {
				if n = strings.ToValidUTF8(n, "\uFFFD"); got[n] != w {
					t.Errorf("%q is %q, want %q", n, got[n], w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d names, want %d", len(got), len(want))
			}
		})
	}
	t.Run("as a file system must be", func(t *testing.T) {
		t.Parallel()
		var got string
		expected := []string{"a/file", "a/b/c/deep", "ä ö/ü\n\"'", "large"}
		if err := newTestRunner(t, Limits{}).Run(t.Context(), "testfs", Trees{Main: valid}, expected, &got); err != nil {
			t.Error(err)
		}
	})
}

// nonUTF8Tree is a tree with names that are not UTF-8, as Git's may be.
type nonUTF8Tree struct{ tree fstest.MapFS }

func (nonUTF8Tree) real(name string) string { return strings.ReplaceAll(name, "\xff", "?") }

func (n nonUTF8Tree) Open(name string) (fs.File, error)      { return n.tree.Open(n.real(name)) }
func (n nonUTF8Tree) ReadFile(name string) ([]byte, error)   { return n.tree.ReadFile(n.real(name)) }
func (n nonUTF8Tree) Stat(name string) (fs.FileInfo, error)  { return n.tree.Stat(n.real(name)) }
func (n nonUTF8Tree) Lstat(name string) (fs.FileInfo, error) { return n.tree.Lstat(n.real(name)) }
func (n nonUTF8Tree) ReadLink(name string) (string, error)   { return n.tree.ReadLink(n.real(name)) }
func (n nonUTF8Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := n.tree.ReadDir(n.real(name))
	for i, e := range entries {
		entries[i] = nonUTF8Entry{e}
	}
	return entries, err
}

type nonUTF8Entry struct{ fs.DirEntry }

func (n nonUTF8Entry) Name() string { return strings.ReplaceAll(n.DirEntry.Name(), "?", "\xff") }

func TestBulk(t *testing.T) {
	t.Parallel()
	many := fstest.MapFS{}
	for i := range 3 * maxPendingRequests {
		many[fmt.Sprintf("%d/file", i)] = &fstest.MapFile{Data: []byte(fmt.Sprint(i))}
	}
	for name, tree := range map[string]fstest.MapFS{"small": smallTree, "many": many, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]string{}
			if err := newTestRunner(t, Limits{}).Run(t.Context(), "bulk", Trees{Main: tree}, nil, &got); err != nil {
				t.Fatal(err)
			}
			for name, f := range tree {
				want := string(f.Data)
				if len(want) > maxPrefetchFile {
					want = fmt.Sprintf("read large: its %d bytes are more than the %d that are read", len(want), maxPrefetchFile)
				}
				if got[name] != want {
					t.Errorf("%q is %.80q, want %.80q", name, got[name], want)
				}
			}
			if len(got) != len(tree) {
				t.Errorf("%d files, want %d", len(got), len(tree))
			}
		})
	}
	var refused *HandlerError
	err := newTestRunner(t, Limits{}).Run(t.Context(), "bulk", Trees{Main: &vanishing{FS: smallTree, after: 3}}, nil, new(any))
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "the disk is gone") {
		t.Errorf("a tree that vanishes: %v", err)
	}
}

func TestErrorsOfTheTree(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t, Limits{})
	for name, tc := range map[string]struct {
		tree fs.FS
		path string
		want map[string]string
	}{
		"nothing":      {smallTree, "no/thing", map[string]string{"stat": "not there", "lstat": "not there", "read": "not there", "readdir": "not there", "readlink": "not there", "open": "not there"}},
		"outside":      {smallTree, "../x", map[string]string{"stat": "invalid", "lstat": "invalid", "read": "invalid", "readdir": "invalid", "readlink": "invalid", "open": "invalid"}},
		"absolute":     {smallTree, "/etc/passwd", map[string]string{"stat": "invalid", "lstat": "invalid", "read": "invalid", "readdir": "invalid", "readlink": "invalid", "open": "invalid"}},
		"a file":       {smallTree, "a/file", map[string]string{"stat": "", "lstat": "", "read": "", "readdir": "readdir a/file: not implemented", "readlink": "invalid", "open": ""}},
		"below a link": {smallTree, "folder/file", map[string]string{"stat": "", "lstat": "", "read": "", "readdir": "readdir folder/file: not implemented", "readlink": "invalid", "open": ""}},
		"vanished": {&vanishing{FS: smallTree}, "a/file", map[string]string{"stat": "stat a/file: the disk is gone", "lstat": "lstat a/file: the disk is gone",
			"read": "read a/file: the disk is gone", "readdir": "readdir a/file: the disk is gone", "readlink": "invalid", "open": "open a/file: the disk is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]string{}
			if err := r.Run(t.Context(), "errors", Trees{Main: tc.tree}, tc.path, &got); err != nil {
				t.Fatal(err)
			}
			for op, want := range tc.want {
				if got[op] != want {
					t.Errorf("%s: %q, want %q", op, got[op], want)
				}
			}
		})
	}
}

// vanishing is a tree that ends after some reads.
type vanishing struct {
	fs.FS
	mu    sync.Mutex
	after int
}

func (v *vanishing) Open(name string) (fs.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.after--; v.after < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("the disk is gone")}
	}
	return v.FS.Open(name)
}

func TestATreeThatVanishesMidWay(t *testing.T) {
	t.Parallel()
	var refused *HandlerError
	err := newTestRunner(t, Limits{}).Run(t.Context(), "walk", Trees{Main: &vanishing{FS: os.DirFS("testdata"), after: 4}}, nil, &map[string]string{})
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "the disk is gone") {
		t.Errorf("got %v", err)
	}
}

// stuck is a tree that never answers.
type stuck struct{ until chan struct{} }

func (s stuck) Open(string) (fs.File, error) { <-s.until; return nil, fs.ErrClosed }

func TestATreeThatNeverAnswers(t *testing.T) {
	t.Parallel()
	tree := stuck{make(chan struct{})}
	defer close(tree.until)
	err := newTestRunner(t, Limits{Time: 500 * time.Millisecond}).Run(t.Context(), "walk", Trees{Main: tree}, nil, &map[string]string{})
	if !errors.Is(err, ErrTime) {
		t.Errorf("got %v", err)
	}
}

func TestOtherTrees(t *testing.T) {
	t.Parallel()
	named := func(_ context.Context, name string) (fs.FS, error) {
		switch name {
		case "other":
			return fstest.MapFS{"a": {Data: []byte("x")}}, nil
		case "broken":
			return &vanishing{FS: smallTree}, nil
		}
		return nil, fmt.Errorf("%q is not one of ours", name)
	}
	for name, tc := range map[string]struct {
		named   func(context.Context, string) (fs.FS, error)
		tree    string
		refused string
	}{
		"there":        {named: named, tree: "other"},
		"not there":    {named: named, tree: "secret", refused: `"secret" is not one of ours`},
		"broken":       {named: named, tree: "broken", refused: "the disk is gone"},
		"without name": {named: named, tree: "", refused: "opening a tree: it needs a name"},
		"none at all":  {tree: "other", refused: "there is no such tree"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refused := map[string]string{}, (*HandlerError)(nil)
			err := newTestRunner(t, Limits{}).Run(t.Context(), "walk another", Trees{Main: smallTree, Named: tc.named}, tc.tree, &got)
			switch {
			case tc.refused == "":
				if err != nil || len(got) != 2 || got["a"] != "1 78" {
					t.Errorf("%v, %v", got, err)
				}
			case !errors.As(err, &refused) || refused.Message != tc.refused:
				t.Errorf("got %v, want %s", err, tc.refused)
			}
		})
	}
}

func TestInputsAndOutputs(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"null": nil, "text": "ä\n\"<&>", "large": strings.Repeat("x", 3<<20), "nested": map[string]any{"a": []any{1.5, true, nil}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got any
			if err := newTestRunner(t, Limits{}).Run(t.Context(), "echo", Trees{Main: smallTree}, value, &got); err != nil {
				t.Fatal(err)
			}
			if g, w := fmt.Sprint(got), fmt.Sprint(value); g != w {
				t.Errorf("got %.80s, want %.80s", g, w)
			}
		})
	}
	t.Run("unwritable", func(t *testing.T) {
		t.Parallel()
		if err := newTestRunner(t, Limits{}).Run(t.Context(), "echo", Trees{Main: smallTree}, func() {}, new(any)); err == nil {
			t.Error("a function was sent")
		}
	})
}

func TestChildGetsNoEnvironment(t *testing.T) {
	t.Setenv("LIFTLOCK_TOKEN", "secret")
	t.Setenv("HTTPS_PROXY", "http://me:secret@proxy.example")
	var got []string
	if err := newTestRunner(t, Limits{}).Run(t.Context(), "environment", Trees{Main: smallTree}, nil, &got); err != nil {
		t.Fatal(err)
	}
	for _, v := range got[1:] {
		if key, _, _ := strings.Cut(v, "="); !slices.Contains([]string{"LC_ALL", childEnvVar, "GOTRACEBACK", "GOMAXPROCS", "GOMEMLIMIT", "SYSTEMROOT"}, key) {
			t.Errorf("it has %s", v)
		}
	}
	if here, err := os.Getwd(); err != nil || got[0] == here {
		t.Errorf("it works in %s (%v)", got[0], err)
	}
}

// failing is a run and the end it must come to.
type failing struct {
	task   string
	args   []string
	limits Limits
	kind   error
	words  string
	only   func() bool
}

// busyMachine is for a child that must come to another limit than that on its time, however
// many others work beside it.
const busyMachine = 10 * time.Minute

func canLimit() bool { return proc.CanLimit() && !raceDetector }

func TestEveryEndHasAName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]failing{
		"one huge string":        {task: "one huge string", kind: ErrMemory, words: "it needs more than 512 MiB of memory", only: canLimit},
		"many small ones":        {task: "many small ones", limits: Limits{Memory: 256 << 20, Time: busyMachine}, kind: ErrMemory, words: "256 MiB", only: canLimit},
		"many stacks":            {task: "many stacks", limits: Limits{Memory: 256 << 20, Time: busyMachine}, kind: ErrMemory, words: "256 MiB", only: canLimit},
		"endless work":           {task: "work", limits: Limits{CPU: time.Second, Time: time.Minute}, kind: ErrCPU, words: "it needs more than 1s of CPU time", only: proc.CanLimit},
		"endless work, by clock": {task: "work", limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime, words: "it takes longer than 300ms"},
		"a handler that waits":   {task: "never", limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime, words: "it takes longer than 300ms"},
		"endless recursion":      {task: "recurse", kind: ErrCrashed, words: "it recurses without end", only: func() bool { return !raceDetector }},
		"a panic":                {task: "panic", kind: ErrCrashed, words: "no such luck"},
		"a panic elsewhere":      {task: "panic aside", kind: ErrCrashed, words: "no such luck"},
		"an exit":                {task: "exit", kind: ErrCrashed, words: "exit code 7"},
		"killed by others":       {task: "is killed", kind: ErrCrashed, words: "it was ended from outside", only: func() bool { return runtime.GOOS != "windows" }},
		"a large answer":         {task: "large answer", limits: Limits{Answer: 1 << 20}, kind: ErrAnswer, words: "its answer has 2 MiB, of at most 1 MiB"},
		"too many values":        {task: "many values", limits: Limits{Values: 1000}, kind: ErrAnswer, words: "2001 values, of at most 1000"},
		"endless reading":        {task: "read for ever", limits: Limits{Reads: 1 << 20}, kind: ErrReads, words: "it reads more than 1 MiB of the repository"},
		"endless questions":      {task: "ask for ever", limits: Limits{Reads: 1 << 20}, kind: ErrReads, words: "it reads more than 1 MiB of the repository"},

		"garbage":              {args: []string{"garbage"}, kind: ErrAnswer},
		"never a word":         {args: []string{"silence"}, limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime},
		"deaf to answers":      {args: []string{"deaf"}, limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime},
		"leaves":               {args: []string{"leaves"}, kind: ErrCrashed, words: "it ended without an answer"},
		"complains":            {args: []string{"complains"}, kind: ErrCrashed, words: "I won't"},
		"climbs out":           {args: []string{"climbs"}, kind: ErrAnswer, words: "../../etc/passwd"},
		"an absolute path":     {args: []string{"absolute"}, kind: ErrAnswer, words: "/etc/passwd"},
		"a NUL":                {args: []string{"nul"}, kind: ErrAnswer},
		"an endless name":      {args: []string{"long name"}, kind: ErrAnswer},
		"a name that is cut":   {args: []string{"cut name"}, kind: ErrAnswer},
		"endless trees":        {task: "open for ever", kind: ErrAnswer, words: "more than 256 trees"},
		"a parent's frame":     {args: []string{"task"}, kind: ErrAnswer},
		"a huge frame":         {args: []string{"huge frame"}, kind: ErrAnswer, words: "4095 MiB"},
		"a frame that is late": {args: []string{"promises"}, limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime},
		"a frame that is cut":  {args: []string{"cut off"}, kind: ErrCrashed},
		"not JSON":             {args: []string{"not JSON"}, kind: ErrAnswer, words: "can't be read"},
		"a panic that is none": {args: []string{"bad panic"}, kind: ErrCrashed},
		"gives its output up":  {args: []string{"closes"}, limits: Limits{Time: 300 * time.Millisecond}, kind: ErrTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.only != nil && !tc.only() {
				t.Skip("the limit can't be held here")
			}
			if tc.task == "" {
				tc.task = "rogue"
			}
			var out map[string]any
			err := newTestRunner(t, tc.limits, tc.args...).Run(t.Context(), tc.task, Trees{Main: smallTree}, nil, &out)
			var ended *Error
			if !errors.Is(err, tc.kind) || !errors.As(err, &ended) {
				t.Fatalf("got %v, want %v", err, tc.kind)
			}
			if !strings.Contains(err.Error(), tc.words) || !strings.HasPrefix(err.Error(), tc.task+", in a process of its own: ") || len(err.Error()) > 2*maxShownText {
				t.Errorf("%q; want %q in it", err, tc.words)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		task, text, want string
		args             []string
	}{
		"words":         {task: "refuse", text: "the set shop can't be read", want: "the set shop can't be read"},
		"invalid UTF-8": {task: "refuse", text: "a?b", want: "a?b"},
		"long":          {task: "refuse", text: strings.Repeat("x", 2*maxErrorText), want: strings.Repeat("x", maxErrorText-3) + "…"},
		"not an answer": {task: "unwritable", text: "", want: "writing the answer: json: unsupported type: func()"},
		"unknown task":  {task: "dance", text: "", want: `this program has no task "dance": parent and child are of different versions`},
		"has a child":   {task: "nest", want: "echo: this is a process of its own already, and starts no other"},
		"a rogue's":     {task: "refuse", args: []string{"bad refusal"}, want: "? no"},
		"writes a file": {task: "write", want: "write " + os.TempDir() + "/liftlock-sandbox-test: file too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.task == "write" && !proc.CanLimit() {
				t.Skip("the limit can't be held here")
			}
			var refused *HandlerError
			if err := newTestRunner(t, Limits{}, tc.args...).Run(t.Context(), tc.task, Trees{Main: smallTree}, tc.text, new(any)); !errors.As(err, &refused) || refused.Message != tc.want {
				t.Errorf("got %.200v, want %.200q", err, tc.want)
			}
		})
	}
}

func TestAHandlerKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	var knows bool
	if err := newTestRunner(t, Limits{Time: time.Hour}).Run(t.Context(), "deadline", Trees{Main: smallTree}, nil, &knows); err != nil || !knows {
		t.Errorf("%v, %v", knows, err)
	}
}

func TestAnAnswerIsEnough(t *testing.T) {
	t.Parallel()
	var got int
	if err := newTestRunner(t, Limits{Time: time.Hour}, "lingers").Run(t.Context(), "echo", Trees{Main: smallTree}, nil, &got); err != nil || got != 1 {
		t.Errorf("%d, %v", got, err)
	}
}

// TestAnswerBeforeExitIsRead: a child that ended may have answered before, although it
// no longer reads what it asked for.
func TestAnswerBeforeExitIsRead(t *testing.T) {
	t.Parallel()
	var got int
	if err := newTestRunner(t, Limits{}, "hasty").Run(t.Context(), "rogue", Trees{Main: smallTree}, nil, &got); err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
}

func TestTheContextEndsTheChild(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("shutting down")
	tree := &watched{FS: smallTree, opened: func() { cancel(reason) }}
	err := newTestRunner(t, Limits{Time: time.Hour}).Run(ctx, "read for ever", Trees{Main: tree}, nil, new(any))
	var ended *Error
	if !errors.Is(err, reason) || errors.As(err, &ended) {
		t.Errorf("got %v", err)
	}
	if err := newTestRunner(t, Limits{}).Run(ctx, "echo", Trees{Main: smallTree}, nil, new(any)); !errors.Is(err, reason) {
		t.Errorf("a context that is done: %v", err)
	}
}

// watched tells of every file that is opened.
type watched struct {
	fs.FS
	opened func()
}

func (w *watched) Open(name string) (fs.File, error) { w.opened(); return w.FS.Open(name) }

func TestRunsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t, Limits{})
	r.slots = make(chan struct{}, 1)
	first, second := stuck{make(chan struct{})}, make(chan struct{})
	var wg sync.WaitGroup
	begun := make(chan struct{})
	wg.Go(func() {
		tree := &watched{FS: first, opened: sync.OnceFunc(func() { close(begun) })}
		_ = r.Run(t.Context(), "walk", Trees{Main: tree}, nil, new(any))
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		tree := &watched{FS: smallTree, opened: sync.OnceFunc(func() { close(second) })}
		if err := r.Run(ctx, "walk", Trees{Main: tree}, nil, new(any)); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that waited: %v", err)
		}
	})
	cancel()
	select {
	case <-second:
		t.Error("two ran at once")
	default:
	}
	close(first.until)
	wg.Wait()
}

func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	r := New(Options{Program: "/no/such/program"})
	if err := r.Run(t.Context(), "echo", Trees{Main: smallTree}, nil, new(any)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
