package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// ProposalQuery says what a person has chosen already, and what is known beside the checkout.
type ProposalQuery struct {
	Name      string // the pipeline's; "" is made of what is there
	Templates propose.Templates
	Order     []string // of the environments, those of one step joined by +; none: inferred
	Files     []File   // these manifests' ApplicationSets, and not those that the checkout has
	Live      bool     // of the ApplicationSets that run, which takes Known.Running or Running, and not of the checkout's
	Running   []appset.LiveSet
	// From are manifests of other tools that bring new versions in. Where it isn't nil, Applications' annotations count too.
	From []File
	Now  time.Time
	// Flags are those that name the checkout and the inputs beside it, which readers of the
	// pipeline file need as well.
	Flags []string

	Known Known

	exampleClusters bool // Known.Clusters are made up, as the caller named none
}

// Proposal is a pipeline file that was inferred from a checkout, and proven.
type Proposal struct {
	Text []byte
	// Known is what it was written from.
	Known *propose.Proposal
	// Plan is what it would open; nil where that can't be said, as PlanError says.
	Plan      *plan.Plan
	PlanError error
	// Problems and Notes are those of resolving with it.
	Problems, Notes []appset.Problem
}

// ExistingPipelineError says that there is a pipeline file already.
type ExistingPipelineError struct{ File string }

func (e *ExistingPipelineError) Error() string {
	return fmt.Sprintf("%s is there already: liftlock validate checks it, and liftlock plan says what it would open; move it away to "+
		"have another one proposed", e.File)
}

// Propose infers a pipeline file from the working tree and its history, and proves it. A
// *propose.ChoiceError is what a person has to settle; [propose.ErrNothingUsable], wrapped with
// what was looked for and where, is that there is nothing to make a pipeline of. Where that is because
// Argo CD's clusters aren't known, a proposal with an example of them is the draft of a choice.
func (r *Repository) Propose(ctx context.Context, q ProposalQuery) (*Proposal, error) {
	p, err := r.proposeWithKnown(ctx, q)
	if errors.Is(err, propose.ErrNothingUsable) {
		if choice := r.proposeWithExample(ctx, q); choice != nil {
			return nil, choice
		}
	}
	return p, err
}

// proposeWithKnown infers a pipeline file from what is known.
func (r *Repository) proposeWithKnown(ctx context.Context, q ProposalQuery) (*Proposal, error) {
	t, err := r.At(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := refuseExisting(t); err != nil {
		return nil, err
	}
	d := &deployed{repository: r, tree: t, query: &q, resolver: appset.New(appset.Options{})}
	nothing := d.find(ctx)
	if err := d.refuseUnread(ctx); err != nil { // which may be why there is nothing
		return nil, err
	}
	if nothing != nil {
		return nil, d.draftTargets(nothing)
	}
	return d.propose(ctx)
}

func refuseExisting(t *Tree) error {
	_, err := pipeline.Load(t.FS)
	if errors.Is(err, pipeline.ErrNoPipeline) {
		return nil
	}
	file := pipeline.FolderName
	if _, err := fs.Stat(t.FS, pipeline.FileName); err == nil {
		file = pipeline.FileName
	}
	return &ExistingPipelineError{file}
}

// propose infers the pipeline, and proves it.
func (d *deployed) propose(ctx context.Context) (*Proposal, error) {
	p := &d.proposal
	p.Name = d.pipelineName()
	managed, source, err := d.findCarried(ctx)
	if err != nil {
		return nil, d.draftTemplates(err)
	}
	if managed, source, err = d.tryOthers(ctx, managed, source); err != nil {
		return nil, err
	}
	if len(p.Carried.Entries) == 0 {
		return nil, d.draftCarry(ctx, source)
	}
	if err := d.orderEnvironments(); err != nil {
		return nil, d.draftOrder(err)
	}
	if err := d.migrate(managed); err != nil {
		return nil, err
	}
	d.keepClusters()
	d.nameUntold()
	proven, err := d.prove(ctx, managed)
	if err != nil {
		return nil, err
	}
	for _, open := range []*propose.ChoiceError{p.Open.Charts, p.Open.Clusters} {
		if open != nil {
			open.Draft, open.Known = proven.Text, &d.proposal
			return nil, open
		}
	}
	return proven, nil
}

// nameUntold has the pipeline file name the charts that are left out, as comments.
func (d *deployed) nameUntold() {
	if d.sets == nil {
		return
	}
	for _, c := range d.tree.untoldCharts(d.sets.templates) {
		d.proposal.Untold = append(d.proposal.Untold, *c.example())
	}
}

// findCarried finds the templates, and what a promotion moves between the environments that they give.
func (d *deployed) findCarried(ctx context.Context) (*appset.TargetSet, *propose.Source, error) {
	p := &d.proposal
	if err := d.assign(ctx); err != nil {
		return nil, nil, err
	}
	managed, err := d.resolveManaged(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := d.findBranches(ctx, managed); err != nil {
		return nil, nil, err
	}
	if len(p.Branches) > 0 { // then their targets are read there
		if managed, err = d.resolveManaged(ctx); err != nil {
			return nil, nil, err
		}
	}
	source := &propose.Source{Tracked: d.branch(), Branch: func(environment string) string { return p.Branches[environment] }}
	if err := d.readHistory(ctx, source); err != nil {
		return nil, nil, err
	}
	bases, err := readBases(ctx, managed, d.branch(), func(branch string) fs.FS {
		if branch == d.branch() {
			branch = ""
		}
		return source.Tree(branch)
	})
	if err != nil {
		return nil, nil, err
	}
	source.Components = history.Components(managed, d.branch(), bases)
	p.Carried, err = propose.FindCarry(ctx, source)
	return managed, source, err
}

// tryOthers takes other templates where those that were found first give nothing to carry, or
// nothing that was ever the same in two environments, and the others do. Among several candidates
// it takes the one that something moves between. The first ones may leave an environment of a
// component out. Then it takes others that tell as much apart and leave none out. Templates for
// fewer targets count where the others give nothing at all.
func (d *deployed) tryOthers(ctx context.Context, managed *appset.TargetSet, source *propose.Source) (*appset.TargetSet,
	*propose.Source, error) {
	first, best, chosen := d.proposal, d.proposal, d.query.Templates
	if chosen != (propose.Templates{}) {
		return managed, source, nil
	}
	defer func() { d.query.Templates = chosen }()
	for _, other := range first.Assignment.Others {
		isEnough := best.Carried.Seen && (best.Carried.LeftOut == 0 || !other.IsAsFine)
		findsLess := other.IsPartial && len(best.Carried.Entries) > 0
		if isEnough || findsLess {
			continue
		}
		d.proposal, d.query.Templates = first, other.Templates
		d.proposal.Branches = nil
		otherManaged, otherSource, err := d.findCarried(ctx)
		switch {
		case errors.Is(err, propose.ErrNothingUsable):
		case err != nil:
			return nil, nil, err
		case d.proposal.Carried.IsBetterThan(best.Carried):
			best, managed, source = d.proposal, otherManaged, otherSource
		}
	}
	d.proposal = best
	return managed, source, nil
}

// refuseUnread refuses an address that no ApplicationSet has.
func (d *deployed) refuseUnread(ctx context.Context) error {
	p := pipelineOfEntries(d.live)
	if !d.sets.isEmpty() {
		p = d.sets.pipeline()
	}
	if len(p.Spec.ApplicationSets) == 0 {
		return nil
	}
	pipes := []*pipeline.Pipeline{p}
	known, err := d.query.Known.resolverInput(d.tree.FS, pipes)
	if err != nil {
		return err
	}
	files, _ := d.repository.overlayFiles(d.tree, nil)
	return d.repository.refuseUnread(ctx, files, d.tree, known, pipes)
}

// keepClusters has the pipeline file name the file that the clusters came from, where the
// repository has it. A plan from a checkout then has them without a flag.
func (d *deployed) keepClusters() {
	if d.query.exampleClusters {
		d.proposal.Clusters = propose.ExampleClustersFile
		d.proposal.Open.Clusters = propose.DescribeUnknownClusters(d.query.Known.Clusters)
		return
	}
	from := d.query.Known.ClustersFile
	if from == "" || d.sets.isPlain() {
		return
	}
	if file, ok := d.repository.pathOf(from); ok && !pipeline.IsPipelinePath(file) {
		if info, err := fs.Stat(d.tree.FS, file); err == nil && info.Mode().IsRegular() {
			d.proposal.Clusters = file
			return
		}
	}
	d.proposal.Notes = append(d.proposal.Notes, "The clusters are those of --clusters: keep that file in the repository and name it in "+
		"the spec, as in clusters: clusters.yaml, or give it to validate, plan and impact as well.")
}

// lookedAt are the folders and files that environments may have fields in, sorted.
func lookedAt(components map[string]map[string]*history.Environment) []string {
	var out []string
	for _, envs := range components {
		for _, e := range envs {
			out = append(out, slices.Concat(e.Roots, e.Bases, e.Shared, e.Files)...)
		}
	}
	return appset.SortedUnique(out)
}

// addUnread adds to why no templates give a pipeline what was left out, or wasn't understood: they may be there.
func (d *deployed) addUnread(err error) error {
	unread := slices.Concat(d.leftOut, d.unresolved, d.targets.Problems)
	if len(unread) == 0 {
		return err
	}
	if choice := (*propose.ChoiceError)(nil); errors.As(err, &choice) {
		choice.Seen = append(choice.Seen, unread[0].String())
		return err
	}
	return fmt.Errorf("%w; %s", err, unread[0])
}

// assign finds the templates: those that fit all targets or, where sets have parameters of
// different kinds, the rest's by themselves.
func (d *deployed) assign(ctx context.Context) error {
	chosen := d.query.Templates
	a, err := propose.Assign(ctx, d.targets.Targets, chosen)
	if errors.Is(err, propose.ErrNothingUsable) {
		return d.addUnread(err)
	}
	if err != nil {
		return err
	}
	p := &d.proposal
	p.Assignment = a
	if a.Targets == len(d.targets.Targets) || chosen != (propose.Templates{}) {
		p.Sets = d.setEntries(nil)
		return nil
	}
	managed, err := d.resolve(ctx, d.provisional(a.Templates, d.setEntries(nil)))
	if err != nil {
		return err
	}
	rest := map[string][]appset.Target{}
	for _, t := range managed.Targets {
		if key := d.setKey(&t); !t.Managed() && key != "" {
			rest[key] = append(rest[key], t)
		}
	}
	own := map[string]propose.Templates{}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		if slices.ContainsFunc(managed.Targets, func(t appset.Target) bool { return d.setKey(&t) == key && t.Managed() }) {
			continue
		}
		b, err := propose.Assign(ctx, rest[key], propose.Templates{})
		if err != nil {
			continue // the proposal says that they are in no environment
		}
		own[key] = b.Templates
		a.Components = appset.SortedUnique(append(a.Components, b.Components...))
		a.Environments = appset.SortedUnique(append(a.Environments, b.Environments...))
		a.Targets += b.Targets
	}
	p.Sets = d.setEntries(own)
	return nil
}

// fileEntries are the entries of files: a glob where a folder has many, without templates or
// an Argo CD of their own.
func fileEntries(sets *runningSets, own map[string]propose.Templates, argocds ownArgoCDs) []propose.Set {
	const many = 4
	count := map[string]int{}
	for _, f := range sets.parents {
		count[path.Dir(f)+"/*"+path.Ext(f)] = -len(sets.files) // no glob may match it
	}
	for _, f := range sets.files {
		if own[f] == (propose.Templates{}) && argocds[f] == "" {
			count[path.Dir(f)+"/*"+path.Ext(f)]++
		}
	}
	var out, last []propose.Set
	for _, f := range sets.files {
		glob := path.Dir(f) + "/*" + path.Ext(f)
		switch s := (propose.Set{Path: escapeGlob(f), Templates: own[f], ArgoCD: argocds[f]}); {
		case s.Templates != (propose.Templates{}), s.ArgoCD != "":
			last = append(last, s) // of two entries for one file the last counts
		case count[glob] < many:
			out = append(out, s)
		case !slices.ContainsFunc(out, func(o propose.Set) bool { return o.Path == path.Clean(glob) }):
			out = append(out, propose.Set{Path: path.Clean(glob)})
		}
	}
	return append(out, last...)
}

// provisional is the pipeline as far as it is known.
func (d *deployed) provisional(t propose.Templates, sets []propose.Set) *pipeline.Pipeline {
	out := d.pipelineOf(sets)
	out.Spec.Component, out.Spec.Environment = t.Component, t.Environment
	for _, name := range d.proposal.Assignment.Environments {
		e := pipeline.Environment{Name: name, Branch: d.proposal.Branches[name]}
		out.Spec.Environments = append(out.Spec.Environments, e)
	}
	if len(d.proposal.Branches) > 0 {
		out.Spec.Layout = pipeline.LayoutBranches
	}
	return out
}

// resolveManaged resolves with components and environments.
func (d *deployed) resolveManaged(ctx context.Context) (*appset.TargetSet, error) {
	return d.resolve(ctx, d.provisional(d.proposal.Assignment.Templates, d.proposal.Sets))
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// pipelineName is what a person called the pipeline, or what it is called by what is there.
func (d *deployed) pipelineName() string { return cmp.Or(d.query.Name, d.name()) }

// prove writes the file, and checks it by the code that validates and plans.
func (d *deployed) prove(ctx context.Context, managed *appset.TargetSet) (*Proposal, error) {
	out := &Proposal{}
	pipes, err := pipeline.Parse(pipeline.FileName, d.proposal.Write())
	if err != nil {
		return nil, fmt.Errorf("the proposal isn't a valid pipeline file, which is a bug in liftlock init: %w", err)
	}
	set, err := d.resolve(ctx, pipes[0])
	if err != nil {
		return nil, err
	}
	out.Problems, out.Notes = set.Problems, append(slices.Concat(d.unresolved, d.sets.uninstallable(), set.Notes),
		appset.UnreachedTargets(pipes[0], set.Targets, d.branch())...)
	out.Plan, out.PlanError = d.repository.Plan(ctx, PlanQuery{Now: d.query.Now, Proposed: d.proposal.Write(), Known: d.query.Known})
	if _, err := d.repository.git.Resolve(ctx, "HEAD"); errors.Is(err, git.ErrUnknownCommit) {
		out.PlanError = errors.New("nothing has been committed yet")
	}
	d.describe(managed, out)
	out.Text, out.Known = d.proposal.Write(), &d.proposal
	return out, nil
}
