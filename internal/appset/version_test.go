package appset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"v3.5.7": {3, 5, 7}, "3.5": {3, 5, 0}, " v2.14.21+8f2c1a9 ": {2, 14, 21}, "v3.6.0-rc1": {3, 6, 0},
		"": {}, "3.x": {}, "latest": {}, "v0.0.0": {}, strings.Repeat("3", 500): {},
	} {
		got, err := ParseVersion(text)
		if got != want || (err == nil) != want.IsKnown() {
			t.Errorf("%.20q: %v, %v; wanted %v", text, got, err, want)
		}
	}
}

// versionSets are what the lines of Argo CD understand differently.
var versionSets = map[string]string{
	"nested selectors": `
  generators:
    - matrix:
        generators:
          - list: {elements: [{env: dev}]}
          - matrix:
              generators:
                - list: {elements: [{tier: a}, {tier: b}]}
                  selector: {matchLabels: {tier: a}}
                - list: {elements: [{zone: x}]}
  template:
    metadata: {name: 'app-{{env}}-{{tier}}'}
    SPEC`,
	"values of a matrix's second child": `
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - matrix:
        generators:
          - list: {elements: [{env: dev}]}
          - clusters:
              selector: {matchLabels: {tier: gold}}
              values: {both: '{{ .env }}', mixed: '{{ .name }}-{{ .server }}'}
  template:
    metadata: {name: 'app-{{ .values.both }}-{{ .values.mixed }}'}
    SPEC`,
	"labels in a selector": `
  goTemplate: true
  generators:
    - clusters: {values: {tier: '{{ .metadata.labels.tier }}'}, selector: {matchExpressions: [{key: tier, operator: Exists}]}}
      selector: {matchExpressions: [{key: metadata.labels.tier, operator: In, values: [gold]}, {key: values.tier, operator: In, values: [gold]}]}
  template:
    metadata: {name: 'app-{{ .name }}'}
    SPEC`,
	"typed merge": `
  generators:
    - merge:
        mergeKeys: [env]
        generators:
          - list: {elementsYaml: '[{env: dev, count: 1}]'}
          - list: {elements: [{env: dev, tag: "2"}]}
  template:
    metadata: {name: 'app-{{env}}-{{count}}-{{tag}}'}
    SPEC`,
	"an empty list": `
  goTemplate: true
  generators:
    - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: config/*.yaml}]}
  template:
    metadata: {name: 'app-{{ .path.filenameNormalized }}'}
    SPEC`,
	"excluded files": `
  goTemplate: true
  generators:
    - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: config/*.yaml}, {path: config/e*, exclude: true}, {path: config/none, exclude: false}]}
  template:
    metadata: {name: 'app-{{ .path.filenameNormalized }}'}
    SPEC`,
	"excluded files of another child": `
  goTemplate: true
  generators:
    - matrix:
        generators:
          - list: {elements: [{leave: empty}]}
          - git: {repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD, files: [{path: config/*.yaml}, {path: 'config/{{ .leave }}.yaml', exclude: true}]}
  template:
    metadata: {name: 'app-{{ .path.filenameNormalized }}'}
    SPEC`,
	"duplicates": `
  generators:
    - list: {elements: [{env: dev}, {env: qa}, {env: dev}]}
  template:
    metadata: {name: 'app-{{env}}'}
    SPEC`,
	"deletion order": `
  strategy: {type: RollingSync, deletionOrder: Reverse, rollingSync: {steps: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}
  generators:
    - list: {elements: [{env: dev}]}
  template:
    metadata: {name: 'app-{{env}}'}
    SPEC`,
	"a field that isn't understood": `
  generators:
    - list: {elements: [{env: dev}]}
  template:
    metadata: {name: 'app-{{env}}'}
    spec: {project: default, source: {repoURL: "https://git.example.com/acme/fleet.git", path: a, tagPrefix: web-}, destination: {name: in-cluster, namespace: x}}`,
	"no destination": `
  generators:
    - list: {elements: [{env: dev}]}
  template:
    metadata: {name: 'app-{{env}}'}
    spec: {project: default, source: {repoURL: "https://git.example.com/acme/fleet.git", path: a}, destination: {namespace: x}}`,
}

// resolvedFor is what a set comes to in an Argo CD of some version: names and what is
// wrong, and what is noted.
func resolvedFor(t *testing.T, spec string, v Version) (got, notes []string) {
	t.Helper()
	spec = strings.Replace(spec, "SPEC", `spec: {project: default, source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: a}, destination: {name: in-cluster, namespace: x}}`, 1)
	in := input(files(map[string]string{
		"argocd/set.yaml":   "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:" + spec,
		"config/empty.yaml": "# nothing\n---\n[]\n", "config/full.yaml": "a: []\n", "config/list.yaml": "[{a: 1}]",
	}), shop("argocd/*.yaml"))
	in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "", ""
	in.Version = v
	in.Clusters = []Cluster{
		{Secret: "gold", Name: "gold", Server: "https://gold", Labels: map[string]string{"tier": "gold"}},
		{Secret: "tin", Name: "tin", Server: "https://tin", Labels: map[string]string{"tier": "tin"}},
	}
	f := mustResolve(t, in)
	for i := range f.Targets {
		got = append(got, f.Targets[i].Name)
	}
	for _, p := range f.Problems {
		got = append(got, "problem: "+p.Message)
	}
	for _, n := range f.Notes {
		notes = append(notes, n.Message)
	}
	return got, notes
}

const valuesProblem = "problem: failed to get params for second generator in the matrix generator: child generator returned an error on parameter generation: " +
	`failed to replace parameters in generator: failed to execute go template {{ .name }}-{{ .server }}: template: :1:3: executing "" at <.name>: map has no entry for key "name"`

func TestLinesDiffer(t *testing.T) {
	for _, c := range []struct {
		set   string
		lines map[string][]string // by what is the first line that gives it
	}{
		{"nested selectors", map[string][]string{"2.14": {"app-dev-a", "app-dev-b"}, "3.0": {"app-dev-a"}}},
		{"labels in a selector", map[string][]string{"2.14": nil, "3.4": {"app-gold"}}},
		{"typed merge", map[string][]string{"2.14": {"app-dev-1-2"}, "3.1": {"app-dev-{{count}}-2"}}},
		{"an empty list", map[string][]string{"2.14": {"app-empty.yaml", "app-full.yaml", "app-list.yaml"}, "3.2": {"app-full.yaml", "app-list.yaml"}}},
		{"excluded files", map[string][]string{
			"2.14": {"problem: its field spec.generators[0].git.files[1].exclude came with Argo CD 3.1, and this one is 2.14: it doesn't know it"},
			"3.0":  {"problem: its field spec.generators[0].git.files[1].exclude came with Argo CD 3.1, and this one is 3.0: it doesn't know it"},
			"3.1":  {"app-full.yaml", "app-list.yaml"},
		}},
		{"excluded files of another child", map[string][]string{"3.1": {"app-full.yaml", "app-list.yaml"}}},
		{"duplicates", map[string][]string{
			"2.14": {"app-dev", "app-qa", "problem: the set generates more than one Application of this name; Argo CD keeps the first only"},
			"3.2":  {"app-qa", "problem: the set generates more than one Application of this name; Argo CD creates none of them"},
		}},
		{"deletion order", map[string][]string{"3.2": {"app-dev"}}},
		{"values of a matrix's second child", map[string][]string{"2.14": {valuesProblem}, "3.4": {"app-dev-gold-https://gold"}}},
		{"no destination", map[string][]string{"2.14": {"app-dev"}, "3.0": {"problem: it has no destination: Argo CD wants a cluster's server or name"}}},
	} {
		t.Run(c.set, func(t *testing.T) {
			var want []string
			known := false
			for _, line := range []string{"2.14", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5"} {
				if next, there := c.lines[line]; there {
					want, known = next, true
				}
				v, err := ParseVersion(line)
				must(t, err)
				got, notes := resolvedFor(t, versionSets[c.set], v)
				if d := cmp.Diff(want, got); known && d != "" {
					t.Errorf("%s (-want +got):\n%s", line, d)
				}
				// The rest of a template is noted for every line.
				notes = slices.DeleteFunc(notes, func(n string) bool { return strings.HasPrefix(n, "no generator gives the parameter") })
				if len(notes) > 0 {
					t.Errorf("%s: %v is noted although the version is known", line, notes)
				}
			}
		})
	}
}

// A set whose answer depends on a version that isn't known says so, and a newer field
// says which version it is at least.
func TestUnknownVersionIsReported(t *testing.T) {
	for set, want := range map[string][2]string{
		"nested selectors": {"app-dev-a, app-dev-b", "selectors within a nested matrix or merge"},
		"excluded files":   {"app-full.yaml, app-list.yaml", "came with Argo CD 3.1, so it is resolved as 3.1 does"},
		"deletion order":   {"app-dev", "came with Argo CD 3.2"},
		"duplicates":       {"app-dev, app-qa, problem: the set generates more than one Application of this name; Argo CD keeps the first only", ""},
		"a field that isn't understood": {`problem: unknown field "spec.template.spec.source.tagPrefix", which Argo CD has since 3.5: ` +
			"this version of the resolver doesn't know it, so the set is not half-understood", ""},
	} {
		got, notes := resolvedFor(t, versionSets[set], Version{})
		if strings.Join(got, ", ") != want[0] {
			t.Errorf("%s: %q", set, got)
		}
		if all := strings.Join(notes, "; "); !strings.Contains(all, want[1]) || (want[1] == "") != (all == "") {
			t.Errorf("%s: notes %q", set, all)
		}
	}
	if _, notes := resolvedFor(t, strings.Replace(versionSets["nested selectors"], "generators:", "applyNestedSelectors: true\n  generators:", 1), Version{}); len(notes) > 0 {
		t.Errorf("what no version differs about is noted: %q", notes)
	}
}

// TestFieldsOfNoVersion holds that fields of a set's templates that no Argo CD has are dropped, as
// Kubernetes drops them, with a note that names each. Nothing is dropped for an Argo CD that may
// know it.
func TestFieldsOfNoVersion(t *testing.T) {
	const set = `
  goTemplate: true
  generators:
    - list:
        elements: [{env: dev}]
        template: {spec: {project: default, destination: {}, source: {repoURL: "", heml: {}}}}
  template:
    metadata: {name: 'app-{{ .env }}', lables: {a: b}}
    spec:
      project: default
      source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: a, helm: {valueFilez: [x]}}
      destination: {name: in-cluster, namespace: x}
`
	for _, c := range []struct {
		name  string
		of    Version
		live  bool
		want  string
		notes []string
	}{
		{name: "a known line", of: Version{3, 5, 0}, want: "app-dev", notes: []string{
			"no Argo CD has its field spec.generators[0].list.template.spec.source.heml, which Kubernetes drops: the Applications are generated without it",
			"no Argo CD has its field spec.template.metadata.lables, which Kubernetes drops: the Applications are generated without it",
			"no Argo CD has its field spec.template.spec.source.helm.valueFilez, which Kubernetes drops: the Applications are generated without it",
		}},
		{name: "no known line", want: "app-dev", notes: []string{
			"no Argo CD up to 3.6 has its field spec.generators[0].list.template.spec.source.heml, which Kubernetes drops: the Applications are generated without it",
			"no Argo CD up to 3.6 has its field spec.template.metadata.lables, which Kubernetes drops: the Applications are generated without it",
			"no Argo CD up to 3.6 has its field spec.template.spec.source.helm.valueFilez, which Kubernetes drops: the Applications are generated without it",
		}},
		{name: "a line that is newer than all that are known", of: Version{3, 7, 0}, want: "problem"},
		{name: "no known line of one that runs", live: true, want: "problem"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:" + set
			in := input(files(map[string]string{"sets/a.yaml": text}), shop("sets/*.yaml"))
			in.Version = c.of
			if c.live {
				in.Live = &Live{}
			}
			f := mustResolve(t, in)
			var got, notes []string
			for _, target := range f.Targets {
				got = append(got, target.Name)
			}
			for _, n := range f.Notes {
				notes = append(notes, n.Message)
			}
			if c.want == "problem" {
				isNamed := len(f.Problems) > 0 && strings.Contains(f.Problems[0].Message, "unknown field \"spec.")
				if !isNamed || len(got) > 0 || len(notes) > 0 {
					t.Errorf("%v %v %v", got, notes, f.Problems)
				}
				return
			}
			slices.Sort(notes)
			if !slices.Equal(got, []string{c.want}) || !slices.Equal(notes, c.notes) {
				t.Errorf("%q, notes\n%s", got, strings.Join(notes, "\n"))
			}
		})
	}
}

// A field that the API's types don't have is kept through templates, other templates and
// patches, and decides whether the target syncs by itself.
func TestAutomatedEnabled(t *testing.T) {
	const set = `
  goTemplate: true
  generators:
    - list: {elements: [{env: dev, auto: "false"}, {env: qa, auto: "true"}]OVER}
  template:
    metadata: {name: 'app-{{ .env }}'}
    spec:
      project: default
      source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: a}
      destination: {name: in-cluster, namespace: x}
      syncPolicy: {automated: {AUTO}, retry: {limit: 2, refresh: true}}
  PATCH`
	over := ", template: {metadata: {}, spec: {project: '', destination: {}, syncPolicy: {automated: {enabled: true}}}}"
	for _, c := range []struct {
		auto, over, patch string
		want              []string // each target's automated
	}{
		{"", "", "", []string{"true {}", "true {}"}},
		{"prune: true", "", "", []string{`true {"prune":true}`, `true {"prune":true}`}},
		{"enabled: false", "", "", []string{`false {"enabled":false}`, `false {"enabled":false}`}},
		{"enabled: false", over, "", []string{`true {"enabled":true}`, `true {"enabled":true}`}},
		{"enabled: true", "", "templatePatch: 'spec: {syncPolicy: {automated: {enabled: {{ .auto }}}}}'", []string{`false {"enabled":false}`, `true {"enabled":true}`}},
		{"", "", "templatePatch: 'spec: {syncPolicy: {automated: {enabled: {{ .auto }}, selfHeal: true}}}'", []string{`false {"enabled":false,"selfHeal":true}`, `true {"enabled":true,"selfHeal":true}`}},
	} {
		spec := strings.NewReplacer("OVER", c.over, "AUTO", c.auto, "PATCH", c.patch).Replace(set)
		in := input(files(map[string]string{"argocd/set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:" + spec}), shop("argocd/*.yaml"))
		in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "", ""
		in.Version, in.Manifests = Version{3, 5, 7}, true
		f := mustResolve(t, in)
		var got []string
		for _, x := range f.Targets {
			var app struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					SyncPolicy struct {
						Automated json.RawMessage
						Retry     struct{ Refresh bool }
					}
				}
			}
			must(t, json.Unmarshal(x.Application, &app))
			if !app.Spec.SyncPolicy.Retry.Refresh || app.Metadata.Annotations != nil {
				t.Errorf("%+v", app)
			}
			got = append(got, fmt.Sprintf("%v %s", x.AutoSync, app.Spec.SyncPolicy.Automated))
		}
		if !slices.Equal(got, c.want) || len(f.Problems) > 0 {
			t.Errorf("%s %s %s: %q %v", c.auto, c.over, c.patch, got, f.Problems)
		}
	}
}

// A live Application's newer fields are no doubt about what it reads.
func TestLiveNewerFields(t *testing.T) {
	live := strings.Replace(liveApplication, "  destination:", "  syncPolicy: {automated: {enabled: false}}\n  destination:", 1)
	g, unknown, err := decodeApplication(raw(t, live))
	must(t, err)
	if unknown != nil || g.autoSyncs() || g.app.Spec.Destination.Namespace != "dev" {
		t.Errorf("%v %v %+v", unknown, g.autoSyncs(), g.app.Spec)
	}
	live = strings.Replace(liveApplication, "  destination:", "  syncPolicy: {automated: {enabled: true}, brandNew: 1}\n  destination:", 1)
	if g, unknown, err = decodeApplication(raw(t, live)); err != nil || unknown == nil || !g.autoSyncs() {
		t.Errorf("%v %v", unknown, err)
	}
}

// The repository that manifests are hydrated into may come from the template, its
// parameters and a patch; without one it is the source's own.
func TestHydratedIntoAnotherRepository(t *testing.T) {
	const set = `
  goTemplate: true
  generators: [{list: {elements: [{env: dev, into: hydrated}]}}]
  template:
    metadata: {name: 'app-{{ .env }}'}
    spec:
      project: default
      sourceHydrator:
        drySource: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: a}
        syncSource: {REPO targetBranch: env/dev, path: a}
      destination: {name: in-cluster, namespace: x}
  PATCH`
	const want = "https://git.example.com/acme/hydrated.git"
	for _, c := range []struct{ repo, patch, want string }{
		{`repoURL: "https://git.example.com/acme/{{ .into }}.git",`, "", want},
		{"", `templatePatch: 'spec: {sourceHydrator: {syncSource: {repoURL: "https://git.example.com/acme/{{ .into }}.git"}}}'`, want},
		{"", "", ""},
	} {
		spec := strings.NewReplacer("REPO", c.repo, "PATCH", c.patch).Replace(set)
		in := input(files(map[string]string{"argocd/set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:" + spec}), shop("argocd/*.yaml"))
		in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "", ""
		in.Version, in.Manifests = Version{3, 5, 7}, true
		f := mustResolve(t, in)
		if len(f.Targets) != 1 || len(f.Problems) > 0 {
			t.Fatalf("%s: %+v", c.repo, f)
		}
		var app struct {
			Spec struct {
				SourceHydrator struct {
					SyncSource struct{ RepoURL, TargetBranch string }
				}
			}
		}
		must(t, json.Unmarshal(f.Targets[0].Application, &app))
		if got := app.Spec.SourceHydrator.SyncSource; f.Targets[0].Hydration.RepoURL != c.want || got.RepoURL != c.want || got.TargetBranch != "env/dev" {
			t.Errorf("%s %s: %+v, and in the Application %+v", c.repo, c.patch, f.Targets[0].Hydration, got)
		}
	}
}

// TestOwnAnnotations holds that annotations of cluster Secrets for Argo CD itself are no parameters
// since some patches.
func TestOwnAnnotations(t *testing.T) {
	in := []Cluster{{Name: "a", Annotations: map[string]string{"argocd.argoproj.io/refresh": "now", "team": "x"}}}
	for v, want := range map[Version]int{{}: 2, {2, 14, 21}: 2, {3, 2, 99}: 2, {3, 3, 18}: 2, {3, 3, 19}: 1, {3, 5, 6}: 2, {3, 5, 7}: 1, {3, 6, 0}: 1, {4, 0, 0}: 1} {
		if got := len(v.exposedAnnotations(in)[0].Annotations); got != want {
			t.Errorf("%v: %d annotations, wanted %d", v, got, want)
		}
	}
	if len(in[0].Annotations) != 2 {
		t.Error("the caller's are gone")
	}
}

// TestValueFilesByVersion tells what entries of valueFiles are where that depends on the version, and
// which files that makes a target read.
func TestValueFilesByVersion(t *testing.T) {
	const glob, twice, names = `"envs/*.yaml"`, `"a.yaml", "./a.yaml"`, `"a.yaml", "b.yaml"`
	for name, c := range map[string]struct {
		files, path string
		version     Version
		want        ValueFilesAs
		reads       SourceFiles
	}{
		"a glob in 2.14":          {glob, "web", Version{2, 14, 21}, ValueFilesAsNames, SourceFiles{Values: []string{"web/envs/*.yaml"}}},
		"a glob in 3.3":           {glob, "web", Version{3, 3, 14}, ValueFilesAsNames, SourceFiles{Values: []string{"web/envs/*.yaml"}}},
		"a glob in 3.4":           {glob, "web", Version{3, 4, 0}, ValueFilesAsGlobs, SourceFiles{Globs: []string{"web/envs/*.yaml"}}},
		"a glob of who knows":     {glob, "web", Version{}, "", SourceFiles{Values: []string{"web/envs/*.yaml"}, Globs: []string{"web/envs/*.yaml"}}},
		"a path like a glob":      {names, "w[e]b", Version{3, 5, 0}, ValueFilesAsGlobs, SourceFiles{Globs: []string{"w[e]b/a.yaml", "w[e]b/b.yaml"}}},
		"a file twice, in 3.3":    {twice, "web", Version{3, 3, 0}, ValueFilesAsNames, SourceFiles{Values: []string{"web/a.yaml"}}},
		"a file twice, in 3.5":    {twice, "web", Version{3, 5, 0}, ValueFilesAsGlobs, SourceFiles{Values: []string{"web/a.yaml"}}},
		"what all take alike":     {names, "web", Version{3, 5, 0}, "", SourceFiles{Values: []string{"web/a.yaml", "web/b.yaml"}}},
		"what who knows does too": {names, "web", Version{}, "", SourceFiles{Values: []string{"web/a.yaml", "web/b.yaml"}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(files(map[string]string{"argocd/set.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: set}
spec:
  goTemplate: true
  generators: [{list: {elements: [{env: dev}]}}]
  template:
    metadata: {name: 'app-{{ .env }}'}
    spec:
      project: default
      source: {repoURL: "https://git.example.com/acme/fleet.git", targetRevision: main, path: "` + c.path + `", helm: {valueFiles: [` + c.files + `]}}
      destination: {name: in-cluster, namespace: x}
`}), shop("argocd/*.yaml"))
			in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "", ""
			in.Version = c.version
			f := mustResolve(t, in)
			if len(f.Targets) != 1 {
				t.Fatalf("%+v", f.Problems)
			}
			target := f.Targets[0]
			got := FilesOf(target, target.Sources[0])
			if target.ValueFiles != c.want || !slices.Equal(got.Values, c.reads.Values) || !slices.Equal(got.Globs, c.reads.Globs) {
				t.Errorf("as %q it reads %q and %q, want %q, %q and %q", target.ValueFiles, got.Values, got.Globs, c.want, c.reads.Values, c.reads.Globs)
			}
		})
	}
}
