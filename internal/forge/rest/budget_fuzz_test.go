package rest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// FuzzAnswerLimits holds that no answer, whatever its headers say, closes a forge for longer
// than a limit may last, or leaves more calls than it allows.
func FuzzAnswerLimits(f *testing.F) {
	f.Add(429, "60", "5000", "0", "1772366460", "core", "Sun, 01 Mar 2026 12:00:00 GMT", "")
	f.Add(403, "", "5000", "0", "1772366460", "", "", "You have exceeded a secondary rate limit")
	f.Add(429, "Sun, 01 Mar 2099 12:00:00 GMT", "-1", "99999999999999999999", "9223372036854775807", "search", "Sun, 01 Mar 1926 12:00:00 GMT", "")
	f.Add(200, "-9223372036854775808", "60", "61", "0", "core", "?", "")
	f.Fuzz(func(t *testing.T, status int, after, limit, left, reset, name, date, body string) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		b := NewBudget(func() time.Time { return now }, nil, nil)
		h := http.Header{}
		for key, value := range map[string]string{"Retry-After": after, "X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left, "X-RateLimit-Reset": reset, "X-RateLimit-Resource": name, "Date": date} {
			h.Set(key, value)
		}
		for range 3 { // also again within the hour
			end, err := b.begin(context.Background(), "GET pulls")
			if err != nil {
				break
			}
			end(&http.Response{StatusCode: status, Header: h}, []byte(body))
			now = now.Add(time.Second)
		}
		if b.closedUntil.After(now.Add(maxRetryAfter)) || b.reset.After(now.Add(maxRetryAfter)) || b.remaining > b.limit || b.inFlight != 0 {
			t.Errorf("closed until %s, anew at %s, %d of %d left, %d under way", b.closedUntil, b.reset, b.remaining, b.limit, b.inFlight)
		}
		for _, p := range []forge.Priority{forge.PriorityUrgent, forge.PriorityNormal, forge.PriorityComment, forge.PriorityBackground} {
			_, err := b.begin(forge.WithPriority(context.Background(), p), "GET pulls")
			var refused *RefusedError
			if errors.As(err, &refused) && (!refused.Until.After(now) || refused.Until.After(now.Add(2*maxRetryAfter))) {
				t.Errorf("a call of priority %d is refused until %s", p, refused.Until)
			}
		}
	})
}
