package webhooks

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	// MaxBody is the largest body that is read, in bytes. GitHub caps its
	// payloads at 25 MB and drops what is larger; the default of other servers
	// (1 GB in GHSA-jmvp-698c-4x3w) lets a stranger fill the memory.
	MaxBody = 25_000_000

	// ReadTimeout is how long a sender may take for its body. GitHub itself gives
	// up a delivery after 10 s.
	ReadTimeout = 15 * time.Second

	// firstReadSize is the first buffer's size; most deliveries fit.
	firstReadSize = 16 << 10

	// RetryAfter is what a sender is told to wait when there is no room or the
	// event couldn't be written down. Neither GitHub nor Gitea retries by itself:
	// it is for the person or proxy in between, and for redeliveries.
	RetryAfter = 5 * time.Second
)

// Refusal is why a delivery was not taken. Reason is safe to show to the sender:
// it holds nothing of the request and no secret.
type Refusal struct {
	Status  int    // HTTP status
	Outcome string // one of the Outcome constants
	Reason  string // what is wrong and what to do
}

func (r *Refusal) Error() string { return r.Reason }

// Receiver verifies and parses the deliveries of one forge. Safe for concurrent
// use.
type Receiver struct {
	dialect dialect
	secrets [][]byte
	budget  *Budget
}

// New makes the receiver for a forge type. A delivery signed with any of the
// secrets is authentic, so that a secret can be changed without losing
// deliveries; there must be at least one, and none may be empty. budget is
// shared by all receivers of a process; nil gives this one its own of
// DefaultBudget bytes.
func New(forgeType string, secrets [][]byte, budget *Budget) (*Receiver, error) {
	d, err := dialectOf(forgeType)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("a webhook receiver for %s needs at least one secret", forgeType)
	}
	r := &Receiver{dialect: d, budget: budget}
	for i, s := range secrets {
		if len(s) == 0 {
			return nil, fmt.Errorf("webhook secret %d for %s is empty", i+1, forgeType)
		}
		r.secrets = append(r.secrets, append([]byte(nil), s...))
	}
	if r.budget == nil {
		r.budget = &Budget{max: DefaultBudget}
	}
	return r, nil
}

// Read verifies a delivery and parses it. w is only used to bound the time that
// reading takes and its size; nothing is written to it. The body is not kept. Exactly one of
// the results is nil.
func (r *Receiver) Read(w http.ResponseWriter, req *http.Request) (*Event, *Refusal) {
	if req.Method != http.MethodPost {
		return nil, &Refusal{http.StatusMethodNotAllowed, OutcomeMalformed, "deliveries are POSTed"}
	}
	if req.ContentLength > MaxBody {
		return nil, newTooLargeRefusal()
	}
	form, refusal := r.isForm(req.Header)
	if refusal != nil {
		return nil, refusal
	}
	sum, ok := decodeSignature(r.dialect.signature(req.Header))
	if !ok {
		return nil, newUnsignedRefusal()
	}

	// Not every ResponseWriter has deadlines (recorders don't); the server's own then hold.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(ReadTimeout))
	buf := &bodyBuffer{budget: r.budget}
	defer buf.release()
	if refusal := buf.readBody(http.MaxBytesReader(w, req.Body, MaxBody), req.ContentLength); refusal != nil {
		return nil, refusal
	}
	if !verifySignature(r.secrets, buf.data, sum) {
		return nil, newUnsignedRefusal()
	}

	// From here on the sender knows a secret.
	delivery, name := r.dialect.delivery(req.Header), r.dialect.eventName(req.Header)
	if delivery == "" {
		return nil, newMalformedRefusal("the delivery's id is missing from its headers")
	}
	if name == "" {
		return nil, newMalformedRefusal("the event's name is missing from its headers")
	}
	body := buf.data
	if form {
		if !buf.reserveBytes(len(body)) {
			return nil, newBusyRefusal()
		}
		values, err := url.ParseQuery(string(body))
		if err != nil || !values.Has("payload") {
			return nil, newMalformedRefusal("the form has no readable payload field")
		}
		body = []byte(values.Get("payload"))
	}
	e, err := r.dialect.parseEvent(delivery, name, body)
	if err != nil {
		return nil, newMalformedRefusal(err.Error())
	}
	return e, nil
}

// isForm tells the two content types apart that forges send.
func (r *Receiver) isForm(h http.Header) (bool, *Refusal) {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		return false, nil
	case err == nil && kind == "application/x-www-form-urlencoded" && r.dialect.forms:
		return true, nil
	default:
		return false, &Refusal{http.StatusUnsupportedMediaType, OutcomeMalformed, "set the webhook's content type to application/json"}
	}
}

func newTooLargeRefusal() *Refusal {
	return &Refusal{http.StatusRequestEntityTooLarge, OutcomeTooLarge, fmt.Sprintf("the body is larger than %d bytes", MaxBody)}
}

// newUnsignedRefusal is the one answer to every delivery that can't be trusted: it doesn't
// say whether the signature was missing, unreadable or wrong.
func newUnsignedRefusal() *Refusal {
	return &Refusal{http.StatusUnauthorized, OutcomeUnauthenticated, "the signature is missing or made with another secret"}
}

func newMalformedRefusal(reason string) *Refusal {
	return &Refusal{http.StatusBadRequest, OutcomeMalformed, reason}
}

func newBusyRefusal() *Refusal {
	return &Refusal{http.StatusServiceUnavailable, OutcomeBusy, "too many deliveries at once; try again"}
}

// bodyBuffer is a body in memory with the room it takes in the budget.
type bodyBuffer struct {
	budget   *Budget
	reserved int
	data     []byte
}

// reserveBytes takes room for n further bytes.
func (b *bodyBuffer) reserveBytes(n int) bool {
	if !b.budget.reserveBytes(n) {
		return false
	}
	b.reserved += n
	return true
}

// release gives all room back; the data must not be used afterwards.
func (b *bodyBuffer) release() {
	b.budget.releaseBytes(b.reserved)
	b.reserved, b.data = 0, nil
}

// readBody reads a body to its end. announced is the Content-Length, negative when
// it isn't known; room for it is taken only as bytes come.
func (b *bodyBuffer) readBody(body io.Reader, announced int64) *Refusal {
	size := firstReadSize
	if announced >= 0 && announced < firstReadSize {
		size = int(announced) + 1 // the one shows the end
	}
	for ; ; size = 2 * cap(b.data) {
		if len(b.data) == cap(b.data) && !b.grow(min(size, MaxBody+1)) {
			return newBusyRefusal()
		}
		n, err := body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &tooLarge):
			return newTooLargeRefusal()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return &Refusal{http.StatusRequestTimeout, OutcomeMalformed, "the body took too long to arrive"}
		case err != nil:
			return newMalformedRefusal("the body ended too early")
		}
	}
}

// grow gives the buffer another size; false when there is no room. While it
// copies, both buffers count.
func (b *bodyBuffer) grow(size int) bool {
	if !b.reserveBytes(size) {
		return false
	}
	old := cap(b.data)
	b.data = append(make([]byte, 0, size), b.data...)
	b.budget.releaseBytes(old)
	b.reserved -= old
	return true
}
