package emulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// maxWatch ends a watch whose client names no time, as a real API server does
// after some minutes.
const maxWatch = 30 * time.Minute

// watcher is one open watch.
type watcher struct {
	*ArgoCD
	q    query
	at   int64 // what has been told
	enc  *json.Encoder
	ctl  *http.ResponseController
	want bool // bookmarks
}

// watch tells changes since the request's resourceVersion. Without one it tells
// what is there first. A version from before what is kept is 410 Gone.
func (a *ArgoCD) watch(w http.ResponseWriter, r *http.Request, q query) {
	v := r.URL.Query()
	if v.Get("sendInitialEvents") != "" {
		// The feature is off by default in Kubernetes 1.31; clients fall back.
		statusAnswer(w, http.StatusUnprocessableEntity, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return
	}
	k := &watcher{ArgoCD: a, q: q, enc: json.NewEncoder(w), ctl: http.NewResponseController(w), want: v.Get("allowWatchBookmarks") == "true"}
	var first []watchEvent
	a.mu.Lock()
	cut := a.cut
	if s := v.Get("resourceVersion"); s == "" || s == "0" {
		k.at = a.store.version
		for _, key := range sortedKeys(a.store.all) {
			if rec := a.store.all[key]; q.matches(rec) {
				first = append(first, watchEvent{"ADDED", rec})
			}
		}
	} else {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			a.mu.Unlock()
			statusAnswer(w, http.StatusBadRequest, "resourceVersion: Invalid value")
			return
		}
		if n < a.store.forgotten {
			a.mu.Unlock()
			statusAnswer(w, http.StatusGone, "too old resource version: "+s)
			return
		}
		k.at = n
	}
	a.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if err := k.send(first); err != nil {
		return // the client is gone
	}
	limit := time.Duration(atLeast(v.Get("timeoutSeconds"), 1, int(maxWatch/time.Second))) * time.Second
	if err := k.follow(r, cut, limit); err != nil {
		a.log.Debug("a watch ended", zap.Error(err))
	}
}

// follow tells changes until the client leaves, its time is over or the watch
// is cut.
func (k *watcher) follow(r *http.Request, cut chan struct{}, limit time.Duration) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	var marks <-chan time.Time
	if k.want && k.pace.Bookmark > 0 {
		ticker := time.NewTicker(k.pace.Bookmark)
		defer ticker.Stop()
		marks = ticker.C
	}
	for {
		events, more, lost := k.pending()
		if lost {
			return k.enc.Encode(object{"type": "ERROR", "object": failure(http.StatusGone, "too old resource version: "+strconv.FormatInt(k.at, 10))})
		}
		if err := k.send(events); err != nil {
			return err
		}
		select {
		case <-more:
		case <-marks:
			if err := k.bookmark(); err != nil {
				return err
			}
		case <-end.C:
			return k.bookmark()
		case <-cut:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// pending takes the changes that were not told yet; more is closed when there
// are further ones, lost says that some are forgotten.
func (k *watcher) pending() (events []watchEvent, more chan struct{}, lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stalled {
		return nil, k.store.changed, false
	}
	if k.at < k.store.forgotten {
		return nil, nil, true
	}
	for _, e := range k.store.since(k.at) {
		if k.q.matches(e.record) {
			events = append(events, e)
		}
	}
	k.at = k.store.version
	return events, k.store.changed, false
}

func (k *watcher) send(events []watchEvent) error {
	for _, e := range events {
		if err := k.enc.Encode(object{"type": e.Type, "object": e.raw}); err != nil {
			return err
		}
	}
	return k.ctl.Flush()
}

// bookmark says up to where the client has heard everything.
func (k *watcher) bookmark() error {
	k.mu.Lock()
	stalled := k.stalled
	k.mu.Unlock()
	if stalled || !k.want {
		return nil
	}
	err := k.enc.Encode(object{"type": "BOOKMARK", "object": object{
		"apiVersion": apiVersion(k.q.resource), "kind": kinds[k.q.resource],
		"metadata": object{"resourceVersion": strconv.FormatInt(k.at, 10)},
	}})
	if err != nil {
		return err
	}
	return k.ctl.Flush()
}
