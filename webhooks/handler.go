package webhooks

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// The outcomes of a delivery, for counting. There are no others.
const (
	OutcomeAccepted        = "accepted"        // written down
	OutcomeIgnored         = "ignored"         // written down; of kind Other
	OutcomeUnauthenticated = "unauthenticated" // 401
	OutcomeTooLarge        = "too_large"       // 413
	OutcomeMalformed       = "malformed"       // 400, 405, 415
	OutcomeSlow            = "slow"            // 408: its body stalled or dawdled
	OutcomeBusy            = "busy"            // 503: no room for its body
	OutcomeFailed          = "failed"          // 503: it couldn't be written down
)

// Handler answers a forge's deliveries. accept is called for every authentic event, also of kind
// Other, and must return only once the event is stored. It may be called more than once for a
// delivery and must then succeed, and it may be called concurrently. The delivery is acknowledged
// only after accept has returned nil: with 200, or 202 for kind Other. An authentic delivery is
// never refused for its kind, because forges disable hooks that fail. GitLab disables hooks for any
// refusal, so it gets 202 for an unreadable one too. An error of accept is answered with 503 and
// Retry-After; its text is not shown to the sender, so accept logs it. countOutcome, which may be
// nil, is called with the outcome of every request.
func Handler(r *Receiver, accept func(context.Context, *Event) error, countOutcome func(outcome string)) http.Handler {
	if countOutcome == nil {
		countOutcome = func(string) {}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		e, refusal := r.Read(w, req)
		if refusal == nil {
			if err := accept(req.Context(), e); err != nil {
				refusal = &Refusal{Status: http.StatusServiceUnavailable, Outcome: OutcomeFailed,
					Reason: "the delivery couldn't be stored; try again"}
			}
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		if refusal != nil {
			countOutcome(refusal.Outcome)
			if refusal.authentic && refusal.Outcome == OutcomeMalformed && r.dialect.acknowledge {
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, "not understood: "+refusal.Reason+"\n")
				return
			}
			writeRefusal(w, refusal, r.budget)
			return
		}
		if e.Kind == Other {
			countOutcome(OutcomeIgnored)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "nothing to do for this event\n")
			return
		}
		countOutcome(OutcomeAccepted)
		_, _ = io.WriteString(w, "accepted\n")
	})
}

// writeRefusal answers a delivery that isn't taken.
func writeRefusal(w http.ResponseWriter, refusal *Refusal, budget *Budget) {
	budget.WriteRefusal(w, refusal)
	_, _ = io.WriteString(w, refusal.Reason+"\n")
}

// WriteRefusal writes the status and the headers of the answer to a body that isn't taken.
func (b *Budget) WriteRefusal(w http.ResponseWriter, refusal *Refusal) {
	switch refusal.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter.Seconds())))
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	}
	if refusal.unread {
		// The HTTP server reads the rest of the body; a client that doesn't send it must not hold
		// the connection.
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(b.now().Add(RefusalTimeout)) // recorders have none
	}
	w.WriteHeader(refusal.Status)
}
