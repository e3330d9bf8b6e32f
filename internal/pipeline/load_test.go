package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

func pipelineNamed(name string) string { return strings.Replace(minimalPipeline, "shop", name, 1) }

func TestLoad(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		names string // of the pipelines
		err   string
	}{
		"one file":              {map[string]string{".liftlock.yaml": pipelineNamed("shop"), "x.yaml": ":"}, "shop", ""},
		"a folder":              {map[string]string{".liftlock/b.yaml": pipelineNamed("b"), ".liftlock/a.yaml": pipelineNamed("a"), ".liftlock/README.md": "#", ".liftlock/old/x.yaml": ":"}, "a b", ""},
		"an unrelated folder":   {map[string]string{".liftlock.yaml": pipelineNamed("shop"), ".liftlock/README.md": "#"}, "shop", ""},
		"both":                  {map[string]string{".liftlock.yaml": pipelineNamed("a"), ".liftlock/b.yaml": pipelineNamed("b")}, "", ".liftlock.yaml: there is also .liftlock/b.yaml; keep the file or the folder, not both"},
		"one name twice":        {map[string]string{".liftlock/a.yaml": pipelineNamed("a"), ".liftlock/b.yaml": "# head\n" + pipelineNamed("a")}, "", `.liftlock/b.yaml:4: metadata.name: the pipeline "a" is already defined at .liftlock/a.yaml:3`},
		"all that is wrong":     {map[string]string{".liftlock/a.yaml": pipelineNamed("A"), ".liftlock/b.yaml": "{", ".liftlock/c.yaml": pipelineNamed("c")}, "", ".liftlock/a.yaml:3: metadata.name: \"A\" is not a name; use lower-case letters, digits and hyphens, and no hyphen first\n.liftlock/b.yaml:1: not valid YAML: did not find expected node content"},
		"another ending":        {map[string]string{".liftlock.yml": pipelineNamed("a")}, "", ".liftlock.yml: pipeline files end in .yaml; rename it"},
		"one of another ending": {map[string]string{".liftlock/a.yaml": pipelineNamed("a"), ".liftlock/b.yml": pipelineNamed("b")}, "", ".liftlock/b.yml: pipeline files end in .yaml; rename it"},
		"too large":             {map[string]string{".liftlock.yaml": strings.Repeat("#", strictyaml.MaxBytes+10)}, "", ".liftlock.yaml: 1048577 bytes are too many; at most 1048576 are read"},
	}
	many := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		many[".liftlock/"+name+".yaml"] = pipelineNamed(name) + "#" + strings.Repeat("x", maxTotal/5)
	}
	tests["too large together"] = struct {
		files map[string]string
		names string
		err   string
	}{many, "", ".liftlock/e.yaml: the pipeline files have more than 4194304 bytes together, which is too many"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for file, content := range test.files {
				fsys[file] = &fstest.MapFile{Data: []byte(content)}
			}
			all, err := Load(fsys)
			var names []string
			for _, p := range all {
				names = append(names, p.Name())
				if !IsPipelinePath(p.File) {
					t.Errorf("%s is not the path of a pipeline file", p.File)
				}
			}
			if got := strings.Join(names, " "); got != test.names {
				t.Errorf("the pipelines are %q, want %q", got, test.names)
			}
			var errs strictyaml.Errors
			if test.err == "" && err != nil || test.err != "" && (!errors.As(err, &errs) || err.Error() != test.err) {
				t.Errorf("the error is\n%v, want\n%s", err, test.err)
			}
		})
	}
}

func TestLoadNone(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"nothing":         {},
		"an empty folder": {".liftlock/README.md": &fstest.MapFile{}},
		"other files":     {"liftlock.yaml": &fstest.MapFile{}, "a/.liftlock.yaml": &fstest.MapFile{}},
	} {
		if all, err := Load(fsys); !errors.Is(err, ErrNoPipeline) || all != nil {
			t.Errorf("%s gives %d pipelines and %v", name, len(all), err)
		}
	}
}

// brokenFS is a repository that can't be read.
type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, errors.New("the mirror is gone") }

func TestLoadUnreadable(t *testing.T) {
	_, err := Load(brokenFS{})
	var errs strictyaml.Errors
	if err == nil || errors.As(err, &errs) || errors.Is(err, ErrNoPipeline) || !strings.Contains(err.Error(), "the mirror is gone") {
		t.Errorf("what can't be read gives %v", err)
	}
}

func TestTooManyFiles(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range maxFiles + 1 {
		fsys[".liftlock/"+strings.Repeat("x", i+1)+".yaml"] = &fstest.MapFile{}
	}
	if _, err := Load(fsys); err == nil || err.Error() != ".liftlock: 201 pipeline files are too many; at most 200" {
		t.Errorf("the error is %v", err)
	}
}

func TestValidateFile(t *testing.T) {
	if err := ValidateFile("testdata/shop.yaml"); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := ValidateFile(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := os.WriteFile(file, []byte("kind: Pipeline\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ValidateFile(file); err == nil || !strings.HasPrefix(err.Error(), file+":1: apiVersion: must be") {
		t.Errorf("a wrong file gives %v", err)
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"apiVersion: x\n": true, "kind: Pipeline\n": true, "listen: x\n": false, "[": false, "": false, "- a\n": false,
	} {
		if LooksLikePipeline([]byte(text)) != want {
			t.Errorf("Is(%q) is %t", text, !want)
		}
	}
	for path, want := range map[string]bool{
		".liftlock.yaml": true, ".liftlock/a.yaml": true, ".liftlock/a/b.yaml": false, ".liftlock/a.yml": false, "x/.liftlock.yaml": false, "liftlock.yaml": false,
	} {
		if IsPipelinePath(path) != want {
			t.Errorf("IsPipelinePath(%q) is %t", path, !want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"15m": "15m", "60m": "1h", "90s": "1m30s", "1h30m": "1h30m", "1h0m1s": "1h0m1s", "100ms": "100ms", "0s": "0s", "10h": "10h", "20m0s": "20m",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%s is %s, %v, want %s", text, d, err, want)
		}
	}
	var d Duration
	if err := d.UnmarshalText([]byte("soon")); err == nil {
		t.Errorf("soon is %s", d)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64().Draw(t, "d"))
		text, err := d.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := back.UnmarshalText(text); err != nil || back != d {
			t.Fatalf("%d is written as %s and read as %d, %v", d, text, back, err)
		}
	})
	if Duration(time.Minute).AsDuration() != time.Minute {
		t.Error("D is not the duration")
	}
}

func TestParseTemplate(t *testing.T) {
	render := func(text string, params map[string]any) (string, error) {
		t.Helper()
		template, err := ParseTemplate("component", text)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		err = template.Execute(&b, params)
		return b.String(), err
	}
	params := map[string]any{"path": map[string]any{"segments": []string{"apps", "Web"}}}
	if got, err := render(`{{ index .path.segments 1 | lower }}`, params); err != nil || got != "web" {
		t.Errorf("the component is %q, %v", got, err)
	}
	if got, err := render(`{{ .nothing }}`, params); err == nil {
		t.Errorf("a parameter that isn't there gives %q", got)
	}
}

func TestGateExamples(t *testing.T) {
	files, err := filepath.Glob("../../policies/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		if err := ValidateFile(file); err != nil {
			t.Error(err)
		}
	}
}
