package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// OpenedProposal is a pull request that proposes a pipeline file.
type OpenedProposal struct {
	URL   string
	IsNew bool // false: it was there before
}

// OpenProposal opens the pull request that proposes a pipeline file to the first repository of the
// file, as a server with it would, once. One that is open stays the only one, whoever opened it. One
// that was closed is an error: that was a no.
func OpenProposal(ctx context.Context, o Options, p *onboard.Proposal) (*OpenedProposal, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	var caches cache.Group
	c := o.Config.Repositories[0]
	fc := o.Config.ForgeByName(c.Forge)
	f, err := newDriver(o.Config, *fc, driverOptions{version: o.Version, caches: &caches, now: o.Clock.Now})
	if err != nil {
		return nil, err
	}
	owner, name := c.Split()
	r := &branch.Repository{ID: c.Forge + ":" + c.Name, Name: forge.Repo{Owner: owner, Name: name}, Forge: f, ForgeType: fc.Type,
		Branch: c.Branch}
	if there, err := findProposal(ctx, r); err != nil || there != nil {
		return there, err
	}
	me, err := f.Me(ctx)
	if err != nil {
		return nil, err
	}
	r.BotLogin, r.BotID = me.Login, me.ID
	return openProposal(ctx, o, r, git.Options{Author: commitAuthorOf(me), CAFile: fc.CAFile, Now: o.Clock.Now,
		Credentials: func(ctx context.Context) (string, string, error) { return f.GitAuth(ctx, r.Name) }}, p)
}

// findProposal finds the pull request that is open already, nil where there is none; the error is for
// a person's no too.
func findProposal(ctx context.Context, r *branch.Repository) (*OpenedProposal, error) {
	pulls, err := r.Forge.PullRequestsByBranch(ctx, r.Name, promotion.OnboardingBranch)
	if err != nil {
		return nil, err
	}
	for i := range pulls {
		if pulls[i].State == forge.Open {
			return &OpenedProposal{URL: pulls[i].URL}, nil
		}
	}
	for i := range pulls {
		if pulls[i].State == forge.Closed && branch.IsProposal(pulls[i].Body) {
			return nil, fmt.Errorf("%s was closed, which is a no; open it again if it isn't any more", pulls[i].URL)
		}
	}
	return nil, nil
}

// openProposal opens it from a mirror that is made for that.
func openProposal(ctx context.Context, o Options, r *branch.Repository, at git.Options,
	p *onboard.Proposal) (opened *OpenedProposal, err error) {
	if at.URL, err = r.Forge.CloneURL(ctx, r.Name); err != nil {
		return nil, err
	}
	if at.Dir, err = os.MkdirTemp("", "liftlock-proposal-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at.Dir)) }()
	if r.Mirror, err = git.Open(ctx, at); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Mirror.Close()) }()
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return nil, err
	}
	heads, err := r.Mirror.Heads(ctx, "")
	if err != nil {
		return nil, err
	}
	switch {
	case heads[r.Branch] == "":
		return nil, fmt.Errorf("%s has no branch %s: push it first", r.Name, r.Branch)
	case heads[promotion.OnboardingBranch] != "":
		return nil, fmt.Errorf("%s has the branch %s, and no pull request from it: open one, or delete the branch", r.Name,
			promotion.OnboardingBranch)
	}
	st := store.OpenMemory(store.Options{Now: o.Clock.Now})
	defer func() { err = errors.Join(err, st.Close()) }()
	actor := act.New(act.Options{Store: st, Now: o.Clock.Now, Log: zap.NewNop()})
	number, err := actor.OpenOnboarding(ctx, &act.Onboarding{Repo: r, Base: heads[r.Branch], Proposal: p})
	if err != nil {
		return nil, err
	}
	pr, err := r.Forge.PullRequest(ctx, r.Name, number)
	if err != nil {
		return nil, err
	}
	return &OpenedProposal{URL: pr.URL, IsNew: true}, nil
}
