package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFrames(t *testing.T) {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	for _, err := range []error{writeFrame(w, frameAnswer, []byte("ab"), []byte("c")), writeFrame(w, framePanic), w.Flush()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	most := maxFromChild(3)
	for _, want := range []string{"Aabc", "P"} {
		letter, payload, err := readFrame(&buf, most)
		if got := string(letter) + string(payload); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	for name, tc := range map[string]struct {
		bytes string
		want  error
	}{
		"nothing":         {"", io.EOF},
		"half a head":     {"A\x00", io.ErrUnexpectedEOF},
		"half a payload":  {"A\x00\x00\x00\x03a", io.ErrUnexpectedEOF},
		"no payload":      {"A\x00\x00\x00\x03", io.ErrUnexpectedEOF},
		"too long":        {"A\x00\x00\x00\x04abcd", errProtocol},
		"a parent's":      {"o\x00\x00\x00\x00", errProtocol},
		"text":            {"panic: oh no", errProtocol},
		"a long question": {"F\x00\x01\x00\x00", errProtocol},
	} {
		if _, _, err := readFrame(strings.NewReader(tc.bytes), most); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// A promise of bytes takes no memory: only bytes do.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, _, err := readFrame(strings.NewReader("A\xff\xff\xff\xff and no more"), maxFromChild(1<<32)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
		t.Errorf("100 promises of 4 GiB took %d bytes", took)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `"a,b[{"`: 1, `"a\",b"`: 1, `"\\",1`: 2, `[1,2,3]`: 4, `{"a":1,"b":[{},{}]}`: 7, ``: 1, `"open`: 1, `"\`: 1,
	} {
		if got := countValues([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestFailuresReachTheParent(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		text string
		is   error
	}{
		"not there":  {&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, "file does not exist", fs.ErrNotExist},
		"worded":     {&fs.PathError{Op: "open", Path: "x", Err: errors.Join(errors.New("no such commit"), fs.ErrNotExist)}, "no such commit\nfile does not exist", fs.ErrNotExist},
		"invalid":    {fs.ErrInvalid, "invalid argument", fs.ErrInvalid},
		"permission": {fs.ErrPermission, "permission denied", fs.ErrPermission},
		"other":      {errors.New("the disk is gone"), "the disk is gone", nil},
		"long":       {errors.New(strings.Repeat("x", 2*maxErrorText)), strings.Repeat("x", maxErrorText-3) + "…", nil},
		"not UTF-8":  {errors.New("\xff"), "?", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := decodeError(encodeError(tc.err))
			if got.Error() != tc.text || tc.is != nil && !errors.Is(got, tc.is) || int64(len(encodeError(tc.err))) > maxFromParent(frameFail) {
				t.Errorf("got %.80q", got)
			}
		})
	}
}

// FuzzReadFolders and FuzzReadFacts: a child takes apart what its parent says.
func FuzzReadFolders(f *testing.F) {
	entries, err := fs.ReadDir(smallTree, ".")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(appendFolder(appendFolder(nil, ".", entries), "a", nil))
	f.Add([]byte("\x01.\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		folders, err := readFolders(payload)
		if err != nil {
			if !errors.Is(err, errProtocol) {
				t.Errorf("got %v", err)
			}
			return
		}
		for _, folder := range folders {
			for _, e := range folder.entries {
				if !validName(e.name) || strings.Contains(e.name, "/") || e.mode&^typeBits != 0 {
					t.Errorf("an entry %q, %s", e.name, e.mode)
				}
			}
		}
	})
}

func FuzzReadFacts(f *testing.F) {
	f.Add(statReply{size: 5, data: []byte("hello"), hasData: true}.appendTo(nil))
	f.Add(statReply{mode: fs.ModeSymlink, size: 1 << 40}.appendTo(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := readStatReply(payload)
		if err != nil {
			return
		}
		again, err := readStatReply(got.appendTo(nil))
		if err != nil || !reflect.DeepEqual(got, again) && len(got.data)+len(again.data) > 0 {
			t.Errorf("%+v became %+v, %v", got, again, err)
		}
	})
}

// FuzzHost: whatever a child asks, the parent answers in bounds, from inside
// the tree, or ends it.
func FuzzHost(f *testing.F) {
	for _, letter := range []byte{frameList, frameStat, frameFile, frameLink, frameTask} {
		for _, name := range []string{"\x00.", "\x00a/file", "\x00link", "\x00../x", "\x05other.", "\xff", "", "\x00out/x"} {
			f.Add(letter, []byte(name))
		}
	}
	f.Fuzz(func(t *testing.T, letter byte, question []byte) {
		tree := &confinedTree{t: t, FS: smallTree}
		h := newHost(Trees{Main: tree, Named: func(context.Context, string) (fs.FS, error) { return tree, nil }}, 1<<20)
		got, payload, err := h.handleRequest(t.Context(), letter, question)
		switch {
		case err != nil:
			if !errors.Is(err, errProtocol) && !errors.Is(err, errReads) {
				t.Errorf("got %v", err)
			}
		case got == frameOK && int64(len(payload)) <= maxFromParent(frameOK):
		case got == frameFail && int64(len(payload)) <= maxFromParent(frameFail):
			if err := decodeError(payload); errors.Is(err, errProtocol) {
				t.Error(err)
			}
		default:
			t.Errorf("a frame %q of %d bytes", got, len(payload))
		}
	})
}

// confinedTree fails the test when a name that leaves the tree gets to it.
type confinedTree struct {
	fs.FS
	t *testing.T
}

func (c *confinedTree) Open(name string) (fs.File, error) {
	if name != "." {
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part == "." || part == ".." {
				c.t.Errorf("%q got through", name)
			}
		}
	}
	return c.FS.Open(name)
}

// FuzzTalk: whatever a child writes, the parent ends with an answer or an
// error of its own, without more memory than frames may have.
func FuzzTalk(f *testing.F) {
	f.Add([]byte("A\x00\x00\x00\x01" + "1"))
	f.Add([]byte("F\x00\x00\x00\x07\x00a/fileA\x00\x00\x00\x02[]"))
	f.Add([]byte("P\x00\x00\x00\x05\x03abcd"))
	f.Add([]byte("R\x00\x00\x00\x02no"))
	f.Fuzz(func(t *testing.T, said []byte) {
		r := New(Options{Program: "/none", Limits: Limits{Answer: 1 << 20, Reads: 1 << 20}})
		_, err := r.exchangeFrames(t.Context(), bytes.NewReader(said), io.Discard, "fuzz", []byte("{}"), Trees{Main: smallTree})
		var refused *HandlerError
		var ended *Error
		if err != nil && !errors.As(err, &refused) && !errors.As(err, &ended) && !errors.Is(err, errNoAnswer) && !errors.Is(err, errProtocol) && !errors.Is(err, errReads) {
			t.Errorf("got %v", err)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("%q is not UTF-8", err)
		}
	})
}

// FuzzServe: whatever a parent writes, the child comes to an end.
func FuzzServe(f *testing.F) {
	task := func(kind, input string) string {
		var buf bytes.Buffer
		w := bufio.NewWriter(&buf)
		_ = writeFrame(w, frameTask, append(appendString(nil, kind), 100), []byte(input))
		_ = w.Flush()
		return buf.String()
	}
	f.Add([]byte(task("echo", `{"a":1}`)))
	f.Add([]byte(task("read", `"a/file"`) + "o\x00\x00\x00\x02\x01."))
	f.Add([]byte(task("walk", ``) + "e\x00\x00\x00\x02\x01x" + "o\x00\x00\x00\x00"))
	f.Add([]byte(task("bulk", ``) + "o\x00\x00\x00\x0a\x01.\x01\x04file\x00\x00"))
	few := map[string]Handler{}
	for _, name := range []string{"echo", "read", "walk", "bulk", "errors", "walk another"} {
		few[name] = handlers[name]
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		out := &safeBuffer{}
		_ = Serve(t.Context(), bytes.NewReader(said), out, few) // nil or not is the parent's doing here
		for all := out.reader(); ; {
			letter, _, err := readFrame(all, maxFromChild(1<<20))
			if errors.Is(err, errProtocol) {
				t.Fatalf("it wrote what is no frame: %v", err)
			}
			if err != nil || letter == frameAnswer || letter == frameRefused || letter == framePanic {
				return
			}
		}
	})
}

// safeBuffer is what was written; a handler that was given up may still write.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *safeBuffer) reader() io.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.NewReader(bytes.Clone(s.buf.Bytes()))
}

// The child's tree and the parent's, without processes between them, agree
// over random trees and questions.
func TestTheRemoteTreeIsTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "a b", "é", "--x", ".git", "c\n"})
		tree := fstest.MapFS{}
		for _, f := range rapid.SliceOfN(rapid.SliceOfN(part, 1, 4), 0, 30).Draw(t, "files") {
			tree[strings.Join(f, "/")] = &fstest.MapFile{Data: []byte(strings.Repeat("x", rapid.IntRange(0, 50).Draw(t, "size")))}
		}
		for name := range tree { // a file can't be a folder as well
			for dir := name; strings.Contains(dir, "/"); {
				dir = dir[:strings.LastIndexByte(dir, '/')]
				delete(tree, dir)
			}
		}
		names := rapid.SliceOfN(rapid.SliceOfN(part, 1, 4), 1, 20).Draw(t, "questions")
		probe := func(_ context.Context, trees Trees, _ json.RawMessage) (any, error) {
			var out []string
			for _, n := range names {
				name := strings.Join(n, "/")
				data, err := fs.ReadFile(trees.Main, name)
				out = append(out, string(data), classifyError(err))
				info, err := fs.Stat(trees.Main, name)
				out = append(out, classifyError(err))
				if err == nil && !info.IsDir() {
					out = append(out, info.Name(), info.Mode().Type().String(), string(rune('0'+info.Size())))
				}
				entries, err := fs.ReadDir(trees.Main, name)
				out = append(out, classifyError(err))
				for _, e := range entries {
					out = append(out, e.Name(), e.Type().String())
				}
			}
			return out, nil
		}
		want, _ := probe(t.Context(), Trees{Main: tree}, nil)
		got, err := runOverPipes(t.Context(), probe, tree)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	})
}

func classifyError(err error) string {
	switch {
	case err == nil:
		return "fine"
	case errors.Is(err, fs.ErrNotExist):
		return "not there"
	}
	return "wrong"
}

// runOverPipes runs a handler against a host over two pipes.
func runOverPipes(ctx context.Context, h Handler, tree fs.FS) ([]string, error) {
	childIn, parentOut := io.Pipe()
	parentIn, childOut := io.Pipe()
	go func() {
		_ = Serve(ctx, childIn, childOut, map[string]Handler{"pair": h})
		_ = childOut.Close()
	}()
	answer, err := New(Options{Program: "/none"}).exchangeFrames(ctx, parentIn, parentOut, "pair", []byte("null"), Trees{Main: tree})
	_ = parentOut.Close()
	if err != nil {
		return nil, err
	}
	var out []string
	return out, json.Unmarshal(answer, &out)
}
