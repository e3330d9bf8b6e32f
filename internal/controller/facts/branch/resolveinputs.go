package branch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset/evaluate"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// ResolveInputs says what a snapshot's targets were resolved from besides the commit.
type ResolveInputs struct {
	Repositories    int // how many there were to read of
	Argocds         map[string]ArgocdInputs
	ExternalCommits map[ExternalRef]string // revisions of other repositories: their commits, empty where there is none
	validUntil      time.Time              // when the same inputs may give another answer; zero: never
}

type ArgocdInputs struct {
	version argocd.Version // Applications is 0 where no target was taken from them, else one more
	file    fileStamp
}

// ExternalRef is a revision of another tracked repository.
type ExternalRef struct{ Repo, Revision string }

// fileStamp changes when a file is written.
type fileStamp struct {
	size int64
	at   time.Time
}

// InputCollector collects the inputs while a pipeline is resolved.
type InputCollector struct {
	Targets *TargetGatherer
	repo    *Repository

	mu sync.Mutex // the resolver asks from several goroutines
	ResolveInputs
}

func (tg *TargetGatherer) NewInputCollector(r *Repository) *InputCollector {
	return &InputCollector{Targets: tg, repo: r, ResolveInputs: ResolveInputs{Repositories: len(tg.Repos.All()),
		Argocds: map[string]ArgocdInputs{}, ExternalCommits: map[ExternalRef]string{}}}
}

// newInput is what targets depend on besides a pipeline and a commit: the Argo CDs that
// the pipelines' entries are run by, other repositories, and who asks the network.
func (i *InputCollector) newInput(ctx context.Context, pipes ...*pipeline.Pipeline) (appset.Input, error) {
	in := appset.Input{
		Branch: i.repo.Branch, RepoURLs: i.repo.URLs, ArgoCDs: map[string]appset.ArgoCD{}, Main: i.Targets.Argocds.Main,
		OpenExternal: i.ResolveRepository, Build: i.Targets.build,
		Live: &appset.Live{Unknown: map[string]string{}, Applications: i.ownedApplications, Selected: i.selectedApplications},
	}
	for _, p := range pipes {
		for _, name := range i.Targets.Argocds.NamesOf(p) {
			if _, known := in.ArgoCDs[name]; known {
				continue
			}
			if err := i.AddArgoCD(ctx, name, &in); err != nil {
				return in, err
			}
		}
	}
	return in, nil
}

// collectInput is all that a pipeline's targets at a commit depend on.
func (i *InputCollector) collectInput(ctx context.Context, p *pipeline.Pipeline, commit string) (appset.Input, error) {
	if i.Targets.knownInputs != nil {
		in := appset.Input{Pipeline: p, Tree: i.repo.Mirror.Tree(commit), Revision: commit, Branch: i.repo.Branch, RepoURLs: i.repo.URLs,
			Build: i.Targets.build}
		i.Targets.knownInputs(&in)
		return in, nil
	}
	in, err := i.newInput(ctx, p)
	in.Pipeline, in.Tree, in.Revision, in.Generators = p, i.repo.Mirror.Tree(commit), commit, i.Targets.generators
	return in, err
}

// InputWithBranch is what a pipeline's targets depend on while one branch is at another
// commit than it is: the tracked branch, or one that generators may read.
func (i *InputCollector) InputWithBranch(ctx context.Context, p *pipeline.Pipeline, at *Snapshot, l Head) (appset.Input, error) {
	if l.Branch == i.repo.Branch {
		return i.collectInput(ctx, p, l.Commit)
	}
	in, err := i.collectInput(ctx, p, at.Commit)
	in.Branches = map[string]appset.ExternalRef{l.Branch: {Tree: i.repo.Mirror.Tree(l.Commit), Commit: l.Commit}}
	return in, err
}

// AddArgoCD adds what is known of an Argo CD to the input, or that there is none.
func (i *InputCollector) AddArgoCD(ctx context.Context, name string, in *appset.Input) error {
	a, ok := i.Targets.Argocds.ByName[name]
	if !ok {
		in.Live.Unknown[name] = fmt.Sprintf("the server's file has no Argo CD named %s", name)
		return nil
	}
	known := appset.ArgoCD{Namespace: a.Namespace, Globbing: a.Globbing, Version: a.Version, Policy: a.Policy, Kube: a.Kube}
	seen := ArgocdInputs{}
	if a.Live != nil {
		// Before what it is the version of: what changes in between is seen again.
		seen.version = a.Live.Version()
		seen.version.Applications = 0
		if line, err := appset.ParseVersion(seen.version.Line); err == nil && !known.Version.IsKnown() {
			known.Version = line
		}
		if known.Policy.Sync == "" { // the server's file says none
			known.Policy = appset.ControllerPolicy(seen.version.SetPolicy)
		}
		sets, err := a.Live.Sets()
		if err != nil {
			in.Live.Unknown[name] = err.Error()
		}
		for _, set := range sets {
			in.Live.Sets = append(in.Live.Sets, appset.LiveSet{ArgoCD: name, Namespace: set.Namespace, Name: set.Name, Object: set.Object})
		}
		known.Projects, _ = a.Live.Projects() // the server's health says why they are unknown
	} else {
		in.Live.Unknown[name] = "there is no connection to it"
	}
	var err error
	if known.Clusters, seen.file, err = i.Targets.MergeClusters(ctx, &a); err != nil {
		return fmt.Errorf("the clusters of the Argo CD %s: %w", name, err)
	}
	in.ArgoCDs[name] = known
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, ok := i.Argocds[name]; ok && old.version.Applications != 0 {
		seen.version.Applications = old.version.Applications
	}
	i.Argocds[name] = seen
	return nil
}

// MergeClusters are those of the file and of the running Argo CD; nil: not
// known. One that both name is as the running one says. The error is for a
// context that ended.
func (tg *TargetGatherer) MergeClusters(ctx context.Context, a *ArgoCD) ([]appset.Cluster, fileStamp, error) {
	var out []appset.Cluster
	var stamp fileStamp
	if a.ClustersFile != "" {
		var err error
		if out, stamp, err = tg.readClusterFile(a.ClustersFile); err != nil {
			return nil, stamp, nil // not known; the server's health says why
		}
	}
	if a.Live == nil {
		return out, stamp, nil
	}
	live, err := a.Live.Clusters(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, stamp, ctx.Err()
	case errors.Is(err, argocd.ErrClustersOff):
		return out, stamp, nil
	case live == nil:
		return nil, stamp, nil // a part of them would make the rest unknown destinations
	}
	byServer := map[string]bool{}
	merged := make([]appset.Cluster, 0, len(live)+len(out))
	for _, c := range live {
		byServer[c.Server] = true
		merged = append(merged, appset.Cluster(c))
	}
	for _, c := range out {
		if !byServer[c.Server] {
			merged = append(merged, c)
		}
	}
	return merged, stamp, nil
}

// ownedApplications gives the resolver the live Applications of a set that it can't resolve itself.
func (i *InputCollector) ownedApplications(ctx context.Context, name, namespace, set string) ([]json.RawMessage, error) {
	return i.listApplications(name, "owned "+namespace+" "+set, func(l Live) ([]json.RawMessage, error) {
		return l.Owned(ctx,
			namespace, set)
	})
}

// selectedApplications gives the resolver plain live Applications.
func (i *InputCollector) selectedApplications(ctx context.Context, name, namespace, selector string) ([]json.RawMessage, error) {
	return i.listApplications(name, "selected "+namespace+" "+selector,
		func(l Live) ([]json.RawMessage, error) { return l.Selected(ctx, namespace, selector) })
}

// listApplications lists Applications of an Argo CD, unless nothing was written into any since the
// last listing of the same. It records that targets are taken from them: from now on their changes
// are news.
func (i *InputCollector) listApplications(name, question string, list func(Live) ([]json.RawMessage, error)) ([]json.RawMessage, error) {
	name = cmp.Or(name, i.Targets.Argocds.Main)
	a := i.Targets.Argocds.ByName[name]
	if a.Live == nil {
		return nil, fmt.Errorf("there is no connection to the Argo CD %s", name)
	}
	version := a.Live.Version().Applications
	i.mu.Lock()
	seen := i.Argocds[name]
	seen.version.Applications = 1 + version
	i.Argocds[name] = seen
	i.mu.Unlock()
	if err := a.Apps.Ready(); err != nil {
		return nil, err // what is remembered may be old, and asking would only take its time
	}
	return i.Targets.applications.listOnce(name+" "+question, version, func() ([]json.RawMessage, error) { return list(a.Live) })
}

// ResolveRepository gives the resolver a tracked repository, or another branch of this one.
func (i *InputCollector) ResolveRepository(ctx context.Context, url, revision string) (*appset.ExternalRef, error) {
	for _, r := range i.Targets.Repos.All() {
		if !slices.ContainsFunc(r.URLs, func(u string) bool { return appset.SameRepository(u, url) }) {
			continue
		}
		commit, err := FindRevision(ctx, r, revision)
		if err != nil {
			return nil, err
		}
		i.mu.Lock()
		i.ExternalCommits[ExternalRef{r.ID, revision}] = commit
		i.mu.Unlock()
		if commit == "" {
			return nil, fmt.Errorf("%s has no branch or fetched commit %q", r.ID, revision)
		}
		return &appset.ExternalRef{Tree: r.Mirror.Tree(commit), Commit: commit}, nil
	}
	return nil, fmt.Errorf("it is none of the repositories in the server's file that have been reached; add it to repositories there, " +
		"and Liftlock reads it")
}

// TrackedRepositories are those that generators may read of each other.
type TrackedRepositories struct {
	mu   sync.Mutex
	List []*Repository // replaced, never changed
}

func (t *TrackedRepositories) All() []*Repository {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.List
}

// AddRepository adds a tracked repository that has been reached only now. Sets of others that read
// it are resolved again with their next look.
func (tg *TargetGatherer) AddRepository(r *Repository) {
	tg.Repos.mu.Lock()
	defer tg.Repos.mu.Unlock()
	if !slices.Contains(tg.Repos.List, r) {
		tg.Repos.List = append(slices.Clone(tg.Repos.List), r)
	}
}

// FindRevision finds a revision of a tracked repository: a branch, HEAD (the tracked
// branch) or a commit that was fetched; empty when there is none.
func FindRevision(ctx context.Context, r *Repository, revision string) (string, error) {
	if revision == "" || revision == "HEAD" {
		revision = r.Branch
	}
	commit, ok, err := r.Mirror.Head(ctx, appset.BranchName(revision))
	if err != nil {
		return "", fmt.Errorf("look for %s in %s: %w", revision, r.ID, err)
	}
	if ok {
		return commit, nil
	}
	if known, err := r.Mirror.Has(ctx, revision); err != nil || !known {
		return "", nil // no commit's name, or one of a commit that isn't here
	}
	return revision, nil
}

// IsCurrent says whether a snapshot of its commit would still come out the same.
func (tg *TargetGatherer) IsCurrent(ctx context.Context, s *Snapshot) bool {
	a := &s.Inputs
	if !a.validUntil.IsZero() && !tg.now().Before(a.validUntil) {
		return false
	}
	repos := tg.Repos.All()
	if a.Repositories != len(repos) {
		return false
	}
	for name, seen := range a.Argocds {
		now := tg.Argocds.ByName[name]
		if now.ClustersFile != "" && readStamp(now.ClustersFile) != seen.file {
			return false
		}
		if now.Live == nil {
			continue
		}
		v := now.Live.Version()
		if seen.version.Applications == 0 {
			v.Applications = 0
		} else {
			v.Applications++
		}
		if v != seen.version {
			return false
		}
	}
	for at, commit := range a.ExternalCommits {
		i := slices.IndexFunc(repos, func(r *Repository) bool { return r.ID == at.Repo })
		if now, err := FindRevision(ctx, repos[i], at.Revision); err != nil || now != commit {
			return false
		}
	}
	return true
}

// Outdated lists the repositories whose targets may come out differently than
// when they were last resolved, although their branch hasn't moved.
func (tg *TargetGatherer) Outdated(ctx context.Context) []string {
	var out []string
	for _, r := range tg.Repos.All() {
		if s, ok := tg.Snapshots.Get(r.ID); ok && !tg.IsCurrent(ctx, s) {
			out = append(out, r.ID)
		}
	}
	slices.Sort(out)
	return out
}

// Dependents lists the other repositories whose targets were resolved from this one.
func (tg *TargetGatherer) Dependents(repo string) []string {
	var out []string
	for _, r := range tg.Repos.All() {
		s, ok := tg.Snapshots.Get(r.ID)
		if !ok || r.ID == repo {
			continue
		}
		for at := range s.Inputs.ExternalCommits {
			if at.Repo == repo && !slices.Contains(out, r.ID) {
				out = append(out, r.ID)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ValidUntil is when the snapshot's targets may come out differently without anything
// having been heard; zero: never.
func (s *Snapshot) ValidUntil() time.Time { return s.Inputs.validUntil }

// EvaluateInput is what trees of this repository are evaluated with, under some pipelines.
func (i *InputCollector) EvaluateInput(ctx context.Context, pipes []*pipeline.Pipeline) (evaluate.Input, error) {
	known, err := i.newInput(ctx, pipes...)
	return evaluate.Input{Pipelines: pipes, Branch: known.Branch, RepoURLs: known.RepoURLs, Manifests: true,
		ArgoCDs: known.ArgoCDs, Main: known.Main, Live: known.Live, OpenExternal: known.OpenExternal, Build: known.Build}, err
}
