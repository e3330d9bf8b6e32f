package server

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"
)

// givenExpiry is a driver whose token ends when it is said, or an error.
type givenExpiry struct {
	end time.Time
	err error
}

func (g *givenExpiry) TokenExpiry(context.Context) (time.Time, error) { return g.end, g.err }

func TestTokensThatEnd(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakeClock(now)
	hub, forever := &givenExpiry{end: time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)}, &givenExpiry{}
	w := &tokenWatch{
		what: "forge", key: "forges[].auth", tokens: map[string]tokenExpirer{"hub": hub, "forever": forever}, clock: clk, log: zap.NewNop(), ends: map[string]time.Time{},
		shown: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "expiry"}, []string{"forge"}),
	}
	warnings := func() string {
		var lines []string
		for _, s := range w.statuses() {
			lines = append(lines, s.name+": "+s.err.Error())
		}
		return strings.Join(lines, "\n")
	}
	want := func(what string, ok bool, words string) {
		t.Helper()
		if got := w.readExpiries(context.Background()); got != ok {
			t.Errorf("%s: all could be read: %v", what, got)
		}
		if got := warnings(); (words == "") != (got == "") || !strings.Contains(got, words) {
			t.Errorf("%s: it says %q, want %q", what, got, words)
		}
	}
	want("18 days before", true, "")
	if got := scrape(w.shown); len(got) != 1 || got[0] != `expiry{forge="hub"} 1.7739648e+09` {
		t.Errorf("the metric is %v", got)
	}
	clk.Step(5 * 24 * time.Hour)
	want("13 days before", true, "token of forge hub: it ends in 12 days, on 2026-03-20: make a new one, put it where forges[].auth has it, and restart Liftlock")
	hub.err = errors.New("away")
	want("when the forge can't be asked", false, "it ends in 12 days")
	clk.Step(13 * 24 * time.Hour)
	want("when it has ended", false, "it ended on 2026-03-20")
	hub.err, hub.end = nil, time.Time{}
	want("when it was replaced by one without an end", true, "")
	if got := scrape(w.shown); len(got) != 0 {
		t.Errorf("the metric is %v", got)
	}
}

func TestTokensAreCheckedAgain(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	looks := make(chan bool)
	w := &tokenWatch{
		tokens: map[string]tokenExpirer{"hub": expiryFunc(func() { looks <- true })}, clock: clk, log: zap.NewNop(), ends: map[string]time.Time{},
		shown: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "expiry"}, []string{"forge"}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan bool)
	go func() { w.run(ctx); close(done) }()
	<-looks
	for !clk.HasWaiters() { // its timer comes right after
		runtime.Gosched()
	}
	clk.Step(tokenLookInterval)
	<-looks
	cancel()
	<-done
}

type expiryFunc func()

func (e expiryFunc) TokenExpiry(context.Context) (time.Time, error) { e(); return time.Time{}, nil }
