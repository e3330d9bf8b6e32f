package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

// doctorTargets resolves pipelines for doctor, by what the server gathers its own targets by.
type doctorTargets struct {
	config   *config.Config
	now      func() time.Time
	resolver *appset.Resolver
	versions *doctorVersions

	once    sync.Once
	argocds map[string]branch.ArgoCD
	unread  map[string]error // by the Argo CD's name, why its sets and projects couldn't be listed
}

// newDoctorTargets makes it. The error is of a registry that the server couldn't start with either.
func newDoctorTargets(c *config.Config, now func() time.Time) (*doctorTargets, error) {
	versions, err := newDoctorVersions(c, now)
	return &doctorTargets{config: c, now: now, resolver: appset.New(appset.Options{Now: now}), versions: versions}, err
}

// Resolve implements doctor.Targets. It may be called concurrently.
func (d *doctorTargets) Resolve(ctx context.Context, of *doctor.Checkout, all []*doctor.Checkout) ([]doctor.PipelineTargets, error) {
	d.once.Do(func() { d.listArgoCDs(ctx) })
	var repos []*branch.Repository
	var own *branch.Repository
	for _, c := range all {
		r := &branch.Repository{ID: c.Config.Forge + ":" + c.Config.Name, Branch: c.Config.Branch, Mirror: c.Mirror, URLs: []string{c.URL}}
		repos = append(repos, r)
		if c == of {
			own = r
		}
	}
	gatherer := facts.New(facts.Options{Resolver: d.resolver, ArgoCDs: d.argocds, MainArgoCD: d.mainName(),
		Generators: appset.Generators(d.config.Generators), Repos: repos, Now: d.now})
	s, err := gatherer.Targets.Snapshot(ctx, own)
	if err != nil {
		return nil, err
	}
	var out []doctor.PipelineTargets
	for _, p := range s.Pipelines {
		found := doctor.PipelineTargets{Pipeline: p.Name(), Targets: len(p.TargetSet.Targets), Components: len(p.Units),
			Problems: p.Problems, Discover: d.versions.tryPipeline(s, p)}
		for _, name := range gatherer.ArgoCDs.NamesOf(p.Pipeline) {
			if err := d.unread[name]; err != nil {
				found.Unread = err
			}
		}
		out = append(out, found)
	}
	return out, nil
}

func (d *doctorTargets) mainName() string { return d.config.ArgoCDByName("").Name }

// listingShare divides the time for resolving: the Argo CDs must answer in one share. One that
// never does leaves the rest for the checks that need none, and for naming it.
const listingShare = 2

// listArgoCDs reads what targets depend on of each Argo CD of the server's file, side by side.
func (d *doctorTargets) listArgoCDs(ctx context.Context) {
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/listingShare)
		defer cancel()
	}
	d.argocds, d.unread = map[string]branch.ArgoCD{}, map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, a := range d.config.ArgoCD {
		wg.Go(func() {
			known, err := listArgoCD(ctx, a)
			mu.Lock()
			defer mu.Unlock()
			d.argocds[a.Name], d.unread[a.Name] = known, err
		})
	}
	wg.Wait()
}

// listArgoCD reads an Argo CD once. With an error no more of it is known than what the server's file
// says, and not even that where the file's access can't be used.
func listArgoCD(ctx context.Context, a config.ArgoCD) (branch.ArgoCD, error) {
	o, err := argocdOptions(a)
	if err == nil && !a.APIAlone {
		o.Config, err = argocd.RESTConfig(a.Kubernetes.Kubeconfig, a.Kubernetes.Context)
	}
	if err != nil {
		return branch.ArgoCD{}, fmt.Errorf("argocd %s: %w", a.Name, err)
	}
	connection, err := newConnection(a, o)
	if err != nil {
		return branch.ArgoCD{}, fmt.Errorf("argocd %s: %w", a.Name, err)
	}
	known := connection.factsArgoCD()
	found, err := connection.watcher.ListSetsAndProjects(ctx)
	if err != nil {
		known.Live = nil
		return known, err
	}
	l := listedArgoCD{connection.watcher, found}
	known.Apps, known.Live = l, l
	return known, nil
}

// listedArgoCD is an Argo CD as it was when it was listed: nothing watches it.
type listedArgoCD struct {
	*argocd.Watcher
	found *argocd.SetsAndProjects
}

// Ready implements facts.Apps: what is read, is read anew.
func (listedArgoCD) Ready() error { return nil }

// Sets implements facts.Live.
func (l listedArgoCD) Sets() ([]argocd.ApplicationSet, error) { return l.found.Sets, l.found.SetsErr }

// Projects implements facts.Live.
func (l listedArgoCD) Projects() ([]string, error) { return l.found.Projects, l.found.ProjectsErr }

// Version implements facts.Live.
func (l listedArgoCD) Version() argocd.Version { return argocd.Version{Line: l.found.Line} }
