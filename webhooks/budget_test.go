package webhooks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// testClock is a clock that a test moves.
type testClock struct{ now time.Time }

func newTestClock() *testClock {
	return &testClock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
}

func (t *testClock) read() time.Time         { return t.now }
func (t *testClock) advance(d time.Duration) { t.now = t.now.Add(d) }

func newTestBudget(t testing.TB, o BudgetOptions) *Budget {
	t.Helper()
	b, err := NewBudget(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// admitFrom begins a body of a client.
func (b *Budget) admitFrom(client string) *pendingBody {
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	req.RemoteAddr = client + ":4711"
	return b.admit(req, func(time.Time) {})
}

// checkEmpty holds that nothing is left of bodies that are over.
func (b *Budget) checkEmpty(t testing.TB) {
	t.Helper()
	for name, r := range map[string]*room{"small": &b.small, "large": &b.large} {
		if r.used != 0 || r.members.Len() != 0 || len(r.byClient) != 0 {
			t.Errorf("of the room for %s bodies %d bytes are taken by %d bodies of %d clients", name, r.used, r.members.Len(), len(r.byClient))
		}
	}
	if b.reading.Len() != 0 || len(b.byClient) != 0 {
		t.Errorf("%d bodies of %d clients are still being read", b.reading.Len(), len(b.byClient))
	}
}

func TestTheOldestGivesWay(t *testing.T) {
	clock := newTestClock()
	b := newTestBudget(t, BudgetOptions{SmallRoom: MinSmallRoom, Now: clock.read})
	var all []*pendingBody
	for i := range 4 {
		p := b.admitFrom(fmt.Sprintf("192.0.2.%d", i))
		if !b.reserve(p, MinSmallRoom/4, false) {
			t.Fatalf("body %d has no room", i)
		}
		all = append(all, p)
		clock.advance(time.Second)
	}
	late := b.admitFrom("198.51.100.1")
	if !b.reserve(late, MinSmallRoom/4+1, false) {
		t.Fatal("who comes last has no room although there are older ones")
	}
	for i, p := range all {
		if want := i < 2; p.isDisplaced() != want {
			t.Errorf("body %d gave way: %t, want %t", i, p.isDisplaced(), want)
		}
		if p.isDisplaced() && (b.reserve(p, 1, false) || p.extend(clock.now)) {
			t.Errorf("body %d gave way and is read on", i)
		}
	}
	if b.reserve(all[2], MinSmallRoom, false) {
		t.Error("the oldest drove out a younger one")
	}
	for _, p := range append(all, late) {
		p.release()
	}
	b.checkEmpty(t)
}

func TestAClientHasHalfTheRoom(t *testing.T) {
	clock := newTestClock()
	b := newTestBudget(t, BudgetOptions{SmallRoom: MinSmallRoom, Now: clock.read})
	forge := b.admitFrom("192.0.2.1") // older than all of the stranger's
	if !b.reserve(forge, SmallBody, false) {
		t.Fatal("no room")
	}
	var strangers []*pendingBody
	for range 500 {
		clock.advance(time.Millisecond)
		p := b.admitFrom("198.51.100.1")
		if !b.reserve(p, SmallBody, false) {
			t.Fatal("the client's newest body has no room although older ones of its own do")
		}
		strangers = append(strangers, p)
	}
	if forge.isDisplaced() {
		t.Error("another client was driven out")
	}
	if got := b.small.byClient["198.51.100.1"].used; got > MinSmallRoom/2 {
		t.Errorf("one client has %d bytes, more than half of %d", got, MinSmallRoom)
	}
	if p := strangers[len(strangers)-1]; p.isDisplaced() {
		t.Error("the newest gave way")
	}
}

func TestLargeBodiesLeaveSmallOnesTheirRoom(t *testing.T) {
	b := newTestBudget(t, BudgetOptions{})
	for i := range 50 {
		b.reserve(b.admitFrom(fmt.Sprintf("198.51.100.%d", i)), DefaultLargeRoom/50, true)
	}
	grown := b.admitFrom("192.0.2.1")
	if !b.reserve(grown, SmallBody, false) || b.small.used != SmallBody {
		t.Errorf("%d bytes of the small room are taken", b.small.used)
	}
	// A body that turns out to be large moves over with all it has.
	if !b.reserve(grown, SmallBody, true) || b.small.used != 0 || b.large.byClient["192.0.2.1"].used != 2*SmallBody {
		t.Errorf("%d bytes of the small room are taken after it moved", b.small.used)
	}
}

func TestBodiesAreCounted(t *testing.T) {
	b := newTestBudget(t, BudgetOptions{})
	first, other := b.admitFrom("198.51.100.1"), b.admitFrom("192.0.2.1")
	for range maxReadingOfClient {
		b.admitFrom("198.51.100.1")
	}
	if !first.isDisplaced() || other.isDisplaced() {
		t.Errorf("one body too many of a client: its oldest gave way: %t; another client's: %t", first.isDisplaced(), other.isDisplaced())
	}
	for i := range maxReading {
		b.admitFrom(fmt.Sprintf("client-%d", i%3))
	}
	if b.reading.Len() > maxReading || !other.isDisplaced() {
		t.Errorf("%d bodies are read at once, the oldest of them gave way: %t", b.reading.Len(), other.isDisplaced())
	}
}

func TestAuthenticBodyKeepsItsPlace(t *testing.T) {
	b := newTestBudget(t, BudgetOptions{SmallRoom: MinSmallRoom})
	forge := b.admitFrom("192.0.2.1")
	b.reserve(forge, MinSmallRoom/2, false)
	forge.trust()
	greedy := b.admitFrom("198.51.100.1")
	if b.reserve(greedy, MinSmallRoom, false) {
		t.Error("a stranger got room that isn't there")
	}
	greedy.release()
	stranger := b.admitFrom("198.51.100.1")
	b.reserve(stranger, MinSmallRoom/2, false)
	if !forge.reserveMore(1000) || !stranger.isDisplaced() {
		t.Error("an authentic body didn't get the room of a stranger's")
	}
	if forge.isDisplaced() {
		t.Error("an authentic body gave way")
	}
	forge.release()
	stranger.release()
	b.checkEmpty(t)
}

func TestBudgetsAreLargeEnough(t *testing.T) {
	for _, o := range []BudgetOptions{{SmallRoom: MinSmallRoom - 1}, {LargeRoom: MinLargeRoom - 1}} {
		if _, err := NewBudget(o); err == nil || !strings.Contains(err.Error(), "too small") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestBudgetAddsUp holds by random bodies: no room is ever overfull, no stranger has
// more than half of it, and nothing is left behind.
func TestBudgetAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := newTestClock()
		b := newTestBudget(t, BudgetOptions{SmallRoom: MinSmallRoom, Now: clock.read})
		var all []*pendingBody
		rt.Repeat(map[string]func(*rapid.T){
			"begin": func(rt *rapid.T) {
				clock.advance(time.Duration(rapid.IntRange(0, 3).Draw(rt, "later")))
				all = append(all, b.admitFrom(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "client")))
			},
			"grow": func(rt *rapid.T) {
				if len(all) > 0 {
					p := rapid.SampledFrom(all).Draw(rt, "body")
					isLarge := p.room == &b.large || rapid.Bool().Draw(rt, "large")
					b.reserve(p, int64(rapid.IntRange(1, MinSmallRoom/2).Draw(rt, "bytes")), isLarge)
				}
			},
			"shrink": func(rt *rapid.T) {
				if len(all) > 0 {
					p := rapid.SampledFrom(all).Draw(rt, "body")
					p.giveBack(p.reserved / 2)
				}
			},
			"end": func(rt *rapid.T) {
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(rt, "body")
					all[i].release()
					all = append(all[:i], all[i+1:]...)
				}
			},
			"": func(rt *rapid.T) {
				for _, r := range []*room{&b.small, &b.large} {
					sum, members := int64(0), 0
					for client, of := range r.byClient {
						sum, members = sum+of.used, members+of.members.Len()
						if of.used > r.max/2 {
							rt.Fatalf("%s has %d of %d bytes", client, of.used, r.max)
						}
					}
					if sum != r.used || members != r.members.Len() || r.used > r.max {
						rt.Fatalf("%d of %d bytes are taken, %d by clients; %d bodies, %d of clients", r.used, r.max, sum, r.members.Len(), members)
					}
				}
			},
		})
		for _, p := range all {
			p.release()
		}
		b.checkEmpty(t)
	})
}
