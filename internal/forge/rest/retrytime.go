package rest

import (
	"net/http"
	"time"
)

// retryTimeHeader is the transport's own, on an answer that a driver is given: when to try the
// call again, by the clock of the limits. No forge's is believed.
const retryTimeHeader = "Liftlock-Retry-Time"

// noteRetryTime writes into a refused answer when to try its call again. A call refused for the
// number of calls waits until the budget is open again. Where the forge failed, it waits until the
// time that the forge names.
func noteRetryTime(resp *http.Response, limitedUntil, now time.Time) {
	resp.Header.Del(retryTimeHeader)
	at := limitedUntil
	if at.IsZero() && resp.StatusCode >= http.StatusInternalServerError && resp.Header.Get("Retry-After") != "" {
		at = parseRetryTime(resp.Header, now, clockOffset(resp.Header, now))
	}
	if !at.IsZero() {
		resp.Header.Set(retryTimeHeader, at.UTC().Format(time.RFC3339Nano))
	}
}

// RetryTime is when to try a call again that was refused for the number of calls, or at which the
// forge failed and said so. It is zero where it didn't say, and on answers that aren't a
// transport's.
func RetryTime(h http.Header) time.Time {
	at, err := time.Parse(time.RFC3339Nano, h.Get(retryTimeHeader))
	if err != nil {
		return time.Time{}
	}
	return at
}

// IsLimited says that a transport's answer refuses a call for the number of them.
func IsLimited(resp *http.Response) bool {
	return resp.StatusCode < http.StatusInternalServerError && resp.Header.Get(retryTimeHeader) != ""
}
