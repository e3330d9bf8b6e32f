package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/services"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

var matrixTree = map[string]string{
	"apps/web/dev/config.json": `{"team": "web", "env": "dev", "deep": {"n": 1, "list": ["a"]}, "nothing": null}`,
	"apps/web/qa/config.json":  `{"team": "web", "env": "qa", "deep": {"m": {"x": 2}}, "path": "own"}`,
	"apps/api/dev/config.json": `[{"team": "api", "env": "dev"}, {"team": "api", "env": "qa", "deep": {}}]`,
	"apps/api/empty.json":      ``,
	"apps/broken.json":         `{`,
}

// bothParams gives the parameters of a set's generators, as the library makes
// them and as we do. The sets of a merge come in random order: they are sorted.
func bothParams(t rapid.TB, manifest string) (library, ours string, failed [2]error) {
	t.Helper()
	in := input(files(matrixTree), shop())
	in.Clusters = oracleClusters
	snap := newSnapshot(in.Clusters, nil)
	snap.argocd = in.argoCD("")
	var s appSet
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	must(t, err)
	must(t, json.Unmarshal(raw, &s.spec))
	ctx := context.Background()
	c := &commit{tree: in.Tree, urls: in.RepoURLs, branch: in.Branch}
	repos := &commitRepos{ctx: ctx, commit: c, globbing: GlobbingGit}
	client := &snapshotClient{secrets: snap.secrets}
	theirs := generators.GetGenerators(ctx, client, &snapshotClientset{secrets: snap.secrets}, "argocd", wholeRepos{repos: repos}, nil, generators.SCMConfig{})
	text := func(make func(g *argov1alpha1.ApplicationSetGenerator) ([]map[string]any, error)) (string, error) {
		var lines []string
		for i := range s.spec.Spec.Generators {
			params, err := make(&s.spec.Spec.Generators[i])
			if err != nil {
				return "", err
			}
			for _, p := range params {
				raw, err := json.Marshal(p)
				must(t, err)
				lines = append(lines, string(raw)+"\n")
			}
		}
		if strings.Contains(manifest, "merge") {
			slices.Sort(lines)
		}
		return strings.Join(lines, ""), nil
	}
	library, failed[0] = text(func(g *argov1alpha1.ApplicationSetGenerator) (out []map[string]any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		results, err := generators.Transform(*g, theirs, argov1alpha1.ApplicationSetTemplate{}, s.spec.DeepCopy(), nil, client)
		for _, r := range results {
			out = append(out, r.Params...)
		}
		return out, err
	})
	g := newGeneratorRun(ctx, &s, c, snap, nil, newResultCache(&setResults{}, ""))
	ours, failed[1] = text(func(gen *argov1alpha1.ApplicationSetGenerator) (out []map[string]any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		results, err := runGenerator(gen, g.gens, g.set, g.version, g.client)
		for _, r := range results {
			out = append(out, r.params...)
		}
		return out, err
	})
	return library, ours, failed
}

// wholeRepos answers the library's own git generator.
type wholeRepos struct {
	services.Repos
	repos *commitRepos
}

func (w wholeRepos) GetFiles(_ context.Context, url, revision, pattern string, _, _ bool) (map[string][]byte, error) {
	found, err := w.repos.locateFiles(url, revision, pattern)
	out := map[string][]byte{}
	for i := range found {
		if out[found[i].name], err = w.repos.readFile(&found[i]); err != nil {
			return nil, err
		}
	}
	return out, err
}

func (w wholeRepos) GetDirectories(_ context.Context, url, revision string, _, _ bool) ([]string, error) {
	return w.repos.listFolders(url, revision, []string{""})
}

func matrixManifest(goTemplate bool, generators string) string {
	return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: m, namespace: argocd}\nspec:\n  goTemplate: %v\n  generators: %s\n  template: {metadata: {name: x}, spec: {project: default}}\n", goTemplate, generators)
}

// TestMatrix compares parameters with the library's matrix, case by case.
func TestMatrix(t *testing.T) {
	redirectLibraryLogs(zap.NewNop())
	const repo = `repoURL: "https://git.example.com/acme/fleet.git", revision: HEAD`
	const files = `git: {` + repo + `, files: [{path: "apps/*/*/config.json"}]}`
	const dirs = `git: {` + repo + `, directories: [{path: "apps/*/*"}]}`
	const list = `list: {elements: [{team: web, env: dev}, {team: api, env: qa, extra: {a: null, b: [null, "{{ .team }}"]}}]}`
	for _, c := range []struct{ name, gens string }{
		{"list × clusters", `[{matrix: {generators: [{` + list + `}, {clusters: {}}]}}]`},
		{"files × clusters with values", `[{matrix: {generators: [{` + files + `}, {clusters: {selector: {matchLabels: {environment: prod}}, values: {a: "{{ .name }}-{{ .team }}", b: "{{name}}-{{team}}", c: plain}}}]}}]`},
		{"clusters × files of each", `[{matrix: {generators: [{clusters: {values: {team: web}}}, {git: {` + repo + `, files: [{path: "apps/{{ .values.team }}/*/config.json"}, {path: "apps/{{values.team}}/*/config.json"}], pathParamPrefix: "p{{ .project }}"}}]}}]`},
		{"directories × directories of each", `[{matrix: {generators: [{git: {` + repo + `, directories: [{path: "apps/*"}], pathParamPrefix: team}}, {git: {` + repo + `, directories: [{path: "{{ .team.path.path }}/*"}, {path: "{{team.path}}/*"}, {path: "apps/web/qa", exclude: true}], values: {up: "{{ .path.basename }}{{path.basename}}"}}}]}}]`},
		{"the same key twice", `[{matrix: {generators: [{` + files + `}, {` + dirs + `}]}}]`},
		{"the same key twice, prefixed", `[{matrix: {generators: [{git: {` + repo + `, files: [{path: "apps/*/*/config.json"}], pathParamPrefix: f}}, {` + dirs + `}]}}]`},
		{"maps over maps", `[{matrix: {generators: [{list: {elements: [{deep: {n: {x: 1}, l: [1]}}, {deep: {n: 5}}, {deep: null}, {deep: {}}, {deep: s}]}}, {list: {elements: [{deep: {n: {y: 2}, l: [2, 3], o: ""}}, {deep: {n: "", z: null}}, {deep: {}}, {}]}}]}}]`},
		{"cluster values under list values", `[{matrix: {generators: [{list: {elements: [{values: {a: "1", b: "2"}}]}}, {clusters: {values: {a: "x"}}}]}}]`},
		{"cluster labels over list metadata", `[{matrix: {generators: [{clusters: {}}, {list: {elements: [{metadata: {labels: {x: "1"}, more: 2}}]}}]}}]`},
		{"metadata of a list over clusters", `[{matrix: {generators: [{list: {elements: [{metadata: {labels: {x: "1"}}}]}}, {clusters: {}}]}}]`},
		{"flat list of clusters", `[{matrix: {generators: [{` + list + `}, {clusters: {flatList: true, values: {a: "{{ .name }}"}}}]}}]`},
		{"matrix in matrix", `[{matrix: {generators: [{matrix: {generators: [{` + list + `}, {clusters: {values: {v: "{{ .team }}"}}}]}}, {git: {` + repo + `, directories: [{path: "apps/{{ .team }}/*"}, {path: "apps/{{team}}/*"}]}}]}}]`},
		{"matrix second in matrix", `[{matrix: {generators: [{` + list + `}, {matrix: {generators: [{list: {elements: [{sub: "{{ .team }}{{team}}", deep: {k: "{{ .env }}"}}]}}, {clusters: {}}]}}]}}]`},
		{"three deep", `[{matrix: {generators: [{matrix: {generators: [{matrix: {generators: [{` + list + `}, {clusters: {}}]}}, {clusters: {}}]}}, {clusters: {}}]}}]`},
		{"merge in matrix", `[{matrix: {generators: [{merge: {mergeKeys: [team], generators: [{` + list + `}, {list: {elements: [{team: web, env: other}]}}]}}, {clusters: {}}]}}]`},
		{"merge second in matrix", `[{matrix: {generators: [{` + list + `}, {merge: {mergeKeys: [id], generators: [{list: {elements: [{id: "{{ .team }}{{team}}", a: b}]}}, {list: {elements: [{id: web, a: c}]}}]}}]}}]`},
		{"matrix in merge", `[{merge: {mergeKeys: [team, name], generators: [{matrix: {generators: [{list: {elements: [{team: web, deep: {a: 1}}, {team: api, deep: {b: 2}}]}}, {clusters: {}}]}}, {list: {elements: [{team: web, name: in-cluster, deep: {c: 3}}]}}]}}]`},
		{"matrix of files in merge", `[{merge: {mergeKeys: [team, env], generators: [{matrix: {generators: [{git: {` + repo + `, files: [{path: "apps/web/*/config.json"}]}}, {list: {elements: [{k: {l: 1}}]}}]}}, {list: {elements: [{team: web, env: dev, deep: {c: 3}, k: {m: 2}}]}}]}}]`},
		{"selectors", `[{matrix: {generators: [{` + files + `, selector: {matchLabels: {team: web}}}, {clusters: {}, selector: {matchExpressions: [{key: name, operator: NotIn, values: [in-cluster]}]}}]}, selector: {matchExpressions: [{key: deep.n, operator: Exists}]}}]`},
		{"templated selector", `[{matrix: {generators: [{` + list + `}, {clusters: {}, selector: {matchLabels: {name: "{{ .team }}"}}}]}}]`},
		{"templated cluster selector", `[{matrix: {generators: [{list: {elements: [{e: prod}, {e: staging}]}}, {clusters: {selector: {matchLabels: {environment: "{{ .e }}{{e}}"}}}}]}}]`},
		{"nested selectors that don't count", `[{matrix: {generators: [{matrix: {generators: [{` + list + `, selector: {matchLabels: {team: web}}}, {clusters: {}}]}}, {` + dirs + `}]}}]`},
		{"bad selector", `[{matrix: {generators: [{` + list + `, selector: {matchExpressions: [{key: a, operator: Huh}]}}, {clusters: {}}]}}]`},
		{"one child", `[{matrix: {generators: [{` + list + `}]}}]`},
		{"three children", `[{matrix: {generators: [{` + list + `}, {` + list + `}, {` + list + `}]}}]`},
		{"two kinds in a child", `[{matrix: {generators: [{` + list + `, clusters: {}}, {` + list + `}]}}]`},
		{"an empty child", `[{matrix: {generators: [{}, {` + list + `}]}}]`},
		{"an empty second child of none", `[{matrix: {generators: [{list: {elements: []}}, {}]}}]`},
		{"empty parameters", `[{matrix: {generators: [{list: {elements: [{}, null]}}, {list: {elements: [{a: "{{ .x }}", b: null}]}}]}}]`},
		{"nothing first", `[{matrix: {generators: [{list: {elements: []}}, {` + files + `}]}}]`},
		{"elementsYaml of a parameter", `[{matrix: {generators: [{list: {elements: [{y: '[{"q": 1}, {"q": {"r": 2}}]'}]}}, {list: {elements: [], elementsYaml: "{{ .y }}{{y}}"}}]}}]`},
		{"a broken file", `[{matrix: {generators: [{git: {` + repo + `, files: [{path: "apps/broken.json"}]}}, {clusters: {}}]}}]`},
		{"a broken template", `[{matrix: {generators: [{` + list + `}, {list: {elements: [{a: "{{ .x"}]}}]}}]`},
		{"a failing template", `[{matrix: {generators: [{` + list + `}, {list: {elements: [{a: "{{ fail .team }}"}]}}]}}]`},
		{"a template that writes", `[{matrix: {generators: [{` + list + `}, {list: {elements: [{a: '{{ $_ := set . "new" .team }}{{ .new }}'}, {b: "{{ .new }}"}]}}]}}]`},
		{"numbers in the second child", `[{matrix: {generators: [{list: {elements: [{a: b}]}}, {list: {elements: [{n: 12345678901234567890, f: 1.50, e: 1e3, b: true}]}}]}}]`},
	} {
		for _, goTemplate := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, goTemplate %v", c.name, goTemplate), func(t *testing.T) {
				library, ours, failed := bothParams(t, matrixManifest(goTemplate, c.gens))
				if (failed[0] == nil) != (failed[1] == nil) {
					t.Fatalf("the library's error: %v\nours: %v", failed[0], failed[1])
				}
				if d := cmp.Diff(library, ours); d != "" {
					t.Errorf("parameters differ (-library +ours):\n%s", d)
				}
			})
		}
	}
}

// TestMatrixIsBounded holds that a matrix of many by many ends in an error.
func TestMatrixIsBounded(t *testing.T) {
	element := strings.TrimSuffix(strings.Repeat("{a: b}, ", 1000), ", ")
	f := mustResolve(t, input(files(map[string]string{"sets/a.yaml": matrixManifest(false,
		`[{matrix: {generators: [{list: {elements: [`+element+`]}}, {list: {elements: [`+element+`]}}]}}]`)}), shop("sets/*.yaml")))
	if len(f.Targets) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "the matrix generator gives more than 200000 sets of parameters") {
		t.Errorf("%d targets, %v", len(f.Targets), f.Problems)
	}
}

// drawValue draws what a generator's parameter may be.
func drawValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{"", "x", "y"}).Draw(t, "text")
	case 1:
		return rapid.SampledFrom([]any{nil, true, false, 0, 1.5}).Draw(t, "scalar")
	case 2:
		return object{}
	case 3:
		return []any{}
	case 4:
		return []any{drawValue(t, depth-1)}
	}
	return drawParams(t, depth-1)
}

func drawParams(t *rapid.T, depth int) object {
	out := object{}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		out[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")] = drawValue(t, depth)
	}
	return out
}

// TestRandomParameters joins and merges random parameters as the library does.
func TestRandomParameters(t *testing.T) {
	redirectLibraryLogs(zap.NewNop())
	rapid.Check(t, func(t *rapid.T) {
		draw := func() []any {
			var out []any
			for range rapid.IntRange(1, 3).Draw(t, "elements") {
				out = append(out, drawParams(t, 3))
			}
			return out
		}
		gens := []any{object{"list": object{"elements": draw()}}, object{"list": object{"elements": draw()}}}
		if rapid.Bool().Draw(t, "nested") {
			gens[rapid.IntRange(0, 1).Draw(t, "which")] = object{"matrix": object{"generators": []any{gens[0], object{"list": object{"elements": draw()}}}}}
		}
		combined := object{"matrix": object{"generators": gens}}
		if rapid.Bool().Draw(t, "merged") {
			if rapid.Bool().Draw(t, "three") {
				gens = append(gens, object{"list": object{"elements": draw()}})
			}
			combined = object{"merge": object{"generators": gens, "mergeKeys": rapid.SampledFrom([][]any{{"a"}, {"a", "b"}, {"c"}, {}}).Draw(t, "mergeKeys")}}
		}
		raw, err := json.Marshal([]any{combined})
		must(t, err)
		manifest := matrixManifest(rapid.IntRange(0, 3).Draw(t, "goTemplate") > 0, string(raw))
		library, ours, failed := bothParams(t, manifest)
		if (failed[0] == nil) != (failed[1] == nil) || library != ours {
			t.Fatalf("the library: %v\n%s\nours: %v\n%s\nset:\n%s", failed[0], library, failed[1], ours, manifest)
		}
	})
}
