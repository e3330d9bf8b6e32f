package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// eventsAtOnce is how many events are read and sent in one go.
	eventsAtOnce = 200
	// sendTimeout is how long a reader may take for what it is sent; then it has lost its stream.
	sendTimeout = 20 * time.Second
	// reconnectDelay is what a browser is told to wait before it comes back.
	reconnectDelay = 2 * time.Second
)

// changeNotifier tells streams that something that is shown has changed, also where no event
// says so, such as a target that goes from syncing to progressing. It looks for all of them at
// once, and only while there are any.
type changeNotifier struct {
	reader         *reader
	interval       time.Duration
	maxSubscribers int

	mu       sync.Mutex
	subs     map[chan struct{}]string // the key of the unit that alone it is about; empty: of all
	byClient map[string]int
	latest   *snapshot          // that the watch saw last; nil: none
	stop     context.CancelFunc // of the running watch; nil: there is none
	begun    chan struct{}      // closed when the running watch has had its first look
}

// maxOfClient is how many streams one client may have open: a quarter of all, so that
// nobody keeps the others out.
func (cn *changeNotifier) maxOfClient() int { return max(1, cn.maxSubscribers/4) }

// subscribe returns a channel that is signalled after changes that may concern a unit, or any
// where its key is empty; or who has too many streams open already. leave must be called. It
// returns when there is something that later looks are compared with, or the context ends.
func (cn *changeNotifier) subscribe(ctx context.Context, client, unit string) (changed <-chan struct{}, leave func(), tooMany string) {
	c, begun, tooMany := cn.addSubscriber(client, unit)
	if tooMany != "" {
		return nil, nil, tooMany
	}
	select {
	case <-begun:
	case <-ctx.Done():
	}
	return c, func() { cn.removeSubscriber(c, client) }, ""
}

// addSubscriber notes a stream and has the watch run; begun is closed when that has begun.
func (cn *changeNotifier) addSubscriber(client, unit string) (c chan struct{}, begun <-chan struct{}, tooMany string) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if len(cn.subs) >= cn.maxSubscribers {
		return nil, nil, fmt.Sprintf("%d event streams are open already", cn.maxSubscribers)
	}
	if cn.byClient[client] >= cn.maxOfClient() {
		return nil, nil, fmt.Sprintf("%d event streams from your address are open already", cn.maxOfClient())
	}
	cn.byClient[client]++
	c = make(chan struct{}, 1)
	cn.subs[c] = unit
	if cn.stop == nil {
		ctx, cancel := context.WithCancel(withReading(context.Background(), cn.reader.store.access.allReading()))
		begun := make(chan struct{})
		cn.stop, cn.begun = cancel, begun
		changes, unsubscribe := cn.reader.store.all.SubscribeShown()
		go func() {
			defer unsubscribe()
			// Changes from here on are new to the streams that wait to be opened. Where it can't be
			// read, later looks are compared with the first one that succeeds.
			first, _ := cn.reader.newSnapshot(ctx)
			cn.remember(ctx, first)
			close(begun)
			cn.pollChanges(ctx, first, changes)
		}()
	}
	return c, cn.begun, ""
}

func (cn *changeNotifier) removeSubscriber(c chan struct{}, client string) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	delete(cn.subs, c)
	if cn.byClient[client]--; cn.byClient[client] == 0 {
		delete(cn.byClient, client)
	}
	if len(cn.subs) == 0 && cn.stop != nil {
		cn.stop()
		cn.stop, cn.latest = nil, nil
	}
}

// remember keeps what a watch saw, unless that is over.
func (cn *changeNotifier) remember(ctx context.Context, s *snapshot) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if ctx.Err() == nil {
		cn.latest = s
	}
}

// version is that of what the watch saw last, for one reader; empty: it saw nothing yet.
func (cn *changeNotifier) version(r *reading) string {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.latest == nil {
		return ""
	}
	return cn.latest.versionFor(r)
}

const (
	// restAfterLook is for how long changes gather after a look, so that what comes at the
	// same moment is one.
	restAfterLook = 200 * time.Millisecond
	// restFactor is how many times as long as a look took it rests after it: looks take about a
	// tenth of a core.
	restFactor = 9
	// maxRest bounds that: what happens is seen within a second or two all the same.
	maxRest = time.Second
)

// pollChanges looks whenever the store reports a change, and now and then. The store doesn't report
// changes that are only in memory, such as an Argo CD that is away.
func (cn *changeNotifier) pollChanges(ctx context.Context, last *snapshot, changes <-chan struct{}) {
	tick := time.NewTicker(cn.interval)
	defer tick.Stop()
	for {
		begun, rest := time.Now(), min(restAfterLook, cn.interval)
		// A store that can't be read now is read again with the next tick.
		if s, err := cn.reader.newSnapshot(ctx); err == nil {
			cn.remember(ctx, s)
			if last != nil && s.version != last.version {
				cn.notifySubscribers(cn.findChanged(ctx, last, s))
			}
			if last != nil { // the first one may have had to read everything
				rest = max(rest, min(maxRest, restFactor*time.Since(begun)))
			}
			last = s
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-tick.C:
		}
	}
}

// findChanged finds the units that differ between two snapshots, or that something happened
// to; nil: it may concern any.
func (cn *changeNotifier) findChanged(ctx context.Context, old, s *snapshot) map[string]bool {
	if !slices.Equal(old.troubles, s.troubles) {
		return nil
	}
	events, err := cn.reader.store.all.Events(ctx, store.EventFilter{After: old.newest, Limit: eventsAtOnce})
	if err != nil || len(events) == eventsAtOnce || s.newest < old.newest {
		return nil
	}
	changed := map[string]bool{}
	for i := range events {
		changed[unitKey(promotion.Unit{Repo: events[i].Repo, Pipeline: events[i].Pipeline, Component: events[i].Component})] = true
	}
	for key, u := range s.byKey {
		if old.byKey[key] != u {
			changed[key] = true
		}
	}
	for key := range old.byKey {
		if s.byKey[key] == nil {
			changed[key] = true
		}
	}
	return changed
}

// notifySubscribers signals those whom a change of some units may concern; nil: it may concern all.
func (cn *changeNotifier) notifySubscribers(changed map[string]bool) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	for c, unit := range cn.subs {
		if unit != "" && changed != nil && !changed[unit] {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// getEvents streams events: "happened" with an id and an api.Event for every event, "changed"
// without an id when something shown has changed otherwise. A comment is a sign of life. With
// Last-Event-ID (or the parameter after) it goes on behind that event, otherwise it begins now.
func (se *server) getEvents(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "pipeline", "component", "environment", "after")
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	f := store.EventFilter{Repo: v["repository"], Pipeline: v["pipeline"], Component: v["component"], Environment: v["environment"],
		Limit: eventsAtOnce}
	if f.After, err = se.findStreamStart(r, v["after"]); err != nil {
		se.writeError(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	changed, leave, tooMany := se.changes.subscribe(r.Context(), se.opts.Client(r), "")
	if tooMany != "" {
		writeTooMany(w, tooMany)
		return
	}
	defer leave()
	events, cancel := se.opts.Store.Subscribe()
	defer cancel()
	s := se.openStream(w)
	defer s.clearDeadline()
	if s.send(fmt.Sprintf("retry: %d\n\n", reconnectDelay.Milliseconds())) != nil {
		return
	}
	if err := se.streamEvents(r.Context(), s, f, events, changed); err != nil && r.Context().Err() == nil {
		se.opts.Log.Debug("an event stream ended", zap.Error(err))
	}
}

// writeTooMany refuses a stream.
func writeTooMany(w http.ResponseWriter, tooMany string) {
	w.Header().Set("Retry-After", "30")
	writeErrorf(w, http.StatusServiceUnavailable, "%s; try again later", tooMany)
}

// findStreamStart says behind which event a stream begins.
func (se *server) findStreamStart(r *http.Request, after string) (int64, error) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id // a browser that comes back says where it was
	}
	newest, err := se.opts.Store.Events(r.Context(), store.EventFilter{Newest: true, Limit: 1})
	if err != nil {
		return 0, err
	}
	last := int64(0)
	if len(newest) > 0 {
		last = newest[0].Seq
	}
	if after == "" {
		return last, nil
	}
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil || n < 0 {
		return 0, apiErrorf(http.StatusBadRequest, "the id of an event is a whole number, not %.40q", after)
	}
	return min(n, last), nil // a reader from before a fresh start of the database isn't ahead of it
}

func (se *server) streamEvents(ctx context.Context, s *eventStream, f store.EventFilter, events, changed <-chan struct{}) error {
	beat := time.NewTicker(se.opts.Heartbeat)
	defer beat.Stop()
	for {
		all, scanned, more, err := se.records.Events(ctx, f)
		if err != nil {
			return err
		}
		f.After = scanned
		for _, e := range all {
			raw, err := json.Marshal(se.reader.buildEvent(e))
			if err != nil {
				return fmt.Errorf("write the event %d: %w", e.Seq, err)
			}
			if err := s.send(fmt.Sprintf("id: %d\nevent: happened\ndata: %s\n\n", e.Seq, raw)); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
		case <-changed:
			err = s.send("event: changed\ndata: {}\n\n")
		case <-beat.C:
			err = s.send(": still here\n\n")
		}
		if err != nil {
			return err
		}
	}
}

// eventStream is one reader's connection.
type eventStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// openStream begins the answer that is a stream of events.
func (se *server) openStream(w http.ResponseWriter) *eventStream {
	s := &eventStream{w: w, rc: http.NewResponseController(w)}
	// The server's limit on reading a request would end the stream.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		se.opts.Log.Debug("an event stream keeps the server's read deadline", zap.Error(err))
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	return s
}

// send writes and flushes; a reader that doesn't take it in time is given up.
func (es *eventStream) send(text string) error {
	if err := es.rc.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("bound the time of a write: %w", err)
	}
	if _, err := es.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := es.rc.Flush(); err != nil {
		return err
	}
	es.clearDeadline()
	return nil
}

// clearDeadline takes the deadline off: the next request of the connection must not
// meet it, and over HTTP/2 it ends a stream also while nothing is sent.
func (es *eventStream) clearDeadline() {
	_ = es.rc.SetWriteDeadline(time.Time{}) // the connection may be gone
}
