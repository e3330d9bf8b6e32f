package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"go.uber.org/zap"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (f *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.from), 4711))
}

func (f *fakeConn) Close() error {
	f.closed = true
	return nil
}

// noListener has an address and nothing more.
type noListener struct{ net.Listener }

func (noListener) Addr() net.Addr { return &net.TCPAddr{} }

func newTestListener(limit, ofClient int) *limitedListener {
	l := newLimitedListener(noListener{}, clientResolver{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, func() {}, zap.NewNop())
	l.max, l.maxOfClient = limit, ofClient
	return l
}

// admitFrom opens a connection; the second result is nil when it is refused.
func (l *limitedListener) admitFrom(from string) (*fakeConn, *limitedConn) {
	f := &fakeConn{from: from}
	c, _ := l.admit(f).(*limitedConn)
	return f, c
}

func TestConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	l := newTestListener(4, 3)
	idle, idleConn := l.admitFrom("192.0.2.1")
	answered, answeredConn := l.admitFrom("192.0.2.2")
	answeredConn.beginRequest(true)
	sending, sendingConn := l.admitFrom("192.0.2.3")
	sendingConn.beginRequest(false)
	last, _ := l.admitFrom("192.0.2.4")
	if _, c := l.admitFrom("192.0.2.5"); c == nil {
		t.Fatal("the fifth is refused although others only wait")
	}
	if !idle.closed || answered.closed || sending.closed || last.closed {
		t.Errorf("closed: idle %t, answered %t, sending %t, the last %t", idle.closed, answered.closed, sending.closed, last.closed)
	}
	l.admitFrom("192.0.2.6")
	if answered.closed || !sending.closed {
		t.Errorf("closed: answered %t, sending %t", answered.closed, sending.closed)
	}
	answeredConn.endRequest(true)
	l.admitFrom("192.0.2.7")
	l.admitFrom("192.0.2.8")
	if answered.closed {
		t.Error("who was just answered gives way before those that have waited for longer")
	}
	// net/http closes and tells of what is gone already.
	sendingConn.endRequest(false)
	if err := idleConn.Close(); err != nil || l.open != 4 {
		t.Errorf("%d connections are open, %v", l.open, err)
	}
}

func TestAClientHasALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newTestListener(100, 3)
	forge, _ := l.admitFrom("192.0.2.1")
	var strangers []*fakeConn
	for i := range 10 {
		f, c := l.admitFrom(fmt.Sprintf("2001:db8::%d", i+1)) // one /64
		if c == nil {
			t.Fatalf("connection %d is refused although older ones wait", i)
		}
		strangers = append(strangers, f)
	}
	for i, f := range strangers {
		if f.closed != (i < 7) {
			t.Errorf("connection %d is closed: %t", i, f.closed)
		}
	}
	if forge.closed || l.open != 4 {
		t.Errorf("another's connection is closed: %t; %d are open", forge.closed, l.open)
	}
	for range 50 {
		if _, c := l.admitFrom("10.0.0.1"); c == nil {
			t.Fatal("a trusted proxy has a limit")
		}
	}
}

// TestFewClientsKeepToTheirShare holds that with all places taken those who have more than
// their share give way, and not who has waited longest.
func TestFewClientsKeepToTheirShare(t *testing.T) {
	t.Parallel()
	const strangerA, strangerB, other = "192.0.2.1", "192.0.2.2", "192.0.2.3"
	l := newTestListener(64, 32)
	for range 32 {
		l.admitFrom(strangerA)
		l.admitFrom(strangerB)
	}
	forge, conn := l.admitFrom(other)
	conn.beginRequest(false) // its body is still to come
	proxied, _ := l.admitFrom("10.0.0.1")
	for range 200 {
		l.admitFrom(strangerA)
		l.admitFrom(strangerB)
	}
	if forge.closed || proxied.closed {
		t.Errorf("who has one connection gives way to those who have all others: a client's %t, a proxy's %t", forge.closed, proxied.closed)
	}
	more, _ := l.admitFrom(strangerB)
	if _, again := l.admitFrom(strangerB); again == nil || more.closed || l.byClient[strangerA].open+l.byClient[strangerB].open != 62 {
		t.Errorf("who has more than a share gives way to itself: the last is closed %t, they have %d and %d", more.closed, l.byClient[strangerA].open, l.byClient[strangerB].open)
	}
}

// TestBusiestClientGivesWay is about whose connection is closed for one of a client that has
// no more than its share.
func TestBusiestClientGivesWay(t *testing.T) {
	t.Parallel()
	open := func(l *limitedListener, from string, n int, answered bool) (all []*fakeConn) {
		for range n {
			f, c := l.admitFrom(from)
			c.beginRequest(answered)
			all = append(all, f)
		}
		return all
	}
	countClosed := func(all []*fakeConn) (n int) {
		for _, f := range all {
			if f.closed {
				n++
			}
		}
		return n
	}
	for name, test := range map[string]struct {
		answered    bool // those of the client with most
		forgeOpens  int
		proxied     int // connections of a trusted proxy, the oldest
		few         int
		more        int
		most        int
		closed      string // of the proxy, of those with few, more and most
		newOnesFrom string
	}{
		"the most":                             {few: 10, more: 22, most: 32, newOnesFrom: "192.0.2.4", closed: "0 0 0 4"},
		"the next where all are answered":      {few: 10, more: 22, most: 32, answered: true, newOnesFrom: "192.0.2.4", closed: "0 0 4 0"},
		"one's own":                            {few: 10, more: 22, most: 32, newOnesFrom: "192.0.2.2", closed: "0 0 4 0"},
		"another's where one's own is no more": {few: 10, more: 22, most: 32, newOnesFrom: "192.0.2.1", closed: "0 0 0 4"},
		"a proxy never has too many":           {proxied: 44, few: 4, more: 8, most: 8, newOnesFrom: "192.0.2.4", closed: "4 0 0 0"},
		"not a proxy's own":                    {proxied: 24, few: 4, more: 4, most: 32, newOnesFrom: "10.0.0.1", closed: "0 0 0 4"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestListener(64, 32)
			proxied := open(l, "10.0.0.1", test.proxied, false)
			few := open(l, "192.0.2.1", test.few, false)
			more := open(l, "192.0.2.2", test.more, false)
			most := open(l, "192.0.2.3", test.most, test.answered)
			for range 4 {
				if _, c := l.admitFrom(test.newOnesFrom); c == nil {
					t.Fatal("a new connection is refused although others wait")
				}
			}
			if got := fmt.Sprint(countClosed(proxied), countClosed(few), countClosed(more), countClosed(most)); got != test.closed {
				t.Errorf("closed are %s, want %s", got, test.closed)
			}
		})
	}
}

// TestManyAddressesLeaveAShare holds that somebody with an address for each place doesn't
// cut another client's share down to nothing.
func TestManyAddressesLeaveAShare(t *testing.T) {
	t.Parallel()
	l := newTestListener(4*maxShares, 2*maxShares)
	for i := range l.max {
		l.admitFrom(fmt.Sprintf("2001:db8:0:%x::1", i))
	}
	for i := range 4 {
		forge, _ := l.admitFrom("192.0.2.1")
		if forge.closed || l.byClient["192.0.2.1"].open != i+1 {
			t.Errorf("of %d connections of one client %d are open", i+1, l.byClient["192.0.2.1"].open)
		}
	}
}

func TestBusyConnectionsStayOpen(t *testing.T) {
	t.Parallel()
	l := newTestListener(2, 2)
	refused := 0
	l.countClosed = func() { refused++ }
	for range 2 {
		_, c := l.admitFrom("192.0.2.1")
		c.beginRequest(true)
	}
	for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
		if _, c := l.admitFrom(from); c != nil {
			t.Errorf("a connection from %s was taken", from)
		}
	}
	if l.open != 2 || refused != 2 {
		t.Errorf("%d connections are open, %d refusals were counted", l.open, refused)
	}
}

func TestConnectionsAreCountedDown(t *testing.T) {
	t.Parallel()
	l := newTestListener(10, 10)
	for i := range 20 {
		_, c := l.admitFrom(fmt.Sprintf("192.0.2.%d", i%3))
		c.beginRequest(i%2 == 0)
		c.endRequest(i%2 == 0)
		_ = c.Close() // a fake's never fails
		_ = c.Close()
	}
	if l.open != 0 || len(l.byClient) != 0 || l.waiting.Len() != 0 {
		t.Errorf("%d are open, %d wait, of %d clients", l.open, l.waiting.Len(), len(l.byClient))
	}
}

// TestConnectionsOverTheNetwork holds that requests are told to their connections:
// through a real server, the connection that lies idle is closed and not the one that
// is being answered.
func TestConnectionsOverTheNetwork(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := newLimitedListener(inner, clientResolver{}, func() {}, zap.NewNop())
	limited.max, limited.maxOfClient = 2, 2
	begun, finish := make(chan struct{}), make(chan struct{})
	l := &listener{Listener: limited}
	l.setHandler(context.Background(), trackRequests(true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-finish
		}
	})), zap.NewNop())
	done := make(chan error, 1)
	go func() { done <- l.serve() }()
	get := func(path string) (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		return c, bufio.NewReader(c)
	}
	read := func(in *bufio.Reader) {
		t.Helper()
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close() // it is empty
	}
	_, slow := get("/slow")
	<-begun
	idle, idleIn := get("/")
	read(idleIn)
	_, third := get("/")
	read(third)
	if n, err := idle.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) && err == nil {
		t.Errorf("the idle connection is open: %v", err)
	}
	close(finish)
	read(slow)
	l.stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTrackingWithoutAConnection holds that a handler works also where nobody tracks.
func TestTrackingWithoutAConnection(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	trackRequests(true, http.NotFoundHandler()).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Code != http.StatusNotFound {
		t.Error(rec.Code)
	}
}
