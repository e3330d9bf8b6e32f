package forge

import "context"

// Priority says how soon calls are wanted where the forge limits how many there may be:
// the lower ones stop first, and none waits for one below it.
type Priority int

const (
	PriorityNormal     Priority = iota // to open, statuses, and what is read for a look
	PriorityUrgent                     // merges, reverts, commands
	PriorityComment                    // comments and pull requests' texts
	PriorityBackground                 // sweeps, webhooks' set-up
)

type priorityKey struct{}

// WithPriority gives the calls made with a context a priority, instead of the one it had.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf is the priority of the calls made with a context; PriorityNormal where it
// has none.
func PriorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}
