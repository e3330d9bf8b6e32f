package git

import (
	"context"

	"github.com/liftlock/liftlock/internal/cache"
)

// repository is what a Mirror and a Checkout have in common: the objects and
// the history of one repository on this machine. All of its methods only read,
// and are safe for concurrent use.
type repository struct {
	engine engine
	caches caches
	name   string // in messages: "the mirror of https://…"
	remedy string // what to do when an object is missing
	line   int    // how many commits of a history are walked without the engine
}

func newRepository(e engine, group *cache.Group, name, remedy string) repository {
	return repository{engine: e, caches: newCaches(group), name: name, remedy: remedy}
}

// Close ends the repository's helper processes. Later reads start them again,
// so it is only needed at the end of its use.
func (r *repository) Close() error {
	r.engine.closePrograms()
	return nil
}

// MergeBase is the newest commit that both histories have, with which a pull request is compared.
// ok is false when they have none in common, or when a shallow clone is cut off before it.
// ErrUnknownCommit when the repository lacks either.
func (r *repository) MergeBase(ctx context.Context, a, b string) (sha string, ok bool, err error) {
	if err := r.requireCommits(ctx, a, b); err != nil {
		return "", false, err
	}
	return r.engine.findMergeBase(ctx, a, b)
}
