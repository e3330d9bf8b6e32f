package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// childArg makes this test binary a child.
const childArg = "sandbox-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(runTestChild(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// runTestChild is what the children of these tests do: serve, or with a further
// argument something that no child of ours would.
func runTestChild(args []string) int {
	if len(args) > 0 && args[0] == "batches" {
		if err := ServeBatches(context.Background(), os.Stdin, os.Stdout, testItems); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if len(args) > 0 {
		return rogues[args[0]](os.Stdin, os.Stdout)
	}
	if err := Serve(context.Background(), os.Stdin, os.Stdout, handlers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// handlers are what well-behaved children run, input bombs included.
var handlers = map[string]Handler{
	"echo": func(_ context.Context, _ Trees, input json.RawMessage) (any, error) { return input, nil },
	"walk": func(_ context.Context, trees Trees, _ json.RawMessage) (any, error) { return readAll(trees.Main) },
	"bulk": func(ctx context.Context, trees Trees, _ json.RawMessage) (any, error) {
		tree, ok := trees.Main.(interface {
			List(ctx context.Context, do func(path string, mode fs.FileMode, id string) error) error
			ReadBlobs(ctx context.Context, ids []string, limit int64, do func(i int, data []byte, err error) error) error
		})
		if !ok {
			return nil, errors.New("it can't be read in bulk")
		}
		var paths, ids []string
		out := map[string]string{}
		if err := tree.List(ctx, func(path string, mode fs.FileMode, id string) error {
			if !mode.IsRegular() && mode != fs.ModeSymlink || len(paths) > 0 && paths[len(paths)-1] >= path {
				return fmt.Errorf("%q is %s after %q", path, mode, paths)
			}
			paths, ids = append(paths, path), append(ids, id)
			return nil
		}); err != nil {
			return nil, err
		}
		if err := tree.ReadBlobs(ctx, ids, maxPrefetchFile, func(i int, data []byte, err error) error {
			out[paths[i]] = string(data)
			if err != nil {
				out[paths[i]] = err.Error()
			}
			return nil
		}); err != nil {
			return nil, err
		}
		stop := errors.New("stop")
		for what, got := range map[string]error{
			"stopped listing": tree.List(ctx, func(string, fs.FileMode, string) error { return stop }),
			"stopped reading": tree.ReadBlobs(ctx, ids, 1, func(int, []byte, error) error { return stop }),
		} {
			if len(ids) > 0 && !errors.Is(got, stop) {
				return nil, fmt.Errorf("%s: %w", what, got)
			}
		}
		for _, id := range []string{"", "x", "L.", "F../x"} {
			if err := tree.ReadBlobs(ctx, []string{id}, 1, func(int, []byte, error) error { return nil }); err == nil {
				return nil, fmt.Errorf("%q was taken for an id", id)
			}
		}
		return out, nil
	},
	"testfs": func(_ context.Context, trees Trees, input json.RawMessage) (any, error) {
		var expected []string
		if err := json.Unmarshal(input, &expected); err != nil {
			return nil, err
		}
		return "fine", fstest.TestFS(trees.Main, expected...)
	},
	"read": func(_ context.Context, trees Trees, input json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(input, &name); err != nil {
			return nil, err
		}
		data, err := fs.ReadFile(trees.Main, name)
		return len(data), err
	},
	"errors": func(_ context.Context, trees Trees, input json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(input, &name); err != nil {
			return nil, err
		}
		out := map[string]string{}
		for op, err := range map[string]error{
			"stat": errorOf(fs.Stat(trees.Main, name)), "lstat": errorOf(fs.Lstat(trees.Main, name)), "read": errorOf(fs.ReadFile(trees.Main, name)),
			"readdir": errorOf(fs.ReadDir(trees.Main, name)), "readlink": errorOf(fs.ReadLink(trees.Main, name)), "open": errorOf(trees.Main.Open(name)),
		} {
			switch {
			case err == nil:
				out[op] = ""
			case errors.Is(err, fs.ErrNotExist):
				out[op] = "not there"
			case errors.Is(err, fs.ErrInvalid):
				out[op] = "invalid"
			default:
				out[op] = err.Error()
			}
		}
		return out, nil
	},
	"environment": func(context.Context, Trees, json.RawMessage) (any, error) {
		dir, err := os.Getwd()
		env := os.Environ()
		slices.Sort(env)
		return append([]string{dir}, env...), err
	},
	"write": func(context.Context, Trees, json.RawMessage) (any, error) {
		return nil, os.WriteFile(os.TempDir()+"/liftlock-sandbox-test", []byte("more than one byte"), 0o600)
	},
	"refuse": func(_ context.Context, _ Trees, input json.RawMessage) (any, error) {
		var text string
		if err := json.Unmarshal(input, &text); err != nil {
			return nil, err
		}
		return nil, errors.New(strings.ReplaceAll(text, "?", "\xff"))
	},
	"deadline": func(ctx context.Context, _ Trees, _ json.RawMessage) (any, error) {
		deadline, ok := ctx.Deadline()
		return ok && time.Until(deadline) > 59*time.Minute && time.Until(deadline) <= time.Hour, nil
	},
	"is killed": func(context.Context, Trees, json.RawMessage) (any, error) {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return nil, err
		}
		if err := self.Kill(); err != nil {
			return nil, err
		}
		return waitForEver(), nil
	},
	"nest": func(ctx context.Context, _ Trees, _ json.RawMessage) (any, error) {
		return nil, New(Options{Program: "/proc/self/exe", Args: []string{childArg}}).Run(ctx, "echo", Trees{Main: smallTree}, nil, new(any))
	},
	"unwritable": func(context.Context, Trees, json.RawMessage) (any, error) { return func() {}, nil },
	"panic":      func(context.Context, Trees, json.RawMessage) (any, error) { panic("no such luck") },
	"panic aside": func(ctx context.Context, _ Trees, _ json.RawMessage) (any, error) {
		go panic("no such luck")
		<-ctx.Done()
		return nil, nil
	},
	"exit":    func(context.Context, Trees, json.RawMessage) (any, error) { os.Exit(7); return nil, nil },
	"recurse": func(context.Context, Trees, json.RawMessage) (any, error) { return recurse(1), nil },
	"one huge string": func(context.Context, Trees, json.RawMessage) (any, error) {
		return len(strings.Repeat("x", 4_000_000_000)), nil
	},
	"many small ones": func(context.Context, Trees, json.RawMessage) (any, error) {
		var all []string
		for i := range 1_000_000_000 {
			all = append(all, fmt.Sprint(i))
		}
		return len(all), nil
	},
	"many stacks": func(context.Context, Trees, json.RawMessage) (any, error) {
		never := make(chan bool)
		for {
			go func() { <-never }()
		}
	},
	"large answer": func(context.Context, Trees, json.RawMessage) (any, error) { return strings.Repeat("x", 2<<20), nil },
	"many values":  func(context.Context, Trees, json.RawMessage) (any, error) { return make([]bool, 2000), nil },
	"work": func(context.Context, Trees, json.RawMessage) (any, error) {
		for i := 0; ; i++ {
			runtime.KeepAlive(i)
		}
	},
	"never": func(context.Context, Trees, json.RawMessage) (any, error) { return waitForEver(), nil },
	"read for ever": func(_ context.Context, trees Trees, _ json.RawMessage) (any, error) {
		for {
			if _, err := fs.ReadFile(trees.Main, "a/file"); err != nil {
				return nil, err
			}
		}
	},
	"open for ever": func(ctx context.Context, trees Trees, _ json.RawMessage) (any, error) {
		for i := 0; ; i++ {
			_, _ = trees.Named(ctx, fmt.Sprint("tree ", i))
		}
	},
	"walk another": func(ctx context.Context, trees Trees, input json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(input, &name); err != nil {
			return nil, err
		}
		tree, err := trees.Named(ctx, name)
		if err != nil {
			return nil, err
		}
		return readAll(tree)
	},
	"ask for ever": func(_ context.Context, trees Trees, _ json.RawMessage) (any, error) {
		for {
			_, _ = fs.ReadLink(trees.Main, "not/there")
		}
	},
}

func errorOf[T any](_ T, err error) error { return err }

func recurse(n int) int {
	if n < 0 {
		return 0
	}
	return recurse(n+1) + n
}

// readAll is everything in a tree.
func readAll(tree fs.FS) (map[string]string, error) {
	out := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			out[name] = "folder"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := fs.ReadLink(tree, name)
			out[name] = "-> " + to
			return err
		default:
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, err := fs.ReadFile(tree, name)
			out[name] = fmt.Sprintf("%d %x", info.Size(), data)
			return err
		}
		return nil
	})
	return out, err
}

// waitForEver never returns. Unlike an empty select it is no deadlock to a program without
// cgo, which would end by itself.
func waitForEver() int {
	for {
		time.Sleep(time.Hour)
	}
}

// rogues are children that a stranger has taken over.
var rogues = map[string]func(in io.Reader, out io.Writer) int{
	"garbage": func(_ io.Reader, out io.Writer) int {
		for {
			if _, err := io.WriteString(out, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
				return 0
			}
		}
	},
	"silence": func(in io.Reader, _ io.Writer) int { return drainInput(in) },
	"deaf": func(_ io.Reader, out io.Writer) int { // asks, and never reads an answer
		w := bufio.NewWriter(out)
		for {
			if writeFrame(w, frameFile, []byte("\x00a/file")) != nil {
				return 0
			}
		}
	},
	"leaves":     func(io.Reader, io.Writer) int { return 0 },
	"complains":  func(io.Reader, io.Writer) int { fmt.Fprintln(os.Stderr, "I won't"); return 3 },
	"climbs":     writesFrame(frameFile, "\x00../../etc/passwd"),
	"absolute":   writesFrame(frameFile, "\x00/etc/passwd"),
	"nul":        writesFrame(frameLink, "\x00a\x00b"),
	"long name":  writesFrame(frameFile, strings.Repeat("a/", maxRequest)+"a"),
	"cut name":   writesFrame(frameFile, "\xff\x01a"),
	"task":       writesFrame(frameTask, "{}"),
	"not JSON":   writesFrame(frameAnswer, "{"),
	"other JSON": writesFrame(frameAnswer, `"a string"`),
	"huge frame": func(in io.Reader, out io.Writer) int {
		_, _ = out.Write([]byte{frameAnswer, 0xff, 0xff, 0xff, 0xff})
		return drainInput(in)
	},
	"promises": func(in io.Reader, out io.Writer) int { // a large frame that never comes
		_, _ = out.Write([]byte{frameAnswer, 0, 0x0f, 0, 0})
		return drainInput(in)
	},
	"cut off": func(_ io.Reader, out io.Writer) int {
		_, _ = out.Write([]byte{frameAnswer, 0, 0, 0, 9, '{'})
		return 0
	},
	"bad refusal": writesFrame(frameRefused, "\xff\xfe no"),
	"bad panic":   writesFrame(framePanic, "\xff\xff\xff"),
	"lingers": func(in io.Reader, out io.Writer) int { // answers, and doesn't end
		writesFrame(frameAnswer, "1")(in, out)
		return waitForEver()
	},
	"hasty": func(in io.Reader, _ io.Writer) int { // asks, doesn't wait for answers, and has its own
		_, _, _ = readFrame(in, maxFromParent)
		_ = os.Stdin.Close()
		w := bufio.NewWriter(os.Stdout)
		for range 100 {
			_ = writeFrame(w, frameFile, []byte("\x00a/file"))
			_ = w.Flush() // each on its own, so that an answer is tried before the last word is there
		}
		_ = writeFrame(w, frameAnswer, []byte("42"))
		_ = w.Flush()
		return 0
	},
	"closes": func(in io.Reader, _ io.Writer) int { // gives its output up, and doesn't end
		_ = os.Stdout.Close()
		return waitForEver()
	},
}

func writesFrame(letter byte, payload string) func(io.Reader, io.Writer) int {
	return func(in io.Reader, out io.Writer) int {
		w := bufio.NewWriter(out)
		_ = writeFrame(w, letter, []byte(payload))
		_ = w.Flush()
		return drainInput(in)
	}
}

func drainInput(in io.Reader) int {
	_, _ = io.Copy(io.Discard, in)
	return 0
}
