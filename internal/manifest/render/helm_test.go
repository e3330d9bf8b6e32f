package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// templateSnippets are lines of templates that together are a document.
var templateSnippets = []string{
	`a: {{ .Values.a }}`,
	`b: {{ .Values.b | quote }}`,
	`c: {{ .Values.nothing | default "none" }}`,
	`d: {{ .Values.map.x.y | toYaml | indent 2 | trim }}`,
	`e: {{- toYaml .Values.map | nindent 2 }}`,
	`f: {{ include "top.name" . }}`,
	`g: {{ template "top.name" . }}`,
	`h: {{ tpl .Values.tpl . | quote }}`,
	`i: {{ tpl "{{ define \"inner\" }}in{{ end }}{{ include \"inner\" . }}{{ tpl .Values.tpl . }}" . }}`,
	`j: {{ range $i, $v := .Values.list }}{{ if eq $v "skip" }}{{ continue }}{{ end }}{{ if gt $i 2 }}{{ break }}{{ end }}{{ $i }}{{ $v }},{{ else }}empty{{ end }}`,
	`k: {{ range until 4 }}{{ . }}{{ end }}`,
	`l: {{ with .Values.map }}{{ .x.y }}{{ else }}no{{ end }}`,
	`m: {{ .Release.Name }}-{{ .Release.Namespace }}-{{ .Release.Revision }}-{{ .Release.IsInstall }}-{{ .Release.Service }}`,
	`n: {{ .Chart.Name }}-{{ .Chart.Version }}-{{ .Chart.IsRoot }}`,
	`o: {{ .Template.Name }} {{ .Template.BasePath }}`,
	`p: {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "batch/v1" }}`,
	`q: {{ .Files.Get "data.txt" | quote }} # {{ .Files.Lines "data.txt" }}`,
	`r: {{ (.Files.Glob "*.txt").AsSecrets | quote }}`,
	`s: {{ lookup "v1" "Secret" "a" "b" }}`,
	`t: {{ get (lookup "v1" "Secret" "a" "b") "data" }}`,
	`u: {{ dict "a" 1 "b" (list 1 2) | toJson }}`,
	`v: {{ fromYaml "a: [1" }}`,
	`w: {{ fromJsonArray "[1,2]" }} {{ fromYamlArray "- a" }} {{ fromJson "{}" }}`,
	`x: {{ .Values.global.g }} {{ .Subcharts }}`,
	`y: {{ required "y is needed" .Values.b }}`,
	`z: {{ "a,b" | replace "," ";" }} {{ seq 1 3 }} {{ repeat 3 "x" }} {{ untilStep 0 6 2 }}`,
	`aa: {{ $x := 1 }}{{ range list 1 2 }}{{ $x = add $x . }}{{ end }}{{ $x }}`,
	`ab: {{ .Values.deep.er.est }}`,
	`ac: {{ keys .Values.map | sortAlpha }} {{ values (dict "k" 1) }}`,
	`ad: {{ toToml .Values.map | quote }}`,
	`ae: {{ getHostByName "localhost" }}`,
	`af: {{ toDate "2006-01-02" "2024-05-06" | date "02.01.06" }}`,
	`ag: {{ dateInZone "2006-01-02" (toDate "2006-01-02" "2024-05-06") "UTC" }} {{ .Values.a | int64 | date_in_zone "2006" }}`,
	`ah: {{ fail "on purpose" }}`,
	`ai: {{ .Values.list | join "-" | upper | b64enc }}`,
	`aj: {{ block "blk" . }}default {{ .Values.a }}{{ end }}`,
	`ak: {{ mustMergeOverwrite (dict) .Values.map | toJson }}`,
	`al: {{ buildCustomCert "YQ==" "Yg==" }}`,
	`am: {{ semverCompare ">=1.0" .Chart.Version }} {{ ternary 1 2 true }}`,
	`an: {{ include "missing" . }}`,
	`ao: {{ /* comment */ -}} {{- "x" -}}`,
	`ap: {{ printf "%v %d" .Values.a 3 }} {{ .Values.list }}`,
	`ar: {{ print "a" 1 2 "b" }} {{ println "x" }} {{ cat "a" nil 1 "b" }} {{ join "," (list 1 "b" nil) }} {{ concat (list 1) (list "a") }} {{ printf "%s-%d%%" "a" 1 }}`,
	`as: {{ concat (list 1) "no list" }}`,
	`at: {{ printf "%[3]v" 1 }} {{ 1 | printf "%v %v" 2 }}`,
	`aq: {{ index .Values.list 1 }} {{ index .Values "a" }} {{ len .Values.list }}`,
}

// drawChart draws a chart with a dependency.
func drawChart(t *rapid.T) map[string]string {
	lines := func(label string) string {
		n := rapid.IntRange(1, 6).Draw(t, label)
		var b strings.Builder
		for range n {
			b.WriteString(rapid.SampledFrom(templateSnippets).Draw(t, "line") + "\n")
		}
		return b.String()
	}
	values := map[string]any{
		"a": rapid.SampledFrom([]any{1, "x", true, nil, 1.5, "1.20"}).Draw(t, "a"), "b": rapid.SampledFrom([]any{"", "text", nil}).Draw(t, "b"),
		"map":  map[string]any{"x": map[string]any{"y": rapid.SampledFrom([]any{nil, "on", []any{1}}).Draw(t, "y")}},
		"tpl":  rapid.SampledFrom([]string{"plain <no value>", "{{ .Values.a }}", "{{ include \"top.name\" . }}", "{{ .Values.gone }}", "{{"}).Draw(t, "tpl"),
		"list": rapid.SampledFrom([]any{[]any{}, []any{"a", "skip", "b", "c", "d"}}).Draw(t, "list"), "global": map[string]any{"g": "top"},
		"sub": map[string]any{"a": "for sub", "map": map[string]any{"x": nil}},
	}
	data, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"c/Chart.yaml": "apiVersion: v2\nname: top\nversion: 1.2.3\ndependencies: [{name: sub, version: 1.x, repository: ''}]\n", "c/values.yaml": string(data), "c/data.txt": "one\ntwo\n",
		"c/templates/_helpers.tpl": "{{ define \"top.name\" }}{{ .Release.Name }}/{{ .Chart.Name }}{{ end }}",
		"c/templates/a.yaml":       lines("a.yaml"), "c/templates/b.yaml": lines("b.yaml"), "c/templates/more/c.txt": lines("c.txt"),
		"c/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "c/charts/sub/values.yaml": string(data), "c/charts/sub/data.txt": "",
		"c/charts/sub/templates/a.yaml": lines("sub"), "c/charts/sub/templates/_h.tpl": "{{ define \"top.name\" }}sub's{{ end }}{{ define \"blk\" }}sub{{ end }}",
	}
}

// TestEngineOracle compares every template's text with Helm's own engine.
func TestEngineOracle(t *testing.T) {
	silenceLogs(t)
	right := 0
	rapid.Check(t, func(rt *rapid.T) {
		contents := drawChart(rt)
		root := writeTree(t, contents)
		defer os.RemoveAll(root)
		theirs, err := loader.LoadDir(filepath.Join(root, "c"))
		if err != nil {
			rt.Fatal(err)
		}
		r := &rendering{in: &Input{}, files: newTreeReader(context.Background(), memoryTree(contents))}
		ours, err := r.loadChart("c")
		if err != nil {
			rt.Fatal(err)
		}
		options := chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}
		if err := chartutil.ProcessDependenciesWithMerge(theirs, map[string]any{}); err != nil {
			rt.Fatal(err)
		}
		top, err := chartutil.ToRenderValues(theirs, map[string]any{}, options, nil)
		if err != nil {
			rt.Fatal(err)
		}
		want, wantErr := helmengine.Render(theirs, top)
		if err := chartutil.ProcessDependenciesWithMerge(ours, map[string]any{}); err != nil {
			rt.Fatal(err)
		}
		if top, err = chartutil.ToRenderValues(ours, map[string]any{}, options, nil); err != nil {
			rt.Fatal(err)
		}
		got, err := newEngine(context.Background()).render(ours, top)
		if (err == nil) != (wantErr == nil) {
			rt.Fatalf("ours: %v\nHelm: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		right++
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatal(d)
		}
	})
	if right == 0 {
		t.Error("no chart was right")
	}
}

// chartOf is a chart with one template and these values.
func chartOf(template, values string) map[string]string {
	return map[string]string{
		"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/values.yaml": values, "c/templates/t.yaml": template,
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  v: "

func TestHelmOptions(t *testing.T) {
	contents := chartOf(configMap+"{{ toJson .Values | quote }}\n  r: {{ .Release.Name }}/{{ .Release.Namespace }}\n  k: {{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has \"example.com/v1\" }}\n", "base: 1\n")
	contents["c/values-prod.yaml"] = "prod: 1\nmap: {a: 1}\n"
	contents["values/more.yaml"] = "more: 1\nmap: {b: 2}\n"
	contents["values/web.yaml"] = "app: 1\n"
	contents["values/text.txt"] = "a, b\n"
	contents["c/crds/crd.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n"
	contents["envs/b.yaml"] = "from: b\nb: 1\n"
	contents["envs/a.yaml"] = "from: a\n"
	contents["envs/deep/c.yaml"] = "from: c\n"
	contents["envs/x*.yaml"] = "from: named\n"
	globs := func(s string) string { return `{"valueFiles":[` + s + `],"ignoreMissingValueFiles":true}` }
	for _, tt := range []struct {
		name, options string
		want          string // of the object
		wantErr       string
		as            string // Input.ValueFilesAs
	}{
		{name: "globs", as: "globs", options: globs(`"/envs/[ab].yaml"`), want: `{\"b\":1,\"base\":1,\"from\":\"b\"}`},
		{name: "a glob in its place", as: "globs", options: globs(`"/envs/[ab].yaml","/envs/deep/c.yaml"`), want: `\"from\":\"c\"`},
		{name: "a glob, deeper files last", as: "globs", options: globs(`"/envs/**/*.yaml"`), want: `\"from\":\"c\"`},
		{name: "a file listed after its glob", as: "globs", options: globs(`"/envs/[ab].yaml","/envs/a.yaml"`), want: `\"from\":\"a\"`},
		{name: "a file listed before its glob", as: "globs", options: globs(`"/envs/b.yaml","/envs/[ab].yaml"`), want: `\"from\":\"a\"`},
		{name: "a file that is listed twice", as: "globs", options: globs(`"/envs/b.yaml","/envs/a.yaml","../envs/b.yaml"`), want: `\"from\":\"a\"`},
		{name: "a file that is listed twice, before 3.4", as: "names", options: globs(`"/envs/b.yaml","/envs/a.yaml","../envs/b.yaml"`), want: `\"from\":\"b\"`},
		{name: "a glob with a variable", as: "globs", options: globs(`"../values/$ARGOCD_APP_NAME*"`), want: `\"app\":1`},
		{name: "a glob of a source of this repository", as: "globs", options: globs(`"$here/envs/[a].yaml"`), want: `\"from\":\"a\"`},
		{name: "a glob of another repository", as: "globs", options: globs(`"$there/*.yaml"`), wantErr: "it is in another repository or revision: https://git.example/other"},
		{name: "a glob that matches none", as: "globs", options: `{"valueFiles":["gone/*.yaml"]}`, wantErr: "the glob of values files gone/*.yaml matches none"},
		{name: "a glob that needn't match", as: "globs", options: globs(`"gone/*.yaml"`), want: `{\"base\":1}`},
		{name: "a glob that matches a folder", as: "globs", options: globs(`"/envs/*"`), wantErr: "the values file envs/deep is not there"},
		{name: "a glob outside", as: "globs", options: globs(`"../../*.yaml"`), wantErr: "leads out of the repository"},
		{name: "a glob before 3.4", as: "names", options: `{"valueFiles":["/envs/*.yaml"]}`, wantErr: "the values file envs/*.yaml is not there"},
		{name: "a glob before 3.4 that needn't be there", as: "names", options: globs(`"/envs/*.yaml"`), want: `{\"base\":1}`},
		{name: "a name that looks like a glob, before 3.4", as: "names", options: globs(`"/envs/x*.yaml"`), want: `\"from\":\"named\"`},
		{name: "a glob of who knows", options: globs(`"/envs/*.yaml"`), wantErr: "/envs/*.yaml is a glob since Argo CD 3.4 and a file's name before: say which Argo CD it is"},
		{name: "none", options: `{}`, want: `"r":"web/shop","v":"{\"base\":1}"`},
		{name: "release name and namespace", options: `{"releaseName":"r","namespace":"n"}`, want: `"r":"r/n"`},
		{name: "values files", options: `{"valueFiles":["values-prod.yaml","/values/more.yaml"]}`, want: `\"map\":{\"a\":1,\"b\":2},\"more\":1,\"prod\":1`},
		{name: "values file of a source of this repository", options: `{"valueFiles":["$here/values/more.yaml"]}`, want: `\"more\":1`},
		{name: "values file with the application's name", options: `{"valueFiles":["../values/$ARGOCD_APP_NAME.yaml"]}`, want: `\"app\":1`},
		{name: "values file of another repository", options: `{"valueFiles":["$there/more.yaml"]}`, wantErr: "can't be rendered (c): it is in another repository or revision: https://git.example/other"},
		{name: "values file on the web", options: `{"valueFiles":["https://example.com/v.yaml"]}`, wantErr: "can't be rendered (c): it is outside the repository: https://example.com/v.yaml"},
		{name: "values file that isn't there", options: `{"valueFiles":["gone.yaml"]}`, wantErr: "the values file c/gone.yaml is not there"},
		{name: "values file that needn't be there", options: `{"valueFiles":["gone.yaml"],"ignoreMissingValueFiles":true}`, want: `{\"base\":1}`},
		{name: "values file outside", options: `{"valueFiles":["../../etc/passwd"]}`, wantErr: "leads out of the repository"},
		{name: "values", options: `{"values":"text: 1"}`, want: `\"text\":1`},
		{name: "an object of values goes first", options: `{"values":"text: 1","valuesObject":{"object":2}}`, want: `{\"base\":1,\"object\":2}`},
		{name: "values that are none", options: `{"values":"- a"}`, wantErr: "the Application's values"},
		{name: "parameters", options: `{"parameters":[{"name":"n","value":"1"},{"name":"s","value":"1","forceString":true},{"name":"l","value":"{a,b}"},{"name":"c","value":"a,b"},{"name":"e","value":"a\\,b"},{"name":"l2[1].x","value":"y"},{"name":"app","value":"$ARGOCD_APP_NAME"}]}`,
			want: `{\"app\":\"web\",\"base\":1,\"c\":\"a,b\",\"e\":\"a,b\",\"l\":[\"a\",\"b\"],\"l2\":[null,{\"x\":\"y\"}],\"n\":1,\"s\":\"1\"}`},
		{name: "file parameters", options: `{"fileParameters":[{"name":"f.g","path":"$here/values/text.txt"}]}`, want: `\"f\":{\"g\":\"a, b\\n\"}`},
		{name: "the cluster", options: `{"kubeVersion":"1.29.1","apiVersions":["example.com/v1"]}`, want: `"k":"v1.29.1 true"`},
		{name: "without definitions", options: `{"skipCrds":true}`, want: `"kind":"ConfigMap"`},
		{name: "another Helm", options: `{"version":"v2"}`, wantErr: `helm.version "v2" is not known to Argo CD`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := singleSource("c", `{"helm":`+tt.options+"}")
			in.ValueFilesAs = tt.as
			in.Sources = append(in.Sources, Source{RepoURL: "https://git.example/fleet", Ref: "here", InTree: true}, Source{RepoURL: "https://git.example/other", Ref: "there"})
			m, err := Render(context.Background(), memoryTree(contents), in)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := objectLines(m); !strings.Contains(got, tt.want) {
				t.Errorf("%s\nhas no %s", got, tt.want)
			}
			if hasCRD := strings.Contains(objectLines(m), "CustomResourceDefinition"); hasCRD == strings.Contains(tt.options, "skipCrds") {
				t.Errorf("custom resource definitions: %v", hasCRD)
			}
			if !slices.ContainsFunc(m.Notes, func(n string) bool { return strings.Contains(n, "what the cluster is able to do") }) && !strings.Contains(tt.options, "kubeVersion") {
				t.Errorf("the notes are %q", m.Notes)
			}
			extra := []string{"values/more.yaml", "values/text.txt", "values/web.yaml", "c/gone.yaml", "envs/*.yaml"}
			files := deps.Source{Path: "c", ValueFiles: []string{"c/values-prod.yaml", "envs/a.yaml", "envs/b.yaml", "envs/deep/c.yaml", "envs/x*.yaml"}}
			if tt.as == "globs" {
				files.ValueGlobs = []string{"envs/[ab].yaml", "envs/**/*.yaml", "values/web*", "c/gone/*.yaml"}
			}
			checkReadsKnown(t, contents, m, files, extra...)
		})
	}
}

func TestHelmDependencies(t *testing.T) {
	sub := map[string]string{
		"lib/sub/Chart.yaml":       "apiVersion: v2\nname: sub\nversion: 1.4.0\ndependencies: [{name: gone, version: 1.x, repository: 'https://charts.example'}]\n",
		"lib/sub/templates/x.yaml": strings.Replace(configMap, "name: x", "name: from-sub", 1) + "1\n",
	}
	for _, tt := range []struct{ name, dependency, more, want, wantErr string }{
		{name: "in a folder", dependency: "{name: sub, version: ^1.2.0, repository: 'file://../lib/sub'}", want: "from-sub"},
		{name: "too old", dependency: "{name: sub, version: '>=2', repository: 'file://../lib/sub'}", wantErr: "lib/sub has version 1.4.0, and >=2 is asked for"},
		{name: "not there", dependency: "{name: sub, version: 1.x, repository: 'file://../gone'}", wantErr: "gone is no folder"},
		{name: "outside", dependency: "{name: sub, version: 1.x, repository: 'file:///etc'}", wantErr: "it leads out of the repository"},
		{name: "above", dependency: "{name: sub, version: 1.x, repository: 'file://../../sub'}", wantErr: "it leads out of the repository"},
		{name: "on the web", dependency: "{name: sub, version: 1.x, repository: 'https://user:pw@charts.example'}", wantErr: "can't be rendered (c): the chart's dependencies are not in its charts folder: https://charts.example (sub)"},
		{name: "in a registry", dependency: "{name: sub, version: 1.x, repository: 'oci://registry.example/charts'}", wantErr: "oci://registry.example/charts (sub)"},
		{name: "nowhere", dependency: "{name: sub, version: 1.x}", wantErr: "has no repository"},
		{name: "vendored", dependency: "{name: sub, version: 1.x, repository: 'https://charts.example'}", more: "c/charts/sub/", want: "from-sub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			contents := chartOf(configMap+"1\n", "")
			contents["c/Chart.yaml"] += "dependencies: [" + tt.dependency + "]\n"
			maps.Copy(contents, sub)
			if tt.more != "" {
				for name, text := range sub {
					contents[strings.Replace(name, "lib/sub/", tt.more, 1)] = text
				}
			}
			m, err := Render(context.Background(), memoryTree(contents), singleSource("c", ""))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(objectLines(m), tt.want) {
				t.Errorf("%s\nhas no %s", objectLines(m), tt.want)
			}
			checkReadsKnown(t, contents, m, deps.Source{Path: "c"})
		})
	}
}

// TestNondeterministicFuncs holds that a chart that asks for chance renders the same twice.
func TestNondeterministicFuncs(t *testing.T) {
	for _, call := range []string{
		`randAlphaNum 8`, `randAlpha 8`, `randNumeric 8`, `randAscii 8 | b64enc`, `randBytes 8`, `randInt 1 1000`, `uuidv4`, `shuffle "abcdefgh"`, `bcrypt "x"`, `htpasswd "u" "p"`,
		`encryptAES "k" "plain"`, `genPrivateKey "rsa"`, `(genCA "c" 1).Cert`, `(genSelfSignedCert "c" nil nil 1).Key`, `(genSelfSignedCert "c" (list "1.2.3.4") (list "x") 1).Key`,
		`(genSignedCert "c" nil nil 1 (genCA "c" 1)).Cert`, `(genSignedCertWithKey "c" nil nil 1 (genCAWithKey "c" 1 "k") "k").Cert`, `now`, `now | unixEpoch`, `date "15:04:05.000000" ""`, `ago (toDate "2006-01-02" "2020-01-01")`,
		`htmlDate nil`, `dateInZone "15:04:05.000000" "" "Local"`, `keys .Values`, `values .Values`, `durationRound (toDate "2006-01-02" "2020-01-01")`,
	} {
		t.Run(call, func(t *testing.T) {
			contents := chartOf(configMap+"{{ "+call+" | toString | quote }}\n  w: {{ "+call+" | toString | quote }}\n", "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n")
			a, b := mustRender(t, contents, singleSource("c", "")), mustRender(t, contents, singleSource("c", ""))
			if a.Digest != b.Digest {
				t.Errorf("%s\n%s", objectLines(a), objectLines(b))
			}
			if strings.Contains(call, "Values") != !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, "stand-ins") }) {
				t.Errorf("the notes are %q", a.Notes)
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	networkUsed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		networkUsed = true
		fmt.Fprint(w, `{"type":"object"}`)
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, schema, values, wantErr string }{
		{name: "met", schema: `{"$schema":"https://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"number"}}}`, values: "a: 1"},
		{name: "not met", schema: `{"properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"number"}}}`, values: "a: x", wantErr: "at '/a': got string, want number"},
		{name: "with an address", schema: `{"$id":"` + server.URL + `/x.json","properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "with an address and a fragment", schema: `{"$id":"` + server.URL + `/x.json#frag","properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "parts with addresses", schema: `{"properties":{"a":{"$id":"` + server.URL + `/y.json#z","$ref":"#/definitions/n"}},"definitions":{"n":{"type":"number"}}}`, values: "a: x", wantErr: "can't be rendered (c): the values.schema.json of the chart c has parts with addresses of their own"},
		{name: "remote", schema: `{"properties":{"a":{"$ref":"` + server.URL + `/n.json"}}}`, values: "a: 1", wantErr: "refers to another document"},
		{name: "of a dialect elsewhere", schema: `{"$schema":"` + server.URL + `/dialect","properties":{"a":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "of a dialect on the machine's disk", schema: `{"$schema":"file://` + secret + `","properties":{"a":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "of a dialect that looks like a known one", schema: `{"$schema":"` + server.URL + `/://json-schema.org/schema","properties":{"a":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "with a part of a dialect elsewhere", schema: `{"properties":{"a":{"$schema":"` + server.URL + `/dialect","type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "of the newest dialect", schema: `{"$schema":"http://json-schema.org/schema#","properties":{"a":{"type":"number"}}}`, values: "a: x", wantErr: "got string, want number"},
		{name: "with a dynamic reference", schema: `{"properties":{"a":{"$dynamicRef":"` + server.URL + `/n.json"}}}`, values: "a: 1", wantErr: "has a $dynamicRef"},
		{name: "with a recursive reference", schema: `{"properties":{"a":{"$recursiveRef":"#"}}}`, values: "a: 1", wantErr: "has a $recursiveRef"},
		{name: "with an anchor", schema: `{"properties":{"a":{"$ref":"#n"}},"$defs":{"n":{"$anchor":"n","type":"number"}}}`, values: "a: 1"},
		{name: "about itself by an anchor", schema: `{"properties":{"a":{"$ref":"#n"}},"$defs":{"n":{"$anchor":"n","dependentSchemas":{"x":{"$ref":"#n"}}}}}`, values: "a: 1", wantErr: "it refers to itself without an end"},
		{name: "on the machine's disk", schema: `{"properties":{"a":{"$ref":"file://` + secret + `"}}}`, values: "a: 1", wantErr: "can't be rendered"},
		{name: "no JSON", schema: `{`, wantErr: "not valid JSON"},
		{name: "deep", schema: strings.Repeat(`{"not":`, 500) + "{}" + strings.Repeat("}", 500), wantErr: ErrLimit.Error()},
		{name: "about itself", schema: `{"$ref":"#"}`, values: "a: 1", wantErr: "it refers to itself without an end"},
		{name: "about itself in a circle", schema: `{"properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"$ref":"#/definitions/m"},"m":{"allOf":[{"$ref":"#/definitions/n"}]}}}`, values: "a: 1", wantErr: "it refers to itself without an end"},
		{name: "about itself by an anchor that isn't there", schema: `{"$ref":"#gone"}`, values: "a: 1", wantErr: "it refers to itself without an end"},
		{name: "about itself by an escaped anchor", schema: `{"properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"$id":"#a b","allOf":[{"$ref":"#a%20b"}]}}}`, values: "a: 1", wantErr: "it refers to itself without an end"},
		{name: "about what is in it", schema: `{"properties":{"a":{"$ref":"#"}}}`, values: "a: {a: {}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			contents := chartOf(configMap+"1\n", tt.values)
			contents["c/values.schema.json"] = tt.schema
			_, err := Render(context.Background(), memoryTree(contents), singleSource("c", ""))
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("the error is %v", err)
			}
			_, err = Render(context.Background(), memoryTree(contents), singleSource("c", `{"helm":{"skipSchemaValidation":true}}`))
			if err != nil {
				t.Errorf("without validation the error is %v", err)
			}
		})
	}
	if networkUsed {
		t.Error("the network was asked")
	}
}

func TestChartErrors(t *testing.T) {
	for _, tt := range []struct{ name, template, values, wantErr string }{
		{name: "fail", template: `{{ fail "no image" }}`, wantErr: "no image"},
		{name: "required", template: `{{ required "no image" .Values.x }}`, wantErr: "no image"},
		{name: "syntax", template: `{{ if }}`, wantErr: "c/templates/t.yaml:1: missing value for if"},
		{name: "manifest", template: "a: [", wantErr: "c/templates/t.yaml"},
		{name: "no kind", template: "a: 1", wantErr: "a manifest has no kind"},
		{name: "our own names", template: "{{ liftlockLeave }}", wantErr: "the name liftlockLeave is taken"},
		{name: "environment", template: `{{ env "HOME" }}`, wantErr: `function "env" not defined`},
		{name: "values", values: "[1]", wantErr: "values.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Render(context.Background(), memoryTree(chartOf(tt.template, tt.values)), singleSource("c", ""))
			var u *Unrenderable
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) || errors.As(err, &u) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
