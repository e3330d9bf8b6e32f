package command

import (
	"strings"
	"sync"
	"time"
)

// Every answer is a comment, and on a public repository everybody may give commands.
const (
	perLogin   = 5                // answers at once
	everyLogin = 12 * time.Second // another one after
	perAll     = 60
	everyAll   = time.Second
	maxLogins  = 1024 // remembered at the same time
)

// RateLimit limits how often readers are answered: each, and all together. Its
// methods may be called concurrently.
type RateLimit struct {
	now func() time.Time

	mu     sync.Mutex
	all    bucket
	logins map[string]bucket
}

// bucket is what is left at a time; it fills up again as time goes on. Less than nothing
// is what was taken ahead. The zero value is full.
type bucket struct {
	Left int       `json:"left"`
	At   time.Time `json:"at"`
}

// NewRateLimit starts with everything left. now is the clock.
func NewRateLimit(now func() time.Time) *RateLimit {
	return &RateLimit{now: now, all: bucket{Left: perAll, At: now()}, logins: map[string]bucket{}}
}

// Allow takes one answer for a login; false when it has to wait, or when so many
// people ask at once that another one can't be remembered.
func (r *RateLimit) Allow(login string) bool {
	login = strings.ToLower(login)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.all = r.all.refillAt(now, perAll, everyAll)
	b, known := r.logins[login]
	if !known {
		if len(r.logins) >= maxLogins {
			r.dropFullBuckets(now)
		}
		if len(r.logins) >= maxLogins {
			return false
		}
		b = bucket{Left: perLogin, At: now}
	}
	b = b.refillAt(now, perLogin, everyLogin)
	if b.Left == 0 || r.all.Left == 0 {
		return false
	}
	b.Left--
	r.all.Left--
	r.logins[login] = b
	return true
}

// dropFullBuckets drops who would start with everything left anyway.
func (r *RateLimit) dropFullBuckets(now time.Time) {
	for k, b := range r.logins {
		if b.refillAt(now, perLogin, everyLogin).Left == perLogin {
			delete(r.logins, k)
		}
	}
}

// refillAt is the bucket at a later time; a clock that went back adds nothing.
func (b bucket) refillAt(now time.Time, most int, every time.Duration) bucket {
	n := now.Sub(b.At) / every
	switch {
	case n < 0:
		b.At = now
	case int64(n) >= int64(most-b.Left):
		b.Left, b.At = most, now
	default:
		b.Left += int(n)
		b.At = b.At.Add(n * every)
	}
	return b
}
