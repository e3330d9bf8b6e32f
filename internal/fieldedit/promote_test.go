package fieldedit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// environmentFixture is a random environment with one to three roots, and what it carries.
type environmentFixture struct {
	commit fstest.MapFS
	roots  []string
	carry  []pipeline.Carry
	have   Release
	blobs  map[string][]byte // contents of whole files by git's id
}

// wholeFileNames are whole files that environments may have, and what is in them.
var (
	wholeFileNames = []string{"config/a.conf", "config/run.sh", "config/d/b.bin", "config/ä ö.txt"}
	wholeTexts     = []string{"", "level: debug\n", "no newline", "\x00\xff\r\n", "version https://git-lfs.github.com/spec/v1\n"}
	chartSample    = "apiVersion: v2\ndependencies:\n- name: redis\n  version: 1.2.3 # r\n- {name: redis2, alias: cache, version: \"1.20\"}\n"
)

func (e environmentFixture) contents(field Field) ([]byte, error) {
	return e.blobs[field.ObjectID()], nil
}

// genEnvironment makes an environment whose overlays have random kustomizations,
// values and JSON files; ok is false where its roots disagree or it carries
// nothing.
func genEnvironment(t *rapid.T) (environmentFixture, bool) {
	f := environmentFixture{blobs: map[string][]byte{}, commit: fstest.MapFS{"outside/values.yaml": &fstest.MapFile{Data: []byte("image:\n  tag: v1\n")}}}
	yamlDoc, jsonDoc := generate(t, false), generate(t, true)
	pick := func(g *generated) []string {
		var out []string
		for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(g.paths), 1, 3, rapid.ID[string]).Draw(t, "carried") {
			if !g.hard[p] {
				out = append(out, p)
			}
		}
		return out
	}
	f.carry = []pipeline.Carry{
		{KustomizeImages: []string{"registry.example/*"}},
		{KustomizeRefs: []string{"https://git.example/**"}},
		{YAML: &pipeline.FieldPick{Files: []string{"values.yaml"}, Paths: append(pick(yamlDoc), "neu.tag")}},
		{JSON: &pipeline.FieldPick{Files: []string{"conf/*.json"}, Paths: append(pick(jsonDoc), "neu")}},
		{YAML: &pipeline.FieldPick{Files: []string{"Chart.yaml"}, Paths: []string{"dependencies[*].version"}}},
		{Files: &pipeline.FilePick{Include: []string{"config/**"}}},
	}
	for i := range f.carry {
		f.carry[i].WhenAbsent = pipeline.WhenAbsentAdd
	}
	for _, text := range wholeTexts {
		f.blobs[objectID([]byte(text))] = []byte(text)
	}
	files := map[string]*fstest.MapFile{}
	for _, name := range wholeFileNames {
		if rapid.Bool().Draw(t, "whole") {
			files[name] = genWhole(t)
		}
	}
	kustomization := genKustomization(t)
	for i := range rapid.IntRange(1, 3).Draw(t, "roots") {
		root := fmt.Sprintf("overlays/e%d", i)
		f.roots = append(f.roots, root)
		for name, text := range map[string]string{"kustomization.yaml": kustomization, "values.yaml": yamlDoc.text, "conf/a.json": jsonDoc.text, "Chart.yaml": chartSample} {
			f.commit[root+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		f.commit[root+"/config/.keep"] = &fstest.MapFile{} // so that the folder is there
		for name, file := range files {
			f.commit[root+"/"+name] = file
		}
	}
	have, err := Read(f.commit, Overlay{Roots: f.roots, Carry: f.carry})
	if err != nil {
		var r *RefusedError
		if !errors.As(err, &r) {
			t.Fatal(err)
		}
		return f, false
	}
	f.have = have
	return f, !have.Empty()
}

func genWhole(t *rapid.T) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(rapid.SampledFrom(wholeTexts).Draw(t, "text")), Mode: rapid.SampledFrom([]fs.FileMode{0o644, 0o755}).Draw(t, "mode")}
}

func genKustomization(t *rapid.T) string {
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	indent := rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent")
	var b strings.Builder
	b.WriteString("resources:" + eol + indent + "- ../../base # base" + eol)
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b//c", "d"}), 0, 3, rapid.ID[string]).Draw(t, "remotes") {
		quote := rapid.SampledFrom([]string{"", "'", `"`}).Draw(t, "quote")
		query := rapid.SampledFrom([]string{"ref=v1", "ref=v1&timeout=90", "submodules=false&version=v1", "timeout=90"}).Draw(t, "query")
		fmt.Fprintf(&b, "%s- %shttps://git.example/%s?%s%s # remote%s", indent, quote, name, query, quote, eol)
	}
	b.WriteString("images:" + eol)
	for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"registry.example/web", "registry.example/api", "other/x", "'registry.example/db'"}), 1, 4, rapid.ID[string]).Draw(t, "images") {
		if rapid.Bool().Draw(t, "flow") {
			fmt.Fprintf(&b, "%s- {name: %s, newTag: 'v%d'}%s", indent, name, i, eol)
			continue
		}
		fmt.Fprintf(&b, "%s- name: %s%s%s  newTag: %s # tag%s", indent, name, eol, indent, rapid.SampledFrom([]string{"v1", `"1.20"`, "'2'"}).Draw(t, "tag"), eol)
		if rapid.Bool().Draw(t, "digest") {
			fmt.Fprintf(&b, "%s  digest: sha256:%d%s", indent, i, eol)
		}
	}
	return b.String()
}

// newRelease gives some of a release's fields other values of their types, adds
// some, and takes whole files away.
func newRelease(t *rapid.T, r Release) Release {
	var out Release
	added := map[string]bool{}
	add := func(f Field) {
		if rapid.IntRange(0, 5).Draw(t, "add") == 3 && !added[f.Key()] {
			out.Fields = append(out.Fields, f)
		}
	}
	for _, f := range r.Fields {
		added[f.Key()] = true
		if f.Kind != KindFile || f.File == "config/.keep" || rapid.Bool().Draw(t, "stays") {
			out.Fields = append(out.Fields, f)
		}
	}
	add(Field{Kind: KindImage, File: "kustomization.yaml", Path: "images[registry.example/web].digest", Value: "sha256:1"})
	add(Field{Kind: KindImage, File: "kustomization.yaml", Path: "images[registry.example/neu].newTag", Value: genValue(t)})
	add(Field{Kind: KindYAML, File: "values.yaml", Path: "neu.tag", Value: genValue(t)})
	add(Field{Kind: KindJSON, File: "conf/a.json", Path: "neu", Value: genValue(t)})
	for _, name := range wholeFileNames {
		w := genWhole(t)
		add(Field{Kind: KindFile, File: name, Value: wholeValue(ModeOf(fileInfo(w)), objectID(w.Data))})
	}
	for i := range out.Fields {
		if rapid.Bool().Draw(t, "keep") || !added[out.Fields[i].Key()] {
			continue
		}
		switch f := &out.Fields[i]; {
		case f.File == "config/.keep":
		case f.Kind == KindFile:
			w := genWhole(t)
			f.Value = wholeValue(ModeOf(fileInfo(w)), objectID(w.Data))
		case f.Kind == KindRef:
			f.Value = rapid.SampledFrom([]string{"v1", "v2", "1f0c2a77", "release%2Fv3", ""}).Draw(t, "ref")
		case f.Kind == KindJSON && f.Type == TypeNumber:
			f.Value = rapid.SampledFrom([]string{"1", "2.5", "1e3"}).Draw(t, "number")
		case f.Kind == KindJSON && f.Type == TypeBool:
			f.Value = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
		default:
			f.Value = genValue(t)
		}
	}
	out.Sort()
	return out
}

func fileInfo(f *fstest.MapFile) fs.FileInfo {
	return patchedInfo{mode: f.Mode}
}

// TestPropertyPromoteAndRevert holds that a promotion gives the environment exactly the release. It
// changes as many lines as fields moved and nothing outside of its roots. Undoing it restores the
// environment's bytes, also in files that others changed in the meantime.
func TestPropertyPromoteAndRevert(t *testing.T) {
	if *long { // a case is a whole fleet
		limitCases(t, 4000)
	}
	composed, refused, stopped := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f, ok := genEnvironment(t)
		if !ok {
			return
		}
		want := newRelease(t, f.have)
		edits, err := Compose(f.commit, Overlay{Roots: f.roots, Carry: f.carry}, want, f.contents)
		if err != nil {
			var r *RefusedError
			if !errors.As(err, &r) {
				t.Fatal(err)
			}
			t.Logf("refused: %v", err)
			refused++
			return
		}
		composed++
		landed := applyToMap(f.commit, edits)
		got, err := Read(landed, Overlay{Roots: f.roots, Carry: f.carry})
		if err != nil || got.ID() != want.ID() {
			t.Fatalf("carries %v instead of %v (%v)", got, want, err)
		}
		if (want.ID() == f.have.ID()) != (edits == nil) {
			t.Fatalf("%d edits for %v", len(edits), want)
		}
		var files []string
		for _, e := range edits {
			files = append(files, e.File)
			checkLines(t, e)
		}
		again, err := Compose(f.commit, Overlay{Roots: f.roots, Carry: f.carry}, got, contentsOf(landed, f.roots))
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyCommit(landed, files, again); err != nil {
			t.Fatalf("composing from what landed: %v", err)
		}
		back, err := Restore(f.commit, landed, landed, files, Overlay{Roots: f.roots, Carry: f.carry})
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, f.commit, applyToMap(landed, back), "")

		const later = "# später\n"
		now := fstest.MapFS{}
		for name, file := range landed {
			if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/config/") {
				file = &fstest.MapFile{Data: append(append([]byte(nil), file.Data...), "\n"+later...)}
			}
			now[name] = file
		}
		back, err = Restore(f.commit, landed, now, files, Overlay{Roots: f.roots, Carry: f.carry})
		if err != nil {
			var r *RefusedError
			if errors.As(err, &r) {
				t.Logf("stopped: %v", err)
				stopped++
				return
			}
			t.Fatal(err)
		}
		sameFiles(t, f.commit, applyToMap(now, back), "\n"+later)
	})
	t.Logf("%d promotions were refused, %d composed; of their reverts %d stopped in files that changed since", refused, composed, stopped)
	if refused*10 > composed || stopped*10 > composed {
		t.Error("too many")
	}
}

func checkLines(t *rapid.T, e Edit) {
	for _, c := range e.Changes {
		if c.Kind == KindFile || c.Added {
			return // not a line for a line
		}
	}
	before, after := bytes.Split(e.Before, []byte("\n")), bytes.Split(e.After, []byte("\n"))
	if len(before) != len(after) {
		t.Fatalf("%s: lines were added", e.File)
	}
	moved := map[int]bool{}
	for _, c := range e.Changes {
		moved[c.Line] = true
	}
	for i := range before {
		if !bytes.Equal(before[i], after[i]) != moved[i+1] {
			t.Fatalf("%s:%d: %q became %q with the changes %v", e.File, i+1, before[i], after[i], e.Changes)
		}
	}
}

// sameFiles compares two commits; the second may have tail behind YAML files.
func sameFiles(t *rapid.T, want, got fstest.MapFS, tail string) {
	for name, file := range want {
		expect := string(file.Data)
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/config/") {
			expect += tail
		}
		if got[name] == nil || string(got[name].Data) != expect || got[name].Mode&0o100 != file.Mode&0o100 {
			t.Fatalf("%s: %v instead of %q", name, got[name], expect)
		}
	}
	if len(want) != len(got) {
		t.Fatal("there are other files")
	}
}
