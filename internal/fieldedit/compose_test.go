package fieldedit

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// applyToMap lays edits over a commit.
func applyToMap(commit fstest.MapFS, edits []Edit) fstest.MapFS {
	out := fstest.MapFS{}
	for name, f := range commit {
		out[name] = f
	}
	for _, e := range edits {
		if out[e.File] = (&fstest.MapFile{Data: e.After, Mode: e.Mode.perm()}); e.Deleted {
			delete(out, e.File)
		}
	}
	return out
}

func mustRead(t testing.TB, commit fs.FS, carry []pipeline.Carry, roots ...string) Release {
	t.Helper()
	r, err := Read(commit, Overlay{Roots: roots, Carry: carry})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func carryWhenAbsent(absent string) []pipeline.Carry {
	out := append([]pipeline.Carry(nil), allKinds...)
	for i := range out {
		out[i].WhenAbsent = absent
	}
	return out
}

func TestCompose(t *testing.T) {
	const kustomization = "# prod\r\nimages:\r\n- name: registry.example/web\r\n  newTag: 'v1' # pinned\r\n- name: registry.example/db\r\n  newTag: v1\r\n- name: else/where\r\n  newTag: v0\r\n"
	commit := newTree(map[string]string{
		"dev/kustomization.yaml":     "images:\n- {name: registry.example/db, newTag: v1}\n- {name: registry.example/web, newTag: \"1.20\"}\n",
		"dev/values.yaml":            "image: {tag: \"1.30\"}\nreplicas: 5\n",
		"dev/conf/config.json":       `{"releaseTag": "r2", "n": 2}`,
		"qa/eu/kustomization.yaml":   kustomization,
		"qa/us/kustomization.yaml":   kustomization,
		"qa/eu/values.yaml":          "image:\n  tag: v9\n  repo: x\nreplicas: 1",
		"qa/us/conf/config.json":     "{\n\t\"n\": 1,\n\t\"releaseTag\": \"r1\"\n}\n",
		"prod/kustomization.yaml":    kustomization,
		"prod/values.yaml":           "image:\n  repo: x\n",
		"prod/conf/config.json":      "{}",
		"staging/kustomization.yaml": kustomization + "- name: registry.example/extra\r\n  newTag: v1\r\n",
		"bare/kustomization.yaml":    "resources:\n- ../base\n",
	})
	want := mustRead(t, commit, allKinds, "dev")

	t.Run("sets what differs, in every root", func(t *testing.T) {
		edits, err := Compose(commit, Overlay{Roots: []string{"qa/eu", "qa/us"}, Carry: allKinds}, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		changes := 0
		for _, e := range edits {
			got[e.File] = string(e.After)
			changes += len(e.Changes)
			if string(e.Before) != string(commit[e.File].Data) {
				t.Errorf("%s: not the bytes before", e.File)
			}
		}
		set := strings.Replace(kustomization, "'v1' # pinned", "'1.20' # pinned", 1)
		if diff := cmp.Diff(map[string]string{
			"qa/eu/kustomization.yaml": set,
			"qa/us/kustomization.yaml": set,
			"qa/eu/values.yaml":        "image:\n  tag: \"1.30\"\n  repo: x\nreplicas: 5",
			"qa/us/conf/config.json":   "{\n\t\"n\": 2,\n\t\"releaseTag\": \"r2\"\n}\n",
		}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if changes != 6 {
			t.Errorf("%d changes", changes)
		}
		wantChange := Change{File: "qa/eu/kustomization.yaml", Kind: KindImage, Path: "images[registry.example/web].newTag", Old: "v1", New: "1.20", Line: 4}
		if diff := cmp.Diff(wantChange, edits[0].Changes[0]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		after := applyToMap(commit, edits)
		if id := mustRead(t, after, allKinds, "qa/eu", "qa/us").ID(); id != want.ID() {
			t.Error("the edited environment has another identity")
		}
		if again, err := Compose(after, Overlay{Roots: []string{"qa/eu", "qa/us"}, Carry: allKinds}, want, nil); err != nil || again != nil {
			t.Errorf("again: %v, %v", again, err)
		}
	})
	t.Run("refuses what is absent, by name", func(t *testing.T) {
		_, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: allKinds}, want, nil)
		var absent *AbsentError
		if !errors.As(err, &absent) || len(absent.Fields) != 4 {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"prod/values.yaml: image.tag isn't there", "prod/conf/config.json: /n isn't there", "whenAbsent: add"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q doesn't say %q", err, part)
			}
		}
	})
	t.Run("adds what is absent, typed as at its source", func(t *testing.T) {
		edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: carryWhenAbsent("add")}, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		after := applyToMap(commit, edits)
		if got := string(after["prod/values.yaml"].Data); got != "image:\n  repo: x\n  tag: \"1.30\"\nreplicas: 5\n" {
			t.Errorf("got %q", got)
		}
		if got := string(after["prod/conf/config.json"].Data); got != `{"n": 2, "releaseTag": "r2"}` {
			t.Errorf("got %q", got)
		}
		if mustRead(t, after, allKinds, "prod").ID() != want.ID() {
			t.Error("another identity")
		}
	})
	t.Run("composes the same from what it added", func(t *testing.T) {
		edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: carryWhenAbsent("add")}, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, e := range edits {
			files = append(files, e.File)
		}
		head := applyToMap(commit, edits)
		again, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: carryWhenAbsent("add")}, mustRead(t, head, allKinds, "prod"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyCommit(head, files, again); err != nil {
			t.Error(err)
		}
	})
	t.Run("adds images where there are none", func(t *testing.T) {
		images := carryWhenAbsent("add")[:1]
		edits, err := Compose(commit, Overlay{Roots: []string{"bare"}, Carry: images}, mustRead(t, commit, images, "dev"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(edits[0].After); got != "resources:\n- ../base\nimages:\n- name: registry.example/db\n  newTag: v1\n- name: registry.example/web\n  newTag: \"1.20\"\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("can't add in a file that isn't there", func(t *testing.T) {
		_, err := Compose(commit, Overlay{Roots: []string{"bare"}, Carry: carryWhenAbsent("add")}, want, nil)
		var absent *AbsentError
		if !errors.As(err, &absent) || !strings.Contains(err.Error(), "values.yaml: image.tag can't be added") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses what the release hasn't", func(t *testing.T) {
		_, err := Compose(commit, Overlay{Roots: []string{"staging"}, Carry: carryWhenAbsent("add")}, want, nil)
		var extra *ExtraError
		if !errors.As(err, &extra) || !strings.Contains(err.Error(), "staging/kustomization.yaml:10: images[registry.example/extra].newTag") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("makes roots agree that don't", func(t *testing.T) {
		mixed := newTree(map[string]string{"a/values.yaml": "replicas: 1\n", "b/values.yaml": "replicas: 2\n"})
		edits, err := Compose(mixed, Overlay{Roots: []string{"a", "b"}, Carry: allKinds}, Release{Fields: []Field{{Kind: KindYAML, File: "values.yaml", Path: "replicas", Value: "2"}}}, nil)
		if err != nil || len(edits) != 1 || string(edits[0].After) != "replicas: 2\n" || edits[0].File != "a/values.yaml" {
			t.Errorf("got %v, %v", edits, err)
		}
	})
	t.Run("refuses to edit what it can read only", func(t *testing.T) {
		aliased := newTree(map[string]string{"values.yaml": "x: &x {tag: v1}\nimage: *x\n"})
		_, err := Compose(aliased, Overlay{Roots: []string{"."}, Carry: allKinds}, Release{Fields: []Field{{Kind: KindYAML, File: "values.yaml", Path: "image.tag", Value: "2"}}}, nil)
		var r *RefusedError
		if !errors.As(err, &r) || r.File != "values.yaml" || r.Line != 2 || r.Field != "image.tag" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses a release that the pipeline doesn't carry", func(t *testing.T) {
		_, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: allKinds[1:]}, want, nil)
		if err == nil || !strings.Contains(err.Error(), "isn't carried") {
			t.Errorf("got %v", err)
		}
		for _, f := range []Field{{Kind: "x"}, {Kind: KindImage, Path: "newTag"}, {Kind: KindYAML, Path: "a..b"}} {
			if _, err := Compose(commit, Overlay{Roots: []string{"qa"}, Carry: allKinds}, Release{Fields: []Field{f}}, nil); err == nil {
				t.Errorf("%+v was taken", f)
			}
		}
	})
}

func TestRestore(t *testing.T) {
	const was = "image:\n  tag: 1.5 # old\nreplicas: 3\n"
	const with = "image:\n  tag: \"1.20\" # old\nreplicas: 4\n"
	tests := []struct{ name, now, want, err string }{
		{"untouched since", with, was, ""},
		{"undone already", was, "", ""},
		{"other lines changed", "# hello\n" + with, "# hello\n" + was, ""},
		{"one field is back already", "# x\nimage:\n  tag: 1.5 # old\nreplicas: 4\n", "# x\n" + was, ""},
		{"a field changed", "image:\n  tag: v3\nreplicas: 4\n", "",
			`qa/values.yaml:2: image.tag was "1.5" before the promotion, "1.20" with it, and is "v3" now: decide by hand what it should be`},
		{"all fields changed", "image:\n  tag: v3\nreplicas: 7\n", "", `replicas was "3" before the promotion, "4" with it, and is "7" now`},
		{"a field is gone", "replicas: 4\n", "", "is gone now"},
		{"unreadable now", "image: [\n", "", "qa/values.yaml:"},
	}
	before, landed := newTree(map[string]string{"qa/values.yaml": was}), newTree(map[string]string{"qa/values.yaml": with})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := newTree(map[string]string{"qa/values.yaml": tt.now})
			edits, err := Restore(before, landed, now, []string{"qa/values.yaml", "qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v", edits, err)
				}
			case err != nil:
				t.Error(err)
			case tt.want == "":
				if edits != nil {
					t.Errorf("got %v", edits)
				}
			case len(edits) != 1 || string(edits[0].After) != tt.want || string(edits[0].Before) != tt.now:
				t.Errorf("got %+v", edits)
			}
		})
	}
	t.Run("another file can't be read", func(t *testing.T) {
		now := applyToMap(landed, []Edit{{File: "qa/values-eu.yaml", After: []byte("image: [")}, {File: "qa/values.yaml", After: []byte(with + "# x\n")}})
		edits, err := Restore(before, landed, now, []string{"qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
		if err != nil || len(edits) != 1 || string(edits[0].After) != was+"# x\n" {
			t.Errorf("got %v, %v", edits, err)
		}
	})
	t.Run("lists what moves back", func(t *testing.T) {
		edits, err := Restore(before, landed, landed, []string{"qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
		if err != nil {
			t.Fatal(err)
		}
		want := []Change{
			{File: "qa/values.yaml", Kind: KindYAML, Path: "image.tag", Old: "1.20", New: "1.5", Line: 2},
			{File: "qa/values.yaml", Kind: KindYAML, Path: "replicas", Old: "4", New: "3", Line: 3},
		}
		if diff := cmp.Diff(want, edits[0].Changes); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("the file is gone", func(t *testing.T) {
		_, err := Restore(before, landed, fstest.MapFS{}, []string{"qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
		var changed *ChangedError
		if !errors.As(err, &changed) || len(changed.Fields) != 2 || !changed.Fields[0].Gone {
			t.Errorf("got %v", err)
		}
	})
	t.Run("outside of the overlay", func(t *testing.T) {
		for _, name := range []string{"other/values.yaml", "qa", "../qa/x", "qa/../x"} {
			if edits, err := Restore(before, landed, landed, []string{name}, Overlay{Roots: []string{"qa"}, Carry: allKinds}); err == nil {
				t.Errorf("%s: got %v", name, edits)
			}
		}
	})
	t.Run("a file that the promotion created", func(t *testing.T) {
		edits, err := Restore(fstest.MapFS{}, landed, landed, []string{"qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
		if err != nil || len(edits) != 1 || !edits[0].Deleted || len(edits[0].Changes) != 2 || !edits[0].Changes[0].Removed {
			t.Errorf("got %+v, %v", edits, err)
		}
	})
	t.Run("a file that it created changed since", func(t *testing.T) {
		_, err := Restore(fstest.MapFS{}, landed, before, []string{"qa/values.yaml"}, Overlay{Roots: []string{"qa"}, Carry: allKinds})
		if err == nil || !strings.Contains(err.Error(), "qa/values.yaml: the file was absent before the promotion, 100644 5f3d92a1") {
			t.Errorf("got %v", err)
		}
	})
}

// TestRestoreTakesOut undoes added fields in files that changed since.
func TestRestoreTakesOut(t *testing.T) {
	images := []pipeline.Carry{{KustomizeImages: []string{"r/*"}, WhenAbsent: "add"}}
	values := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"f.yaml"}, Paths: []string{"a.tag", "a.b.c.tag", "a.b.c.digest", "n"}}, WhenAbsent: "add"}}
	json := []pipeline.Carry{{JSON: &pipeline.FieldPick{Files: []string{"f.json"}, Paths: []string{"a.tag", "n"}}, WhenAbsent: "add"}}
	field := func(path, value string) Field { return Field{Kind: KindYAML, File: "f.yaml", Path: path, Value: value} }
	image := func(path, value string) Field {
		return Field{Kind: KindImage, File: "kustomization.yaml", Path: path, Value: value}
	}
	tests := []struct {
		name, file, before string
		carry              []pipeline.Carry
		add                []Field
		now                [2]string // what is replaced since the promotion landed
		err                string    // otherwise what is as before, but for what changed since
	}{
		{"a key", "f.yaml", "a:\n  repo: x # r\nb: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"b: 1", "b: 2 # now"}, ""},
		{"with CRLF", "f.yaml", "a:\r\n  repo: x\r\nb: 1", values, []Field{field("a.tag", "v1"), field("n", "x")}, [2]string{"b: 1", "b: 2"}, ""},
		{"mappings", "f.yaml", "a:\n  repo: x\nb: 1\n", values, []Field{field("a.b.c.tag", "v1"), field("a.b.c.digest", "d")}, [2]string{"b: 1", "b: 2"}, ""},
		{"in flow", "f.yaml", "a: {repo: x}\nb: 1\n", values, []Field{field("a.tag", "v1"), field("a.b.c.tag", "v1")}, [2]string{"b: 1", "b: 2"}, ""},
		{"in empty flow", "f.yaml", "a: {}\nb: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"b: 1", "b: 2"}, ""},
		{"siblings came since", "f.yaml", "a:\n  repo: x\nb: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"  tag: v1\n", "  tag: v1\n  more: y\n"}, ""},
		{"in flow, siblings went since", "f.yaml", "a: {repo: x}\nb: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"{repo: x, tag: v1}", "{tag: v1, other: y}"}, ""},
		{"images", "kustomization.yaml", "resources: [x]\n", images, []Field{image("images[r/web].newTag", "v1"), image("images[r/web].digest", "d")}, [2]string{"[x]", "[x, y]"}, ""},
		{"an image's entry", "kustomization.yaml", "images:\n- name: r/db\n  newTag: v1\nresources: [x]\n", images, []Field{image("images[r/db].newTag", "v1"), image("images[r/web].newTag", "v1")}, [2]string{"[x]", "[x, y]"}, ""},
		{"an image's key", "kustomization.yaml", "images:\n- name: r/web\n  newTag: v1\nresources: [x]\n", images, []Field{image("images[r/web].newTag", "v2"), image("images[r/web].digest", "d")}, [2]string{"[x]", "[x, y]"}, ""},
		{"JSON", "f.json", "{\n  \"a\": {},\n  \"b\": 1\n}\n", json, []Field{{Kind: KindJSON, File: "f.json", Path: "a.tag", Value: "v1"}, {Kind: KindJSON, File: "f.json", Path: "n", Value: "2"}}, [2]string{`"b": 1`, `"b": 5`}, ""},
		{"more came into what it added", "f.yaml", "b: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"  tag: v1\n", "  tag: v1\n  more: y\n"}, "a.tag: the promotion added a, and more has changed in it since: remove it by hand"},
		{"another value since", "f.yaml", "a: {}\n", values, []Field{field("a.tag", "v1")}, [2]string{"v1", "v2"}, `f.yaml:1: a.tag wasn't there before the promotion, "v1" with it, and is "v2" now`},
		{"gone since", "f.yaml", "a: {}\nb: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"{tag: v1}\nb: 1", "{}\nb: 2"}, ""},
		{"a comment came behind it", "f.yaml", "a:\n  b: 1\n", values, []Field{field("a.tag", "v1")}, [2]string{"tag: v1", "tag: v1 # mine"}, "it shares its line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := newTree(map[string]string{tt.file: tt.before})
			edits, err := Compose(before, Overlay{Roots: []string{"."}, Carry: tt.carry}, Release{Fields: tt.add}, nil)
			if err != nil {
				t.Fatal(err)
			}
			landed := applyToMap(before, edits)
			text := string(landed[tt.file].Data)
			now := strings.Replace(text, tt.now[0], tt.now[1], 1)
			if now == text {
				t.Fatalf("%q isn't in %q", tt.now[0], text)
			}
			back, err := Restore(before, landed, newTree(map[string]string{tt.file: now}), []string{tt.file}, Overlay{Roots: []string{"."}, Carry: tt.carry})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, %v", back, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, now)
			}
			want := strings.Replace(tt.before, tt.now[0], tt.now[1], 1)
			switch tt.name { // what changed since is in what was added
			case "siblings came since":
				want = "a:\n  repo: x\n  more: y\nb: 1\n"
			case "in flow, siblings went since":
				want = "a: {other: y}\nb: 1\n"
			case "gone since":
				want = now
			}
			got := now
			if len(back) > 0 {
				got = string(back[0].After)
			}
			if got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
		})
	}
}

func TestVerifyCommit(t *testing.T) {
	head := newTree(map[string]string{"a.yaml": "x: 2\n", "b.yaml": "y: 1\n"})
	edit := Edit{File: "a.yaml", Before: []byte("x: 1\n"), After: []byte("x: 2\n"), Mode: ModeRegular}
	other := Edit{File: "a.yaml", Before: []byte("x: 1\n"), After: []byte("x: 3\n"), Mode: ModeRegular}
	script := Edit{File: "a.yaml", Before: []byte("x: 1\n"), After: []byte("x: 2\n"), Mode: ModeExecutable}
	gone := Edit{File: "c.yaml", Before: []byte("x: 1\n"), Deleted: true}
	tests := []struct {
		name    string
		changed []string
		edits   []Edit
		err     string
	}{
		{"the edits", []string{"a.yaml"}, []Edit{edit}, ""},
		{"nothing", nil, nil, ""},
		{"another file too", []string{"a.yaml", "b.yaml"}, []Edit{edit}, "b.yaml is changed"},
		{"other bytes", []string{"a.yaml"}, []Edit{other}, "a.yaml has other changes"},
		{"an edit is missing", nil, []Edit{edit}, "a.yaml isn't changed"},
		{"another mode", []string{"a.yaml"}, []Edit{script}, "a.yaml has the mode 100644, with the release it has 100755"},
		{"a deletion", []string{"a.yaml", "c.yaml"}, []Edit{edit, gone}, ""},
		{"the file is gone", []string{"c.yaml"}, []Edit{{File: "c.yaml", Mode: ModeRegular}}, "c.yaml is deleted"},
		{"the file isn't gone", []string{"a.yaml"}, []Edit{{File: "a.yaml", Deleted: true}}, "a.yaml is still there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := VerifyCommit(head, tt.changed, tt.edits)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
