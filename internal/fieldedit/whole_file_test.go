package fieldedit

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// configFiles carries what is in config but environments' own.
func configFiles(absent string) []pipeline.Carry {
	return []pipeline.Carry{{Files: &pipeline.FilePick{Include: []string{"config/**"}, Exclude: []string{"**/*.env.yaml"}}, WhenAbsent: absent}}
}

func wholeFilesCommit() fstest.MapFS {
	commit := newTree(map[string]string{
		"dev/config/app.conf":      "level = debug\n",
		"dev/config/new/a b é.txt": "x",
		"dev/config/bin.dat":       "\x00\xff\xfe",
		"dev/config/own.env.yaml":  "env: dev\n",
		"dev/config/big.lfs":       "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
		"dev/config/same":          "same\n",
		"dev/values.yaml":          "tag: v2\n",
		"prod/config/app.conf":     "level = info\n",
		"prod/config/gone.txt":     "old\n",
		"prod/config/run.sh":       "#!/bin/sh\n",
		"prod/config/own.env.yaml": "env: prod\n",
		"prod/config/same":         "same\n",
		"prod/values.yaml":         "tag: v1\n",
		"empty/values.yaml":        "tag: v1\n",
		"cells/a/config/app.conf":  "level = info\n",
		"cells/b/config/app.conf":  "level = warn\n",
		"cells/c/values.yaml":      "tag: v1\n",
	})
	commit["dev/config/run.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o755}
	return commit
}

func TestWholeFiles(t *testing.T) {
	commit := wholeFilesCommit()
	add := configFiles("add")
	want := mustRead(t, commit, add, "dev")
	contents := contentsOf(commit, []string{"dev"})
	var got []string
	for _, f := range want.Fields {
		got = append(got, f.Kind+" "+f.File+" "+f.Value)
	}
	if diff := cmp.Diff([]string{
		"file config/app.conf 100644 " + objectID([]byte("level = debug\n")),
		"file config/big.lfs 100644 " + objectID(commit["dev/config/big.lfs"].Data),
		"file config/bin.dat 100644 " + objectID([]byte("\x00\xff\xfe")),
		"file config/new/a b é.txt 100644 " + objectID([]byte("x")),
		"file config/run.sh 100755 1a2485251c33a70432394c93fb89330ef214bfc9",
		"file config/same 100644 " + objectID([]byte("same\n")),
	}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: add}, want, contents)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, e := range edits {
		for _, c := range e.Changes {
			got = append(got, c.String())
		}
	}
	if diff := cmp.Diff([]string{
		"prod/config/app.conf: 3b8f513 → 58bd454",
		"prod/config/big.lfs: 8f202fa (added)",
		"prod/config/bin.dat: f225cce (added)",
		"prod/config/gone.txt: 3367afd (removed)",
		"prod/config/new/a b é.txt: c1b0730 (added)",
		"prod/config/run.sh: 1a24852 → 1a24852 executable",
	}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	landed := applyToMap(commit, edits)
	if id := mustRead(t, landed, add, "prod").ID(); id != want.ID() {
		t.Error("prod has another identity")
	}
	if string(landed["prod/config/own.env.yaml"].Data) != "env: prod\n" || string(landed["prod/values.yaml"].Data) != "tag: v1\n" || landed["prod/config/gone.txt"] != nil {
		t.Error("the environment's own files are touched, or a deleted one is there")
	}
	if landed["prod/config/run.sh"].Mode != 0o755 {
		t.Error("the script isn't executable")
	}
	var files []string
	for _, e := range edits {
		files = append(files, e.File)
	}
	again, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: add}, mustRead(t, landed, add, "prod"), contentsOf(landed, []string{"prod"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyCommit(landed, files, again); err != nil {
		t.Errorf("composed from what landed: %v", err)
	}
	if edits, err := Compose(landed, Overlay{Roots: []string{"prod"}, Carry: add}, want, nil); err != nil || edits != nil {
		t.Errorf("again: %v, %v", edits, err)
	}
	back, err := Restore(commit, landed, landed, files, Overlay{Roots: []string{"prod"}, Carry: add})
	if err != nil {
		t.Fatal(err)
	}
	sameCommit(t, commit, applyToMap(landed, back))
}

func sameCommit(t *testing.T, want, got fstest.MapFS) {
	t.Helper()
	for name, file := range want {
		g := got[name]
		if g == nil || string(g.Data) != string(file.Data) || g.Mode&0o111 != file.Mode&0o111 {
			t.Errorf("%s is otherwise: %v", name, g)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is there", name)
		}
	}
}

// TestObjectID holds that a content has the name that git gives it.
func TestObjectID(t *testing.T) {
	for _, data := range []string{"", "a\n", "\x00\xff", strings.Repeat("x", 100_000)} {
		c := exec.Command("git", "hash-object", "--stdin")
		c.Stdin = strings.NewReader(data)
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := objectID([]byte(data)); got != strings.TrimSpace(string(out)) {
			t.Errorf("%.10q: got %s, git says %s", data, got, out)
		}
	}
}

func TestWholeFilesRefused(t *testing.T) {
	base := wholeFilesCommit()
	with := func(name string, file *fstest.MapFile) fstest.MapFS {
		out := applyToMap(base, nil)
		out[name] = file
		return out
	}
	text := &fstest.MapFile{Data: []byte("x")}
	link := &fstest.MapFile{Data: []byte("../../dev/config/app.conf"), Mode: fs.ModeSymlink}
	dev := mustRead(t, base, configFiles("add"), "dev")
	one := func(file string) Release {
		return Release{Fields: []Field{{Kind: KindFile, File: file, Value: wholeValue(ModeRegular, objectID([]byte("x")))}}}
	}
	x := func(Field) ([]byte, error) { return []byte("x"), nil }
	tests := []struct {
		name     string
		commit   fstest.MapFS
		roots    []string
		carry    []pipeline.Carry
		want     Release
		contents Contents
		err      string
	}{
		{"additions", base, []string{"prod"}, configFiles("refuse"), Release{Fields: append(one("config/y").Fields, mustRead(t, base, configFiles("refuse"), "prod").Fields...)}, x, "config/y isn't there: add it by hand, or set whenAbsent: add"},
		{"deletions", base, []string{"prod"}, configFiles("refuse"), dev, x, "the environment carries what the release doesn't: prod/config/gone.txt; add it at the source, remove it here, or (for whole files) set whenAbsent: add"},
		{"a symlink", with("prod/config/link", link), []string{"prod"}, configFiles("add"), dev, x, "prod/config/link: it is a symlink, which may lead into another environment: keep a file of its own here, or exclude it from `files`"},
		{"a folder that is a symlink", with("prod/config", link), []string{"prod"}, configFiles("add"), dev, x, "prod/config: it is a symlink"},
		{"a submodule", with("prod/config/sub", &fstest.MapFile{Mode: fs.ModeIrregular}), []string{"prod"}, configFiles("add"), dev, x, "prod/config/sub: it is neither a file nor a folder of this repository (a submodule?)"},
		{"a folder in the way", with("prod/config/new/x", text), []string{"prod"}, configFiles("add"), one("config/new"), x, "prod/config/new: it is a folder, and the release has a file of that name"},
		{"a file in the way", with("prod/config", text), []string{"prod"}, configFiles("add"), one("config/x"), x, "prod/config: it is a file, and the release has a folder of that name"},
		{"a name with a quote", base, []string{"empty"}, configFiles("add"), one(`config/it's`), x, `"empty/config/it's": names with quotes`},
		{"a name with a newline", base, []string{"empty"}, configFiles("add"), one("config/a\nb"), x, `"empty/config/a\nb": names with quotes, backslashes or control characters`},
		{"a name like an option", base, []string{"empty"}, configFiles("add"), one("config/-rf/x"), x, "empty/config/-rf/x: names that look like options"},
		{"a name that leaves the root", base, []string{"empty"}, []pipeline.Carry{{Files: &pipeline.FilePick{Include: []string{"**"}}, WhenAbsent: "add"}}, one("../x"), x, "the path leaves the repository"},
		{"the pipeline's own file", base, []string{"."}, []pipeline.Carry{{Files: &pipeline.FilePick{Include: []string{".*"}}, WhenAbsent: "add"}}, one(".liftlock.yaml"), x, ".liftlock.yaml: it is a pipeline file"},
		{"two roots without the folder", base, []string{"cells/c", "empty"}, configFiles("add"), one("config/x"), x, "config/x can't be created, because it can't be told"},
		{"too large", base, []string{"empty"}, configFiles("add"), one("config/x"), func(Field) ([]byte, error) { return make([]byte, MaxFileSize+1), nil }, "at most 20971520"},
		{"too large to read", with("prod/config/x", &fstest.MapFile{Data: make([]byte, MaxFileSize+1)}), []string{"prod"}, configFiles("add"), one("config/x"), x, "prod/config/x: the file has 20971521 bytes"},
		{"another content", base, []string{"empty"}, configFiles("add"), one("config/x"), func(Field) ([]byte, error) { return []byte("y"), nil }, "isn't the content"},
		{"no content", base, []string{"empty"}, configFiles("add"), one("config/x"), nil, "the content of config/x isn't at hand"},
		{"an unknown content", base, []string{"empty"}, configFiles("add"), one("config/x"), contentsOf(base, []string{"dev", "nothing"}), "file does not exist"},
		{"a made-up value", base, []string{"empty"}, configFiles("add"), Release{Fields: []Field{{Kind: KindFile, File: "config/x", Value: "120000 " + objectID(nil)}}}, x, "isn't the value of a whole file"},
		{"what isn't carried", base, []string{"empty"}, configFiles("add"), one("other/x"), x, "isn't carried by the pipeline any more"},
		{"what is excluded", base, []string{"empty"}, configFiles("add"), one("config/x.env.yaml"), x, "isn't carried by the pipeline any more"},
		{"whole and by field", base, []string{"prod"}, append(configFiles("add"), pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{"config/own.yaml"}, Paths: []string{"env"}}}), dev, x, ""},
		{"whole and by a field that is there", with("prod/config/own.yaml", &fstest.MapFile{Data: []byte("env: x\n")}), []string{"prod"}, append(configFiles("add"), pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{"config/own.yaml"}, Paths: []string{"env"}}}), dev, x, "prod/config/own.yaml:1: env: the file is carried as a whole by `files`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == "" {
				tt.contents = contentsOf(base, []string{"dev"})
			}
			edits, err := Compose(tt.commit, Overlay{Roots: tt.roots, Carry: tt.carry}, tt.want, tt.contents)
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || edits != nil {
				t.Errorf("got %v, %v", edits, err)
			}
		})
	}
}

// TestWholeFilesInSeveralRoots creates a file where its folder is.
func TestWholeFilesInSeveralRoots(t *testing.T) {
	commit := wholeFilesCommit()
	add := configFiles("add")
	want := mustRead(t, commit, add, "dev")
	edits, err := Compose(commit, Overlay{Roots: []string{"cells/a", "cells/b", "cells/c"}, Carry: add}, want, contentsOf(commit, []string{"dev"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range edits {
		got = append(got, e.File)
	}
	if diff := cmp.Diff(strings.Split("cells/a/config/app.conf|cells/a/config/big.lfs|cells/a/config/bin.dat|cells/a/config/new/a b é.txt|cells/a/config/run.sh|cells/a/config/same|"+
		"cells/b/config/app.conf|cells/b/config/big.lfs|cells/b/config/bin.dat|cells/b/config/new/a b é.txt|cells/b/config/run.sh|cells/b/config/same", "|"),
		got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if edits, err := Compose(commit, Overlay{Roots: []string{"empty"}, Carry: add}, want, contentsOf(commit, []string{"dev"})); err != nil || len(edits) != 6 {
		t.Errorf("in an empty root: %v, %v", edits, err)
	}
	var mixed *MixedError
	if _, err := Read(commit, Overlay{Roots: []string{"cells/a", "cells/b"}, Carry: add}); !errors.As(err, &mixed) {
		t.Errorf("got %v", err)
	}
}

func TestRestoreWholeFiles(t *testing.T) {
	commit := wholeFilesCommit()
	add := configFiles("add")
	edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: add}, mustRead(t, commit, add, "dev"), contentsOf(commit, []string{"dev"}))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range edits {
		files = append(files, e.File)
	}
	landed := applyToMap(commit, edits)
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, tt := range map[string]struct {
		file string
		now  *fstest.MapFile
		err  string
	}{
		"a changed file changed again":    {"prod/config/app.conf", text("level = warn\n"), "prod/config/app.conf: the file was 100644 "},
		"a changed file is gone":          {"prod/config/app.conf", nil, "and is absent now: decide by hand"},
		"a changed file is back":          {"prod/config/app.conf", text("level = info\n"), ""},
		"a created file changed":          {"prod/config/bin.dat", text("y"), "the file was absent before the promotion, 100644 "},
		"a created file is gone":          {"prod/config/bin.dat", nil, ""},
		"a deleted file came again":       {"prod/config/gone.txt", text("new\n"), "with it, and is 100644 "},
		"a deleted file is back":          {"prod/config/gone.txt", text("old\n"), ""},
		"a mode changed back":             {"prod/config/run.sh", text("#!/bin/sh\n"), ""},
		"a file that isn't carried moved": {"prod/config/own.env.yaml", text("env: production\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := applyToMap(landed, nil)
			if now[tt.file] = tt.now; tt.now == nil {
				delete(now, tt.file)
			}
			back, err := Restore(commit, landed, now, files, Overlay{Roots: []string{"prod"}, Carry: add})
			if tt.err != "" {
				var changed *ChangedError
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v", back, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := applyToMap(commit, nil)
			if strings.HasSuffix(tt.file, ".env.yaml") {
				want[tt.file] = tt.now
			}
			sameCommit(t, want, applyToMap(now, back))
		})
	}
}

// TestApply holds that a tree with edits reads as if they were in it.
func TestApply(t *testing.T) {
	commit := wholeFilesCommit()
	add := configFiles("add")
	edits, err := Compose(commit, Overlay{Roots: []string{"cells/a"}, Carry: add}, mustRead(t, commit, add, "dev"), contentsOf(commit, []string{"dev"}))
	if err != nil {
		t.Fatal(err)
	}
	applied := applyToMap(commit, edits)
	var want []string
	for name := range applied {
		want = append(want, name)
	}
	if err := fstest.TestFS(Apply(commit, edits), want...); err != nil {
		t.Error(err)
	}
	for name, file := range applied {
		data, err := fs.ReadFile(Apply(commit, edits), name)
		if err != nil || string(data) != string(file.Data) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	gone := Apply(commit, []Edit{{File: "dev/values.yaml", Deleted: true}})
	if _, err := fs.Stat(gone, "dev/values.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := fs.ReadFile(gone, "dev/values.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted: %v", err)
	}
}

// contentsOf reads whole files out of a tree in which an environment with these
// roots carries them.
func contentsOf(tree fs.FS, roots []string) Contents {
	return func(field Field) ([]byte, error) {
		for _, root := range roots {
			data, err := newFiles(tree, nil).readBytes(joinRoot(root, field.File))
			if err == nil && objectID(data) == field.ObjectID() {
				return data, nil
			}
		}
		return nil, fmt.Errorf("%s as %s: %w", field.File, field.Value, fs.ErrNotExist)
	}
}
