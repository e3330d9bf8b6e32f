package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// patience bounds how long a test waits for something to come.
const patience = 20 * time.Second

// message is one message of a stream; a comment has only Comment.
type message struct{ ID, Event, Data, Retry, Comment string }

// streamListener is a test's reader of a stream.
type streamListener struct {
	t      testing.TB
	status int
	header http.Header
	got    chan message
	leave  context.CancelFunc
}

// openStream opens a stream; headers come as in request.
func (tc *testConsole) openStream(t testing.TB, address string, headers map[string]string) *streamListener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	tc.must(err)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	tc.must(err)
	l := &streamListener{t: t, status: res.StatusCode, header: res.Header, got: make(chan message, 1000), leave: cancel}
	t.Cleanup(cancel)
	go func() {
		defer res.Body.Close()
		defer close(l.got)
		var m message
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			key, value, _ := strings.Cut(in.Text(), ": ")
			switch {
			case in.Text() == "":
				l.got <- m
				m = message{}
			case strings.HasPrefix(in.Text(), ":"):
				m.Comment = in.Text()
			case key == "id":
				m.ID = value
			case key == "event":
				m.Event = value
			case key == "data":
				m.Data = value
			case key == "retry":
				m.Retry = value
			}
		}
	}()
	return l
}

// next waits for a message that is chosen and passes over the others.
func (s *streamListener) next(chosen func(message) bool) message {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case m, open := <-s.got:
			if !open {
				s.t.Fatal("the stream ended")
			}
			if chosen(m) {
				return m
			}
		case <-deadline:
			s.t.Fatal("nothing came")
		}
	}
}

func happened(m message) bool { return m.Event == "happened" }

// event decodes the next event.
func (s *streamListener) event() api.Event {
	s.t.Helper()
	var e api.Event
	if err := json.Unmarshal([]byte(s.next(happened).Data), &e); err != nil {
		s.t.Fatal(err)
	}
	return e
}

func TestStreamSendsEvents(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	l := w.openStream(t, w.url+"/api/v1/events", nil)
	if l.status != 200 || l.header.Get("Content-Type") != "text/event-stream; charset=utf-8" || l.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", l.status, l.header)
	}
	if m := l.next(func(message) bool { return true }); m.Retry != "2000" {
		t.Errorf("it begins with %+v", m)
	}
	w.event("web", "prod", "merged", 14, 0, "#14 merged\nas <two> lines")
	e := l.event()
	if e.Message != "#14 merged\nas <two> lines" || e.Component != "web" || e.Environment != "prod" || e.Pull.Number != 14 || e.Repository != testRepo {
		t.Errorf("the first event is %+v; what happened before must not be told again", e)
	}
}

func TestStreamResumes(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed() // 10 events
	for name, c := range map[string]struct {
		address string
		headers map[string]string
		first   int64
	}{
		"by header":               {"/api/v1/events", map[string]string{"Last-Event-ID": "7"}, 8},
		"by parameter":            {"/api/v1/events?after=8", nil, 9},
		"the header wins":         {"/api/v1/events?after=2", map[string]string{"Last-Event-ID": "9"}, 10},
		"from the beginning":      {"/api/v1/events?after=0", nil, 1},
		"filtered":                {"/api/v1/events?after=1&component=cart", nil, 7},
		"filtered by environment": {"/api/v1/events?after=1&environment=prod&pipeline=shop&repository=" + testRepo, nil, 6},
	} {
		t.Run(name, func(t *testing.T) {
			l := w.openStream(t, w.url+c.address, c.headers)
			m := l.next(happened)
			var e api.Event
			w.must(json.Unmarshal([]byte(m.Data), &e))
			if e.Seq != c.first || m.ID != jsonOf(e.Seq) {
				t.Errorf("it goes on with %s, event %d; want %d", m.ID, e.Seq, c.first)
			}
		})
	}
}

func jsonOf(v any) string { return string(mustJSON(v)) }

func TestStreamOfAReaderFromAnotherDatabase(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	l := w.openStream(t, w.url+"/api/v1/events", map[string]string{"Last-Event-ID": "4000"})
	l.next(func(m message) bool { return m.Retry != "" })
	w.event("web", "prod", "merged", 14, 0, "news")
	if e := l.event(); e.Message != "news" {
		t.Errorf("got %+v", e)
	}
}

func TestLongStreamKeepsItsOrder(t *testing.T) {
	w := newTestConsole(t, nil)
	for range 2*eventsAtOnce + 50 {
		w.event("web", "dev", "landed", 0, 0, "x")
	}
	l := w.openStream(t, w.url+"/api/v1/events?after=0", nil)
	for i := range 2*eventsAtOnce + 50 {
		if e := l.event(); e.Seq != int64(i+1) {
			t.Fatalf("event %d comes as number %d", e.Seq, i+1)
		}
	}
}

func TestStreamSignalsOtherChanges(t *testing.T) {
	w := newTestConsole(t, func(o *Options) { o.Poll = 5 * time.Millisecond })
	w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verifying, "1", time.Hour, 1))
	l := w.openStream(t, w.url+"/api/v1/events", nil)
	l.next(func(m message) bool { return m.Retry != "" })
	// The first look of the watch may come after the first change, so change until it is told.
	deadline := time.After(patience)
	for i := 0; ; i++ {
		w.unit(testRepo, "shop", "web", "", env("dev", promotion.Verified, string(rune('a'+i%26)), time.Hour, 1))
		select {
		case m := <-l.got:
			if m.Event == "changed" && m.ID == "" {
				return
			}
		case <-deadline:
			t.Fatal("no change was told")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestSilentStreamLives also holds that the server's limits on reading a request and
// on answering it don't end a stream.
func TestSilentStreamLives(t *testing.T) {
	w := newTestConsole(t, nil)
	o := w.options
	o.Heartbeat = 30 * time.Millisecond
	h, err := New(o)
	w.must(err)
	srv := httptest.NewUnstartedServer(h)
	const limit = 500 * time.Millisecond
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = limit, limit
	srv.Start()
	defer srv.Close()
	l := w.openStream(t, srv.URL+"/api/v1/events", nil)
	for begun := time.Now(); time.Since(begun) < 2*limit; {
		l.next(func(m message) bool { return m.Comment != "" })
	}
	l.leave()
}

func TestStreamsAreBounded(t *testing.T) {
	clients := 0
	w := newTestConsole(t, func(o *Options) {
		o.Streams = 2
		o.Client = func(*http.Request) string { clients++; return strconv.Itoa(clients) }
	})
	first := w.openStream(t, w.url+"/api/v1/events", nil)
	w.openStream(t, w.url+"/api/v1/events", nil)
	status, header, body := w.get("/api/v1/events")
	if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "2 event streams are open") {
		t.Fatalf("the third is answered with %d %s", status, body)
	}
	if status, _, _ := w.request(http.MethodHead, "/api/v1/events", "", nil); status != 200 {
		t.Errorf("HEAD is answered with %d", status)
	}
	first.leave()
	for deadline := time.Now().Add(patience); ; {
		l := w.openStream(t, w.url+"/api/v1/events", nil)
		if l.status == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a place that was left doesn't come free")
		}
	}
}

// TestOneClientLeavesStreamsToOthers holds that a client that opens streams without end keeps no
// other from theirs.
func TestOneClientLeavesStreamsToOthers(t *testing.T) {
	w := newTestConsole(t, func(o *Options) {
		o.Streams = 8
		o.Client = func(r *http.Request) string { return r.Header.Get("Client") }
	})
	for range 2 {
		if l := w.openStream(t, w.url+"/api/v1/events", map[string]string{"Client": "a"}); l.status != 200 {
			t.Fatalf("a stream is answered with %d", l.status)
		}
	}
	status, header, body := w.request(http.MethodGet, "/api/v1/events", "", map[string]string{"Client": "a"})
	if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "2 event streams from your address") {
		t.Errorf("one too many is answered with %d %s", status, body)
	}
	if l := w.openStream(t, w.url+"/api/v1/events", map[string]string{"Client": "b"}); l.status != 200 {
		t.Errorf("another client's is answered with %d", l.status)
	}
}

// TestStreamsWaitApart holds that a stream that waits for the first look
// doesn't have others wait with it.
func TestStreamsWaitApart(t *testing.T) {
	looking, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := newTestConsole(t, func(o *Options) {
		o.Health = func(context.Context) []api.Trouble { // a look asks it
			once.Do(func() { close(looking) })
			<-goOn
			return nil
		}
	})
	h, err := New(w.options)
	w.must(err)
	opened := make(chan func(), 1)
	go func() {
		_, leave, _ := h.server.changes.subscribe(t.Context(), "first", "")
		opened <- leave
	}()
	<-looking
	left := make(chan struct{})
	go func() {
		defer close(left)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, leave, _ := h.server.changes.subscribe(gone, "second", "")
		leave()
	}()
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("a stream that is over waits for the store")
	}
	select {
	case <-opened:
		t.Error("a stream was opened before there was anything to compare with")
	default:
	}
	close(goOn)
	(<-opened)()
}
