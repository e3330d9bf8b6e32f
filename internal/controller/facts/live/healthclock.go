package live

import (
	"maps"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// appKey names an Application among all Argo CDs.
type appKey struct{ argocd, namespace, name string }

// RecoveredFor is how long it is remembered that an Application was unhealthy: longer
// than anybody asks.
const RecoveredFor = 30 * time.Minute

// unhealthySpan is since when an Application is, or was, unhealthy, by our clock.
type unhealthySpan struct {
	since, until time.Time // until is zero while it is
	// unsettled says that it was never worse than Progressing or Unknown, by itself.
	unsettled bool
}

// HealthClock remembers since when Applications are unhealthy, by our clock, and for a
// while that they were. It is no cache: a limit on reverts rests on it, so nothing of it
// may be dropped. It holds no more than there are Applications, and a watch that starts
// reports all of them again.
type HealthClock struct {
	now func() time.Time

	mu    sync.Mutex
	spans map[appKey]unhealthySpan
	well  map[appKey]time.Time // when they were last seen well
}

func NewHealthClock(now func() time.Time) *HealthClock {
	return &HealthClock{now: now, spans: map[appKey]unhealthySpan{}, well: map[appKey]time.Time{}}
}

// unhealthy are the Applications that are, or were a while ago, unhealthy.
func (h *HealthClock) unhealthy() map[appKey]unhealthySpan {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	maps.DeleteFunc(h.spans, func(_ appKey, s unhealthySpan) bool {
		return !s.until.IsZero() && now.Sub(s.until) > RecoveredFor
	})
	return maps.Clone(h.spans)
}

// RecordApp remembers since when an Application is unhealthy, by our clock: Degraded or
// Missing, or Progressing or Unknown without having changed itself. It is called with every change that the watch reports.
func (h *HealthClock) RecordApp(a verification.App, deleted bool) {
	key := appKey{a.ArgoCD, a.Namespace, a.Name}
	unsettled := !deleted && a.TurnedByItself()
	bad := unsettled || !deleted && a.HasBadHealth()
	h.mu.Lock()
	defer h.mu.Unlock()
	span, known := h.spans[key]
	switch {
	case deleted:
		delete(h.spans, key)
		delete(h.well, key)
		return
	case !bad && known && span.until.IsZero():
		span.until = h.now()
		h.spans[key] = span
	case bad && (!known || !span.until.IsZero()):
		// HealthSince is by its Argo CD's clock, which may be any.
		since := h.now()
		if !a.HealthSince.IsZero() && a.HealthSince.Before(since) {
			since = a.HealthSince
			if well := h.well[key]; well.After(since) {
				since = well
			}
		}
		h.spans[key] = unhealthySpan{since: since, unsettled: unsettled}
	case bad && !unsettled:
		span.unsettled = false
		h.spans[key] = span
	}
	if !bad {
		h.well[key] = h.now()
	}
}
