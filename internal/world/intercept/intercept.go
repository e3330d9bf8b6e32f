// Package intercept puts one function between a forge and its caller, for tests and the simulation.
// It sees each call, and may fail it before it has its effect or after, or do something around it.
// Nothing that serves uses it.
package intercept

import (
	"context"

	"github.com/liftlock/liftlock/internal/forge"
)

// Call is one call of a forge.
type Call struct {
	Name    string // of the forge.Forge's method
	Writes  bool   // it may change something
	Number  int    // of the pull request that it is about; 0: none
	Subject string // what else it is about: a branch, a commit, a login, an environment, a state; empty: nothing
}

// Func makes a call by do, at most once, or doesn't make it. Its error is the call's: where it isn't
// do's, the caller gets no answer.
type Func func(ctx context.Context, c Call, do func() error) error

// Forge is a forge that is called through a function.
type Forge struct {
	forge.Forge
	through Func
}

var (
	_ forge.Forge      = (*Forge)(nil)
	_ forge.BulkReader = (*Forge)(nil)
)

// New has a forge called through a function.
func New(f forge.Forge, through Func) *Forge { return &Forge{f, through} }

// callThrough makes a call that has an answer.
func callThrough[T any](ctx context.Context, f *Forge, c Call, do func() (T, error)) (T, error) {
	var out, none T
	var own error
	err := f.through(ctx, c, func() error {
		out, own = do()
		return own
	})
	if err != nil && own == nil {
		return none, err
	}
	return out, err
}
