package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// renderedSource is where what targets deploy from an address lies here.
type renderedSource struct {
	url, dir string
	// checkout is the repository that the folder is the top of; nil: it is a folder of charts.
	checkout *otherRepository
}

// AddSources adds what targets deploy from besides this repository: checkouts, and folders of
// packed charts. Close closes them, too.
func (r *Repository) AddSources(ctx context.Context, list []OtherCheckout) error {
	for _, c := range list {
		if slices.ContainsFunc(r.sources, func(s renderedSource) bool { return isSameSource(s.url, c.URL) }) {
			return fmt.Errorf("--source %s: two folders are given for this address", c.URL)
		}
		info, err := os.Stat(c.Dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
		if err != nil {
			return fmt.Errorf("--source %s=%s: %w", c.URL, c.Dir, err)
		}
		s := renderedSource{url: c.URL, dir: c.Dir}
		other, err := Open(ctx, c.Dir, []string{c.URL})
		switch {
		case errors.Is(err, ErrNoRepository): // a folder of charts, or of files as they are
		case err != nil:
			return fmt.Errorf("--source %s: %w", c.URL, err)
		case isTop(other, c.Dir):
			s.checkout = &otherRepository{Repository: other, url: c.URL}
		default: // a folder within a checkout
			if err := other.Close(); err != nil {
				return err
			}
		}
		r.sources = append(r.sources, s)
	}
	return nil
}

// isTop says that a folder is a checkout's own, and not one in it.
func isTop(r *Repository, dir string) bool {
	at, err := filepath.Abs(dir)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	return err == nil && at == r.Dir()
}

// isSameSource says that two addresses are the same: of registries with and without oci://.
func isSameSource(a, b string) bool {
	clean := func(url string) string { return strings.TrimSuffix(strings.TrimPrefix(url, "oci://"), "/") }
	return clean(a) == clean(b) || appset.SameRepository(a, b)
}

// openRendered gives renderings what the flags name, and other revisions of this repository.
func (r *Repository) openRendered(ctx context.Context, e render.External) (render.Tree, error) {
	for i := range r.sources {
		s := &r.sources[i]
		if !isSameSource(s.url, e.RepoURL) {
			continue
		}
		if e.Chart != "" {
			return s.openChart(e)
		}
		if s.checkout == nil {
			return render.Tree{}, fmt.Errorf("%s is no checkout of it, but a folder", s.dir)
		}
		return openRevision(ctx, s.checkout, e)
	}
	if e.Chart != "" {
		return render.Tree{}, errors.New("name a folder of its packed charts with --source URL=FOLDER")
	}
	for _, o := range r.others {
		if appset.SameRepository(o.url, e.RepoURL) {
			return openRevision(ctx, o, e)
		}
	}
	if !r.isOwnAddress(e.RepoURL) {
		return render.Tree{}, errors.New("name a checkout of it with --source URL=FOLDER")
	}
	return openRevision(ctx, &otherRepository{Repository: r, url: e.RepoURL}, e)
}

func openRevision(ctx context.Context, o *otherRepository, e render.External) (render.Tree, error) {
	revision := e.Revision
	if allowed, is := render.ParseTagRange(revision); is {
		tags, err := o.git.Tags(ctx)
		if err != nil {
			return render.Tree{}, err
		}
		if newest := render.NewestVersion(allowed, tags); newest != "" {
			revision = "refs/tags/" + newest
		}
	}
	found, err := o.open(ctx, revision)
	if err != nil {
		return render.Tree{}, err
	}
	tree, ok := found.Tree.(interface {
		Identity(name string) (string, error)
	})
	if !ok {
		return render.Tree{}, fmt.Errorf("%s has no files that can be told apart", o.url)
	}
	return render.Tree{FS: found.Tree, ID: tree.Identity, Revision: found.Commit}, nil
}

// openChart finds a chart among a folder's packed ones, as a repository's index would.
func (r *renderedSource) openChart(e render.External) (render.Tree, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return render.Tree{}, err
	}
	var packed []string
	for _, entry := range entries {
		version, is := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".tgz"), e.Chart+"-")
		if is && strings.HasSuffix(entry.Name(), ".tgz") {
			packed = append(packed, version)
		}
	}
	version := newestVersion(packed, e.Revision)
	if version == "" {
		return render.Tree{}, fmt.Errorf("%s has no %s-%s.tgz: helm pull gets it", r.dir, e.Chart, e.Revision)
	}
	return readPackedChart(filepath.Join(r.dir, e.Chart+"-"+version+".tgz"), version)
}

// newestVersion is the newest of versions that is wanted; "" for none.
func newestVersion(versions []string, wanted string) string {
	if slices.Contains(versions, wanted) {
		return wanted
	}
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return ""
	}
	return render.NewestVersion(constraint, versions)
}

// readPackedChart is a tree with a packed chart.
func readPackedChart(file, version string) (render.Tree, error) {
	info, err := os.Stat(file)
	if err != nil {
		return render.Tree{}, err
	}
	if info.Size() > render.MaxFileBytes {
		return render.Tree{}, fmt.Errorf("%s has %d bytes; at most %d are read", file, info.Size(), render.MaxFileBytes)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return render.Tree{}, err
	}
	return render.NewChartTree(data, version), nil
}
