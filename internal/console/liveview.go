package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// maxViewAddress bounds the address of a page that a stream follows.
	maxViewAddress = 2 << 10
	// maxUnsent is how many changes wait for one reader; one that is further behind
	// fetches its page again.
	maxUnsent = 8
)

// capture is where a page goes that is rendered for a stream.
type capture struct {
	page page
	body []byte // empty: there is no such page, or it is elsewhere
}

type captureKey struct{}

// capturedBy is where a request's page goes; nil: to whoever asked for it.
func capturedBy(ctx context.Context) *capture {
	at, _ := ctx.Value(captureKey{}).(*capture)
	return at
}

// liveView is a page that readers have open: all who have the same address and may read the same share one,
// which is rendered once for them at a change.
type liveView struct {
	address string
	reading *reading // of all its readers

	// rendering is held while it is rendered and compared, so that what is older never
	// follows what is newer.
	rendering sync.Mutex
	rendered  time.Time // when it last was, by this machine's clock

	mu      sync.Mutex
	unit    string // the key of the unit that alone it is about; empty: of others as well
	version string // the snapshot's that state is as new as; empty: it was never rendered
	state   *pageState
	readers map[*viewReader]struct{}
}

// viewReader is one reader of a view.
type viewReader struct {
	client  string
	patches chan viewMessage
	lost    chan struct{} // signalled when a message didn't fit any more
}

// viewMessage is what one is sent.
type viewMessage struct {
	version string
	event   string // patch or stale
	data    []byte
}

// joinView adds a client's reader to the view of an address, or says that the client follows
// too many others already. leave must be called.
func (cn *changeNotifier) joinView(address, client string, rights *reading) (v *liveView, r *viewReader, leave func(), tooMany string) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	key := rights.key + " " + address
	others := 0
	for k, v := range cn.views {
		if k != key && v.isReadBy(client) {
			others++
		}
	}
	if others >= maxViewsOfClient {
		return nil, nil, nil, fmt.Sprintf("%d different pages are followed from your address already", maxViewsOfClient)
	}
	v, ok := cn.views[key]
	if !ok {
		v = &liveView{address: address, reading: rights, readers: map[*viewReader]struct{}{}}
		cn.views[key] = v
	}
	r = &viewReader{client: client, patches: make(chan viewMessage, maxUnsent), lost: make(chan struct{}, 1)}
	v.mu.Lock()
	v.readers[r] = struct{}{}
	v.mu.Unlock()
	return v, r, func() {
		cn.mu.Lock()
		defer cn.mu.Unlock()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.readers, r)
		if len(v.readers) == 0 && cn.views[key] == v {
			delete(cn.views, key)
		}
	}, ""
}

// isReadBy says whether a client has a view open.
func (l *liveView) isReadBy(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		if r.client == client {
			return true
		}
	}
	return false
}

// listViews lists the views that a change of some units may concern; nil: any may.
func (cn *changeNotifier) listViews(changed map[string]bool) []*liveView {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	var out []*liveView
	for _, v := range cn.views {
		v.mu.Lock()
		if v.state != nil && (changed == nil || v.unit == "" || changed[v.unit]) {
			out = append(out, v)
		}
		v.mu.Unlock()
	}
	return out
}

// refreshView renders a view anew, sends its readers what has changed, and returns how new
// it is. A view that can't be rendered now is stale: its readers fetch the page, which says why.
// It is rendered of a snapshot, which many views share, unless that may be older than what it
// is of already; nil: of what is read for it.
func (se *server) refreshView(ctx context.Context, v *liveView, s *snapshot) (version string, err error) {
	v.rendering.Lock()
	defer v.rendering.Unlock()
	if s != nil && v.rendered.Before(s.begun) {
		ctx = withSnapshot(ctx, s)
	}
	at, err := se.capturePage(withReading(ctx, v.reading), v.address)
	if err != nil {
		return "", err
	}
	v.rendered = time.Now()
	live := se.pages.marks.split(at.body)
	state := newPageState(live)
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.state
	v.unit, v.version, v.state = at.page.unit, at.page.State, state
	if old == nil || len(v.readers) == 0 {
		return v.version, nil
	}
	patch, same := state.diff(old, live, func(b []byte) string { return string(se.pages.marks.finish(b, at.page.Now)) })
	switch {
	case !same:
		v.send(viewMessage{v.version, "stale", []byte("{}")})
	case !patch.isEmpty():
		patch.AsOf, patch.Title = at.page.Now, at.page.Title+" · Liftlock"
		var raw bytes.Buffer
		out := json.NewEncoder(&raw)
		out.SetEscapeHTML(false) // it is parsed as JSON, not as a page
		if err := out.Encode(patch); err != nil {
			return "", fmt.Errorf("write what has changed of %s: %w", v.address, err)
		}
		v.send(viewMessage{v.version, "patch", bytes.TrimSpace(raw.Bytes())})
	}
	return v.version, nil
}

// send sends a message to all readers.
func (l *liveView) send(m viewMessage) {
	for r := range l.readers {
		select {
		case r.patches <- m:
		default:
			select {
			case r.lost <- struct{}{}:
			default:
			}
		}
	}
}

// capturePage renders the page of an address. A handler that panics is an error: at a change
// no server is there that would recover, and the process would end.
func (se *server) capturePage(ctx context.Context, address string) (at *capture, err error) {
	defer func() {
		if p := recover(); p != nil {
			se.opts.Log.Error("a page that somebody has open panicked", zap.String("page", address), zap.Any("panic", p),
				zap.Stack("stack"))
			at, err = nil, fmt.Errorf("render %s: it panicked; the server's log says where", address)
		}
	}()
	at = &capture{}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, captureKey{}, at), readTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", address, err)
	}
	se.live.ServeHTTP(discarded{}, r)
	if len(at.body) == 0 || at.page.State == "" {
		return nil, fmt.Errorf("render %s: it is no page that can be followed", address)
	}
	return at, nil
}

// discarded takes what a handler writes instead of a page: a redirect, or nothing.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}

// parseViewAddress reads the address of the page that a stream is to follow.
func parseViewAddress(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxViewAddress:
		return "", apiErrorf(http.StatusBadRequest, "the parameter page is longer than %d bytes", maxViewAddress)
	case err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/"):
		return "", apiErrorf(http.StatusBadRequest, "the parameter page is the path of a page of this console, with its query")
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String(), nil
}

// streamURL is where a page's changes come from.
func (p *pages) streamURL(page *url.URL, version string) string {
	address := (&url.URL{Path: page.Path, RawPath: page.RawPath, RawQuery: page.RawQuery}).String()
	if len(address) > maxViewAddress {
		return ""
	}
	return p.pageURL("live") + "?" + url.Values{"page": {address}, "version": {version}}.Encode()
}

// followPage streams what changes of a page: "patch" with what has, "stale" where the page
// is to be fetched again, each with an id, by which a stream that was cut off goes on; and
// a comment as a sign of life.
func (se *server) followPage(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "page", "version")
	address := ""
	if err == nil {
		address, err = parseViewAddress(v["page"])
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	seen := v["version"]
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		seen = id
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	client := se.opts.Client(r)
	_, leave, tooMany := se.changes.subscribe(r.Context(), client)
	if tooMany != "" {
		writeTooMany(w, tooMany)
		return
	}
	defer leave()
	view, reader, leaveView, tooMany := se.changes.joinView(address, client, se.access.reading(r.Context()))
	if tooMany != "" {
		writeTooMany(w, tooMany)
		return
	}
	defer leaveView()
	view.mu.Lock()
	version := view.version
	view.mu.Unlock()
	if version == "" || version != seen {
		if version, err = se.refreshView(r.Context(), view, nil); err != nil {
			se.writeError(w, r, apiErrorf(http.StatusNotFound, "%v", err))
			return
		}
	}
	s := se.openStream(w)
	defer s.clearDeadline()
	begin := fmt.Sprintf("retry: %d\n\n", reconnectDelay.Milliseconds())
	if version != seen {
		begin += viewMessage{version, "stale", []byte("{}")}.String()
	}
	if s.send(begin) != nil {
		return
	}
	if err := se.sendPatches(r.Context(), s, reader); err != nil && r.Context().Err() == nil {
		se.opts.Log.Debug("a page's stream ended", zap.Error(err))
	}
}

func (v viewMessage) String() string {
	return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", v.version, v.event, v.data)
}

func (se *server) sendPatches(ctx context.Context, s *eventStream, r *viewReader) error {
	beat := time.NewTicker(se.opts.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-r.patches:
			err = s.send(m.String())
		case <-r.lost:
			for len(r.patches) > 0 {
				<-r.patches
			}
			err = s.send(viewMessage{"", "stale", []byte("{}")}.String())
		case <-beat.C:
			err = s.send(": still here\n\n")
		}
		if err != nil {
			return err
		}
	}
}
