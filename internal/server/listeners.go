package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	headerTimeout = 10 * time.Second
	// readTimeout is for a request with its body; webhooks bound theirs by themselves.
	readTimeout = 20 * time.Second
	// writeTimeout is how long an answer may take to be worked out and sent. A rendering for it has
	// a minute. Streams of events bound each of their writes.
	writeTimeout = 2 * time.Minute
	idleTimeout  = 2 * time.Minute
	// maxHeaderBytes bounds what each of many connections may fill before anything is
	// known about it; Go's own megabyte is meant for cookies, of which there are none.
	maxHeaderBytes = 16 << 10
	// maxRequestsOfConn bounds what one HTTP/2 connection does at once.
	maxRequestsOfConn = 64
	// drainTimeout is how long open requests may take when the server stops.
	drainTimeout = 5 * time.Second
)

// listener is an address that is listened on, and its HTTP server.
type listener struct {
	net.Listener
	tls  *tls.Config // nil: plain HTTP
	http *http.Server
}

// listenEverywhere opens the main listener and, where webhooks have an address of their own,
// theirs. countClosed gives, by a listener's name, what counts the connections that it closes.
func (s *Server) listenEverywhere(ctx context.Context, countClosed func(name string) func()) ([]*listener, error) {
	first, err := s.openListener(ctx, s.o.Config.Listen, countClosed("main"))
	if err != nil || s.o.Config.Webhooks.Listen == "" {
		return []*listener{first}, err
	}
	second, err := s.openListener(ctx, s.o.Config.Webhooks.Listen, countClosed("webhooks"))
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	return []*listener{first, second}, nil
}

// openListener listens on an address; nothing is answered yet.
func (s *Server) openListener(ctx context.Context, address string, countClosed func()) (*listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program does already; end that, or set another port in listen (or webhooks.listen) "+
			"of the server's file", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; correct listen (or webhooks.listen) in the server's file", address, err)
	}
	out := &listener{Listener: newLimitedListener(l, s.clients, countClosed, s.log.Named("http"))}
	if s.certificate != nil {
		out.tls = s.certificate.tlsConfig()
	}
	return out, nil
}

// url is where the listener is reached.
func (l *listener) url() string {
	if l.tls != nil {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// setHandler says what is answered; it comes before serve and stop.
func (l *listener) setHandler(ctx context.Context, handler http.Handler, log *zap.Logger) {
	l.http = &http.Server{Handler: handler, TLSConfig: l.tls, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxRequestsOfConn},
		ErrorLog: zap.NewStdLog(log), BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: rememberConn}
}

// serve answers until the listener is stopped.
func (l *listener) serve() error {
	var err error
	if l.tls != nil {
		err = l.http.ServeTLS(l.Listener, "", "")
	} else {
		err = l.http.Serve(l.Listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
}

// stop lets open requests come to their end, but not for ever.
func (l *listener) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := l.http.Shutdown(ctx); err != nil {
		_ = l.http.Close() // streams of events don't end by themselves
	}
}
