package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// loadChart loads a chart from its folder, with the dependencies that lie in the
// repository.
func (r *rendering) loadChart(dir string) (*chart.Chart, error) {
	c, err := r.loadChartFolder(dir)
	if err != nil {
		return nil, err
	}
	return c, r.addDependencies(dir, c)
}

func (r *rendering) loadChartFolder(dir string) (*chart.Chart, error) {
	l := &chartLoader{files: r.files, dir: dir, rules: ignore.Empty()}
	p := path.Join(dir, ignore.HelmIgnore)
	if data, is, err := r.files.readIfFile(p); err != nil {
		return nil, err
	} else if is {
		if l.rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	l.rules.AddDefaults()
	if err := l.walk(dir, "", 0); err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(l.loaded)
	if err != nil {
		return nil, fmt.Errorf("the chart in %s: %w", dir, err)
	}
	return c, nil
}

// chartLoader reads a chart's folder as Helm does, following links.
type chartLoader struct {
	files         *treeReader
	dir           string
	rules         *ignore.Rules
	loaded        []*loader.BufferedFile
	unpackedBytes int64
}

// ignoreEntry is what the ignore rules ask of a file: its name and whether it is a folder.
type ignoreEntry struct {
	fs.FileInfo
	folder bool
}

func (i ignoreEntry) IsDir() bool { return i.folder }

// walk takes what is in one folder; below is how the chart calls it.
func (c *chartLoader) walk(dir, below string, links int) error {
	entries, err := c.files.list(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(below, e.Name())
		found, err := c.files.find(path.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if found.kind == kindMissing {
			return fmt.Errorf("%s: the symbolic link leads nowhere", path.Join(dir, e.Name()))
		}
		if c.rules.Ignore(name, ignoreEntry{folder: found.kind == kindFolder}) {
			continue
		}
		if found.kind == kindFolder {
			depth := links
			if !e.IsDir() {
				depth++
			}
			if depth > maxLinks {
				return fmt.Errorf("%s: %w: links to folders that hold themselves", path.Join(dir, e.Name()), ErrLimit)
			}
			if err := c.walk(found.path, name, depth); err != nil {
				return err
			}
			continue
		}
		if err := c.loadFile(found.path, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *chartLoader) loadFile(p, name string) error {
	data, err := c.files.read(p)
	if err != nil {
		return err
	}
	if path.Dir(name) == "charts" && path.Ext(name) == ".tgz" {
		if err := c.checkPackedChart(p, bytes.NewReader(data)); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if isParsedOnLoad(name) {
		if err := checkAliases(data); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	c.loaded = append(c.loaded, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))})
	if len(c.loaded) > maxFiles {
		return fmt.Errorf("%w: a chart of more than %d files", ErrLimit, maxFiles)
	}
	return nil
}

// isParsedOnLoad says that Helm parses a chart's file of this name when it loads it.
func isParsedOnLoad(name string) bool {
	switch path.Base(name) {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	}
	return false
}

// checkPackedChart measures a packed chart before Helm unpacks it into memory: Helm
// 3.16 doesn't stop at any size (CVE-2025-32386).
func (c *chartLoader) checkPackedChart(name string, data io.Reader) error {
	unzipped, err := gzip.NewReader(data)
	if err != nil {
		return fmt.Errorf("it is no packed chart: %w", err)
	}
	archive := tar.NewReader(&unpackLimiter{r: unzipped, read: &c.unpackedBytes})
	for n := 0; ; n++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if n > maxFiles {
			return fmt.Errorf("%w: a packed chart of more than %d files", ErrLimit, maxFiles)
		}
		if strings.HasSuffix(header.Name, ".tgz") && strings.Contains(header.Name, "charts/") {
			if err := c.checkPackedChart(header.Name, archive); err != nil {
				return fmt.Errorf("%s: %w", header.Name, err)
			}
		}
		if isParsedOnLoad(header.Name) {
			text, err := io.ReadAll(archive)
			if err != nil {
				return err
			}
			if err := checkAliases(text); err != nil {
				return fmt.Errorf("%s: %w", header.Name, err)
			}
		}
	}
}

// unpackLimiter stops reading when all packed charts together unpack to too much.
type unpackLimiter struct {
	r    io.Reader
	read *int64
}

func (u *unpackLimiter) Read(p []byte) (int, error) {
	if *u.read > maxUnpackedBytes { // an error that comes with bytes is lost on the readers above
		return 0, fmt.Errorf("%w: packed charts unpack to more than %d bytes", ErrLimit, maxUnpackedBytes)
	}
	n, err := u.r.Read(p)
	*u.read += int64(n)
	return n, err
}

// addDependencies adds what the repo server would build with `helm dependency build`: when one that
// Chart.yaml declares is not in charts/, those with file:// addresses are taken from their folders.
// Their own dependencies are not read.
func (r *rendering) addDependencies(dir string, c *chart.Chart) error {
	vendored := map[string]bool{}
	for _, d := range c.Dependencies() {
		vendored[d.Name()] = true
	}
	var missing bool
	var remote []string
	var externals []External
	added := map[External]bool{} // one that goes by two aliases is there once
	for _, d := range c.Metadata.Dependencies {
		if d == nil || vendored[d.Name] {
			continue
		}
		missing = true
		switch {
		case d.Repository == "":
			return fmt.Errorf("the chart's dependency %s is not in its charts folder, and has no repository", d.Name)
		case !strings.HasPrefix(d.Repository, "file://"):
			e := External{RepoURL: d.Repository, Chart: d.Name, Revision: lockedVersion(c.Lock, d)}
			if r.trees[e.key()] == nil {
				remote, externals = append(remote, d.Repository+" ("+d.Name+")"), append(externals, e)
			} else if err := r.addChart(e, d, c, added[e]); err != nil {
				return fmt.Errorf("the chart's dependency %s: %w", d.Name, err)
			}
			added[e] = true
		}
	}
	if len(remote) > 0 {
		u := newUnrenderable("the chart's dependencies are not in its charts folder", remote...)
		u.Externals = externals
		return u
	}
	if !missing {
		return nil
	}
	return r.addLocalDependencies(dir, c)
}

// lockedVersion is the version of a dependency that is taken from its repository: the lock's, else
// the newest that the chart allows.
func lockedVersion(lock *chart.Lock, d *chart.Dependency) string {
	if lock != nil {
		for _, l := range lock.Dependencies {
			if l != nil && l.Name == d.Name && l.Repository == d.Repository {
				return l.Version
			}
		}
	}
	return d.Version
}

// addChart adds a dependency that comes from a chart repository.
func (r *rendering) addChart(e External, d *chart.Dependency, c *chart.Chart, isThere bool) error {
	if isThere {
		return nil
	}
	files, err := r.unpackChart(e, r.trees[e.key()])
	if err != nil {
		return err
	}
	outer := r.files
	r.files = files
	defer func() { r.files = outer }()
	sub, err := r.loadChartFolder(".")
	if err != nil {
		return err
	}
	if ok, err := satisfiesConstraint(sub.Metadata.Version, d.Version); err != nil {
		return err
	} else if !ok {
		return fmt.Errorf("%s has version %s, and %s is asked for", d.Repository, sub.Metadata.Version, d.Version)
	}
	c.AddDependency(sub)
	return nil
}

// addLocalDependencies takes the dependencies with file:// addresses from their folders.
func (r *rendering) addLocalDependencies(dir string, c *chart.Chart) error {
	all := c.Dependencies()
	for _, d := range c.Metadata.Dependencies {
		if d == nil || !strings.HasPrefix(d.Repository, "file://") {
			continue
		}
		p := strings.TrimPrefix(d.Repository, "file://")
		at, ok := cleanTreePath(path.Join(dir, p))
		if path.IsAbs(p) || !ok {
			return fmt.Errorf("the chart's dependency %s: %s: %w", d.Name, d.Repository, errOutside)
		}
		found, err := r.files.find(at)
		if err != nil {
			return err
		}
		if found.kind != kindFolder {
			return fmt.Errorf("the chart's dependency %s: %s is no folder", d.Name, at)
		}
		sub, err := r.loadChartFolder(found.path)
		if err != nil {
			return fmt.Errorf("the chart's dependency %s: %w", d.Name, err)
		}
		if ok, err := satisfiesConstraint(sub.Metadata.Version, d.Version); err != nil {
			return fmt.Errorf("the chart's dependency %s: %w", d.Name, err)
		} else if !ok {
			return fmt.Errorf("the chart's dependency %s: %s has version %s, and %s is asked for", d.Name, at,
				sub.Metadata.Version, d.Version)
		}
		all = slices.DeleteFunc(all, func(old *chart.Chart) bool { return old.Name() == sub.Name() })
		all = append(all, sub)
	}
	c.SetDependencies(all...)
	return nil
}

// satisfiesConstraint says whether a dependency's version is one that is asked for.
func satisfiesConstraint(version, constraint string) (bool, error) {
	wanted, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, err
	}
	v, err := semver.NewVersion(version)
	return err == nil && wanted.Check(v), err
}
