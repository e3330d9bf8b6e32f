package appset

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/wording"
)

// listSet generates one Application from the folders that it also lists.
const wrongSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: "apps/*/config.yaml"}]}
  template:
    metadata: {name: '{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: x, path: p}
      destination: {server: https://kubernetes.default.svc}
`

// TestMalformedInputIsAProblem holds that what is broken, hostile or half there
// ends in a named problem, without a target of the set it concerns.
func TestMalformedInputIsAProblem(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(wrongSet, old, new, 1) }
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for _, c := range []struct {
		name, set, config string
		problem           string
		doublestar        bool
	}{
		{name: "ten megabytes of YAML", set: wrongSet + strings.Repeat("# x\n", 10<<20/4), problem: "sets/a.yaml: reading sets/a.yaml: its"},
		{name: "a generator file of ten megabytes", config: strings.Repeat("a: b\n", 10<<20/5), problem: "reading apps/web/config.yaml: its"},
		{name: "an alias bomb in a generator file", config: aliasBomb(), problem: "excessive aliasing"},
		{name: "an alias bomb in elementsYaml", set: with("git: {repoURL: \"https://git.example.com/acme/fleet.git\", revision: HEAD, files: [{path: \"apps/*/config.yaml\"}]}", "list: {elements: [], elementsYaml: \""+strings.ReplaceAll(aliasBomb(), "\n", "\\n")+"\"}"), problem: "excessive aliasing"},
		{name: "an alias bomb in templatePatch", set: with("goTemplate: true", "goTemplate: true\n  templatePatch: \""+strings.ReplaceAll(aliasBomb(), "\n", "\\n")+"\""), problem: "excessive aliasing"},
		{name: "deep nesting", set: wrongSet + "  x: " + deep + "\n", problem: "document 1 is not YAML"},
		{name: "deep nesting in a generator file", config: "a: " + deep, problem: "apps/web/config.yaml"},
		{name: "invalid UTF-8", set: with("name: s", "name: \"s\xff\""), problem: "document 1 is not YAML"},
		{name: "invalid UTF-8 in a generator file", config: "team: \"\xff\xfe\"", problem: "apps/web/config.yaml"},
		{name: "a null byte", set: with("name: s", "name: \"s\x00\""), problem: "document 1 is not YAML"},
		{name: "UTF-16", set: "\xff\xfea\x00:\x00 \x00[\x00", problem: "sets/a.yaml"},
		{name: "a key given twice", set: with("goTemplate: true", "goTemplate: true\n  goTemplate: false"), problem: "is given twice"},
		{name: "an unknown field of the template", set: with("project: default", "projct: default"), problem: `spec.template.spec.project is missing, and spec.template.spec.projct is no field of Argo CD's: Kubernetes refuses the object`},
		{name: "a field of the template that is newer", set: with("path: p}", "path: p, tagPrefix: v}"), problem: `unknown field "spec.template.spec.source.tagPrefix", which Argo CD has since 3.5: `},
		{name: "an unknown field of metadata", set: with("{name: s}", "{name: s, label: {}}"), problem: `unknown field "metadata.label"`},
		{name: "an unknown kind of generator", set: with("git: {", "gitea: {}\n    git: {"), problem: `unknown field "spec.generators[0].gitea"`},
		{name: "an unknown field three deep", set: with("- git:", "- matrix: {generators: [{list: {elements: [{a: b}]}}, {matrix: {generators: [{list: {elements: [{c: d}]}}, {clusters: {selector: {matchLabel: {}}}}]}}]}\n  - git:"),
			problem: `in spec.generators[0].matrix.generators[1].matrix: unknown field "generators[1].clusters.selector.matchLabel"`},
		{name: "a glob that can be read in many ways", set: with("apps/*/config.yaml", strings.Repeat("{a,aa}", 26)), problem: "has too many alternatives", doublestar: true},
		{name: "a type that doesn't fit", set: with("goTemplate: true", "goTemplate: maybe"), problem: "has a string where its type is"},
		{name: "a list of nothing", set: "apiVersion: v1\nkind: List\nitems: [null, 3]\n", problem: "no ApplicationSet in sets/a.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, config := c.set, c.config
			if set == "" {
				set = wrongSet
			}
			if config == "" {
				config = "team: web"
			}
			in := input(files(map[string]string{"sets/a.yaml": set, "apps/web/config.yaml": config}), shop("sets/*.yaml"))
			if c.doublestar {
				in.Globbing = GlobbingDoublestar
			}
			f := mustResolve(t, in)
			if len(f.Problems) != 1 || !strings.Contains(f.Problems[0].String(), c.problem) || len(f.Targets) > 0 {
				got := ""
				if len(f.Problems) > 0 {
					got = wording.Clip(f.Problems[0].String(), maxQuoted)
				}
				t.Errorf("%d targets, %d problems: %s; want %q", len(f.Targets), len(f.Problems), got, c.problem)
			}
			for _, p := range f.Problems {
				if len(p.Message) > 4<<10 {
					t.Errorf("a message of %d bytes", len(p.Message))
				}
			}
		})
	}
}

// vanishing is a tree that fails from some point on.
type vanishing struct {
	fs.FS
	gone func(name string) bool
}

func (v vanishing) Open(name string) (fs.File, error) {
	if v.gone(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
	}
	return v.FS.Open(name)
}

// TestVanishingRepository holds that a tree that fails in the middle is a
// problem, and that the next try looks at it again.
func TestVanishingRepository(t *testing.T) {
	for name, gone := range map[string]string{"at the manifest": "sets/a.yaml", "at the manifests' folder": "sets", "at the listing": "apps", "at a generator file": "apps/web/config.yaml"} {
		t.Run(name, func(t *testing.T) {
			broken := true
			in := input(vanishing{files(map[string]string{"sets/a.yaml": wrongSet, "apps/web/config.yaml": "team: web", "apps/api/config.yaml": "team: api"}),
				func(opened string) bool { return broken && opened == gone }}, shop("sets/*.yaml"))
			in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "", ""
			in.Revision = strings.Repeat("a", 40)
			r := New(Options{})
			f, err := r.Resolve(context.Background(), in)
			must(t, err)
			if len(f.Targets) > 0 || len(f.Problems) == 0 || !strings.Contains(f.Problems[0].Message, "input/output error") {
				t.Errorf("%+v", f)
			}
			broken = false
			if f, err = r.Resolve(context.Background(), in); err != nil || len(f.Problems) > 0 || len(f.Targets) != 2 {
				t.Errorf("when it is back: %+v, %v", f, err)
			}
		})
	}
}

// TestGeneratorFilesOutOfTheTree holds that symbolic links can't bring in what
// isn't the repository's.
func TestGeneratorFilesOutOfTheTree(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "config.yaml"), []byte("team: stolen"), 0o600))
	for name, to := range map[string]string{"absolute": filepath.Join(outside, "config.yaml"), "up": "../../../" + filepath.Base(outside) + "/config.yaml", "round": "config.yaml"} {
		t.Run(name, func(t *testing.T) {
			dir := checkout(t, map[string]string{"sets/a.yaml": wrongSet, "apps/api/config.yaml": "team: api", "apps/web/x": ""})
			must(t, os.Symlink(to, filepath.Join(dir, "apps/web/config.yaml")))
			f := mustResolve(t, input(os.DirFS(dir), shop("sets/*.yaml")))
			if len(f.Targets) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "reading apps/web/config.yaml") || strings.Contains(f.Problems[0].Message, "stolen") {
				t.Errorf("%+v", f)
			}
		})
	}
}
