package gateclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/policies"
)

// Endpoint is a server that is asked by the gate http, and how it is reached.
type Endpoint struct {
	Name          string
	URL           string
	Secret        string // both sides sign with it
	Authorization string // the header's value; empty: none
	TLS           TLS
}

// Endpoints asks endpoints by their names. It may be used concurrently.
type Endpoints struct {
	OnCall func(Call) // is told every call that was made; set before the first one; nil: nobody is

	now         func() time.Time
	externalURL string // of this server, for callbacks; empty: none
	byName      map[string]*endpoint
	refused     *cache.Cache[string, refusedRequest] // by a request's id
}

type endpoint struct {
	o      Endpoint
	client *http.Client
	*budget
}

// refusedRequest is an answer that was none, and when the same is asked again.
type refusedRequest struct {
	err   error
	again time.Time
}

// NewEndpoints makes it. The error names the endpoint that can't be used; it doesn't dial.
func NewEndpoints(all []Endpoint, externalURL string, now func() time.Time, group *cache.Group) (*Endpoints, error) {
	e := &Endpoints{now: now, externalURL: externalURL, byName: map[string]*endpoint{},
		refused: cache.New(group, cache.Options[string, refusedRequest]{Name: "endpoint_refusals", Entries: maxRemembered})}
	for _, o := range all {
		base, err := url.Parse(o.URL)
		if err != nil || base.Host == "" || base.User != nil {
			return nil, fmt.Errorf("the endpoint %s: its url is no address of a server, or has credentials in it", o.Name)
		}
		o.URL = strings.TrimSuffix(o.URL, "/")
		client, err := newHTTPClient(o.TLS)
		if err != nil {
			return nil, fmt.Errorf("the endpoint %s: %w", o.Name, err)
		}
		e.byName[o.Name] = &endpoint{o: o, client: client, budget: newBudget()}
	}
	return e, nil
}

// CallbackPath is where an endpoint's later answer to a request comes in.
func CallbackPath(id, endpoint string) string {
	return "/api/v1/promotions/" + id + "/gates/" + endpoint
}

// Secret is what an endpoint signs with; nil where the server's file has none of that name.
func (e *Endpoints) Secret(name string) []byte {
	if p := e.byName[name]; p != nil {
		return []byte(p.o.Secret)
	}
	return nil
}

// Call sends a request to an endpoint, below its address at path. An answer that has no outcome
// says that it hasn't decided; one without a time is none, because the endpoint's budget is used
// up. again is when to ask again. After an error or where there was no turn it is the earliest
// time, and otherwise the endpoint's wish. It is zero where it has none. With an error, zero means
// never by itself, because the server's file has no such endpoint.
func (e *Endpoints) Call(ctx context.Context, name, path string, every, timeout time.Duration,
	r policies.EndpointRequest) (a policies.EndpointAnswer, again time.Time, err error) {
	p := e.byName[name]
	if p == nil {
		return a, time.Time{}, errors.New("the server's file has no such name under endpoints")
	}
	now := e.now()
	if until, err := p.isAway(now); err != nil {
		return a, until.Add(jitter(r.ID, busyDelay)), err
	}
	if x, ok := e.refused.Get(r.ID); ok && now.Before(x.again) && x.again.Sub(now) <= every { // for longer where the clock was ahead
		return a, x.again, x.err
	}
	done := p.begin(now)
	if done == nil {
		return a, now.Add(busyDelay + jitter(r.ID, busyDelay)), nil
	}
	defer done()
	if r.Version = 1; e.externalURL != "" {
		r.Callback = e.externalURL + CallbackPath(r.ID, name)
	}
	a, pause, err := p.post(ctx, path, timeout, now, &r)
	if e.OnCall != nil {
		call := Call{Gate: "http", Server: name, Outcome: outcomeOf(err, outcomeOfAnswer(a)), Took: e.now().Sub(now)}
		if ctx.Err() != nil {
			call.Outcome = OutcomeGivenUp
		}
		e.OnCall(call)
	}
	if ctx.Err() != nil {
		return a, now, ctx.Err() // it is we who gave up
	}
	again = p.end(e.now(), err)
	switch {
	case err == nil:
		e.refused.Remove(r.ID)
		if pause > 0 {
			again = now.Add(pause)
		}
		a.At = now
	case again.IsZero():
		again = now.Add(every)
		e.refused.Put(r.ID, refusedRequest{err: err, again: again})
	}
	return a, again, err
}

// post sends one request. The error is a *callError and shows neither address nor
// credentials; pause is when the endpoint wants to be asked again, 0: whenever.
func (e *endpoint) post(ctx context.Context, path string, timeout time.Duration, now time.Time,
	r *policies.EndpointRequest) (a policies.EndpointAnswer, pause time.Duration, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return a, 0, &callError{text: "the request can't be written: " + clipAnswer(err.Error())}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL+path, bytes.NewReader(body))
	if err != nil {
		return a, 0, &callError{text: "its url can't be used"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "liftlock")
	req.Header.Set("Idempotency-Key", r.ID)
	req.Header.Set(policies.EndpointSignature, policies.SignEndpoint([]byte(e.o.Secret), now, body))
	if e.o.Authorization != "" {
		req.Header.Set("Authorization", e.o.Authorization)
	}
	res, err := e.client.Do(req)
	if err != nil {
		return a, 0, reachError(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, policies.MaxEndpointAnswer+1))
	if err != nil {
		return a, 0, reachError(err)
	}
	pause = parseRetryAfter(res.Header.Get("Retry-After"), now)
	switch {
	case res.StatusCode == http.StatusAccepted:
		return policies.EndpointAnswer{ID: r.ID}, pause, nil
	case res.StatusCode != http.StatusOK:
		err := statusError(res, string(answer), now)
		var failed *callError
		if errors.As(err, &failed) && res.StatusCode >= 400 && !failed.away {
			failed.text = fmt.Sprintf("it refuses with %d: %s", res.StatusCode, cmp.Or(clipAnswer(string(answer)), "nothing"))
		}
		return a, 0, err
	}
	if a, err = policies.ParseEndpointAnswer(answer, r.ID); err != nil {
		return a, 0, &callError{text: err.Error()}
	}
	return a, pause, nil
}
