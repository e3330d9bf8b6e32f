package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// follower keeps a sink up to date with the objects of one kind. A feed does by
// Kubernetes, an apiStream and an apiList by Argo CD's own API.
type follower interface {
	run(ctx context.Context) // until ctx ends
	checkReady() error
	isListed() bool
	// visitAll lists the objects anew: of those that it covers, the ones that a label selector
	// chooses. Where that is cheaper, those of other namespaces are left out.
	visitAll(ctx context.Context, namespace, selector string, visit func(json.RawMessage) error) error
	covers(namespace string) bool
}

// feedState is how a feed is: whether it has listed everything, and since when it doesn't
// follow.
type feedState struct {
	title         string // for people
	optional      bool   // may be forbidden or absent: said once, then tried rarely
	missingHint   string // what stays unknown where an optional feed can't be had
	log           *zap.Logger
	now           func() time.Time
	onReadyChange func(well bool) // called when checkReady turns nil (true), and the first time that it fails (false)

	mu        sync.Mutex
	listed    bool
	downSince time.Time // since when there is no watch; zero: there is one
	lastErr   error     // why, when known
	logged    bool      // err is in the log
}

// changeState changes what checkReady says, and reports that what was lost is well again.
func (f *feedState) changeState(change func(*feedState)) {
	lost := f.checkReady() != nil
	f.mu.Lock()
	change(f)
	f.mu.Unlock()
	if lost && f.checkReady() == nil {
		f.onReadyChange(true)
	}
}

func (f *feedState) markAlive() {
	logged := false
	f.changeState(func(f *feedState) {
		logged = f.logged
		f.downSince, f.lastErr, f.logged = time.Time{}, nil, false
	})
	if logged {
		f.log.Info("watching again", zap.String("watch", f.title))
	}
}

func (f *feedState) markEnded() {
	f.mu.Lock()
	f.downSince = f.now()
	f.mu.Unlock()
}

// markBroken notes that there is no watch, unless that is known.
func (f *feedState) markBroken() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.downSince.IsZero() {
		f.downSince = f.now()
	}
}

// recordTrouble notes why there is no watch, and says it once; denied: it won't pass by
// itself.
func (f *feedState) recordTrouble(err error, denied bool) {
	if errors.Is(err, context.Canceled) {
		return
	}
	f.mu.Lock()
	logged := f.logged
	f.lastErr, f.logged = err, true
	f.mu.Unlock()
	if logged {
		return
	}
	f.onReadyChange(false)
	if f.optional && denied {
		f.log.Warn(f.missingHint, zap.Error(err))
		return
	}
	f.log.Warn("Argo CD can't be watched; trying again", zap.Error(err))
}

// checkReady is nil while the feed has listed and has a watch, or had one until a
// moment ago.
func (f *feedState) checkReady() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed && (f.downSince.IsZero() || f.now().Sub(f.downSince) < brokenGrace) {
		return nil
	}
	err := f.lastErr
	switch {
	case err != nil:
	case f.listed:
		err = fmt.Errorf("watch %s: no answer", f.title)
	default:
		err = fmt.Errorf("list %s: not complete yet", f.title)
	}
	return fmt.Errorf("%w (since %s)", err, f.downSince.UTC().Format(time.RFC3339))
}

// isListed says that everything has been listed once.
func (f *feedState) isListed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listed
}
