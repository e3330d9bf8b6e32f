// Package faulttest makes the calls of a run to the world outside of it fail, one after the other,
// so that a test can hold the outcome of each failure. It has no world of its own: forges, stores,
// remotes and contexts of tests report their calls to it.
package faulttest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// ErrInjected is what a failing call ends with.
var ErrInjected = errors.New("injected")

const module = "github.com/liftlock/liftlock/"

// Faults counts calls and makes one of them fail, before or after its effect. The zero
// value lets all pass. Calls may come from several goroutines; the fields are set and read
// while there are none.
type Faults struct {
	Calls  []string
	Hook   func(call string) // what happens just before a call; nil: nothing
	At     int               // the call that fails, by its number from 1; 0: none
	Caller string            // the call that fails, the first from there, as Callers has it; empty: none
	After  bool
	// Once has calls fail by callers of which none has failed yet, one before a Hit is taken away,
	// and remembers them. Where a call has an effect, it fails once more after that. nil: none.
	Once map[string]bool
	Hit  string // the call that failed
	// HitCaller is by whom it was made, as Callers has it; empty where Deep isn't set.
	HitCaller string
	// Deep counts what Intercept, InterceptStatement, BeforeRemote and Context see, too.
	Deep bool

	mu      sync.Mutex
	seen    []string
	pending string // a call that fails once it had its effect
}

// Pass is a call with its effect.
func (f *Faults) Pass(call string, effect func() error) error {
	if err := f.before(call, true); err != nil {
		return err
	}
	err := effect()
	if lost := f.after(call); lost != nil { // whatever the answer was
		return lost
	}
	return err
}

// Fail is a call that has no effect, counted while Deep is set.
func (f *Faults) Fail(call string) error {
	if !f.Deep {
		return nil
	}
	return f.before(call, false)
}

// Callers are by whom calls were made while Deep was set, in their order: what is called, and
// by which lines of the code. Each is there once, however often it calls.
func (f *Faults) Callers() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// before counts a call; answered: after has its word, too, once the call had its effect.
func (f *Faults) before(call string, answered bool) error {
	var caller string
	if f.Deep {
		caller = call + " by " + callers()
	}
	f.mu.Lock()
	f.Calls = append(f.Calls, call)
	if caller != "" && !slices.Contains(f.seen, caller) {
		f.seen = append(f.seen, caller)
	}
	hook := f.Hook
	f.mu.Unlock()
	if hook != nil {
		hook(call) // which may set what fails
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.After && answered
	switch {
	case f.Hit != "":
		return nil
	case f.Once != nil && caller != "" && !f.Once[caller]:
		f.Once[caller], late = true, false
	case f.Once != nil && caller != "" && answered && !f.Once[caller+", answered"]:
		f.Once[caller+", answered"], late = true, true
	case len(f.Calls) == f.At, f.Caller != "" && caller == f.Caller:
	default:
		return nil
	}
	f.Hit, f.HitCaller = call, caller
	if late {
		f.pending = call
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInjected, call)
}

func (f *Faults) after(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == "" || f.pending != call {
		return nil
	}
	f.pending = ""
	return fmt.Errorf("%w: %s", ErrInjected, call)
}

// callers are the lines that led here, the nearest first, without this package's and tests'.
func callers() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var out []string
	for {
		frame, more := frames.Next()
		name, ours := strings.CutPrefix(frame.Function, module)
		if ours && !strings.HasPrefix(name, "internal/controller/faulttest.") && !strings.HasSuffix(frame.File, "_test.go") {
			out = append(out, fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(frame.File)), path.Base(frame.File), frame.Line))
		}
		if !more {
			return strings.Join(out, " < ")
		}
	}
}

type passedKey struct{}

// Passed is a context whose calls of the store aren't counted: its maker counted them.
func Passed(ctx context.Context) context.Context {
	return context.WithValue(ctx, passedKey{}, true)
}

// Intercept counts a call of the store, as its Options.Intercept.
func (f *Faults) Intercept(ctx context.Context, name string, answered bool) error {
	switch {
	case !f.Deep || ctx.Value(passedKey{}) != nil:
		return nil
	case answered:
		return f.after("store: " + name)
	case name == "":
		return f.before("store: read", false)
	}
	return f.before("store: "+name, true)
}

// InterceptStatement counts a statement of a transaction, as the store's option of that name.
func (f *Faults) InterceptStatement(ctx context.Context, transaction string) error {
	if ctx.Value(passedKey{}) != nil {
		return nil
	}
	return f.Fail("store: statement of " + transaction)
}

// BeforeRemote counts a call of a Git remote, as a mirror's option of that name.
func (f *Faults) BeforeRemote(_ context.Context, op string) error {
	if !f.Deep {
		return nil
	}
	return f.before("git: "+op, true)
}

// AfterRemote ends what BeforeRemote began.
func (f *Faults) AfterRemote(_ context.Context, op string) error {
	return f.after("git: " + op)
}

// Context is a context that is over, with ErrInjected, from one of the moments at which it is
// checked. Long reads of a mirror check it, and so the read fails.
func (f *Faults) Context(ctx context.Context) context.Context {
	return &faultyContext{Context: ctx, faults: f}
}

type faultyContext struct {
	context.Context
	faults *Faults

	mu   sync.Mutex
	over error
}

func (f *faultyContext) Err() error {
	if err := f.Context.Err(); err != nil || !lookedAtByUs() || !f.faults.Deep { // the database's own goroutines look while faults change
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over == nil {
		f.over = f.faults.before("context", false)
	}
	return f.over
}

// lookedAtByUs says whether the mirror or the controller checks a context, whatever contexts are
// wrapped around it. The stores and forges in memory check it too, where their calls are counted
// anyway.
func lookedAtByUs() bool {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if own := strings.HasPrefix(frame.Function, module+"internal/controller/faulttest.") ||
			strings.HasPrefix(frame.Function, "context."); !own {
			return strings.HasPrefix(frame.Function, module+"internal/git.") ||
				strings.HasPrefix(frame.Function, module+"internal/controller")
		}
		if !more {
			return false
		}
	}
}
