package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"go.uber.org/zap"
)

const (
	// maxConnections is how many connections a listener has open at once; each takes
	// some 20 KiB.
	maxConnections = 2048
	// maxOfClient is how many of them one address has, unless it is a trusted
	// proxy's: half, because a proxy may be in front that nobody told us about.
	maxOfClient = maxConnections / 2
	// maxShares is into how many shares the places are divided at most, however many clients there
	// are. A forge opens more than one connection, and an attacker with thousands of addresses,
	// each with one, mustn't leave it none.
	maxShares = 64
)

// limitedListener caps the connections that are open at once. Connections that lie idle or have
// been sending their request for longest keep no other out. They are closed for the new one, first
// those of clients that have more than their share. Only where every connection is being answered,
// a new one is closed at once.
type limitedListener struct {
	net.Listener
	max, maxOfClient int
	clients          clientResolver
	countClosed      func() // called for every connection that gives way or is refused
	log              *zap.Logger

	mu       sync.Mutex
	waiting  list.List // of *limitedConn that aren't being answered, the one that waits longest in front
	open     int
	byClient map[string]*clientConns
	dropped  bool // it has been logged that connections are dropped
}

// clientConns are the connections of one client.
type clientConns struct {
	open    int
	waiting list.List
}

// limitedConn is a connection that gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	client   string // empty: a trusted proxy, which has no limit of its own

	// Under the listener's lock.
	ofClient      *clientConns // all of the client's
	isClosed      bool
	requests      int // that are being answered; HTTP/2 has several
	ofAll, ofMine *list.Element
}

func newLimitedListener(l net.Listener, clients clientResolver, countClosed func(), log *zap.Logger) *limitedListener {
	return &limitedListener{Listener: l, max: maxConnections, maxOfClient: maxOfClient, clients: clients, countClosed: countClosed,
		log: log, byClient: map[string]*clientConns{}}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if limited := l.admit(c); limited != nil {
			return limited, nil
		}
		_ = c.Close() // it was never used
	}
}

// admit gives a new connection a place, where need be another's; nil: there is none.
func (l *limitedListener) admit(c net.Conn) net.Conn {
	conn := &limitedConn{Conn: c, listener: l, client: l.clientOf(c.RemoteAddr())}
	l.mu.Lock()
	dropped, ok := l.makeRoom(conn.client)
	if ok {
		l.enter(conn)
	}
	l.mu.Unlock()
	for _, d := range dropped {
		l.countClosed()
		_ = d.Conn.Close() // its reader sees that it is gone
	}
	if !ok {
		l.countClosed()
		return nil
	}
	return conn
}

// makeRoom drops a connection that waits where the client or all have as many as they
// may; false when none waits.
func (l *limitedListener) makeRoom(client string) (dropped []*limitedConn, ok bool) {
	if of := l.byClient[client]; of != nil && client != "" && of.open >= l.maxOfClient {
		d := l.dropLongest(&of.waiting)
		if d == nil {
			return nil, false
		}
		dropped = append(dropped, d)
	}
	if l.open >= l.max {
		d := l.dropLongest(l.chooseWaiting(client))
		if d == nil {
			return dropped, false
		}
		dropped = append(dropped, d)
	}
	return dropped, true
}

// chooseWaiting chooses whose connection gives way to a client's new one. It is the client's own
// where it has more than its share, else one of the client that has most beyond its share. Only
// where no client has more does it choose among all. Otherwise a client that goes on opening
// connections from a few addresses would push out all others', since theirs soon wait longest. A
// trusted proxy's connections are many clients' and never too many.
func (l *limitedListener) chooseWaiting(client string) *list.List {
	clients := len(l.byClient)
	if l.byClient[client] == nil {
		clients++
	}
	most, share := &clientConns{}, l.max/min(clients, maxShares)
	if of := l.byClient[client]; of != nil && client != "" && of.open > share && of.waiting.Len() > 0 {
		return &of.waiting
	}
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*limitedConn); c.client != "" && c.ofClient.open > max(share, most.open) {
			most = c.ofClient
		}
	}
	if most.open > 0 {
		return &most.waiting
	}
	return &l.waiting
}

// enter gives a connection its place.
func (l *limitedListener) enter(c *limitedConn) {
	if l.byClient[c.client] == nil {
		l.byClient[c.client] = &clientConns{}
	}
	l.open++
	c.ofClient = l.byClient[c.client]
	c.ofClient.open++
	l.startWaiting(c)
}

// clientOf names the client that a connection comes from; empty for a trusted proxy.
func (l *limitedListener) clientOf(address net.Addr) string {
	a, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	if ip := a.Addr().Unmap().WithZone(""); !l.clients.isProxy(ip) {
		return groupAddress(ip)
	}
	return ""
}

// dropLongest takes the place of the connection that waits longest; nil: none waits.
func (l *limitedListener) dropLongest(waiting *list.List) *limitedConn {
	front := waiting.Front()
	if front == nil {
		return nil
	}
	c := front.Value.(*limitedConn)
	l.leave(c)
	if !l.dropped {
		l.dropped = true
		l.log.Warn("too many connections are open; from now on those that have waited longest are closed for new ones",
			zap.Stringer("listener", l.Addr()), zap.String("client", c.client), zap.Int("of this client", l.maxOfClient),
			zap.Int("of all", l.max))
	}
	return c
}

// leave gives a connection's place back.
func (l *limitedListener) leave(c *limitedConn) {
	if c.isClosed {
		return
	}
	c.isClosed = true
	l.stopWaiting(c)
	l.open--
	if c.ofClient.open--; c.ofClient.open == 0 {
		delete(l.byClient, c.client)
	}
}

func (l *limitedListener) startWaiting(c *limitedConn) {
	c.ofAll, c.ofMine = l.waiting.PushBack(c), c.ofClient.waiting.PushBack(c)
}

func (l *limitedListener) stopWaiting(c *limitedConn) {
	if c.ofAll != nil {
		l.waiting.Remove(c.ofAll)
		c.ofClient.waiting.Remove(c.ofMine)
		c.ofAll, c.ofMine = nil, nil
	}
}

// Close implements net.Conn.
func (l *limitedConn) Close() error {
	l.listener.mu.Lock()
	l.listener.leave(l)
	l.listener.mu.Unlock()
	return l.Conn.Close()
}

// beginRequest says that the connection's request has come: it waits anew from now
// on, or, if it is being answered, not at all.
func (l *limitedConn) beginRequest(answering bool) {
	l.listener.mu.Lock()
	defer l.listener.mu.Unlock()
	if l.isClosed {
		return
	}
	l.listener.stopWaiting(l)
	if answering {
		l.requests++
	}
	if l.requests == 0 {
		l.listener.startWaiting(l)
	}
}

// endRequest says that a request was answered.
func (l *limitedConn) endRequest(answering bool) {
	l.listener.mu.Lock()
	defer l.listener.mu.Unlock()
	if l.isClosed {
		return
	}
	if answering {
		l.requests--
	}
	l.listener.stopWaiting(l)
	if l.requests == 0 {
		l.listener.startWaiting(l)
	}
}

// connKey is where a request's context has its connection.
type connKey struct{}

// rememberConn is for http.Server's ConnContext.
func rememberConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// trackRequests tells a request's connection when it begins and ends. answering says that the
// handler has all it needs from the client. A connection whose request is still to come, as a
// webhook's body is, may have to give way.
func trackRequests(answering bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			c.beginRequest(answering)
			defer c.endRequest(answering)
		}
		next.ServeHTTP(w, r)
	})
}
