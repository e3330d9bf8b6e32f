package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// PlanQuery says what to plan, and what is known beside the checkout.
type PlanQuery struct {
	Rev      string // as which the tracked branch is taken; "" is HEAD
	Pipeline string // this pipeline alone; "" is all
	Rendered bool   // say what the promotions do to the rendered manifests
	Now      time.Time

	Known Known
}

// Plan says which promotions would open if the tracked branch were at a
// revision, and why the others wouldn't. What is wrong with the files is in the
// plan; the error is for what is asked, and for a history that isn't here.
func (r *Repository) Plan(ctx context.Context, q PlanQuery) (*plan.Plan, error) {
	rev := cmp.Or(q.Rev, "HEAD")
	commit, err := r.git.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	if shallow, err := r.git.Shallow(ctx); err != nil {
		return nil, err
	} else if shallow {
		return nil, errors.New("this is a shallow clone, in which where releases came from can't be told: fetch its history first (git fetch --unshallow)")
	}
	in := plan.Input{Git: r.git, Subject: describeCommit(rev, commit), Branch: r.main, Commit: commit, Head: r.branchHead, OnlyPipeline: q.Pipeline, Now: q.Now, Rendered: q.Rendered}
	var broken []appset.Problem
	in.Pipelines, broken, err = loadPlanPipelines(r.git.Tree(commit), in.Subject, q.Pipeline)
	if err != nil {
		return nil, err
	}
	known, err := q.Known.resolverInput(in.Pipelines)
	if err != nil {
		return nil, err
	}
	resolver := appset.New(appset.Options{})
	in.Resolve = func(ctx context.Context, p *pipeline.Pipeline, at appset.ExternalRef, branches map[string]appset.ExternalRef, manifests bool) (*appset.TargetSet, error) {
		in := known
		in.Pipeline, in.Tree, in.Revision, in.Branches, in.Manifests = p, at.Tree, at.Commit, branches, manifests
		in.Branch, in.RepoURLs, in.OpenExternal = r.main, r.urls, r.openExternal(at.Tree, at.Commit)
		return resolver.Resolve(ctx, in)
	}
	if in.Holds, err = r.holdFiles(ctx); err != nil {
		return nil, err
	}
	p, err := plan.Make(ctx, in)
	if err != nil {
		return nil, err
	}
	p.Problems = append(broken, p.Problems...)
	p.Notes = append(p.Notes, q.Known.uncheckedNotes()...)
	if note, err := r.behindRemote(ctx, q.Rev, commit); err != nil {
		return nil, err
	} else if note != "" {
		p.Notes = append(p.Notes, appset.Problem{Message: note})
	}
	p.Problems, p.Notes = distinctProblems(p.Problems), distinctProblems(p.Notes)
	return p, nil
}

// loadPlanPipelines are the pipelines of a tree. Broken files are problems, and then there
// are none.
func loadPlanPipelines(tree fs.FS, looked, name string) ([]*pipeline.Pipeline, []appset.Problem, error) {
	pipes, err := pipeline.Load(tree)
	if errors.Is(err, pipeline.ErrNoPipeline) {
		return nil, nil, fmt.Errorf("%s has %w; without one nothing is promoted", looked, err)
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

// branchHead is the commit of a branch as the remote has it, as far as was fetched, else
// of the one here.
func (r *Repository) branchHead(ctx context.Context, branch string) (sha string, ok bool, err error) {
	for _, prefix := range []string{"refs/remotes/origin/", "refs/heads/"} {
		sha, err := r.git.Resolve(ctx, prefix+branch)
		if !errors.Is(err, git.ErrUnknownCommit) {
			return sha, err == nil, err
		}
	}
	return "", false, nil
}

// holdFiles are the files of the state branch; nil for none.
func (r *Repository) holdFiles(ctx context.Context) (fs.FS, error) {
	sha, ok, err := r.branchHead(ctx, history.StateBranch)
	if err != nil || !ok {
		return nil, err
	}
	return r.git.Tree(sha), nil
}

// behindRemote says that the branch that is checked out isn't where the remote's was
// when it was last fetched; "" where it is, and where a revision was asked for.
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
