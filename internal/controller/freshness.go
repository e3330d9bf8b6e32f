package controller

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// freshness keeps a process from judging on a mirror that is older than another process's on the
// same database. A process that sees that branches moved leaves a new mark in the store, together
// with the wakes. One that finds a mark that its own mirror doesn't know fetches before it judges.
type freshness struct {
	owner string
	count atomic.Int64

	mu    sync.Mutex
	known map[string]string // by repository, the mark that its mirror was fetched after
}

func newFreshness(owner string) *freshness {
	return &freshness{owner: owner, known: map[string]string{}}
}

var movedMarks = record.Declare[record.Repository, string](record.Declaration{
	Name: "branches-moved", Owner: "controller", Lifetime: record.Lasting,
	Doc: "A mark that changes whenever a process sees that branches have moved.",
})

// leaveMark writes down that branches of a repository were seen to have moved by a fetch
// after the mark before. The mark is one that nobody has left yet: two processes may see
// different moves at once, and then neither knows both.
func (f *freshness) leaveMark(ctx context.Context, tx *store.Tx, r *Repository, before string) (mark string, err error) {
	mark = f.owner + "|" + strconv.FormatInt(f.count.Add(1), 10)
	found, _, err := movedMarks.Get(ctx, tx, record.Repository(r.ID))
	if err != nil {
		return "", err
	}
	if err := movedMarks.Put(ctx, tx, record.Repository(r.ID), mark); err != nil || found != before {
		return "", err
	}
	return mark, nil
}

// remember records that a mirror was fetched after a mark was read, or by the process that left it.
func (f *freshness) remember(r *Repository, mark string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[r.ID] = mark
}

func (f *freshness) knows(r *Repository, mark string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[r.ID]
	return ok && known == mark
}

// ensureFresh fetches where another process has seen branches move since this one
// fetched.
func (co *Controller) ensureFresh(ctx context.Context, r *Repository) error {
	mark, _, err := movedMarks.Get(ctx, co.opts.Store, record.Repository(r.ID))
	if err != nil || co.fresh.knows(r, mark) {
		return err
	}
	_, err = co.fetch(ctx, r)
	return err
}

// fetch fetches what has moved by now; the mark is the one that it was fetched after.
func (co *Controller) fetch(ctx context.Context, r *Repository) (mark string, err error) {
	found, _, err := movedMarks.Get(ctx, co.opts.Store, record.Repository(r.ID))
	if err != nil {
		return "", err
	}
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return "", err
	}
	co.fetchRequests.noteFetch(r.ID)
	co.fresh.remember(r, found)
	return found, nil
}
