package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// The files in which a chart says what it depends on, and what that came to: Helm 3's, and Helm 2's
// for charts of apiVersion v1.
const (
	chartFile        = "Chart.yaml"
	chartLock        = "Chart.lock"
	requirementsFile = "requirements.yaml"
	requirementsLock = "requirements.lock"
)

// maxChartFile bounds a file that is read for a chart's dependencies.
const maxChartFile = 1 << 20

// chartDependencies is what decides what a chart's dependencies are built from.
type chartDependencies struct {
	meta     chart.Metadata
	lock     *chart.Lock // nil: it has none
	lockFile string
	vendored []vendoredChart
}

// vendoredChart is a dependency that lies in the chart.
type vendoredChart struct{ file, name, version string }

// CheckChartLocks refuses edits after which a chart's dependencies are no longer built, or are
// other ones than it says. Its lock must fit its dependencies, since `helm dependency build`
// refuses it otherwise (the lock file is out of sync). An archive in charts/ is taken whatever
// version the chart names. files are the edited ones. Charts in which the edits change nothing of
// this are left as they are.
func CheckChartLocks(before, after fs.FS, files []string) error {
	for _, dir := range chartFolders(files) {
		was, err := readDependencies(before, dir)
		if err != nil {
			was = nil // whatever it was, it is judged as it gets
		}
		is, err := readDependencies(after, dir)
		if err != nil {
			return fmt.Errorf("the dependencies of the chart %s can't be told: %w", dir, err)
		}
		if is == nil || was != nil && reflect.DeepEqual(was, is) {
			continue
		}
		if err := is.check(dir, slices.Contains(files, path.Join(dir, is.lockFile))); err != nil {
			return err
		}
	}
	return nil
}

// chartFolders are the folders of charts whose dependencies files may change.
func chartFolders(files []string) []string {
	var out []string
	for _, file := range files {
		dir, name := path.Split(file)
		dir = path.Clean(dir)
		switch {
		case slices.Contains([]string{chartFile, chartLock, requirementsFile, requirementsLock}, name):
			out = append(out, dir)
		case path.Base(dir) == "charts" && strings.HasSuffix(name, ".tgz"):
			out = append(out, path.Dir(dir))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readDependencies reads a chart's dependencies as Helm's loader does; nil where there is no chart.
func readDependencies(tree fs.FS, dir string) (*chartDependencies, error) {
	out := &chartDependencies{}
	there, err := readChartYAML(tree, path.Join(dir, chartFile), &out.meta)
	if err != nil || !there {
		return nil, err
	}
	if out.meta.APIVersion == "" {
		out.meta.APIVersion = chart.APIVersionV1
	}
	if _, err := readChartYAML(tree, path.Join(dir, requirementsFile), &out.meta); err != nil {
		return nil, err
	}
	for _, d := range out.meta.Dependencies {
		if err := d.Validate(); err != nil { // it also cleans the text, as Helm does before it hashes
			return nil, fmt.Errorf("%s: %w", path.Join(dir, chartFile), err)
		}
	}
	for _, name := range []string{chartLock, requirementsLock} { // of two Helm takes the last
		lock := &chart.Lock{}
		there, err := readChartYAML(tree, path.Join(dir, name), lock)
		if err != nil {
			return nil, err
		}
		if there {
			out.lock, out.lockFile = lock, name
		}
	}
	out.vendored, err = vendoredCharts(tree, path.Join(dir, "charts"), out.meta.Dependencies)
	return out, err
}

// readChartYAML reads a file of a chart; there is false where there is none.
func readChartYAML(tree fs.FS, file string, into any) (there bool, err error) {
	info, err := fs.Stat(tree, file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size() > maxChartFile {
		return false, fmt.Errorf("%s has %d bytes; at most %d are read", file, info.Size(), maxChartFile)
	}
	data, err := fs.ReadFile(tree, file)
	if err != nil {
		return false, err
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	return true, nil
}

// vendoredCharts lists those dependencies that lie in a chart's charts/, as archives or folders.
func vendoredCharts(tree fs.FS, dir string, dependencies []*chart.Dependency) ([]vendoredChart, error) {
	entries, err := fs.ReadDir(tree, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []vendoredChart
	for _, d := range dependencies {
		if strings.HasPrefix(d.Repository, "file://") {
			continue // its version is whatever lies there
		}
		for _, e := range entries {
			file := path.Join(dir, e.Name())
			version, is := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".tgz"), d.Name+"-")
			if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); is && err == nil &&
				strings.HasSuffix(e.Name(), ".tgz") {
				out = append(out, vendoredChart{file, d.Name, version})
			}
			if e.IsDir() && e.Name() == d.Name {
				var meta chart.Metadata
				if _, err := readChartYAML(tree, path.Join(file, chartFile), &meta); err != nil {
					return nil, err
				}
				out = append(out, vendoredChart{file, d.Name, meta.Version})
			}
		}
	}
	return out, nil
}

// check says what keeps a chart's dependencies from being what it asks for.
func (c *chartDependencies) check(dir string, carriesLock bool) error {
	for _, v := range c.vendored {
		if c.isWanted(v) {
			continue
		}
		return fmt.Errorf("%s lies there, and is what is rendered: %s asks for %s; carry the archives too, with files: {include: "+
			"[charts/*.tgz]} and whenAbsent: add, or take them out of Git",
			v.file, path.Join(dir, chartFile), strings.Join(c.versionsOf(v.name), " and "))
	}
	if c.lock == nil || c.lockFits() {
		return nil
	}
	lock := path.Join(dir, c.lockFile)
	if carriesLock {
		return fmt.Errorf("%s, as it is carried, doesn't fit the dependencies in %s, so Argo CD couldn't build the chart (helm: the lock "+
			"file is out of sync): "+
			"dependencies must be the same in both environments but for what is carried, and the lock that of `helm dependency update`",
			lock, path.Join(dir, chartFile))
	}
	return fmt.Errorf("%s wouldn't fit the dependencies in %s any more, so Argo CD couldn't build the chart (helm: the lock file is out "+
		"of sync): carry it too, with files: {include: [%s]}; where it is carried, the release has an old one",
		lock, path.Join(dir, chartFile), c.lockFile)
}

// isWanted says that a dependency of that name takes the version, as Helm decides it.
func (c *chartDependencies) isWanted(v vendoredChart) bool {
	return slices.ContainsFunc(c.versionsOf(v.name), func(wanted string) bool {
		constraint, err := semver.NewConstraint(wanted)
		if err != nil {
			return wanted == v.version
		}
		version, err := semver.NewVersion(v.version)
		return err == nil && constraint.Check(version)
	})
}

// versionsOf are the versions, or ranges, of the dependencies of a name.
func (c *chartDependencies) versionsOf(name string) []string {
	var out []string
	for _, d := range c.meta.Dependencies {
		if d.Name == name {
			out = append(out, d.Version)
		}
	}
	return out
}

// lockFits says that Helm takes the lock for one of these dependencies by the digest of both. For a
// chart of apiVersion v1 it also takes Helm 2's digest of the dependencies alone (helm:
// Manager.Build in pkg/downloader, HashReq and HashV2Req in internal/resolver). Where an alias
// names a repository, its address is the lock's: the hash covers it, and only the lock's author
// knows it.
func (c *chartDependencies) lockFits() bool {
	wanted := slices.Clone(c.meta.Dependencies)
	if c.meta.APIVersion == chart.APIVersionV1 && hashDependencies(
		map[string][]*chart.Dependency{"dependencies": wanted}) == c.lock.Digest {
		return true
	}
	for i, d := range wanted {
		isAlias := strings.HasPrefix(d.Repository, "@") || strings.HasPrefix(d.Repository, "alias:")
		if isAlias && i < len(c.lock.Dependencies) && c.lock.Dependencies[i] != nil && c.lock.Dependencies[i].Name == d.Name {
			resolved := *d
			resolved.Repository = c.lock.Dependencies[i].Repository
			wanted[i] = &resolved
		}
	}
	return hashDependencies([2][]*chart.Dependency{wanted, c.lock.Dependencies}) == c.lock.Digest
}

// hashDependencies is the digest in a lock.
func hashDependencies(of any) string {
	data, err := json.Marshal(of)
	if err != nil {
		return "" // an import-values that JSON can't say; no lock has that digest
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
