package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// umbrella is a chart of dependencies, written NAME VERSION; more are lines of the first one's.
func umbrella(apiVersion string, more string, dependencies ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nname: checkout\nversion: 0.1.0\n", apiVersion)
	if apiVersion == "v1" {
		b.Reset()
	}
	b.WriteString("dependencies:\n")
	for i, d := range dependencies {
		name, version, _ := strings.Cut(d, " ")
		fmt.Fprintf(&b, "  - name: %s\n    version: %q\n    repository: https://charts.example/stable\n", name, version)
		if i == 0 {
			b.WriteString(more)
		}
	}
	return b.String()
}

// lockOf is the lock that Helm makes for a chart's dependencies: 3's, or 2's.
func lockOf(t testing.TB, file string, helm int) string {
	t.Helper()
	var meta chart.Metadata
	if err := yaml.Unmarshal([]byte(file), &meta); err != nil {
		t.Fatal(err)
	}
	var locked []*chart.Dependency
	for _, d := range meta.Dependencies {
		repository := d.Repository
		if strings.HasPrefix(repository, "@") {
			repository = "https://charts.example/stable"
		}
		locked = append(locked, &chart.Dependency{Name: d.Name, Version: strings.Trim(d.Version, "^~"), Repository: repository})
	}
	digest := hashDependencies(map[string][]*chart.Dependency{"dependencies": meta.Dependencies})
	if helm == 3 {
		var wanted []*chart.Dependency
		for i, d := range meta.Dependencies {
			resolved := *d
			resolved.Repository = locked[i].Repository
			wanted = append(wanted, &resolved)
		}
		digest = hashDependencies([2][]*chart.Dependency{wanted, locked})
	}
	raw, err := yaml.Marshal(&chart.Lock{Digest: digest, Dependencies: locked})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestChartLocks holds that an edit of what a chart depends on leaves a chart that is built, from what
// it asks for.
func TestChartLocks(t *testing.T) {
	const dir = "environments/stage/checkout/"
	v2 := func(dependencies ...string) string { return umbrella("v2", "", dependencies...) }
	old, moved := v2("cart 1.8.0", "search ^2.0.0"), v2("cart 1.9.0", "search ^2.0.0")
	oldV1, movedV1 := umbrella("v1", "", "cart 1.8.0"), umbrella("v1", "", "cart 1.9.0")
	const chartV1 = "apiVersion: v1\nname: checkout\nversion: 0.1.0\n"
	alias := func(file string) string {
		return strings.ReplaceAll(file, "https://charts.example/stable", "'@stable'")
	}
	local := func(file string) string {
		return strings.ReplaceAll(file, "https://charts.example/stable", "file://../cart")
	}
	const wouldNotFit = "Chart.lock wouldn't fit the dependencies in environments/stage/checkout/Chart.yaml any more, so Argo CD couldn't build the chart (helm: the lock file is out of sync): carry it too, with files: {include: [Chart.lock]}"
	for name, c := range map[string]struct {
		before, after map[string]string // "" takes a file away
		want          string
	}{
		"no lock":                    {map[string]string{"Chart.yaml": old}, map[string]string{"Chart.yaml": moved}, ""},
		"the lock stays":             {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": moved}, dir + wouldNotFit},
		"the lock goes along":        {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": moved, "Chart.lock": lockOf(t, moved, 3)}, ""},
		"the lock alone goes":        {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.lock": lockOf(t, moved, 3)}, "as it is carried, doesn't fit"},
		"the lock of another list":   {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": moved, "Chart.lock": lockOf(t, v2("cart 1.9.0"), 3)}, "as it is carried, doesn't fit"},
		"the lock is taken away":     {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": moved, "Chart.lock": ""}, ""},
		"a version within its range": {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": v2("cart 1.8.0", "search ~2.1.0")}, wouldNotFit},
		"a condition is carried":     {map[string]string{"Chart.yaml": old, "Chart.lock": lockOf(t, old, 3)}, map[string]string{"Chart.yaml": umbrella("v2", "    condition: cart.enabled\n", "cart 1.8.0", "search ^2.0.0")}, wouldNotFit},
		"the chart's own version":    {map[string]string{"Chart.yaml": old, "Chart.lock": "digest: sha256:stale\n"}, map[string]string{"Chart.yaml": strings.Replace(old, "0.1.0", "0.2.0", 1)}, "Chart.lock wouldn't fit"},
		"another file":               {map[string]string{"Chart.yaml": old, "Chart.lock": "digest: sha256:stale\n"}, map[string]string{"values.yaml": "a: b"}, ""},
		"a lock that isn't one":      {map[string]string{"Chart.yaml": old, "Chart.lock": "digest: [\n"}, map[string]string{"Chart.yaml": moved}, "can't be told"},
		"a list that isn't one":      {map[string]string{"Chart.yaml": old}, map[string]string{"Chart.yaml": strings.Replace(moved, "name: cart", "alias: 'a b'", 1)}, "disallowed characters in the alias"},
		"an alias of a repository":   {map[string]string{"Chart.yaml": alias(old), "Chart.lock": lockOf(t, alias(old), 3)}, map[string]string{"Chart.yaml": alias(moved), "Chart.lock": lockOf(t, alias(moved), 3)}, ""},
		"an alias, the lock stays":   {map[string]string{"Chart.yaml": alias(old), "Chart.lock": lockOf(t, alias(old), 3)}, map[string]string{"Chart.yaml": alias(moved)}, wouldNotFit},
		"Helm 2's, which goes along": {map[string]string{"Chart.yaml": chartV1, "requirements.yaml": oldV1, "requirements.lock": lockOf(t, oldV1, 2)},
			map[string]string{"requirements.yaml": movedV1, "requirements.lock": lockOf(t, movedV1, 2)}, ""},
		"Helm 2's, which stays": {map[string]string{"Chart.yaml": chartV1, "requirements.yaml": oldV1, "requirements.lock": lockOf(t, oldV1, 2)},
			map[string]string{"requirements.yaml": movedV1}, "requirements.lock wouldn't fit"},
		"Helm 3's of apiVersion v1": {map[string]string{"Chart.yaml": chartV1, "requirements.yaml": oldV1, "requirements.lock": lockOf(t, oldV1, 3)},
			map[string]string{"requirements.yaml": movedV1, "requirements.lock": lockOf(t, movedV1, 3)}, ""},
		"an archive stays":         {map[string]string{"Chart.yaml": old, "charts/cart-1.8.0.tgz": "a"}, map[string]string{"Chart.yaml": moved}, dir + "charts/cart-1.8.0.tgz lies there, and is what is rendered: environments/stage/checkout/Chart.yaml asks for 1.9.0; carry the archives too"},
		"the archive goes along":   {map[string]string{"Chart.yaml": old, "charts/cart-1.8.0.tgz": "a"}, map[string]string{"Chart.yaml": moved, "charts/cart-1.9.0.tgz": "b", "charts/cart-1.8.0.tgz": ""}, ""},
		"the archive is beside it": {map[string]string{"Chart.yaml": old, "charts/cart-1.8.0.tgz": "a"}, map[string]string{"Chart.yaml": moved, "charts/cart-1.9.0.tgz": "b"}, "charts/cart-1.8.0.tgz lies there"},
		"an archive within its range": {map[string]string{"Chart.yaml": old, "charts/search-2.3.4.tgz": "a"},
			map[string]string{"Chart.yaml": moved}, ""},
		"an archive of a longer name": {map[string]string{"Chart.yaml": old, "charts/cart-extras-1.8.0.tgz": "a"}, map[string]string{"Chart.yaml": moved}, ""},
		"a folder stays":              {map[string]string{"Chart.yaml": old, "charts/cart/Chart.yaml": "name: cart\nversion: 1.8.0\n"}, map[string]string{"Chart.yaml": moved}, dir + "charts/cart lies there"},
		"a chart beside it":           {map[string]string{"Chart.yaml": local(old), "charts/cart-1.8.0.tgz": "a"}, map[string]string{"Chart.yaml": local(moved)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := fstest.MapFS{}, fstest.MapFS{}
			for file, content := range c.before {
				before[dir+file] = &fstest.MapFile{Data: []byte(content)}
				after[dir+file] = before[dir+file]
			}
			var files []string
			for file, content := range c.after {
				files = append(files, dir+file)
				after[dir+file] = &fstest.MapFile{Data: []byte(content)}
				if content == "" {
					delete(after, dir+file)
				}
			}
			err := CheckChartLocks(before, after, files)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			if c.want == "" {
				if err := CheckChartLocks(after, before, files); strings.HasPrefix(name, "the lock goes") && err != nil {
					t.Errorf("taken back: %v", err)
				}
			}
		})
	}
}

// TestLocksThatHelmMade takes locks which Helm itself has made, from the tests in its own source: of 3
// by both lists, and of 2 by the dependencies alone. None fits once anything of it is another.
func TestLocksThatHelmMade(t *testing.T) {
	const import3 = "    tags: [NAME]\n    import-values: [data]\n    condition: NAME.enabled,global.NAME.enabled\n    repository: file://envs/NAME\n    version: '>= 0.0.1'\n"
	of := func(name string) string {
		return "  - name: " + name + "\n" + strings.ReplaceAll(import3, "NAME", name)
	}
	for name, c := range map[string]struct{ apiVersion, dependencies, locked, digest string }{
		"internal/resolver TestHashReq": {"v2", "  - {name: alpine, version: 0.1.0, repository: 'http://localhost:8879/charts'}\n",
			"  - {name: alpine, version: 0.1.0, repository: 'http://localhost:8879/charts'}\n", "fb239e836325c5fa14b29d1540a13b7d3ba13151b67fe719f820e0ef6d66aaaf"},
		"import-values-from-enabled-subchart": {"v2", of("dev") + of("prod"),
			"  - {name: dev, repository: 'file://envs/dev', version: v0.1.0}\n  - {name: prod, repository: 'file://envs/prod', version: v0.1.0}\n", "9403fc24f6cf9d6055820126cf7633b4bd1fed3c77e4880c674059f536346182"},
		"issue-7233, of Helm 2": {"v1", "  - {name: alpine, version: 0.1.0, repository: 'file://../alpine'}\n",
			"  - {name: alpine, repository: 'file://../alpine', version: 0.1.0}\n", "7b380b1a826e7be1eecb089f66209d6d3df54be4bf879d4a8e6f8a9e871710e5"},
	} {
		t.Run(name, func(t *testing.T) {
			fits := func(dependencies, locked, digest string) bool {
				got, err := readDependencies(fstest.MapFS{
					"c/Chart.yaml": {Data: []byte("apiVersion: " + c.apiVersion + "\nname: c\nversion: 0.1.0\ndependencies:\n" + dependencies)},
					"c/Chart.lock": {Data: []byte("dependencies:\n" + locked + "digest: sha256:" + digest + "\ngenerated: \"2020-02-03T10:38:51.180474+01:00\"\n")},
				}, "c")
				if err != nil {
					t.Fatal(err)
				}
				return got.lockFits()
			}
			if !fits(c.dependencies, c.locked, c.digest) {
				t.Error("it doesn't fit")
			}
			moved := strings.Replace(c.dependencies, "0.", "1.", 1)
			if fits(moved, c.locked, c.digest) || fits(c.dependencies+moved, c.locked, c.digest) || fits(c.dependencies, c.locked, strings.Repeat("0", 64)) {
				t.Error("another one fits")
			}
			if c.apiVersion == "v2" && fits(c.dependencies, strings.Replace(c.locked, "0.1.0", "0.1.2", 1), c.digest) {
				t.Error("another version in the lock fits")
			}
		})
	}
}
