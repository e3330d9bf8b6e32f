package server

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
)

// ReleasePull is a pull request that brings a release in.
type ReleasePull struct {
	Title, Body string
	Head, Base  string // branches of the same repository
}

// OpenRelease opens a pull request in the first repository of the file, and gives its address. One that is open for the same
// branches gets the title and the text.
func OpenRelease(ctx context.Context, o Options, p ReleasePull) (string, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := o.Config.Repositories[0]
	var caches cache.Group
	f, err := newDriver(o.Config, *o.Config.ForgeByName(c.Forge), driverOptions{version: o.Version, caches: &caches, now: o.Clock.Now})
	if err != nil {
		return "", err
	}
	owner, name := c.Split()
	at := forge.Repo{Owner: owner, Name: name}
	pr, created, err := f.CreatePullRequest(ctx, at, forge.NewPullRequest{Title: p.Title, Body: p.Body, Branch: p.Head, Base: p.Base})
	if err != nil {
		return "", err
	}
	if !created && (pr.Title != p.Title || pr.Body != p.Body) {
		err = f.UpdatePullRequest(ctx, at, pr.Number, forge.PullRequestUpdate{Title: &p.Title, Body: &p.Body})
	}
	return pr.URL, err
}
