package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// ExampleClusters is a file of cluster Secrets as the ApplicationSets of a checkout ask for them.
type ExampleClusters struct {
	Text []byte
	// Problems and Notes are those of resolving with it.
	Problems, Notes []appset.Problem
}

// exampleRounds bounds how often an example is made anew for what resolving with it asked besides: which
// clusters a matrix selects may follow from what others have.
const exampleRounds = 3

// ExampleClusters makes an example of Argo CD's clusters for the ApplicationSets that a query is about,
// and resolves them with it. An error that wraps [propose.ErrNothingUsable] is that none of them
// generates from clusters.
func (r *Repository) ExampleClusters(ctx context.Context, q Query) (*ExampleClusters, error) {
	t, err := r.At(ctx, q.Rev)
	if err != nil {
		return nil, err
	}
	a := &Resolution{}
	files, pipes, err := r.selectPipelines(ctx, t, q, a)
	if err != nil {
		return nil, err
	}
	e := &exampleMaker{repository: r, tree: t, files: files, query: &q, resolver: appset.New(appset.Options{}), pipes: pipes}
	facts, err := e.gatherFacts(ctx)
	if err != nil {
		return nil, err
	}
	if len(facts.Use.Sets) == 0 {
		return nil, fmt.Errorf("%w: no ApplicationSet in %s generates from clusters, so that none have to be known",
			propose.ErrNothingUsable, t.Name)
	}
	out := &ExampleClusters{Problems: a.Problems}
	for range exampleRounds {
		out.Text = propose.WriteClusters(propose.ExampleClusters(facts))
		if e.clusters, err = appset.ParseClusters(out.Text); err != nil {
			return nil, fmt.Errorf("the example can't be read, which is a bug in liftlock init: %w", err)
		}
		before := len(facts.Use.Selectors)
		if err := e.addUse(ctx, facts.Use); err != nil {
			return nil, err
		}
		if len(facts.Use.Selectors) == before {
			break
		}
	}
	return out, e.prove(ctx, facts.Use, out)
}

// proposeWithExample proposes with an example of clusters where it isn't known which there are: a choice with
// the draft of a pipeline file. nil where they are known, no set generates from them, or nothing comes of it.
func (r *Repository) proposeWithExample(ctx context.Context, q ProposalQuery) *propose.ChoiceError {
	if q.Known.Clusters != nil || q.Known.Running != nil || q.Known.ClustersFile != "" {
		return nil
	}
	example, err := r.ExampleClusters(ctx, Query{Known: q.Known, Files: q.Files})
	if err != nil {
		return nil
	}
	if q.Known.Clusters, err = appset.ParseClusters(example.Text); err != nil {
		return nil
	}
	q.exampleClusters = true
	_, err = r.proposeWithKnown(ctx, q)
	var choice *propose.ChoiceError
	if !errors.As(err, &choice) || choice.Draft == nil {
		return nil
	}
	return choice
}

// exampleMaker makes one example.
type exampleMaker struct {
	repository *Repository
	tree       *Tree
	files      *namedFiles
	query      *Query
	resolver   *appset.Resolver
	pipes      []*pipeline.Pipeline
	clusters   []appset.Cluster // of the example; nil: there is none yet
}

// input is a resolver's input for a pipeline, with the example's clusters alone.
func (e *exampleMaker) input(p *pipeline.Pipeline) (appset.Input, error) {
	known := e.query.Known
	known.Running = nil
	in, err := known.argoCDInput(e.pipes)
	if err != nil {
		return in, err
	}
	in.Clusters, in.Pipeline = e.clusters, p
	e.repository.fillInput(&in, e.files, e.tree)
	return in, nil
}

// gatherFacts reads what the ApplicationSets ask of clusters, and which destinations there are without.
func (e *exampleMaker) gatherFacts(ctx context.Context) (*propose.ClusterFacts, error) {
	out := &propose.ClusterFacts{Use: &appset.ClusterUse{}, Tree: e.tree.FS, Branch: e.repository.main,
		Names: e.query.Known.Placements.ClusterNames()}
	if len(e.repository.urls) > 0 {
		out.RepoURL = appset.WithoutCredentials(e.repository.urls[0])
	}
	for _, p := range e.pipes {
		in, err := e.input(p)
		if err != nil {
			return nil, err
		}
		set, err := e.resolver.Resolve(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range set.Targets {
			out.Names, out.Servers = append(out.Names, set.Targets[i].Cluster), append(out.Servers, set.Targets[i].Server)
		}
	}
	if err := e.addUse(ctx, out.Use); err != nil {
		return nil, err
	}
	isKnown := func(to string) bool { return to == "" || to == "in-cluster" || to == inCluster }
	out.Names = slices.DeleteFunc(appset.SortedUnique(append(out.Names, out.Use.Names...)), isKnown)
	out.Servers = slices.DeleteFunc(appset.SortedUnique(append(out.Servers, out.Use.Servers...)), isKnown)
	return out, nil
}

// addUse adds what the ApplicationSets ask of clusters when there are those of the example.
func (e *exampleMaker) addUse(ctx context.Context, to *appset.ClusterUse) error {
	first := e.clusters == nil
	for _, p := range e.pipes {
		in, err := e.input(p)
		if err != nil {
			return err
		}
		use, err := e.resolver.FindClusterUse(ctx, in)
		if err != nil {
			return err
		}
		for _, s := range use.Selectors {
			if !slices.ContainsFunc(to.Selectors, s.Equal) {
				to.Selectors = append(to.Selectors, s)
			}
		}
		if first {
			to.Names, to.Servers = append(to.Names, use.Names...), append(to.Servers, use.Servers...)
			to.Sets, to.Reads = appset.SortedUnique(append(to.Sets, use.Sets...)), append(to.Reads, use.Reads...)
		}
	}
	return nil
}

// prove resolves with the example.
func (e *exampleMaker) prove(ctx context.Context, use *appset.ClusterUse, out *ExampleClusters) error {
	generated := map[string]bool{}
	for _, p := range e.pipes {
		in, err := e.input(p)
		if err != nil {
			return err
		}
		set, err := e.resolver.Resolve(ctx, in)
		if err != nil {
			return err
		}
		for i := range set.Targets {
			generated[set.Targets[i].ApplicationSet] = true
		}
		set = e.files.restoreNames(set)
		out.Problems, out.Notes = append(out.Problems, set.Problems...), append(out.Notes, set.Notes...)
		for _, problem := range set.Problems {
			generated[problem.ApplicationSet] = true // it is told
		}
	}
	empty := slices.DeleteFunc(slices.Clone(use.Sets), func(name string) bool { return generated[name] })
	if len(empty) > 0 {
		out.Notes = append(out.Notes, appset.Problem{Message: fmt.Sprintf("with these clusters no Application is generated by %s: see "+
			"what else it goes by", wording.JoinFew(empty, 5))})
	}
	out.Problems, out.Notes = distinctProblems(out.Problems), distinctProblems(out.Notes)
	return nil
}
