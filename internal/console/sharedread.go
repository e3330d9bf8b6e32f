package console

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

// sharedReads does once what several want to read at the same moment. It may be called
// concurrently.
type sharedReads[T any] struct {
	operation string        // what is done, for errors, e.g. "compare with what runs"
	timeout   time.Duration // for one read
	log       *zap.Logger

	inFlight singleflight.Group
}

// do joins the read of a key that is under way, or begins it. Others may be waiting for it when
// the first one leaves, so it goes on without that one's context. A read that panics is an error
// for all of them: no server is there that would recover, and the process would end.
func (s *sharedReads[T]) do(ctx context.Context, key string, read func(context.Context) (T, error)) (value T, err error) {
	ch := s.inFlight.DoChan(key, func() (out any, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("a read that several share panicked", zap.String("operation", s.operation), zap.String("key", key),
					zap.Any("panic", p), zap.Stack("stack"))
				out, err = nil, fmt.Errorf("%s: it panicked; the server's log says where", s.operation)
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return read(ctx)
	})
	select {
	case <-ctx.Done():
		return value, fmt.Errorf("%s: %w", s.operation, ctx.Err())
	case res := <-ch:
		if res.Err != nil {
			return value, res.Err
		}
		return res.Val.(T), nil
	}
}

// forget has the next one begin a read of its own.
func (s *sharedReads[T]) forget(key string) { s.inFlight.Forget(key) }
