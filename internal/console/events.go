package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/store"
)

const (
	// eventsAtOnce is how many events are read and sent in one go.
	eventsAtOnce = 200
	// sendTime is how long a reader may take for what it is sent; then it has lost its stream.
	sendTime = 20 * time.Second
	// reconnect is what a browser is told to wait before it comes back.
	reconnect = 2 * time.Second
)

// hub tells streams that something that is shown has changed although no event
// says so, such as a target that goes from syncing to progressing. It looks for
// all of them together, and only while there are any.
type hub struct {
	read  *reader
	every time.Duration
	most  int

	mu   sync.Mutex
	subs map[chan struct{}]struct{}
	stop context.CancelFunc // of the running watch; nil: there is none
}

func newHub(r *reader, most int, every time.Duration) *hub {
	return &hub{read: r, most: most, every: every, subs: map[chan struct{}]struct{}{}}
}

// join returns a channel that is signalled after changes, or false when there
// are too many streams already. leave must be called.
func (h *hub) join() (changed <-chan struct{}, leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) >= h.most {
		return nil, nil, false
	}
	c := make(chan struct{}, 1)
	h.subs[c] = struct{}{}
	if h.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		go h.watch(ctx)
	}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, c)
		if len(h.subs) == 0 && h.stop != nil {
			h.stop()
			h.stop = nil
		}
	}, true
}

func (h *hub) watch(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	var last *snapshot
	for {
		// A store that can't be read now is looked at again with the next tick.
		if s, err := h.read.snapshot(ctx); err == nil {
			if last != nil && s.digest != last.digest {
				h.tell()
			}
			last = s
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// getEvents streams what happens: "happened" with an id and an api.Event for
// every event, "changed" without an id when what is shown has changed otherwise,
// and a comment as a sign of life. With Last-Event-ID (or the parameter after) it
// goes on behind that event, otherwise it begins now.
func (c *console) getEvents(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository", "pipeline", "component", "environment", "after")
	if err != nil {
		c.failed(w, r, err)
		return
	}
	f := store.EventFilter{Repo: v["repository"], Pipeline: v["pipeline"], Component: v["component"], Environment: v["environment"], Limit: eventsAtOnce}
	if f.After, err = c.resume(r, v["after"]); err != nil {
		c.failed(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	changed, leave, ok := c.hub.join()
	if !ok {
		w.Header().Set("Retry-After", "30")
		fail(w, http.StatusServiceUnavailable, "%d event streams are open already; try again later", c.o.Streams)
		return
	}
	defer leave()
	events, cancel := c.o.Store.Subscribe()
	defer cancel()
	s := &stream{w: w, rc: http.NewResponseController(w)}
	defer s.free()
	// The server's limit on reading a request would end the stream.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		c.o.Log.Debug("an event stream keeps the server's read deadline", zap.Error(err))
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	if s.send(fmt.Sprintf("retry: %d\n\n", reconnect.Milliseconds())) != nil {
		return
	}
	if err := c.stream(r.Context(), s, f, events, changed); err != nil && r.Context().Err() == nil {
		c.o.Log.Debug("an event stream ended", zap.Error(err))
	}
}

// resume says behind which event a stream begins.
func (c *console) resume(r *http.Request, after string) (int64, error) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id // a browser that comes back says where it was
	}
	newest, err := c.o.Store.Events(r.Context(), store.EventFilter{Newest: true, Limit: 1})
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
		return 0, errorf(http.StatusBadRequest, "the id of an event is a whole number, not %.40q", after)
	}
	return min(n, last), nil // a reader from before a fresh start of the database isn't ahead of it
}

func (c *console) stream(ctx context.Context, s *stream, f store.EventFilter, events, changed <-chan struct{}) error {
	beat := time.NewTicker(c.o.Heartbeat)
	defer beat.Stop()
	for {
		all, err := c.o.Store.Events(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range all {
			f.After = e.Seq
			raw, err := json.Marshal(c.read.event(e))
			if err != nil {
				return fmt.Errorf("write the event %d: %w", e.Seq, err)
			}
			if err := s.send(fmt.Sprintf("id: %d\nevent: happened\ndata: %s\n\n", e.Seq, raw)); err != nil {
				return err
			}
		}
		if len(all) == eventsAtOnce {
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

// stream is one reader's connection.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// send writes and flushes; a reader that doesn't take it in time is given up.
func (s *stream) send(text string) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return fmt.Errorf("bound the time of a write: %w", err)
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

// free takes the deadline off, so that it doesn't meet the next request of the connection.
func (s *stream) free() {
	_ = s.rc.SetWriteDeadline(time.Time{}) // the connection may be gone
}
