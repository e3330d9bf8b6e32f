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

// tokenExpirer can say until when its token is good; the zero time: for ever, or unknown.
type tokenExpirer interface {
	TokenExpiry(ctx context.Context) (time.Time, error)
}

// tokenWatch knows until when the tokens for forges, or for Argo CDs, are good, where that is
// said.
type tokenWatch struct {
	what   string                  // they are for: forge, Argo CD
	key    string                  // of the server's file where they are
	tokens map[string]tokenExpirer // by the name of what they are for
	clock  clock.WithTicker
	shown  *prometheus.GaugeVec
	log    *zap.Logger

	mu   sync.Mutex
	ends map[string]time.Time // by name, of those that end
}

// run looks at the tokens until the context ends.
func (t *tokenWatch) run(ctx context.Context) {
	if len(t.tokens) == 0 {
		return
	}
	for {
		wait := tokenLookInterval
		if !t.readExpiries(ctx) {
			wait = tokenRetryInterval
		}
		timer := t.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// readExpiries reads the end of each token; false where one can't be read: what was known of it stays.
func (t *tokenWatch) readExpiries(ctx context.Context) (ok bool) {
	ok = true
	for name, f := range t.tokens {
		end, err := f.TokenExpiry(ctx)
		if err != nil {
			if ctx.Err() == nil {
				t.log.Warn("until when the token for a "+t.what+" is good can't be read", zap.String("name", name), zap.Error(err))
			}
			ok = false
			continue
		}
		t.remember(name, end)
	}
	for _, s := range t.statuses() {
		t.log.Warn(s.err.Error(), zap.String("part", s.name))
	}
	return ok
}

func (t *tokenWatch) remember(name string, end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end.IsZero() {
		delete(t.ends, name)
		t.shown.DeleteLabelValues(name)
		return
	}
	t.ends[name] = end
	t.shown.WithLabelValues(name).Set(float64(end.Unix()))
}

// statuses are the tokens that end soon or have ended.
func (t *tokenWatch) statuses() []partStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []partStatus
	for name, end := range t.ends {
		left := end.Sub(t.clock.Now())
		if left > tokenWarning {
			continue
		}
		when := fmt.Sprintf("ends in %d days, on %s", int(left.Hours()/24), end.UTC().Format(time.DateOnly))
		if left <= 0 {
			when = "ended on " + end.UTC().Format(time.DateOnly)
		}
		out = append(out, partStatus{"token of " + t.what + " " + name,
			fmt.Errorf("it %s: make a new one, put it where %s has it, and restart Liftlock", when, t.key)})
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}
