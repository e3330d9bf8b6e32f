// Package deploy_test holds that the chart and the kustomize bases install the same, and that
// the server takes the file that they give it.
package deploy_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/server/config"
)

var update = flag.Bool("update", false, "write the goldens and what is made from the chart anew")

// namespace is where everything is installed here, by a release of the chart's name.
const namespace = "liftlock"

// object is a Kubernetes object.
type object map[string]any

func (o object) meta() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func (o object) id() string {
	return fmt.Sprintf("%v %v/%v", o["kind"], o.meta()["namespace"], o.meta()["name"])
}

// renderChart renders the chart as helm install does, schema included; sorted by id.
func renderChart(t *testing.T, values map[string]any) ([]object, error) {
	t.Helper()
	chart, err := loader.LoadDir("chart")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "liftlock", Namespace: namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var out []object
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") {
			out = append(out, parseObjects(t, name, content)...)
		}
	}
	sortObjects(out)
	return out, nil
}

func mustRender(t *testing.T, values map[string]any) []object {
	t.Helper()
	out, err := renderChart(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parseObjects(t *testing.T, name, content string) (out []object) {
	t.Helper()
	for _, doc := range strings.Split("\n"+content, "\n---") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, doc)
		}
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

func sortObjects(list []object) {
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a.id(), b.id()) })
}

func readValues(t *testing.T, file string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, file)), &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func find(t *testing.T, list []object, id string) object {
	t.Helper()
	i := slices.IndexFunc(list, func(o object) bool { return o.id() == id })
	if i < 0 {
		t.Fatalf("there is no %s", id)
	}
	return list[i]
}

// checkFile compares a file with what it should be, or writes it.
func checkFile(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, readFile(t, file)); diff != "" {
		t.Errorf("%s isn't what the chart gives (go test ./deploy -update writes it); -want +got:\n%s", file, diff)
	}
}

func writeYAML(t *testing.T, list []object) string {
	t.Helper()
	var b bytes.Buffer
	for i, o := range list {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(data)
	}
	return b.String()
}

// chartValues are the ways to install that are held by goldens.
func chartValues(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{"defaults": {}}
	files, err := filepath.Glob("chart/ci/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files of values: %v", len(files), err)
	}
	for _, f := range files {
		out[strings.TrimSuffix(filepath.Base(f), ".yaml")] = readValues(t, f)
	}
	return out
}

// TestChart holds what the chart renders, but for what it takes over from deploy/monitoring.
func TestChart(t *testing.T) {
	for name, values := range chartValues(t) {
		t.Run(name, func(t *testing.T) {
			list := mustRender(t, values)
			for _, o := range list {
				switch o.id() {
				case "PrometheusRule liftlock/liftlock":
					var alerts map[string]any
					if err := yaml.Unmarshal([]byte(readFile(t, "monitoring/alerts.yaml")), &alerts); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(any(alerts), o["spec"]); diff != "" {
						t.Errorf("the rules aren't those of deploy/monitoring: %s", diff)
					}
					o["spec"] = "as monitoring/alerts.yaml"
				case "ConfigMap liftlock/liftlock-dashboard":
					data := o["data"].(map[string]any)
					if got, _ := data["liftlock.json"].(string); strings.TrimSpace(got) != strings.TrimSpace(readFile(t, "monitoring/dashboard.json")) {
						t.Error("the dashboard isn't that of deploy/monitoring")
					}
					data["liftlock.json"] = "as monitoring/dashboard.json"
				}
			}
			checkFile(t, filepath.Join("testdata", name+".yaml"), writeYAML(t, list))
		})
	}
}

// TestChartRefuses: what contradicts itself, or isn't known, is refused with a reason.
func TestChartRefuses(t *testing.T) {
	for _, c := range []struct{ name, values, want string }{
		{"an unknown key", "replica: 2", "additional properties 'replica' not allowed"},
		{"an unknown key within", "persistence: {sise: 1Gi}", "at '/persistence': additional properties 'sise' not allowed"},
		{"two replicas on SQLite", "replicas: 2", "set database to postgres"},
		{"a PostgreSQL in the file alone", "config: {storeFile: /etc/liftlock/secrets/store}", "set database to postgres"},
		{"SQLite in the file alone", "{database: postgres, config: {store: 'sqlite:///x'}}", "leave config.store out"},
		{"a loopback address", "config: {listen: '127.0.0.1:8080'}", "set it to 0.0.0.0:8080"},
		{"data that no volume keeps", "config: {dataDir: /data}", "at '/config/dataDir'"},
		{"an Ingress without a name", "ingress: {enabled: true}", "ingress.host is missing"},
		{"an Ingress for webhooks that come in beside", "{webhooksIngress: {enabled: true, host: a.example.com}, config: {webhooks: null}}", "needs config.webhooks.listen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
				t.Fatal(err)
			}
			if _, err := renderChart(t, values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; it should say %q", c.values, err, c.want)
			}
		})
	}
}

// secretsFolder is where the chart mounts the Secret.
const secretsFolder = "/etc/liftlock/secrets/"

// firstWord is what a path goes on with up to its end in YAML.
func firstWord(s string) string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\n \"',}", r) })[0]
}

// loadServerFile loads a server's file as liftlock serve does, with a Secret that has every
// file that it names.
func loadServerFile(t *testing.T, content string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	for _, part := range strings.Split(content, secretsFolder)[1:] {
		name := firstWord(part)
		secret := "a-secret-of-many-characters-" + name
		if name == "store" {
			secret = "postgres://liftlock:secret@db.example.com/liftlock"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "liftlock.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(content, secretsFolder, dir+"/")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatalf("the server refuses the file: %v\n%s", err, content)
	}
	return c
}

// serverFile is what the ConfigMap of that name has for the server.
func serverFile(t *testing.T, list []object, name string) string {
	t.Helper()
	data, _ := find(t, list, "ConfigMap "+namespace+"/"+name)["data"].(map[string]any)
	content, _ := data["liftlock.yaml"].(string)
	return content
}

// TestServerFile: the server takes what the chart writes for it, and listens where the
// Services lead.
func TestServerFile(t *testing.T) {
	all := chartValues(t)
	var app struct {
		Spec struct {
			Source struct {
				Path string
				Helm struct{ ValuesObject map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "argocd/application.yaml")), &app); err != nil {
		t.Fatal(err)
	}
	if source := app.Spec.Source; source.Path != "deploy/chart" || len(source.Helm.ValuesObject) == 0 {
		t.Fatalf("the Application installs %+v", source)
	}
	all["the Argo CD Application"] = app.Spec.Source.Helm.ValuesObject
	for name, values := range all {
		t.Run(name, func(t *testing.T) {
			list := mustRender(t, values)
			c := loadServerFile(t, serverFile(t, list, "liftlock"))
			if !slices.Contains(c.Hosts, "liftlock.liftlock.svc") {
				t.Errorf("by the Service's name it refuses to answer: hosts are %q", c.Hosts)
			}
			if postgres := strings.HasPrefix(c.Store.Reveal(), "postgres://"); postgres != (values["database"] == "postgres") {
				t.Errorf("database is %v, and the server's file goes by PostgreSQL: %t", values["database"], postgres)
			}
			ports := fmt.Sprint(container(t, list)["ports"])
			for _, address := range []string{c.Listen, c.Webhooks.Listen} {
				if address != "" && !strings.Contains(ports, "containerPort:"+address[strings.LastIndexByte(address, ':')+1:]) {
					t.Errorf("it listens at %s, and the pod's ports are %s", address, ports)
				}
			}
		})
	}
}

// TestSystemd: the server takes the file of the unit, and the unit loads what it names.
func TestSystemd(t *testing.T) {
	const credentials = "${CREDENTIALS_DIRECTORY}/"
	file, unit := readFile(t, "systemd/liftlock.yaml"), readFile(t, "systemd/liftlock.service")
	loadServerFile(t, strings.ReplaceAll(file, credentials, secretsFolder))
	parts := strings.Split(file, credentials)[1:]
	if len(parts) < 4 {
		t.Errorf("the file names %d credentials", len(parts))
	}
	for _, part := range parts {
		name := firstWord(part)
		if line := "LoadCredential=" + name + ":"; !strings.Contains(unit, "\n"+line) {
			t.Errorf("the unit has no %s", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // the unit's own syntax is checked where systemd is installed
	}
	// Only a program that is there is none to complain about.
	checked := filepath.Join(t.TempDir(), "liftlock.service")
	if err := os.WriteFile(checked, []byte(strings.ReplaceAll(unit, "/usr/local/bin/liftlock", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", checked).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// container is the Deployment's only one.
func container(t *testing.T, list []object) map[string]any {
	t.Helper()
	var d struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []map[string]any }
			}
		}
	}
	data, err := yaml.Marshal(find(t, list, "Deployment liftlock/liftlock"))
	if err == nil {
		err = yaml.Unmarshal(data, &d)
	}
	if err != nil || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment has %d containers: %v", len(d.Spec.Template.Spec.Containers), err)
	}
	return d.Spec.Template.Spec.Containers[0]
}

// kustomizeBases are the folders of deploy/kustomize with the values of the chart that they
// are made from. A component has what they add to the chart's defaults.
var kustomizeBases = []struct {
	folder, values string
	isComponent    bool
}{
	{"base", "{}", false},
	{"postgres", "{database: postgres, replicas: 2}", false},
	{"components/monitoring", "{monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}}", true},
	{"components/network-policy", "{networkPolicy: {enabled: true}}", true},
}

// TestKustomize holds that kustomize builds the chart's objects, without Helm's own marks.
func TestKustomize(t *testing.T) {
	defaults := map[string]bool{}
	for _, o := range mustRender(t, nil) {
		defaults[o.id()] = true
	}
	for _, c := range kustomizeBases {
		t.Run(c.folder, func(t *testing.T) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
				t.Fatal(err)
			}
			rendered := mustRender(t, values)
			var want []object
			for _, o := range rendered {
				switch {
				case c.isComponent && defaults[o.id()]:
				case o.id() == "ConfigMap liftlock/liftlock": // kustomize makes it from the file
				default:
					want = append(want, withoutHelm(t, o))
				}
			}
			folder := filepath.Join("kustomize", c.folder)
			checkFile(t, filepath.Join(folder, "liftlock.yaml"), writeYAML(t, want))
			if c.isComponent {
				return
			}
			file := serverFile(t, rendered, "liftlock")
			checkFile(t, filepath.Join(folder, "config", "liftlock.yaml"), file)
			built := build(t, folder)
			name := configMapOf(t, built)
			if got := serverFile(t, built, name); got != file {
				t.Errorf("the pod's ConfigMap has\n%s\nnot\n%s", got, file)
			}
			built = slices.DeleteFunc(built, func(o object) bool { return o.id() == "ConfigMap liftlock/"+name })
			if diff := cmp.Diff(writeYAML(t, want), strings.ReplaceAll(writeYAML(t, built), name, "liftlock")); diff != "" {
				t.Errorf("kustomize builds something else than the chart; -chart +kustomize:\n%s", diff)
			}
		})
	}
}

// TestKustomizeExample: an overlay's own server file is what the pod gets, and a good one.
func TestKustomizeExample(t *testing.T) {
	built := build(t, "kustomize/example")
	file := serverFile(t, built, configMapOf(t, built))
	if file != readFile(t, "kustomize/example/liftlock.yaml") {
		t.Errorf("the pod gets\n%s", file)
	}
	loadServerFile(t, file)
	find(t, built, "ServiceMonitor liftlock/liftlock")
}

func build(t *testing.T, folder string) []object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	content, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	out := parseObjects(t, folder, string(content))
	sortObjects(out)
	return out
}

// configMapOf is the name of the ConfigMap that the pod has for its file.
func configMapOf(t *testing.T, built []object) string {
	t.Helper()
	var names []string
	for _, o := range built {
		if o["kind"] == "ConfigMap" && strings.HasPrefix(fmt.Sprint(o.meta()["name"]), "liftlock-") && o.meta()["name"] != "liftlock-dashboard" {
			names = append(names, fmt.Sprint(o.meta()["name"]))
		}
	}
	if len(names) != 1 || !strings.Contains(writeYAML(t, []object{find(t, built, "Deployment liftlock/liftlock")}), "name: "+names[0]) {
		t.Fatalf("the pod has none of the ConfigMaps %q", names)
	}
	return names[0]
}

// withoutHelm is an object without what only Helm writes on it.
func withoutHelm(t *testing.T, o object) object {
	t.Helper()
	data, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out object
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	drop := func(meta map[string]any, field string, keys ...string) {
		values, _ := meta[field].(map[string]any)
		maps.DeleteFunc(values, func(k string, _ any) bool { return slices.Contains(keys, k) })
		if len(values) == 0 {
			delete(meta, field)
		}
	}
	drop(out.meta(), "labels", "helm.sh/chart", "app.kubernetes.io/managed-by")
	drop(out.meta(), "annotations", "helm.sh/resource-policy")
	if spec, _ := out["spec"].(map[string]any); out["kind"] == "Deployment" {
		drop(spec["template"].(map[string]any)["metadata"].(map[string]any), "annotations", "checksum/config")
	}
	return out
}
