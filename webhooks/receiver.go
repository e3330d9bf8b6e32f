package webhooks

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// RetryAfter is what a sender is told to wait when there is no room or the
// event couldn't be written down. Neither GitHub nor Gitea retries by itself:
// it is for the person or proxy in between, and for redeliveries.
const RetryAfter = 5 * time.Second

// Refusal is why a delivery was not taken. Reason is safe to show to the sender:
// it holds nothing of the request and no secret.
type Refusal struct {
	Status  int    // HTTP status
	Outcome string // one of the Outcome constants
	Reason  string // what is wrong and what to do

	// unread says that the body wasn't read to its end.
	unread bool
	// authentic says that the sender knows a secret.
	authentic bool
}

func (r *Refusal) Error() string { return r.Reason }

// Receiver verifies and parses the deliveries of one forge. Safe for concurrent
// use.
type Receiver struct {
	dialect dialect
	secrets [][]byte
	budget  *Budget
}

// New makes the receiver for a forge type. A delivery signed with any of the secrets is authentic,
// so that a secret can be changed without losing deliveries. There must be at least one, and none
// may be empty. budget is shared by all receivers of a process; nil gives this one its own, with
// production's limits.
func New(forgeType string, secrets [][]byte, budget *Budget) (*Receiver, error) {
	d, err := dialectOf(forgeType)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("a webhook receiver for %s needs at least one secret", forgeType)
	}
	if budget == nil {
		if budget, err = NewBudget(BudgetOptions{}); err != nil {
			return nil, err
		}
	}
	r := &Receiver{dialect: d, budget: budget}
	for i, s := range secrets {
		if len(s) == 0 {
			return nil, fmt.Errorf("webhook secret %d for %s is empty", i+1, forgeType)
		}
		if d.checkSecret != nil {
			if err := d.checkSecret(s); err != nil {
				return nil, fmt.Errorf("webhook secret %d for %s %w", i+1, forgeType, err)
			}
		}
		r.secrets = append(r.secrets, append([]byte(nil), s...))
	}
	return r, nil
}

// Read verifies a delivery and parses it. w is only used to bound the time that
// reading takes and its size; nothing is written to it. The body is not kept. Exactly one of
// the results is nil.
func (r *Receiver) Read(w http.ResponseWriter, req *http.Request) (*Event, *Refusal) {
	form, verify, refusal := r.checkHeaders(req)
	if refusal != nil {
		refusal.unread = true
		return nil, refusal
	}
	controller := http.NewResponseController(w)
	body := &bodyReader{pending: r.budget.admit(req, func(t time.Time) {
		_ = controller.SetReadDeadline(t) // recorders have none, and then nobody dawdles
	})}
	defer body.release()
	if refusal := body.readBody(http.MaxBytesReader(w, req.Body, MaxBody), req.ContentLength); refusal != nil {
		refusal.unread = true
		return nil, refusal
	}
	if !verify(body.data) {
		return nil, newUnsignedRefusal()
	}
	// From here on the sender knows a secret.
	body.pending.trust()
	e, refusal := r.parseBody(req.Header, body, form)
	if refusal != nil {
		refusal.authentic = true
	}
	return e, refusal
}

// checkHeaders refuses what can be told without the body, and finds what verifies that.
func (r *Receiver) checkHeaders(req *http.Request) (form bool, verify verifyBody, refusal *Refusal) {
	if req.Method != http.MethodPost {
		return false, nil, &Refusal{Status: http.StatusMethodNotAllowed, Outcome: OutcomeMalformed, Reason: "deliveries are POSTed"}
	}
	if req.ContentLength > MaxBody {
		return false, nil, newTooLargeRefusal(MaxBody)
	}
	if form, refusal = r.isForm(req.Header); refusal != nil {
		return false, nil, refusal
	}
	verify, ok := r.dialect.authenticate(r.credentials(req), r.secrets, r.budget.now())
	if !ok {
		return false, nil, newUnsignedRefusal()
	}
	return form, verify, nil
}

// credentials are the headers that a sender is known by, also where they are in the address.
func (r *Receiver) credentials(req *http.Request) http.Header {
	parameter := r.dialect.tokenParameter
	if parameter == "" || req.Header.Get("Authorization") != "" {
		return req.Header
	}
	if token := req.URL.Query().Get(parameter); token != "" {
		return http.Header{"Authorization": {token}}
	}
	return req.Header
}

// parseBody makes the event of an authentic body.
func (r *Receiver) parseBody(header http.Header, body *bodyReader, form bool) (*Event, *Refusal) {
	delivery, name := r.dialect.delivery(header, body.data), r.dialect.eventName(header)
	if delivery == "" {
		return nil, newMalformedRefusal("the delivery's id is missing from its headers")
	}
	if name == "" {
		return nil, newMalformedRefusal("the event's name is missing from its headers")
	}
	payload := body.data
	if form {
		if !body.pending.reserveMore(len(payload)) {
			return nil, newBusyRefusal()
		}
		values, err := url.ParseQuery(string(payload))
		if err != nil || !values.Has("payload") {
			return nil, newMalformedRefusal("the form has no readable payload field")
		}
		payload = []byte(values.Get("payload"))
	}
	e, err := r.dialect.parseEvent(delivery, name, payload)
	if err != nil {
		return nil, newMalformedRefusal(err.Error())
	}
	return e, nil
}

// isForm tells the two content types apart that forges send.
func (r *Receiver) isForm(h http.Header) (bool, *Refusal) {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case err == nil && (kind == "application/json" || slices.Contains(r.dialect.contentTypes, kind)):
		return false, nil
	case err == nil && kind == "application/x-www-form-urlencoded" && r.dialect.forms:
		return true, nil
	default:
		return false, &Refusal{Status: http.StatusUnsupportedMediaType, Outcome: OutcomeMalformed,
			Reason: "set the webhook's content type to application/json"}
	}
}

func newTooLargeRefusal(limit int64) *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Outcome: OutcomeTooLarge,
		Reason: fmt.Sprintf("the body is larger than %d bytes", limit)}
}

// newUnsignedRefusal is the one answer to every delivery that can't be trusted: it doesn't
// say whether the signature was missing, unreadable or wrong.
func newUnsignedRefusal() *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Outcome: OutcomeUnauthenticated,
		Reason: "the signature is missing or made with another secret"}
}

func newMalformedRefusal(reason string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Outcome: OutcomeMalformed, Reason: reason}
}

func newBusyRefusal() *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Outcome: OutcomeBusy, Reason: "too many deliveries at once; try again"}
}
