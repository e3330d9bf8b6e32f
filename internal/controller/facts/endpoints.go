package facts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

const (
	// maxEndpointCalls bounds the requests of one evaluation; what is left comes with the next.
	maxEndpointCalls = 10
	// maxEndpointPause bounds for how long an endpoint may wish to be left alone.
	maxEndpointPause = time.Hour
)

// EndpointSource asks endpoints by their names; Endpoints of internal/controller/gateclient
// is one, and says what the results mean.
type EndpointSource interface {
	Call(ctx context.Context, name, path string, every, timeout time.Duration, r policies.EndpointRequest) (a policies.EndpointAnswer,
		again time.Time, err error)
}

// endpointState is the state of one request, which may be sent many times. It is in the store
// alone, so that it goes with the database, and the endpoint is asked anew.
type endpointState struct {
	ID       string           `json:"id"`
	Endpoint string           `json:"endpoint"`
	Unit     string           `json:"unit"` // the key of who waits for it
	Attempts int              `json:"attempts"`
	CalledAt time.Time        `json:"calledAt,omitzero"` // when it was asked last and answered
	NextAt   time.Time        `json:"nextAt,omitzero"`
	Outcome  policies.Outcome `json:"outcome,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	At       time.Time        `json:"at,omitzero"`        // of the outcome
	Callback bool             `json:"callback,omitempty"` // the outcome came by a callback
	SignedAt time.Time        `json:"signedAt,omitzero"`  // of the last callback that counted
}

// EndpointRecord is that an endpoint was asked, to be kept.
type EndpointRecord struct {
	state  endpointState // as it was before
	pull   record.Pull   // by which it is found again
	answer policies.EndpointAnswer
	nextAt time.Time
	failed bool // there was no answer
}

// endpointStates are what endpoints said, by the request's name: a callback knows nothing else.
var endpointStates = record.Declare[record.Named, endpointState](record.Declaration{
	Name: "endpoint-state", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "What an endpoint of a gate said, by the request's name. Without it the endpoint is asked again.",
})

// endpointRequests find a pull request's requests.
var endpointRequests = record.Declare[record.InPull, bool](record.Declaration{
	Name: "endpoint-request", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "The names of the requests to endpoints about the pull request.",
})

// endpointID names a request: the same for the same release, environment and head.
func endpointID(u promotion.Unit, env string, p *promotion.Pull, h *policies.HTTP) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{u.Repo, u.Pipeline, u.Component, env, fmt.Sprint(p.Number), p.Release, p.Head,
		h.Endpoint, h.Path}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// readEndpointState reads what the store has; what can't be read is nothing.
func readEndpointState(ctx context.Context, r record.Reader, id string) (s endpointState, found bool, err error) {
	s, found, err = endpointStates.Get(ctx, r, record.Named(id))
	if s.ID != id {
		return endpointState{ID: id}, false, err
	}
	return s, found, err
}

// applyAnswer takes in the result of a request. A fail is final, and a later callback is newer. An
// answer that nothing is decided withdraws only an earlier answer: endpoints that answer by
// callbacks always answer so.
func (e *endpointState) applyAnswer(a policies.EndpointAnswer, nextAt time.Time, failed bool) {
	e.Attempts++
	if failed {
		return
	}
	e.forgetFuture(a.At)
	if a.At.After(e.CalledAt) {
		e.CalledAt, e.NextAt = a.At, nextAt
	}
	switch {
	case e.Outcome == policies.Fail:
	case e.Callback && (a.Outcome == "" || !e.At.Before(a.At)):
	case a.At.Before(e.At): // another process's is newer
	default:
		e.Outcome, e.Reason, e.Until, e.At, e.Callback = a.Outcome, a.Reason, a.Until, a.At, false
	}
}

// forgetFuture forgets records of a clock that was ahead: until that time comes no answer would be
// newer, and no endpoint would be asked. A fail is final all the same.
func (e *endpointState) forgetFuture(now time.Time) {
	isAhead := func(at time.Time) bool { return at.After(now.Add(policies.MaxClockAhead)) }
	if isAhead(e.CalledAt) {
		e.CalledAt, e.NextAt = time.Time{}, time.Time{}
	}
	if isAhead(e.At) && e.Outcome != policies.Fail {
		e.Outcome, e.Reason, e.Until, e.At, e.Callback = "", "", time.Time{}, time.Time{}, false
	}
}

// These are the faults of a callback.
var (
	ErrNoRequest     = errors.New("no open promotion waits for an answer to this request; it may not be known yet, or not any more")
	ErrStaleCallback = errors.New("something newer is known: sign an answer anew, at a later second")
	ErrFinal         = errors.New("it has failed, which is final for this head of the pull request; a new head is a new request, and " +
		"/liftlock retry asks again")
)

// applyCallback takes in a callback that was signed at a.At. The same one again changes
// nothing; one that is not newer than what is known is an error, because it may be repeated
// by somebody who saw it.
func (e *endpointState) applyCallback(a policies.EndpointAnswer) (changed bool, err error) {
	same := e.Callback && e.Outcome == a.Outcome && e.Reason == a.Reason && e.Until.Equal(a.Until)
	switch {
	case a.At.Equal(e.SignedAt) && same:
		return false, nil
	case e.Outcome == policies.Fail:
		return false, ErrFinal
	case !a.At.After(e.SignedAt), a.At.Before(e.At.Truncate(time.Second)):
		return false, ErrStaleCallback
	}
	e.Outcome, e.Reason, e.Until, e.At, e.SignedAt, e.Callback = a.Outcome, a.Reason, a.Until, a.At, a.At, true
	return true, nil
}

// Store keeps how asking ended, with what came meanwhile.
func (e *EndpointRecord) Store(ctx context.Context, tx *store.Tx) error {
	s, _, err := readEndpointState(ctx, tx, e.state.ID)
	if err != nil {
		return err
	}
	s.Endpoint, s.Unit = e.state.Endpoint, e.state.Unit
	s.applyAnswer(e.answer, e.nextAt, e.failed)
	if err := endpointStates.Put(ctx, tx, record.Named(s.ID), s); err != nil {
		return err
	}
	return endpointRequests.Put(ctx, tx, record.InPull{Pull: e.pull, Name: s.ID}, true)
}

// ForgetEndpoints forgets what endpoints said of a pull request.
func ForgetEndpoints(ctx context.Context, tx *store.Tx, repo string, pull int) error {
	all, err := endpointRequests.List(ctx, tx, record.Within{Repo: repo, Pull: pull})
	for i := range all {
		about := all[i].About
		err = cmp.Or(err, endpointRequests.Drop(ctx, tx, about), endpointStates.Drop(ctx, tx, record.Named(about.Name)))
	}
	return err
}

// CallbackStore is where callbacks are written: *store.Store.
type CallbackStore interface {
	Tx(ctx context.Context, name string, f func(tx *store.Tx) error) error
}

// AcceptCallback takes in an endpoint's later answer, whose signature was verified, and
// wakes who waits for it, in one transaction. ErrNoRequest, ErrStaleCallback and ErrFinal
// say why it doesn't count.
func AcceptCallback(ctx context.Context, st CallbackStore, endpoint string, a policies.EndpointAnswer) error {
	return st.Tx(ctx, "callback", func(tx *store.Tx) error {
		s, ok, err := readEndpointState(ctx, tx, a.ID)
		if err != nil {
			return err
		}
		if !ok || s.Endpoint != endpoint || s.Unit == "" {
			return ErrNoRequest
		}
		changed, err := s.applyCallback(a)
		if err != nil || !changed {
			return err
		}
		if err := endpointStates.Put(ctx, tx, record.Named(s.ID), s); err != nil {
			return err
		}
		return tx.WakeAs(ctx, store.Urgent, s.Unit)
	})
}

// endpointFacts fills in what endpoints say of an open promotion, as the component sees it,
// that gates of the environment ask.
func (ga *Gatherer) endpointFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, p *promotion.Pull) error {
	known := map[string]bool{}
	for _, g := range env.Gates {
		if g.HTTP == nil {
			continue
		}
		id := endpointID(c.Facts.Unit, env.Name, p, g.HTTP)
		if known[id] {
			continue
		}
		known[id] = true
		s, _, err := readEndpointState(ctx, ga.opts.Store, id)
		if err != nil {
			return err
		}
		s.forgetFuture(c.Facts.Now)
		s.Endpoint, s.Unit = g.HTTP.Endpoint, wake.ForUnit(c.Evaluation.Unit).String()
		reading := policies.EndpointReading{Endpoint: g.HTTP.Endpoint, Path: g.HTTP.Path}
		if err := ga.callEndpoint(ctx, c, env, p, g.HTTP, &s, &reading); err != nil {
			return err
		}
		reading.Answered, reading.Outcome, reading.Reason, reading.At, reading.Until = !s.CalledAt.IsZero(), s.Outcome, s.Reason,
			s.At, s.Until
		p.Review.Endpoints = append(p.Review.Endpoints, reading)
	}
	return nil
}

// callEndpoint asks where it is time, and takes the answer in. The error is the context's.
func (ga *Gatherer) callEndpoint(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, p *promotion.Pull, h *policies.HTTP,
	s *endpointState, r *policies.EndpointReading) error {
	now := c.Facts.Now
	r.NextAt = s.NextAt
	expired := s.Outcome == policies.Pass && !now.Before(s.At.Add(h.MaxAge)) && s.CalledAt.Before(s.At.Add(h.MaxAge))
	outdated := c.Fresh && now.Sub(s.CalledAt) > c.Evaluation.freshAge()
	due := s.CalledAt.IsZero() || !now.Before(s.NextAt) || expired || outdated
	switch {
	case s.Outcome == policies.Fail || !due:
		return nil
	case ga.opts.Endpoints == nil:
		r.Err = "no endpoint is asked from here"
		return nil
	case p.Review.Promotion == nil || p.Review.Promotion.Release == nil:
		r.Err = "what is promoted can't be read"
		if known := p.Review.Promotion; known != nil {
			r.Err += ": " + known.ReleaseErr
		}
		return nil
	case c.Evaluation.endpointCalls >= maxEndpointCalls:
		if r.NextAt = now.Add(metricCallDelay); c.Fresh {
			r.Err = "others are asked first; its turn comes"
		}
		return nil
	}
	c.Evaluation.endpointCalls++
	request := policies.EndpointRequest{ID: s.ID, Repository: c.Facts.Unit.Repo, Pipeline: c.Facts.Unit.Pipeline, Environment: env.Name,
		Component: c.Facts.Unit.Component,
		Release:   p.Review.Promotion.Release, Pull: int64(p.Number), PullURL: p.URL, Head: p.Head, Targets: []policies.Target{},
		Attempt: s.Attempts + 1}
	if at := c.Unit.Envs[env.Name]; at != nil {
		for i := range at.Targets {
			request.Targets = append(request.Targets, policies.Target{Name: at.Targets[i].Name,
				Cluster:   ga.ArgoCDs.ClusterOf(&at.Targets[i]),
				Namespace: at.Targets[i].DestNS})
		}
	}
	record := EndpointRecord{state: *s, pull: record.OfPull(c.Facts.Unit.Repo, p.Number)}
	a, again, err := ga.opts.Endpoints.Call(ctx, h.Endpoint, h.Path, h.Every, h.Timeout, request)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.Err, r.NextAt, record.failed = err.Error(), again, true
		if again.IsZero() {
			return nil // no endpoint was asked
		}
	case a.At.IsZero():
		if r.NextAt = again; c.Fresh {
			r.Err = "it is asked as often as it may be; its turn comes" // a merge needs what is so now
		}
		return nil
	default:
		record.answer, record.nextAt = a, nextEndpointCall(a, again, h.Every)
		r.NextAt = record.nextAt
	}
	s.applyAnswer(record.answer, record.nextAt, record.failed)
	c.Endpoints = append(c.Endpoints, record)
	return nil
}

// nextEndpointCall is when an endpoint that answered is asked again: after the gate's
// interval, or later where it wishes so or says that nothing changes before.
func nextEndpointCall(a policies.EndpointAnswer, notBefore time.Time, every time.Duration) time.Time {
	next := a.At.Add(every)
	if notBefore.After(next) {
		next = notBefore
	}
	if a.Outcome == policies.Wait && a.Until.After(next) {
		next = a.Until
	}
	if last := a.At.Add(maxEndpointPause); next.After(last) {
		next = last
	}
	return next
}
