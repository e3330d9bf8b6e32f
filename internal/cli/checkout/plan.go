package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// PlanQuery says what to plan, and what is known beside the checkout.
type PlanQuery struct {
	Rev      string // as which the tracked branch is taken; "" is HEAD
	Pipeline string // this pipeline alone; "" is all
	Rendered bool   // say what the promotions do to the rendered manifests
	Now      time.Time
	// Proposed stands for the pipeline files, of which there need be none; nil: they count.
	Proposed []byte

	Known Known
}

// Plan says which promotions would open if the tracked branch were at a revision, and why the
// others wouldn't. The plan says what is wrong with the files; the error is for an invalid query,
// and for a history that isn't here.
func (r *Repository) Plan(ctx context.Context, q PlanQuery) (*plan.Plan, error) {
	basis, err := r.preparePlan(ctx, q)
	if err != nil {
		return nil, err
	}
	p := plan.New(basis.subject, basis.commit)
	if basis.input != nil {
		if err := p.Fill(ctx, *basis.input); err != nil {
			return nil, err
		}
	}
	p.Problems, p.Notes, err = r.completeProblems(ctx, q, basis, p.Problems, p.Notes)
	return p, err
}

// Discover says what would come into source environments by itself if the tracked branch were at a revision, by what a
// source of versions lists. The errors are those of Plan.
func (r *Repository) Discover(ctx context.Context, q PlanQuery, source plan.VersionSource) (*plan.Discovery, error) {
	basis, err := r.preparePlan(ctx, q)
	if err != nil {
		return nil, err
	}
	d := plan.NewDiscovery(basis.subject, basis.commit)
	if basis.input != nil {
		if err := d.Fill(ctx, *basis.input, source); err != nil {
			return nil, err
		}
	}
	d.Problems, d.Notes, err = r.completeProblems(ctx, q, basis, d.Problems, d.Notes)
	return d, err
}

// planBasis is what a plan is made from.
type planBasis struct {
	subject, commit string
	input           *plan.Input      // nil where the pipeline files can't be used
	broken, notes   []appset.Problem // what is wrong with the files, and what should be known
}

// preparePlan puts a scratch repository into the state that is planned.
func (r *Repository) preparePlan(ctx context.Context, q PlanQuery) (*planBasis, error) {
	rev := cmp.Or(q.Rev, "HEAD")
	commit, err := r.git.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	if shallow, err := r.git.Shallow(ctx); err != nil {
		return nil, err
	} else if shallow {
		return nil, errors.New("this is a shallow clone, in which where releases came from can't be told: fetch its history first (git " +
			"fetch --unshallow)")
	}
	s, err := r.openScratch(ctx)
	if err != nil {
		return nil, err
	}
	planned, notes, err := r.applyPipelineFiles(ctx, s, q, commit)
	if err != nil {
		return nil, err
	}
	subject := describeCommit(rev, commit)
	pipelines, broken, err := loadPlanPipelines(s.Tree(planned), subject, q.Pipeline)
	if err != nil {
		return nil, err
	}
	basis := &planBasis{subject: subject, commit: commit, broken: broken, notes: notes}
	if len(broken) > 0 {
		return basis, nil
	}
	known, err := q.Known.resolverInput(s.Tree(planned), pipelines)
	if err != nil {
		return nil, err
	}
	at := &Tree{FS: s.Tree(planned), Commit: planned, Name: subject, repo: s}
	files, _ := r.overlayFiles(at, nil)
	if err := r.refuseUnread(ctx, files, at, known, pipelines); err != nil {
		return nil, err
	}
	basis.broken = append(basis.broken, known.problems...)
	in := plan.Input{Mirror: s.Mirror, Branch: cmp.Or(r.main, "main"), URLs: r.urls, OnlyPipeline: q.Pipeline, Now: q.Now,
		Rendered: q.Rendered, External: r.openRendered}
	in.KnownInputs = func(to *appset.Input) {
		to.Clusters, to.Placements, to.Globbing, to.Version, to.ArgoCDs, to.Main, to.Live = known.Clusters, known.Placements,
			known.Globbing, known.Version, known.ArgoCDs, known.Main, known.Live
		known.addClusters(to, to.Pipeline)
		to.Branch, to.OpenExternal = r.main, r.openExternal(s.Tree(to.Revision), to.Revision)
	}
	basis.input = &in
	return basis, r.setBranches(ctx, s, in.Branch, planned)
}

// completeProblems adds to the problems and notes of a plan what is known beside it.
func (r *Repository) completeProblems(ctx context.Context, q PlanQuery, basis *planBasis,
	problems, notes []appset.Problem) (all, allNotes []appset.Problem, err error) {
	notes = append(append(notes, basis.notes...), q.Known.uncheckedNotes()...)
	note, err := r.behindRemote(ctx, q.Rev, basis.commit)
	if err != nil {
		return nil, nil, err
	}
	if note != "" {
		notes = append(notes, appset.Problem{Message: note})
	}
	return distinctProblems(append(basis.broken, problems...)), distinctProblems(notes), nil
}

// loadPlanPipelines are the pipelines of a tree. Broken files are problems, and then there
// are none.
func loadPlanPipelines(tree fs.FS, looked, name string) ([]*pipeline.Pipeline, []appset.Problem, error) {
	pipes, err := pipeline.Load(tree)
	if errors.Is(err, pipeline.ErrNoPipeline) {
		return nil, nil, fmt.Errorf("%s has %w; without one nothing is promoted, and liftlock init proposes one", looked, err)
	}
	broken := []appset.Problem{}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			broken = append(broken, appset.Problem{Message: strings.TrimSuffix(line, "\n")})
		}
		return nil, append(broken, appset.Problem{Message: "nothing opens while a pipeline file is broken"}), nil
	}
	if name != "" {
		if _, err := findPipeline(pipes, name); err != nil {
			return nil, nil, fmt.Errorf("%s %w", looked, err)
		}
	}
	return pipes, broken, nil
}

// applyPipelineFiles is a commit with the pipeline files, and the files of clusters that they name,
// as they lie in the working tree. It does so where no revision is asked for, and gives the commit
// itself where they are the same.
func (r *Repository) applyPipelineFiles(ctx context.Context, s *git.Scratch, q PlanQuery, commit string) (string, []appset.Problem, error) {
	if q.Proposed != nil {
		planned, err := r.commitProposed(ctx, s, q, commit)
		return planned, nil, err
	}
	if q.Rev != "" || r.git.Bare() {
		return commit, nil, nil
	}
	now, err := s.CommitWorkingTree(ctx, q.Now)
	if err != nil || now == commit {
		return commit, nil, err
	}
	changes, err := s.Changed(ctx, commit, now)
	if err != nil {
		return "", nil, err
	}
	spec := git.CommitSpec{Parents: []string{commit}, Base: commit, Message: "The pipeline files of the working tree", When: q.Now}
	clusters := clusterFiles(s.Tree(now))
	var names []string
	for _, c := range changes {
		if !pipeline.IsPipelinePath(c.Path) && !clusters[c.Path] {
			continue
		}
		f := git.FileWrite{Path: c.Path, Delete: c.Status == 'D'}
		if !f.Delete {
			if f.Content, err = s.Tree(now).ReadFile(c.Path); err != nil {
				return "", nil, err
			}
		}
		spec.Files, names = append(spec.Files, f), append(names, c.Path)
	}
	if len(names) == 0 {
		return commit, nil, nil
	}
	commit, err = s.Write(ctx, spec)
	return commit, []appset.Problem{{Message: fmt.Sprintf("%s: taken as in the working tree, which differs from HEAD; --rev HEAD plans "+
		"with what is committed", strings.Join(names, ", "))}}, err
}

// clusterFiles are the files of clusters that a tree's pipelines name; none where its pipeline files are
// broken, which is said where they are read.
func clusterFiles(tree fs.FS) map[string]bool {
	out := map[string]bool{}
	pipes, err := pipeline.Load(tree)
	if err != nil {
		return out
	}
	for _, p := range pipes {
		if p.Spec.Clusters != "" {
			out[p.Spec.Clusters] = true
		}
	}
	return out
}

// commitProposed is a commit with the proposed pipeline file.
func (r *Repository) commitProposed(ctx context.Context, s *git.Scratch, q PlanQuery, commit string) (string, error) {
	return s.Write(ctx, git.CommitSpec{
		Parents: []string{commit}, Base: commit, Message: "The proposed pipeline file", When: q.Now,
		Files: []git.FileWrite{{Path: pipeline.FileName, Content: q.Proposed}},
	})
}

// setBranches gives a scratch repository the branches that the server would see,
// but Liftlock's own: no pull request is open.
func (r *Repository) setBranches(ctx context.Context, s *git.Scratch, tracked, commit string) error {
	heads, err := r.git.Branches(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(heads, func(name, _ string) bool {
		return strings.HasPrefix(name, promotion.BranchPrefix) || strings.HasPrefix(name, promotion.RevertPrefix)
	})
	heads[tracked] = commit
	s.SetBranches(heads)
	return nil
}

// behindRemote says that the branch that is checked out isn't where the remote's was at the last
// fetch. It is "" where it is, and where a revision was asked for.
func (r *Repository) behindRemote(ctx context.Context, rev, commit string) (string, error) {
	if rev != "" || r.branch != r.main || r.main == "" {
		return "", nil
	}
	remote := "origin/" + r.main
	sha, err := r.git.Resolve(ctx, "refs/remotes/"+remote)
	switch {
	case errors.Is(err, git.ErrUnknownCommit):
		return "", nil
	case err != nil:
		return "", err
	case sha == commit:
		return "", nil
	}
	return fmt.Sprintf("%s is not at HEAD, but at %s: --rev %s plans from there", remote, wording.Short(sha), remote), nil
}
