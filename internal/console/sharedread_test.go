package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// TestSharedReadThatPanics holds that a panic while several wait is an error for each of them, and
// that the process lives.
func TestSharedReadThatPanics(t *testing.T) {
	w := newTestConsole(t, func(o *Options) {
		o.Health = func(context.Context) []api.Trouble { panic("no such part") }
	})
	w.seed()
	w.compared = func(string, string) (*api.Differences, error) { panic("no such pipeline") }
	w.rendered = func(store.Promotion) (*api.RenderedDiff, error) { panic("no such manifest") }
	for _, path := range []string{"/", "/api/v1/pipelines", "/api/v1/promotions/2", "/promotions/2"} {
		if status, _, body := w.get(path); status != http.StatusServiceUnavailable || !strings.Contains(body, "read what is shown: it panicked") || strings.Contains(body, "no such part") {
			t.Errorf("%s is answered with %d %s", path, status, body)
		}
	}
	w.options.Health = nil
	h, err := New(w.options)
	w.must(err)
	for range 2 { // it gives its turn back
		if _, err := h.server.comparer.compareWithLive(t.Context(), testRepo, "shop"); err == nil || !strings.Contains(err.Error(), "compare with what runs: it panicked") {
			t.Errorf("a comparison that panics: %v", err)
		}
	}
}

func TestSharedReadIsLeft(t *testing.T) {
	s := sharedReads[int]{operation: "count", timeout: time.Minute, log: zap.NewNop()}
	began, goOn := make(chan struct{}), make(chan struct{})
	read := func(ctx context.Context) (int, error) {
		close(began)
		<-goOn
		return 7, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.do(ctx, "", read)
		left <- err
	}()
	<-began
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "count: ") {
		t.Errorf("who leaves gets %v", err)
	}
	stays := make(chan int, 1)
	go func() {
		n, _ := s.do(t.Context(), "", func(context.Context) (int, error) { return 8, nil })
		stays <- n
	}()
	close(goOn)
	if n := <-stays; n != 7 && n != 8 { // it joined, or came when that was over
		t.Errorf("who stays gets %d", n)
	}
}
