package command

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 3, 9, 9, 0, 0, 0, time.UTC)
	l := NewRateLimit(func() time.Time { return now })
	take := func(login string) (n int) {
		for n < 100 && l.Allow(login) {
			n++
		}
		return n
	}
	if n := take("ada"); n != perLogin {
		t.Errorf("at first %d answers, want %d", n, perLogin)
	}
	if n := take("Ada"); n != 0 {
		t.Errorf("the same login in capitals got %d more", n)
	}
	if n := take("grace"); n != perLogin {
		t.Errorf("another one got %d", n)
	}
	now = now.Add(2*everyLogin + time.Second)
	if n := take("ada"); n != 2 {
		t.Errorf("after two times the wait: %d", n)
	}
	now = now.Add(everyLogin - time.Second) // what was left of the wait before counts
	if n := take("ada"); n != 1 {
		t.Errorf("after the rest of the wait: %d", n)
	}
	now = now.Add(-time.Hour)
	if n := take("ada"); n != 0 {
		t.Errorf("a clock that goes back gives %d", n)
	}
	now = now.Add(24 * time.Hour)
	if n := take("ada"); n != perLogin {
		t.Errorf("a day later: %d", n)
	}
}

// TestFullBucketSavesNothing holds that who waited for longer than it takes to have all
// answers again gets no more for it.
func TestFullBucketSavesNothing(t *testing.T) {
	b := bucket{At: noon}
	now := noon.Add(perLogin*everyLogin + everyLogin/2)
	b = b.refillAt(now, perLogin, everyLogin)
	if want := (bucket{Left: perLogin, At: now}); b != want {
		t.Errorf("it is %+v, want %+v", b, want)
	}
}

func TestRateLimitOfAll(t *testing.T) {
	now := time.Date(2026, 3, 9, 9, 0, 0, 0, time.UTC)
	l := NewRateLimit(func() time.Time { return now })
	n := 0
	for i := range 500 {
		if l.Allow(fmt.Sprint("reader", i)) {
			n++
		}
	}
	if n != perAll {
		t.Errorf("%d answers to 500 people, want %d", n, perAll)
	}
}

func TestRateLimitForgets(t *testing.T) {
	now := time.Date(2026, 3, 9, 9, 0, 0, 0, time.UTC)
	l := NewRateLimit(func() time.Time { return now })
	for i := range 5 * maxLogins {
		now = now.Add(everyAll)
		if !l.Allow(fmt.Sprint("reader", i)) {
			t.Fatalf("reader %d has to wait for others", i)
		}
		if len(l.logins) > maxLogins {
			t.Fatalf("%d logins are remembered", len(l.logins))
		}
	}
	clear(l.logins)
	for i := range maxLogins {
		l.logins[fmt.Sprint("idle", i)] = bucket{At: now.Add(-time.Hour)}
	}
	if now = now.Add(everyAll); !l.Allow("late") {
		t.Errorf("those who would have everything left again aren't forgotten")
	}
	clear(l.logins)
	for i := range maxLogins {
		l.logins[fmt.Sprint("busy", i)] = bucket{At: now}
	}
	if now = now.Add(everyAll); l.Allow("late") {
		t.Errorf("more people than can be remembered are answered")
	}
}

func TestRateLimitIsConcurrent(t *testing.T) {
	l := NewRateLimit(func() time.Time { return time.Unix(1, 0) })
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if l.Allow("ada") {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if n != perLogin {
		t.Errorf("%d answers, want %d", n, perLogin)
	}
}
