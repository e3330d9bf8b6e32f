package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

const (
	// tokenLookInterval is how often it is read until when a token is good, and
	// tokenRetryInterval how soon again where that failed.
	tokenLookInterval, tokenRetryInterval = 12 * time.Hour, 10 * time.Minute
	// tokenWarning is how long before its end a token is told of: time enough for somebody
	// who is on holiday.
	tokenWarning = 14 * 24 * time.Hour
)

// tokenExpirer is a driver that can say until when its token is good; the zero time: for
// ever, or the forge doesn't say.
type tokenExpirer interface {
	TokenExpiry(ctx context.Context) (time.Time, error)
}

// tokenWatch knows until when the tokens of forges are good, where those say so.
type tokenWatch struct {
	forges map[string]tokenExpirer // by name
	clock  clock.WithTicker
	shown  *prometheus.GaugeVec
	log    *zap.Logger

	mu   sync.Mutex
	ends map[string]time.Time // by name, of those that end
}

// run looks at the tokens until the context ends.
func (w *tokenWatch) run(ctx context.Context) {
	if len(w.forges) == 0 {
		return
	}
	for {
		wait := tokenLookInterval
		if !w.readExpiries(ctx) {
			wait = tokenRetryInterval
		}
		timer := w.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// readExpiries reads the end of each token; false where one can't be read: what was known of it stays.
func (w *tokenWatch) readExpiries(ctx context.Context) (ok bool) {
	ok = true
	for name, f := range w.forges {
		end, err := f.TokenExpiry(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Warn("until when the forge's token is good can't be read", zap.String("forge", name), zap.Error(err))
			}
			ok = false
			continue
		}
		w.remember(name, end)
	}
	for _, s := range w.statuses() {
		w.log.Warn(s.err.Error(), zap.String("forge", s.name))
	}
	return ok
}

func (w *tokenWatch) remember(name string, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if end.IsZero() {
		delete(w.ends, name)
		w.shown.DeleteLabelValues(name)
		return
	}
	w.ends[name] = end
	w.shown.WithLabelValues(name).Set(float64(end.Unix()))
}

// statuses are the tokens that end soon or have ended.
func (w *tokenWatch) statuses() []partStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []partStatus
	for name, end := range w.ends {
		left := end.Sub(w.clock.Now())
		if left > tokenWarning {
			continue
		}
		when := fmt.Sprintf("ends in %d days, on %s", int(left.Hours()/24), end.UTC().Format(time.DateOnly))
		if left <= 0 {
			when = "ended on " + end.UTC().Format(time.DateOnly)
		}
		out = append(out, partStatus{"token of forge " + name, fmt.Errorf("it %s: make a new one, put it where forges[].auth has it, and restart Liftlock", when)})
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}
