package render

import (
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

var (
	updateGoldens = flag.Bool("update", false, "write the golden files anew")
	longRun       = flag.Bool("long", false, "run the property tests with 2,000 cases")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		os.Exit(serveWorker())
	}
	flag.Parse()
	if *longRun {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// memoryTree is a tree of files; a text that begins with "-> " is a symbolic link.
func memoryTree(contents map[string]string) fs.FS {
	out := fstest.MapFS{}
	for name, text := range contents {
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			out[name] = &fstest.MapFile{Data: []byte(strings.TrimSpace(to)), Mode: fs.ModeSymlink | 0o777}
			continue
		}
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

// readArchive is a txtar file's contents.
func readArchive(t testing.TB, name string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range a.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// writeTree writes a tree into a folder.
func writeTree(t testing.TB, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(contents[name], "-> "); ok {
			err = os.Symlink(strings.TrimSpace(to), at)
		} else {
			err = os.WriteFile(at, []byte(contents[name]), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// singleSource is an Application with one source of the tree.
func singleSource(path, options string) Input {
	in := Input{Application: "web", Namespace: "shop", Sources: []Source{{RepoURL: "https://git.example/fleet", Path: path, InTree: true}}}
	if options != "" {
		in.Sources[0].Options = json.RawMessage(options)
	}
	return in
}

func mustRender(t testing.TB, contents map[string]string, in Input) *Manifests {
	t.Helper()
	m, err := Render(context.Background(), memoryTree(contents), in)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// objectLines are manifests as sorted lines of JSON.
func objectLines(m *Manifests) string {
	var b strings.Builder
	for i := range m.Objects {
		b.Write(m.Objects[i].JSON)
		b.WriteByte('\n')
	}
	return b.String()
}

// yamlObjectLines reads a program's output into the same form.
func yamlObjectLines(t testing.TB, out []byte) string {
	t.Helper()
	var c objectCollector
	if err := c.addYAML(out); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return objectLines(c.buildManifests(ReadSet{}))
}
