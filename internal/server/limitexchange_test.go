package server

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestLimitsAreExchanged: what processes on one database know of a forge's limits, each reads of
// the others, and of those that have ended for a while.
func TestLimitsAreExchanged(t *testing.T) {
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	clk := clocktesting.NewFakeClock(time.Now())
	process := func(owner string) *Server {
		return &Server{o: Options{Config: &config.Config{Store: "postgres://db/liftlock"}, Clock: clk}, log: zap.NewNop(), store: st, owner: owner}
	}
	a, b := process("a"), process("b")
	exchange := func(s *Server, forge, identity, own, want string) {
		t.Helper()
		others, err := s.exchangeLimits(forge)(t.Context(), identity, []byte(own))
		got := ""
		for _, o := range others {
			got += string(o)
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", s.owner, got, err, want)
		}
	}
	exchange(a, "hub", "token", "one", "")
	exchange(b, "hub", "token", "two", "one")
	exchange(a, "hub", "token", "three", "two")
	exchange(b, "hub", "installation 1", "four", "")
	exchange(b, "other", "token", "five", "")
	clk.Step(limitsAge + time.Minute)
	exchange(b, "hub", "token", "six", "")
	if left, err := forgeLimits.List(t.Context(), st, record.Within{NamePrefix: "hub|token|"}); err != nil || len(left) != 1 {
		t.Errorf("%d are kept, %v", len(left), err)
	}
	b.o.Config = &config.Config{Store: "sqlite://liftlock.db"}
	if b.exchangeLimits("hub") != nil {
		t.Error("a process on a database of its own has others")
	}
}
