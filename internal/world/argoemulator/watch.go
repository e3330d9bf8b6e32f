package argoemulator

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// maxWatch ends a watch whose client names no time, as a real API server does
// after some minutes.
const maxWatch = 30 * time.Minute

// watchStream is one open watch.
type watchStream struct {
	*ArgoCD
	query          objectQuery
	lastVersion    int64 // what has been told
	enc            *json.Encoder
	ctl            *http.ResponseController
	wantsBookmarks bool // bookmarks
}

// watchObjects tells changes since the request's resourceVersion. Without one it tells
// what is there first. A version from before what is kept is 410 Gone.
func (a *ArgoCD) watchObjects(w http.ResponseWriter, r *http.Request, q objectQuery) {
	v := r.URL.Query()
	if v.Get("sendInitialEvents") != "" {
		// The feature is off by default in Kubernetes 1.31; clients fall back.
		writeFailure(w, http.StatusUnprocessableEntity, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless "+
			"the WatchList feature gate is enabled")
		return
	}
	k := &watchStream{ArgoCD: a, query: q, enc: json.NewEncoder(w), ctl: http.NewResponseController(w),
		wantsBookmarks: v.Get("allowWatchBookmarks") == "true"}
	var first []watchEvent
	a.mu.Lock()
	cut := a.watchesCut
	if s := v.Get("resourceVersion"); s == "" || s == "0" {
		k.lastVersion = a.store.version
		for _, key := range slices.Sorted(maps.Keys(a.store.records)) {
			if rec := a.store.records[key]; q.matches(rec) {
				first = append(first, watchEvent{"ADDED", rec})
			}
		}
	} else {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			a.mu.Unlock()
			writeFailure(w, http.StatusBadRequest, "resourceVersion: Invalid value")
			return
		}
		if n < a.store.compactedTo {
			a.mu.Unlock()
			writeFailure(w, http.StatusGone, "too old resource version: "+s)
			return
		}
		k.lastVersion = n
	}
	a.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if err := k.sendEvents(first); err != nil {
		return // the client is gone
	}
	limit := time.Duration(positiveOr(v.Get("timeoutSeconds"), int(maxWatch/time.Second))) * time.Second
	if err := k.streamChanges(r, cut, limit); err != nil {
		a.log.Debug("a watch ended", zap.Error(err))
	}
}

// streamChanges tells changes until the client leaves, its time is over or the watch
// is cut.
func (w *watchStream) streamChanges(r *http.Request, cut chan struct{}, limit time.Duration) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	var marks <-chan time.Time
	if w.wantsBookmarks && w.timings.Bookmark > 0 {
		ticker := time.NewTicker(w.timings.Bookmark)
		defer ticker.Stop()
		marks = ticker.C
	}
	for {
		events, more, lost := w.pendingEvents()
		if lost {
			return w.enc.Encode(jsonObject{"type": "ERROR", "object": failureStatus(http.StatusGone, "too old resource version: "+
				strconv.FormatInt(w.lastVersion, 10))})
		}
		if err := w.sendEvents(events); err != nil {
			return err
		}
		select {
		case <-more:
		case <-marks:
			if err := w.sendBookmark(); err != nil {
				return err
			}
		case <-end.C:
			return w.sendBookmark()
		case <-cut:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// pendingEvents takes the changes that were not told yet; more is closed when there
// are further ones, lost says that some are forgotten.
func (w *watchStream) pendingEvents() (events []watchEvent, more chan struct{}, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchesStalled {
		return nil, w.store.changed, false
	}
	if w.lastVersion < w.store.compactedTo {
		return nil, nil, true
	}
	for _, e := range w.store.changesSince(w.lastVersion) {
		if w.query.matches(e.objectRecord) {
			events = append(events, e)
		}
	}
	w.lastVersion = w.store.version
	return events, w.store.changed, false
}

func (w *watchStream) sendEvents(events []watchEvent) error {
	for _, e := range events {
		if err := w.enc.Encode(jsonObject{"type": e.Type, "object": e.raw}); err != nil {
			return err
		}
	}
	return w.ctl.Flush()
}

// sendBookmark says up to where the client has heard everything.
func (w *watchStream) sendBookmark() error {
	w.mu.Lock()
	stalled := w.watchesStalled
	w.mu.Unlock()
	if stalled || !w.wantsBookmarks {
		return nil
	}
	err := w.enc.Encode(jsonObject{"type": "BOOKMARK", "object": jsonObject{
		"apiVersion": apiVersion(w.query.resource), "kind": kindByResource[w.query.resource],
		"metadata": jsonObject{"resourceVersion": strconv.FormatInt(w.lastVersion, 10)},
	}})
	if err != nil {
		return err
	}
	return w.ctl.Flush()
}
