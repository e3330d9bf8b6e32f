//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/world/randomset"
)

const (
	// randomBuilds is how many charts, and how many overlays, are drawn: the same ones in every run.
	randomBuilds = 25
	// setsOfBuild is how many ApplicationSets each makes.
	setsOfBuild = 4
	// oracleRepo is the repository's address, which nobody asks.
	oracleRepo = "https://git.example/acme/fleet.git"
)

// oracleClusters are clusters for generators, as kubectl prints their Secrets.
const oracleClusters = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: gold, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, tier: gold, environment: prod}}
  stringData: {name: gold, server: 'https://gold.invalid'}
- apiVersion: v1
  kind: Secret
  metadata: {name: tin, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, tier: tin, environment: staging}}
  stringData: {name: tin, server: 'https://tin.invalid'}
`

// build is one chart or overlay that makes ApplicationSets.
type build struct {
	entry   string            // of the pipeline's applicationSets
	files   map[string]string // from the repository's root
	program string            // that builds it
	args    []string          // from the repository's root
	sets    int               // how many it makes
}

// TestBuiltSetsEqualHelmAndKubectl builds ApplicationSets from charts and overlays, random and in
// many ways. They give the same as plain manifests that Argo CD's own Helm, or kubectl, have made
// of them.
func TestBuiltSetsEqualHelmAndKubectl(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) []build {
		var sets [2][]map[string]any
		for of := range sets {
			for range setsOfBuild {
				sets[of] = append(sets[of], randomset.Draw(t, oracleRepo, false))
			}
		}
		return []build{drawChart(t, sets[0]), drawOverlay(t, sets[1])}
	})
	dir := t.TempDir()
	files, pipeline := randomset.Tree(3, 3), strings.Builder{}
	var builds []build
	for n := range randomBuilds {
		for _, b := range draw.Example(n) {
			b = b.numbered(n)
			builds = append(builds, b)
			pipeline.WriteString("    - " + b.entry + "\n")
			for file, text := range b.files {
				files[file] = text
			}
		}
	}
	files[".liftlock.yaml"] = "apiVersion: liftlock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: shop}\n" +
		"spec:\n  applicationSets:\n" + pipeline.String() +
		"  component: web\n  environment: dev\n  carry: [{kustomizeImages: ['*']}]\n  environments: [{name: dev}]\n"
	files["clusters.yaml"] = oracleClusters
	writeFolder(t, dir, files)
	if n := compareBuilds(t, dir, oracleRepo, builds, "--clusters", filepath.Join(dir, "clusters.yaml")); n < len(builds) {
		t.Errorf("only %d Applications come of %d builds, which says little", n, len(builds))
	}
}

// The layout whose sets are a chart comes to what Argo CD's own Helm makes of it.
func TestLayoutOfChartEqualsHelm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/layouts/chart-of-sets")); err != nil {
		t.Fatal(err)
	}
	pipeline, err := os.ReadFile(filepath.Join(dir, ".liftlock.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const entry = `helm: {path: argocd/sets, valueFiles: ["values-hub.yaml"], values: {"environments":["staging","prod"]}}`
	if !strings.Contains(string(pipeline), "    - "+entry+"\n") {
		t.Fatalf("its sets are others than\n%s\nby now:\n%s", entry, pipeline)
	}
	made := build{entry: entry, program: normalCluster.helm, sets: 2,
		args: []string{"template", "sets", "argocd/sets", "-f", "argocd/sets/values-hub.yaml", "--set", "environments={staging,prod}"}}
	if n := compareBuilds(t, dir, "https://git.example/acme/deploy.git", []build{made}); n != 4 {
		t.Errorf("%d Applications come of it, wanted 4", n)
	}
}

// compareBuilds compares what the sets of a folder come to with what they do as their programs build
// them, and returns how many Applications that is.
func compareBuilds(t *testing.T, dir, repo string, builds []build, args ...string) int {
	t.Helper()
	for _, command := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", repo}, {"add", "-A"},
		{"-c", "user.name=linus", "-c", "user.email=linus@e2e.example", "commit", "-q", "-m", "Charts and overlays"}} {
		runIn(t, dir, "git", command...)
	}
	var rendered strings.Builder
	for _, b := range builds {
		text := runIn(t, dir, b.program, b.args...)
		if got := strings.Count(text, "\nkind: ApplicationSet\n"); got != b.sets {
			t.Fatalf("%s made %d sets, not %d:\n%s", b.entry, got, b.sets, text)
		}
		rendered.WriteString("---\n" + text + "\n")
	}
	plain := filepath.Join(t.TempDir(), "sets.yaml")
	if err := os.WriteFile(plain, []byte(rendered.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	want, wrong := resolveIn(t, dir, append(args, "-f", plain)...)
	got, alsoWrong := resolveIn(t, dir, args...)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-made by the programs +made here):\n%s", d)
	}
	if wrong != alsoWrong {
		t.Errorf("of what the programs made %q, of what is made here %q", wrong, alsoWrong)
	}
	t.Logf("%d builds come to %d Applications, and %q", len(builds), len(want), wrong)
	return len(want)
}

// numbered gives a build's names its number.
func (b build) numbered(n int) build {
	number := strings.NewReplacer("NUMBER", fmt.Sprint(n))
	out := build{entry: number.Replace(b.entry), program: b.program, sets: b.sets, files: map[string]string{}}
	for file, text := range b.files {
		out.files[number.Replace(file)] = number.Replace(text)
	}
	for _, arg := range b.args {
		out.args = append(out.args, number.Replace(arg))
	}
	return out
}

// drawChart draws a chart that makes the sets: some from text, some from its values, and all with what
// values files, values, helpers and conditions make of them.
func drawChart(t *rapid.T, sets []map[string]any) build {
	const dir = "argocd/chart-NUMBER"
	values := map[string]any{}
	templates := map[string]string{"_helpers.tpl": `{{- define "labels" }}{{ toYaml .Values.labels }}{{ end }}
{{- define "made" }}{{ .Release.Name }}/{{ .Values.labels.a }}/{{ .Values.labels.b }}/{{ .Chart.Name }}{{ end }}`}
	for i, set := range sets {
		nameSet(set, fmt.Sprintf("chart-NUMBER-%d", i))
		if spec, ok := nested(set, "spec", "template", "spec"); ok {
			spec["info"] = []any{map[string]any{"name": "made", "value": "MADE"}}
		}
		text := ""
		switch rapid.SampledFrom([]string{"text", "values", "each", "condition"}).Draw(t, "made of") {
		case "text":
			text = strings.ReplaceAll(escapeTemplate(toYAML(set)), "MADE", `{{ include "made" . }}`)
		case "values":
			values[fmt.Sprintf("set%d", i)] = set
			text = fmt.Sprintf("{{ toYaml .Values.set%d | replace \"MADE\" (include \"made\" .) }}\n", i)
		case "each":
			values[fmt.Sprintf("list%d", i)] = []any{set}
			text = fmt.Sprintf("{{- range .Values.list%d }}\n---\n"+
				"{{ . | toYaml | replace \"MADE\" (include \"made\" $) }}\n{{- end }}\n", i)
		case "condition":
			text = "{{- if and .Values.enabled (ne .Release.Name \"none\") }}\n" + escapeTemplate(toYAML(set)) +
				"{{- else }}\n{{ fail \"off\" }}\n{{- end }}\n"
		}
		if rapid.Bool().Draw(t, "labelled") {
			text = strings.Replace(text, "metadata:\n  name:",
				"metadata:\n  labels: {{- include \"labels\" . | nindent 4 }}\n  name:", 1)
		}
		templates[fmt.Sprintf("set-%d.yaml", i)] = text
	}
	values["enabled"], values["labels"] = false, map[string]any{"a": "own"}
	over := rapid.SampledFrom([]string{"{enabled: true}", "{enabled: true, labels: {a: over, b: 'true'}}",
		"{enabled: 1, labels: {a: null, c: x}}"}).Draw(t, "values")
	b := build{sets: len(sets), files: map[string]string{
		dir + "/Chart.yaml":            "apiVersion: v2\nname: sets\nversion: 0.1.0\n",
		dir + "/values.yaml":           toYAML(values),
		dir + "/values-lab.yaml":       "labels: {b: of the lab}\n",
		"argocd/over-NUMBER.yaml":      over + "\n",
		"argocd/elsewhere-NUMBER.yaml": "labels: {b: elsewhere}\n",
		dir + "/templates/NOTES.txt":   "made\n",
	}}
	for name, text := range templates {
		b.files[dir+"/templates/"+name] = text
	}
	entry, args := "helm: {path: "+dir, []string{"template", "chart-NUMBER", dir}
	if rapid.Bool().Draw(t, "named") {
		entry, args[1] = entry+", releaseName: hub", "hub"
	}
	valueFiles := rapid.SampledFrom([]string{"", "values-lab.yaml", "/argocd/elsewhere-NUMBER.yaml",
		"values-lab.yaml, /argocd/elsewhere-NUMBER.yaml", "/argocd/elsewhere-NUMBER.yaml, values-lab.yaml"}).Draw(t, "files")
	if valueFiles != "" {
		entry += ", valueFiles: [" + valueFiles + "]"
		for _, file := range strings.Split(valueFiles, ", ") {
			at, isRooted := strings.CutPrefix(file, "/")
			if !isRooted {
				at = dir + "/" + file
			}
			args = append(args, "-f", at)
		}
	}
	b.entry, b.program, b.args = entry+", values: "+over+"}", normalCluster.helm, append(args, "-f", "argocd/over-NUMBER.yaml")
	return b
}

// drawOverlay draws an overlay over a base with the sets, that changes them.
func drawOverlay(t *rapid.T, sets []map[string]any) build {
	const dir = "argocd/overlays/NUMBER"
	b := build{entry: "kustomize: " + dir, program: normalCluster.kubectl, args: []string{"kustomize", dir},
		sets: len(sets), files: map[string]string{}}
	base := "resources:\n"
	for i, set := range sets {
		nameSet(set, fmt.Sprintf("overlay-NUMBER-%d", i))
		b.files[fmt.Sprintf("argocd/base-NUMBER/set-%d.yaml", i)] = toYAML(set)
		base += fmt.Sprintf("  - set-%d.yaml\n", i)
	}
	b.files["argocd/base-NUMBER/kustomization.yaml"] = base
	first := sets[0]["metadata"].(map[string]any)["name"]
	overlay := "resources: [../../base-NUMBER]\n"
	for _, part := range []string{
		"nameSuffix: -lab\n", "namePrefix: lab-\n", "namespace: argocd\n", "commonAnnotations: {team: web}\n",
		"labels: [{pairs: {a: b}}]\n", "components: [../../component-NUMBER]\n",
		"patches:\n  - target: {kind: ApplicationSet}\n    patch: '- {op: add, path: /spec/template/spec/project, value: patched}'\n" +
			fmt.Sprintf("  - patch: '{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: %s}, "+
				"spec: {template: {metadata: {labels: {merged: \"1\"}}}}}'\n", first),
	} {
		if rapid.Bool().Draw(t, "part") {
			overlay += part
		}
	}
	b.files[dir+"/kustomization.yaml"] = overlay
	b.files["argocd/component-NUMBER/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
		"patches:\n  - target: {kind: ApplicationSet}\n    " +
		"patch: '- {op: add, path: /spec/template/metadata/annotations, value: {of: component}}'\n"
	return b
}

// nameSet gives a set a name, and the Applications of it names that no other set's have.
func nameSet(set map[string]any, name string) {
	set["metadata"] = map[string]any{"name": name}
	if meta, ok := nested(set, "spec", "template", "metadata"); ok {
		meta["name"] = name + "-" + fmt.Sprint(meta["name"])
	}
}

// nested is what lies at a path in an object, where that is one too.
func nested(in map[string]any, path ...string) (out map[string]any, ok bool) {
	for _, key := range path {
		if in, ok = in[key].(map[string]any); !ok {
			return nil, false
		}
	}
	return in, true
}

// escapeTemplate has Helm print a text as it is.
func escapeTemplate(text string) string { return strings.ReplaceAll(text, "{{", "{{ \"{{\" }}") }

func toYAML(value any) string {
	data, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // it was drawn as YAML's own kinds
	}
	return string(data)
}

// runIn runs a program in a folder.
func runIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "KUBECONFIG=/dev/null")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// howManyAreWrong is what `liftlock resolve` says of random sets, of which some can't be resolved.
var howManyAreWrong = regexp.MustCompile(`because of these \d+ problems`)

// resolveIn is what `liftlock resolve` says of a checkout: the Applications by name, and how many
// problems there are.
func resolveIn(t *testing.T, dir string, args ...string) (apps map[string]application, wrong string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"resolve", "--repo", dir, "--rev", "main", "-o", "json",
		"--argocd-version", normalCluster.argocd.version}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output() // it ends with an error where there are problems
	var list struct{ Items []application }
	if json.Unmarshal(out, &list) != nil {
		t.Fatalf("liftlock resolve %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	apps = map[string]application{}
	for _, app := range list.Items {
		apps[app.Metadata.Name] = app
	}
	return apps, howManyAreWrong.FindString(stderr.String())
}
