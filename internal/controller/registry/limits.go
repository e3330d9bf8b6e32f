package registry

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRest bounds for how long a registry is believed that it wants to be left alone: Docker Hub's limits are for six
	// hours.
	maxRest = 6 * time.Hour
	// reserveShare is the part of a registry's limit that is left to others: one of so many.
	reserveShare = 10
)

// restUntil is until when a registry is to be left alone, as an answer says; zero: it may be asked.
//
// Docker Hub's headers are RateLimit-Limit: 100;w=21600 and RateLimit-Remaining: 76;w=21600, without a time of reset
// (Docker's documentation, "Pulls"). Others have RateLimit-Reset in seconds (draft-ietf-httpapi-ratelimit-headers).
func restUntil(res *http.Response, now time.Time) time.Time {
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		if wait, ok := parseRetryAfter(res.Header.Get("Retry-After"), now); ok {
			return now.Add(wait)
		}
	}
	limit, window, ok := parseQuota(res.Header.Get("RateLimit-Limit"))
	remaining, ownWindow, known := parseQuota(res.Header.Get("RateLimit-Remaining"))
	if !ok || !known || remaining > limit/reserveShare {
		return time.Time{}
	}
	wait, ok := parseRetryAfter(res.Header.Get("RateLimit-Reset"), now)
	if !ok {
		wait = max(window, ownWindow) / reserveShare // by then as much has come back as is left to others
	}
	return now.Add(min(max(wait, awayDelay), maxRest))
}

// parseQuota reads a number of requests, and the window that it is for.
func parseQuota(text string) (n int, window time.Duration, ok bool) {
	first, _, _ := strings.Cut(text, ",")
	number, rest, _ := strings.Cut(first, ";")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	for part := range strings.SplitSeq(rest, ";") {
		if seconds, is := strings.CutPrefix(strings.TrimSpace(part), "w="); is {
			if w, err := strconv.Atoi(seconds); err == nil && w > 0 {
				window = min(time.Duration(w)*time.Second, maxRest)
			}
		}
	}
	return n, window, err == nil && n >= 0
}

// parseRetryAfter reads seconds, or a time as HTTP has it.
func parseRetryAfter(text string, now time.Time) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	wait := maxRest
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		if seconds < int(maxRest/time.Second) {
			wait = time.Duration(seconds) * time.Second
		}
	} else {
		at, err := http.ParseTime(text)
		if err != nil {
			return 0, false
		}
		wait = min(at.Sub(now), maxRest)
	}
	return max(wait, 0), true
}
