package store

import (
	"context"
	"sync"
)

// acceptGroup lets deliveries that come while others are being written share the next transaction,
// where the database runs one at a time. A burst of them costs one savepoint, one wake of each key
// and one turn of the writer for all, and not for each. One of the waiting ones writes for all of
// them, and then hands over to the first that has come since.
type acceptGroup struct {
	mu      sync.Mutex
	busy    bool
	waiting []*acceptance // in the order they came
}

// acceptance is one delivery that is to be accepted, and what came of it.
type acceptance struct {
	delivery Delivery
	// leads takes one value, and has room for it. true: its goroutine writes the next batch; false: it was in
	// another's batch, and fresh and err are set.
	leads chan bool
	fresh bool
	err   error
}

// accept has a delivery written by write, with those that wait at that moment. alone says
// that it was the only one.
func (ag *acceptGroup) accept(ctx context.Context, d Delivery, write func(context.Context, []*acceptance) error) (a *acceptance,
	alone bool) {
	a = &acceptance{delivery: d, leads: make(chan bool, 1), err: errAborted}
	ag.mu.Lock()
	ag.waiting = append(ag.waiting, a)
	leads := !ag.busy
	ag.busy = true
	ag.mu.Unlock()
	if leads || <-a.leads {
		return a, ag.writeNext(ctx, write) == 1
	}
	return a, false
}

// writeNext writes the next batch of waiting acceptances, at most groupLimit, and gives its size. The caller's
// acceptance is the first of the batch. Then it tells the others of the batch that theirs were written, and the
// first that came since that it leads.
func (ag *acceptGroup) writeNext(ctx context.Context, write func(context.Context, []*acceptance) error) int {
	ag.mu.Lock()
	members := ag.waiting[:min(len(ag.waiting), groupLimit):min(len(ag.waiting), groupLimit)]
	ag.waiting = ag.waiting[len(members):]
	ag.mu.Unlock()
	defer func() { // also when write panics, so that no waiter blocks for ever; their error stays errAborted then
		ag.mu.Lock()
		if ag.busy = len(ag.waiting) > 0; ag.busy {
			ag.waiting[0].leads <- true
		} else {
			ag.waiting = nil
		}
		ag.mu.Unlock()
		for _, a := range members[1:] {
			a.leads <- false
		}
	}()
	err := write(ctx, members)
	for _, a := range members {
		a.err = err
	}
	return len(members)
}
