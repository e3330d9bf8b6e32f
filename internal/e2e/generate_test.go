//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/world/randomset"
)

const (
	// randomSets is how many are drawn: the same ones in every run.
	randomSets = 300
	// fewestGenerated is how many of them must give Applications to mean something.
	fewestGenerated = randomSets / 3
	// generateWorkers is how many sets are compared at once.
	generateWorkers = 4
)

// newerShapes are sets that only newer lines of Argo CD know, by the first that does.
var newerShapes = map[string]string{
	"v3.1": `
  goTemplate: true
  generators:
    - git: {repoURL: REPO, revision: main, files: [{path: apps/*/*/config.json}, {path: apps/*/qa/*, exclude: true}]}
  template:
    metadata: {name: '{{ .team }}-{{ .env }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
      destination: {name: in-cluster, namespace: '{{ .env }}'}
      syncPolicy: {automated: {enabled: false}}
`,
	"v3.2": `
  strategy: {type: RollingSync, deletionOrder: Reverse, rollingSync: {steps: [{matchExpressions: [{key: env, operator: In, values: [dev]}]}]}}
  generators:
    - clusters: {}
  template:
    metadata: {name: '{{nameNormalized}}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: apps/web/dev}
      destination: {server: '{{server}}', namespace: default}
      syncPolicy: {automated: {}, retry: {limit: 2, refresh: true}}
`,
}

// `liftlock resolve --argocd-version` gives the same of a set as `argocd appset generate` of that
// version. It isn't told beside other stories: a clusters generator sees their clusters too.
func TestResolveEqualsGenerate(t *testing.T) {
	f := repoFixture{plain: randomset.Tree(3, 3)}
	f.plain["config/eu.json"] = `{"tier": "gold", "tag": "1.0.0", "labels": {"a": "b", "b": "1"}, "manual": false}`
	f.plain["config/us.json"] = `{"tier": "tin", "tag": "1.20", "labels": {}, "manual": true, "revision": "HEAD"}`
	f.plain["apps/web/overlays/dev/kustomization.yaml"], f.plain["apps/web/overlays/qa/kustomization.yaml"] = "", ""
	s := newScenario(t, normalCluster, "generate", f)
	s.runGit("fetch", "-q", "origin")
	c := comparison{scenario: s, clusters: s.addClusters("gold", "tin")}

	for name, spec := range everyShape {
		if name == "dropped.yaml" { // generate refuses sets with a project in a template
			continue
		}
		if outcome := c.compareSet(strings.TrimSuffix(name, ".yaml"), setManifest(fillPlaceholders(spec, s.prefix, s.clone.url))); outcome != generated {
			t.Errorf("%s: %s", name, outcome)
		}
	}
	for since, spec := range newerShapes {
		if s.cluster.argocd.version < since { // versions of one digit, as the lab's are
			continue
		}
		if outcome := c.compareSet("newer-"+strings.ReplaceAll(since, ".", "-"), setManifest(fillPlaceholders(spec, s.prefix, s.clone.url))); outcome != generated {
			t.Errorf("what came with %s: %s", since, outcome)
		}
	}

	draw := rapid.Custom(func(t *rapid.T) map[string]any { return randomset.Draw(t, s.clone.url, false) })
	count := map[string]int{}
	var lock sync.Mutex
	var work sync.WaitGroup
	numbers := make(chan int)
	for range generateWorkers {
		work.Go(func() {
			for n := range numbers {
				raw, err := yaml.Marshal(draw.Example(n))
				if err != nil {
					t.Error(err)
					continue
				}
				outcome := c.compareSet(fmt.Sprintf("random-%d", n), string(raw))
				lock.Lock()
				count[outcome]++
				lock.Unlock()
			}
		})
	}
	for n := range randomSets {
		numbers <- n
	}
	close(numbers)
	work.Wait()
	t.Logf("Argo CD %s, %d random sets: %v", s.cluster.argocd.version, randomSets, count)
	if count[generated] < fewestGenerated {
		t.Errorf("only %d of %d sets gave Applications", count[generated], randomSets)
	}
}

func setManifest(spec string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: compared}\nspec:" + spec
}

// The results of a comparison.
const (
	generated = "Applications"
	nothing   = "no Applications"
	failed    = "an error of both"
	refused   = "not taken by generate"
	different = "a difference"
)

// comparison holds one set after the other to what Argo CD's own command says.
type comparison struct {
	*scenario
	clusters string // a file
}

// compareSet says what the comparison came to; a difference fails the test.
func (c comparison) compareSet(name, manifest string) (outcome string) {
	file := filepath.Join(c.server.dir, "set-"+name+".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		c.Error(err)
		return different
	}
	want, wrong, err := c.runGenerate(file)
	if err != nil {
		c.Errorf("%s: %v", name, err)
		return different
	}
	// The API that generate asks takes fewer sets than the controller does.
	for _, narrower := range []string{"templated `project` fields", "references project", "ApplicationSet's project"} {
		if strings.Contains(wrong, narrower) {
			return refused
		}
	}
	got, said, err := c.runResolveFile(file)
	if err != nil {
		c.Errorf("%s: %v", name, err)
		return different
	}
	problem := explainDifference(want, got, wrong, said, strings.Contains(manifest, "merge:"))
	switch {
	case problem != "":
		c.Errorf("%s: %s\nargocd says: %s\nresolve says: %s\nset:\n%s", name, problem, wrong, said, manifest)
		return different
	case wrong != "":
		return failed
	case len(want) == 0:
		return nothing
	}
	return generated
}

// explainDifference is empty when both say the same. An Application that the controller
// would generate and then drop, which generate doesn't look at, must be a problem that
// names it.
func explainDifference(want, got map[string][]any, wrong, said string, merges bool) string {
	if wrong != "" {
		if len(got) > 0 || said == "" {
			return fmt.Sprintf("argocd says an error, resolve %d Applications", len(got))
		}
		return ""
	}
	for name, apps := range want {
		of, there := got[name]
		switch {
		case !there && !strings.Contains(said, name):
			return "resolve lacks " + name + " and doesn't say why"
		case !there:
			continue
		case !merges: // whose order is random
			apps = apps[:1]
		}
		if !slices.ContainsFunc(apps, func(app any) bool { return cmp.Equal(app, of[0]) }) {
			return name + " (-argocd +resolve):\n" + cmp.Diff(apps[0], of[0])
		}
	}
	for name := range got {
		if want[name] == nil {
			return "argocd lacks " + name
		}
	}
	return ""
}

// runGenerate is what Argo CD's command makes of the file, by name, or what it says is wrong.
func (c comparison) runGenerate(file string) (apps map[string][]any, wrong string, err error) {
	argocd := c.cluster.argocd
	out, wrong, err := c.runCommand(argocd.program, "appset", "generate", file, "-o", "json", "--plaintext", "--server", argocd.server)
	if err != nil || wrong != "" && len(bytes.TrimSpace(out)) == 0 {
		return nil, wrong, err
	}
	apps, err = parseApplications(out)
	return apps, "", err
}

// runResolveFile is what Liftlock makes of it, and what it says besides.
func (c comparison) runResolveFile(file string) (apps map[string][]any, said string, err error) {
	out, said, err := c.runCommand(program, "resolve", "--repo", c.clone.dir, "--rev", "origin/main", "-o", "json", "-f", file,
		"--clusters", c.clusters, "--argocd-version", c.cluster.argocd.version)
	if err != nil {
		return nil, said, err
	}
	if apps, err = parseApplications(out); err != nil {
		err = fmt.Errorf("%w; resolve says: %s", err, said)
	}
	return apps, said, err
}

// runCommand runs a program, whose failure is what it says.
func (c comparison) runCommand(name string, args ...string) (out []byte, said string, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return out, stderr.String(), err
}

// parseApplications reads a list of Applications, or the one that there is, by name.
func parseApplications(out []byte) (map[string][]any, error) {
	var list struct{ Items []application }
	if err := json.Unmarshal(out, &list); err != nil || list.Items == nil {
		if err := json.Unmarshal(out, &list.Items); err != nil {
			var single application
			if err := json.Unmarshal(out, &single); err != nil {
				return nil, fmt.Errorf("read the Applications of %.200q: %w", out, err)
			}
			list.Items = []application{single}
		}
	}
	apps := map[string][]any{}
	for _, app := range list.Items {
		if app.Metadata.Name != "" {
			app.normalizeSyncPolicy()
			apps[app.Metadata.Name] = append(apps[app.Metadata.Name], app)
		}
	}
	return apps, nil
}

// application is the part of an Application that its set decides.
type application struct {
	Metadata struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
		Finalizers  []string
	}
	Spec map[string]any
}

// normalizeSyncPolicy leaves out what says nothing, as the controller does with the whole
// policy and as lines before 3.4 do with what isn't automated.
func (a *application) normalizeSyncPolicy() {
	policy, _ := a.Spec["syncPolicy"].(map[string]any)
	automated, _ := policy["automated"].(map[string]any)
	for _, option := range []string{"prune", "selfHeal", "allowEmpty"} {
		if automated[option] == false {
			delete(automated, option)
		}
	}
	if len(policy) == 0 {
		delete(a.Spec, "syncPolicy")
	}
}
