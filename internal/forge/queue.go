package forge

import "context"

type mergeQueueKey struct{}

// WithMergeQueue says of the calls made with a context that merges into the repository may go
// through the forge's merge queue: a forge that tells only by another call how a pull request
// stands to it makes that call then.
func WithMergeQueue(ctx context.Context) context.Context {
	return context.WithValue(ctx, mergeQueueKey{}, true)
}

// HasMergeQueue says whether WithMergeQueue was said of a context.
func HasMergeQueue(ctx context.Context) bool {
	is, _ := ctx.Value(mergeQueueKey{}).(bool)
	return is
}
