package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/store"
)

// maxStoreWait is the longest wait between two tries to reach a database at start.
const maxStoreWait = 15 * time.Second

// awaitStore opens the database. One that can't be reached, as when a whole cluster starts at once,
// is waited for until the context ends; probes and forges are told meanwhile. A failure that
// waiting doesn't mend, such as a wrong password, is an error at once.
func (s *Server) awaitStore(ctx context.Context) (*store.Store, error) {
	open := func() (*store.Store, error) {
		return store.Open(ctx, s.o.Config.Store.Reveal(), store.Options{Log: s.log.Named("store"), Now: s.o.Clock.Now,
			Lease:    s.o.Seams.Lease,
			OnCommit: s.o.Seams.OnCommit, MaxPages: s.o.Seams.StoreMaxPages, Intercept: s.o.Seams.StoreIntercept})
	}
	st, err := open()
	if !errors.Is(err, store.ErrUnreachable) {
		if err != nil {
			err = fmt.Errorf("%w; the database is store in the server's file, or below dataDir", err)
		}
		return st, err
	}
	stop, busy := s.answerWaiting(ctx)
	if busy != nil {
		return nil, errors.Join(err, busy)
	}
	defer stop()
	last := err
	s.log.Error("the database can't be reached; trying until it can", zap.Error(err))
	wait := backoff.NewExponentialBackOff(backoff.WithMaxInterval(maxStoreWait), backoff.WithMaxElapsedTime(0))
	st, err = backoff.RetryNotifyWithData(func() (*store.Store, error) {
		st, err := open()
		if err != nil && !errors.Is(err, store.ErrUnreachable) {
			err = backoff.Permanent(err)
		}
		return st, err
	}, backoff.WithContext(wait, ctx), func(err error, d time.Duration) {
		last = err
		s.log.Error("the database still can't be reached; trying again", zap.Duration("in", d), zap.Error(err))
	})
	if ctx.Err() != nil && err != nil {
		return nil, fmt.Errorf("%w while the database was waited for: %w", ctx.Err(), last)
	}
	if err == nil {
		s.log.Info("the database was reached")
	}
	return st, err
}

// answerWaiting answers at the server's addresses that it isn't ready; stop gives them back.
func (s *Server) answerWaiting(ctx context.Context) (stop func(), err error) {
	listeners, err := s.listenEverywhere(ctx, func(string) func() { return func() {} })
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	// The caller isn't known: tokens are known, but the console decides who may read.
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "not ready: the database can't be reached yet; the log says why", http.StatusServiceUnavailable)
	})
	var serving sync.WaitGroup
	for _, l := range listeners {
		l.setHandler(ctx, console.WithSecurityHeaders(trackRequests(true, mux)), s.log.Named("http"))
		serving.Go(func() {
			if err := l.serve(); err != nil {
				s.log.Error("nobody is told that the database is waited for", zap.Error(err))
			}
		})
	}
	return func() {
		for _, l := range listeners {
			l.stop()
		}
		serving.Wait()
	}, nil
}
