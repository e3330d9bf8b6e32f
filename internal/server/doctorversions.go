package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/registry"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

const (
	// maxTriedPlaces bounds the components that doctor tries the rules of a pipeline on.
	maxTriedPlaces = 200
	// triedListAge is how long a list counts within one run of doctor.
	triedListAge = time.Hour
)

// doctorVersions tries at the registries of the server's file what pipelines let come in by themselves.
type doctorVersions struct {
	config *config.Config
	images *registry.Images
	hosts  []string
	now    func() time.Time

	mu     sync.Mutex
	limits map[string]doctor.RegistryLimit
}

// newDoctorVersions makes it; it asks nobody.
func newDoctorVersions(c *config.Config, now func() time.Time) (*doctorVersions, error) {
	d := &doctorVersions{config: c, hosts: listedHosts(c), now: now, limits: map[string]doctor.RegistryLimit{}}
	hosts, err := registryHosts(c)
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		name := hosts[i].Name
		hosts[i].OnLimit = func(remaining, limit int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.limits[name] = doctor.RegistryLimit{Remaining: remaining, Limit: limit}
		}
	}
	d.images = registry.New(hosts, now, &cache.Group{})
	return d, nil
}

// tryPipeline is what tries a pipeline's rules; nil: it has none.
func (d *doctorVersions) tryPipeline(s *branch.Snapshot, p *branch.ResolvedPipeline) func(context.Context) *doctor.Discovered {
	if !slices.ContainsFunc(p.Spec.Environments, func(e pipeline.Environment) bool { return len(e.Discover) > 0 }) {
		return nil
	}
	return func(ctx context.Context) *doctor.Discovered {
		out := &doctor.Discovered{}
		source, err := d.openSource()
		if err == nil {
			defer source.close()
			err = source.tryRules(ctx, s, p, out)
		}
		out.Err = err
		if source != nil {
			out.Lists = source.lists
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		out.Limits = maps.Clone(d.limits)
		return out
	}
}

// triedSource remembers how each list was answered. It isn't for several goroutines.
type triedSource struct {
	versionSource
	dir   string
	lists []doctor.TriedList
}

// openSource makes one with a folder for indexes of charts.
func (d *doctorVersions) openSource() (*triedSource, error) {
	hosts, err := chartHosts(d.config.Charts)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "liftlock-doctor-")
	if err != nil {
		return nil, fmt.Errorf("there is no folder for indexes of charts (TMPDIR): %w", err)
	}
	t := &triedSource{versionSource: versionSource{images: d.images, maxAge: triedListAge, hosts: d.hosts}, dir: dir}
	t.charts, err = charts.New(charts.Options{Hosts: hosts, Dir: dir, Now: d.now,
		List: func(_ context.Context, index []byte, chart string) ([]string, error) {
			return render.ListChart(index, chart)
		}})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *triedSource) close() { _ = os.RemoveAll(t.dir) } // what is left of it is the system's to remove

// ListTags implements discovery.Source.
func (t *triedSource) ListTags(ctx context.Context, image string) ([]string, error) {
	tags, err := t.versionSource.ListTags(ctx, image)
	t.remember(image, len(tags), err)
	return tags, err
}

// ReadDigest implements discovery.Source.
func (t *triedSource) ReadDigest(ctx context.Context, image, tag string) (string, error) {
	digest, err := t.versionSource.ReadDigest(ctx, image, tag)
	t.remember(image, 1, err)
	return digest, err
}

// ListVersions implements discovery.Source.
func (t *triedSource) ListVersions(ctx context.Context, chart string) ([]string, error) {
	versions, err := t.versionSource.ListVersions(ctx, chart)
	t.remember(chart, len(versions), err)
	return versions, err
}

func (t *triedSource) remember(name string, tags int, err error) {
	if slices.ContainsFunc(t.lists, func(l doctor.TriedList) bool { return l.Name == name }) {
		return
	}
	out := doctor.TriedList{Registry: registryOf(t.hosts, name), Name: name, Tags: tags,
		Outcome: doctor.ListOutcome(listResult(err)), Err: err}
	switch {
	case err != nil && out.Registry == otherRegistry:
		out.Outcome, out.Registry = doctor.ListUnnamed, unnamedRegistry(name)
	case registry.IsLimited(err):
		out.Outcome = doctor.ListLimited
	case errors.Is(err, registry.ErrPlainHTTP):
		out.Outcome = doctor.ListPlain
	}
	t.lists = append(t.lists, out)
}

// unnamedRegistry is what a registry is called that the server's file doesn't have.
func unnamedRegistry(name string) string {
	if repository, _, isOCI, ok := pipeline.SplitChart(name); ok && !isOCI {
		return repository
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "oci://"), "/")
	return first
}

// tryRules has each rule of a pipeline choose for what its components carry. The error is of files that can't be read,
// and the context's.
func (t *triedSource) tryRules(ctx context.Context, s *branch.Snapshot, p *branch.ResolvedPipeline, out *doctor.Discovered) error {
	tried := 0
	for _, spec := range p.TopologicalOrder() {
		matched := map[int]bool{}
		for _, name := range slices.Sorted(maps.Keys(p.Units)) {
			at := p.Units[name].Envs[spec.Name]
			reading, isRead := p.Readings[at]
			switch {
			case len(spec.Discover) == 0 || at == nil || !isRead || reading.Err != nil: // which the server says on its pages
				continue
			case tried == maxTriedPlaces:
				out.LeftOut++
				continue
			}
			tried++
			found := discovery.Found{Component: name, Environment: spec.Name}
			err := found.Find(ctx, &discovery.Query{Pipeline: p.Pipeline, Environment: spec, At: at,
				Tree: s.Repo.Mirror.Tree(s.BranchFor(p.Pipeline, spec.Name).Commit), Rules: s.Repo.Mirror.Tree(s.PipelineCommit),
				Current: reading.Release,
				Past:    func() ([]fieldedit.Release, error) { return nil, nil }}, t)
			if err != nil {
				return err
			}
			t.judgeFound(&found, out)
			for _, entry := range found.Matched {
				matched[entry] = true
			}
		}
		for i := range spec.Discover {
			if !matched[i] && out.LeftOut == 0 {
				out.Unmatched = append(out.Unmatched, fmt.Sprintf("discover[%d] of %s is about %s, which no carried field names", i,
					spec.Name, spec.Discover[i].Name()))
			}
		}
	}
	return nil
}

// judgeFound adds what was found for a component.
func (t *triedSource) judgeFound(f *discovery.Found, out *doctor.Discovered) {
	if f.Refused != "" {
		out.Refused = append(out.Refused, fmt.Sprintf("%s in %s: %s", f.Component, f.Environment, f.Refused))
	}
	for i := range f.Versions {
		v := &f.Versions[i]
		about := fmt.Sprintf("%s of %s in %s: ", v.Name, f.Component, f.Environment)
		isListed := slices.ContainsFunc(t.lists, func(l doctor.TriedList) bool { return l.Name == v.Name && l.Err == nil })
		isUnlisted := slices.ContainsFunc(t.lists, func(l doctor.TriedList) bool { return l.Name == v.Name && l.Err != nil })
		switch {
		case isUnlisted || v.Passing: // which is said of the registry
		case v.Err != "":
			out.Refused = append(out.Refused, about+v.Err)
		case isListed && v.Choice.Counted == 0 && !v.Choice.Stays:
			out.Barren = append(out.Barren, about+v.Choice.Why)
		default:
			out.Chosen++
		}
	}
}
