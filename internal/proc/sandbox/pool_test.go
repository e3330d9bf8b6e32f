package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

// testItems are what the workers of these tests do.
var testItems = map[string]ItemHandler{
	"work": func(_ context.Context, tree func(string) fs.FS, item []byte) ([]byte, error) {
		verb, root, _ := strings.Cut(string(item), " ")
		switch verb {
		case "echo":
			return []byte(fmt.Sprintf("%s by %d", root, os.Getpid())), nil
		case "read":
			all, err := readAll(tree(root))
			var b strings.Builder
			for _, name := range sortedKeys(all) {
				fmt.Fprintf(&b, "%q %q\n", name, all[name])
			}
			return []byte(b.String()), err
		case "testfs":
			return nil, fstest.TestFS(tree(root), "a/file", "a/b/c/deep", "large")
		case "refuse":
			return nil, errors.New("no")
		case "panic":
			panic("boom")
		case "recurse":
			return []byte(fmt.Sprint(recurse(1))), nil
		case "exit":
			os.Exit(7)
		case "die":
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			<-make(chan struct{})
			return nil, err
		case "spin":
			var spun atomic.Uint64
			for n := uint64(0); ; n++ {
				spun.Store(n)
			}
		case "wait":
			<-make(chan struct{})
		case "allocate":
			return []byte(fmt.Sprint(len(strings.Repeat("x", 4_000_000_000)))), nil
		case "much":
			return make([]byte, 2<<20), nil
		}
		return nil, nil
	},
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func newTestPool(t testing.TB, o PoolOptions) *Pool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if raceDetector {
		o.Limits.Memory = 1 << 46
	}
	o.Program, o.Args = program, []string{childArg, "batches"}
	p := NewPool(o)
	t.Cleanup(p.Close)
	return p
}

// contentTreeOf gives a tree identities.
func contentTreeOf(tree fs.FS) ContentTree {
	var identify func(name string) (string, error)
	identify = func(name string) (string, error) {
		info, err := fs.Lstat(tree, name)
		if err != nil {
			return "", err
		}
		h := sha256.New()
		switch {
		case info.IsDir():
			entries, err := fs.ReadDir(tree, name)
			if err != nil {
				return "", err
			}
			for _, e := range entries {
				id, err := identify(path.Join(name, e.Name()))
				if err != nil {
					return "", err
				}
				fmt.Fprintf(h, "%q %s\n", e.Name(), id)
			}
		case info.Mode().IsRegular():
			data, err := fs.ReadFile(tree, name)
			if err != nil {
				return "", err
			}
			h.Write(data)
		default:
			to, err := fs.ReadLink(tree, name)
			if err != nil {
				return "", err
			}
			fmt.Fprint(h, to)
		}
		return info.Mode().Type().String() + hex.EncodeToString(h.Sum(nil)), nil
	}
	return ContentTree{FS: tree, Identity: identify}
}

// runItems gives what became of each item, an error as its text.
func runItems(t *testing.T, p *Pool, trees map[string]ContentTree, items ...string) []string {
	t.Helper()
	out := make([]string, len(items))
	b := Batch{Task: "work", Trees: trees, Answer: func(i int, answer []byte, err error) {
		if out[i] = string(answer); err != nil {
			out[i] = "error: " + err.Error()
		}
	}}
	for _, item := range items {
		b.Items = append(b.Items, []byte(item))
	}
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDeathsInABatch holds that what one item does to its worker is its own answer, and that the
// others of the batch are answered.
func TestDeathsInABatch(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		"refuse x":   "error: no",
		"panic x":    "boom",
		"recurse x":  "stack overflow",
		"exit x":     "exit code 7",
		"die x":      "ended from outside",
		"spin x":     "more than 1s of CPU time",
		"wait x":     "longer than 5s",
		"allocate x": "of memory",
		"much x":     "of at most 1 MiB",
		"read other": "a tree that its task doesn't name",
	} {
		t.Run(item, func(t *testing.T) {
			t.Parallel()
			limits := Limits{CPU: time.Second, Time: time.Minute, Answer: 1 << 20}
			if strings.HasPrefix(item, "wait") {
				limits.Time = 5 * time.Second
			}
			p := newTestPool(t, PoolOptions{Workers: 1, Limits: limits})
			got := runItems(t, p, nil, "echo one", item, "echo two", item, "echo three")
			for i, want := range []string{"one by ", want, "two by ", want, "three by "} {
				if !strings.Contains(got[i], want) {
					t.Errorf("item %d: %q, want %q in it", i, got[i], want)
				}
			}
			if again := runItems(t, p, nil, "echo again"); !strings.HasPrefix(again[0], "again by ") {
				t.Errorf("the next batch: %q", again)
			}
		})
	}
}

// TestWorkersLiveOn holds that one worker serves many batches until it has done enough, and that
// a tree of which it knows all is not sent again.
func TestWorkersLiveOn(t *testing.T) {
	t.Parallel()
	p := newTestPool(t, PoolOptions{Workers: 1, MaxItems: 4})
	var by []string
	for range 6 {
		by = append(by, runItems(t, p, nil, "echo x")...)
	}
	if by[0] != by[3] || by[3] == by[4] || by[4] != by[5] {
		t.Errorf("with four items each, the workers were %q", by)
	}

	p = newTestPool(t, PoolOptions{Workers: 1})
	many := fstest.MapFS{}
	for i := range 300 {
		many[fmt.Sprintf("apps/%04d/kustomization.yaml", i)] = &fstest.MapFile{Data: []byte(fmt.Sprint(i))}
	}
	reads := &countingTree{FS: many}
	tree := contentTreeOf(many)
	tree.FS = reads
	first, err := tree.Identity(".")
	if err != nil {
		t.Fatal(err)
	}
	runItems(t, p, map[string]ContentTree{first: tree}, "read "+first)
	if reads.n == 0 {
		t.Error("nothing was read the first time")
	}
	changed := maps.Clone(many)
	changed["apps/0007/kustomization.yaml"] = &fstest.MapFile{Data: []byte("another")}
	again := &countingTree{FS: changed}
	tree = contentTreeOf(changed)
	tree.FS = again
	second, err := tree.Identity(".")
	if err != nil {
		t.Fatal(err)
	}
	if got := runItems(t, p, map[string]ContentTree{second: tree}, "read "+second); !strings.Contains(got[0], hex.EncodeToString([]byte("another"))) || strings.Count(got[0], "\n") < 300 {
		t.Errorf("the changed tree: %.300s", got[0])
	}
	if again.n > 10 {
		t.Errorf("%d reads of a tree of which one file is new", again.n)
	}
}

// countingTree counts what is opened.
type countingTree struct {
	fs.FS
	mu sync.Mutex
	n  int
}

func (c *countingTree) Open(name string) (fs.File, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.FS.Open(name)
}

// TestWorkersSeeTheTree holds that a worker that lives on sees what its parent has.
func TestWorkersSeeTheTree(t *testing.T) {
	t.Parallel()
	p := newTestPool(t, PoolOptions{})
	plain := fstest.MapFS{}
	for name, f := range smallTree {
		if fs.ValidPath(name) && f.Mode&fs.ModeSymlink == 0 {
			plain[name] = f
		}
	}
	want, err := readAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	tree := contentTreeOf(plain)
	root, err := tree.Identity(".")
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]ContentTree{root: tree}
	got := runItems(t, p, trees, "read "+root, "read "+root, "testfs "+root)
	var b strings.Builder
	for _, name := range sortedKeys(want) {
		fmt.Fprintf(&b, "%q %q\n", name, want[name])
	}
	for i := range 2 {
		if got[i] != b.String() {
			t.Errorf("time %d: %.500s, want %.500s", i, got[i], b.String())
		}
	}
	if got[2] != "" {
		t.Errorf("as a file system must be: %s", got[2])
	}
}

// TestACallerThatGivesUp holds that its worker is ended, and that others are served.
func TestACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	p := newTestPool(t, PoolOptions{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, Batch{Task: "work", Items: [][]byte{[]byte("echo x"), []byte("wait x")}, Answer: func(i int, _ []byte, _ error) {
			if i == 0 {
				cancel()
			}
		}})
	}()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if got := runItems(t, p, nil, "echo next"); !strings.HasPrefix(got[0], "next by ") {
		t.Errorf("the next caller: %q", got)
	}
	p.Close()
	if err := p.Run(t.Context(), Batch{Task: "work", Items: [][]byte{[]byte("echo x")}, Answer: func(int, []byte, error) {}}); err == nil {
		t.Error("a closed pool serves")
	}
}
