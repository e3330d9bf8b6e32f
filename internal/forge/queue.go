package forge

import "context"

type mergeQueueKey struct{}

// WithMergeQueue marks calls made with a context: merges into the repository may go through the
// forge's merge queue. Some forges tell only by another call where a pull request is in the queue,
// and make that call then.
func WithMergeQueue(ctx context.Context) context.Context {
	return context.WithValue(ctx, mergeQueueKey{}, true)
}

// HasMergeQueue says whether WithMergeQueue was said of a context.
func HasMergeQueue(ctx context.Context) bool {
	is, _ := ctx.Value(mergeQueueKey{}).(bool)
	return is
}
