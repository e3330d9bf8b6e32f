package checkout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/migrate"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// deployed is what a checkout deploys, while a pipeline is inferred from it.
type deployed struct {
	repository *Repository
	tree       *Tree
	query      *ProposalQuery
	resolver   *appset.Resolver

	sets    *runningSets     // the files' ApplicationSets or plain Applications; none: live ones
	own     ownArgoCDs       // of those files, and of the kustomizations that build sets
	live    []propose.Set    // likewise, of those that run
	leftOut []appset.Problem // why some of the files' aren't taken
	// unresolved are those that run and that nothing is known of, and why.
	unresolved []appset.Problem
	targets    *appset.TargetSet
	proposal   propose.Proposal
	histories  map[string][]propose.Moment // by the names of the branches
	migrated   *migrate.Manifests          // nil: other tools don't count
}

// find finds ApplicationSets, or else plain Applications, and resolves them without components.
func (d *deployed) find(ctx context.Context) error {
	if len(d.query.Files) > 0 {
		return d.findGiven(ctx)
	}
	if d.query.Live && d.query.Known.Running == nil {
		return d.findGivenLive(ctx, d.query.Running)
	}
	if d.query.Live {
		return d.findLive(ctx, d.query.Known.Running.liveState)
	}
	sets, err := d.repository.findRunning(ctx, d.tree, &d.query.Known, kindApplicationSet)
	if err != nil {
		return err
	}
	if sets.isEmpty() && len(sets.problems) == 0 {
		return d.findPlain(ctx, sets)
	}
	return d.take(ctx, sets)
}

// findPlain finds plain Applications; sets are the ApplicationSets, of which there are none but in charts.
func (d *deployed) findPlain(ctx context.Context, sets *runningSets) error {
	d.leftOut = sets.notes
	all, err := d.repository.findRunning(ctx, d.tree, &d.query.Known, kindApplication)
	if err != nil {
		return err
	}
	if all.isEmpty() && len(all.problems) == 0 {
		why := fmt.Sprintf("looked for kind: ApplicationSet and kind: Application in the *.yaml, *.yml and *.json files of %s; there is "+
			"none", d.tree.Name)
		if len(sets.templates) > 0 {
			return d.findUntold(ctx, kindApplicationSet, sets.templates)
		}
		if len(all.templates) > 0 {
			return d.findUntold(ctx, kindApplication, all.templates)
		}
		return d.nothing("%s. If they are in another repository, liftlock init --live takes those that run", why)
	}
	targets, err := d.resolve(ctx, all.pipeline())
	if err != nil {
		return err
	}
	return d.take(ctx, all.leaves(d.tree, targets.Targets))
}

// take takes what was found, and resolves it without components.
func (d *deployed) take(ctx context.Context, found *runningSets) (err error) {
	d.sets, d.proposal.Plain = found, found.isPlain()
	d.unresolved = append(d.unresolved, found.problems...)
	if found.isEmpty() {
		return d.nothing("the %ss can't be made out%s", found.kind, firstProblem(found.problems))
	}
	if d.targets, err = d.resolve(ctx, found.pipeline()); err != nil {
		return err
	}
	if err := d.findArgoCDs(ctx); err != nil {
		return err
	}
	if len(d.targets.Targets) == 0 {
		return d.nothing("the %ss in %s generate no Application%s", found.kind, wording.JoinFew(found.locations(), 5),
			firstProblem(d.targets.Problems))
	}
	return nil
}

func (d *deployed) nothing(format string, args ...any) error {
	return fmt.Errorf("%w: %s", propose.ErrNothingUsable, fmt.Sprintf(format, args...))
}

func firstProblem(list []appset.Problem) string {
	if len(list) == 0 {
		return ""
	}
	return ": " + list[0].String()
}

// resolve resolves a pipeline over the working tree, with the Applications' manifests.
func (d *deployed) resolve(ctx context.Context, p *pipeline.Pipeline) (*appset.TargetSet, error) {
	known, err := d.query.Known.resolverInput(d.tree.FS, []*pipeline.Pipeline{p})
	if err != nil {
		return nil, err
	}
	files, _ := d.repository.overlayFiles(d.tree, nil)
	return d.repository.resolvePipeline(ctx, d.resolver, files, d.tree, known.forPipeline(p), true)
}

func (d *deployed) branch() string { return cmp.Or(d.repository.main, "main") }

// name is what the pipeline is called by what is there: as the one ApplicationSet, else as the repository.
func (d *deployed) name() string {
	names := map[string]bool{}
	for _, t := range d.targets.Targets {
		names[t.ApplicationSet] = true
	}
	candidates := []string{path.Base(strings.TrimSuffix(strings.TrimRight(slices.Concat(d.repository.urls, []string{""})[0], "/"), ".git")),
		path.Base(d.repository.Dir())}
	if len(names) == 1 && !names[""] {
		candidates = append(slices.Collect(maps.Keys(names)), candidates...)
	}
	for _, c := range candidates {
		name := strings.Trim(notName.ReplaceAllString(strings.ToLower(c), "-"), "-")
		if name = name[:min(len(name), 40)]; pipeline.ValidName(name) == nil {
			return name
		}
	}
	return "releases"
}
