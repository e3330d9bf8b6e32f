package console

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// roleFor is the least role that a verb needs. What an operator may do to an
// environment with an approvals gate is for the Command to say.
func roleFor(verb string) string {
	if command.Needs(verb) == command.NeedBreakGlass {
		return command.RoleBreakGlass
	}
	return command.RoleOperator
}

// onPipeline takes POST /api/v1/pipelines/{pipeline}/{promote,hold,unhold}.
func (c *console) onPipeline(verb string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := c.auth.demand(w, r, roleFor(verb))
		if who == nil {
			return
		}
		var body api.OnPipeline
		if err := decode(w, r, &body, false); err != nil {
			c.failed(w, r, err)
			return
		}
		o, err := c.orderOnPipeline(r, verb, &body)
		if err != nil {
			c.failed(w, r, err)
			return
		}
		c.command(w, r, who, o)
	}
}

func (c *console) orderOnPipeline(r *http.Request, verb string, b *api.OnPipeline) (*Order, error) {
	if err := cleanBody("repository", b.Repository, "component", b.Component, "environment", b.Environment, "scope", b.Scope); err != nil {
		return nil, err
	}
	if verb == command.Promote {
		if b.Scope != "" || b.Component == "" || b.Environment == "" {
			return nil, errorf(http.StatusBadRequest, "promote needs a component and an environment, and takes no scope")
		}
	} else if err := scoped(b); err != nil {
		return nil, err
	}
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		return nil, err
	}
	p, err := c.read.pipeline(s, b.Repository, r.PathValue("pipeline"))
	if err != nil {
		return nil, err
	}
	comp := &p.Components[0] // every component has all the pipeline's environments
	if b.Component != "" {
		if comp, err = componentOf(p, b.Component); err != nil {
			return nil, err
		}
	}
	if b.Environment != "" {
		if _, err = environmentOf(comp, b.Environment); err != nil {
			return nil, err
		}
	}
	return &Order{Repo: p.Repository, Pipeline: p.Name, Component: b.Component, Environment: b.Environment, Verb: verb, Scope: b.Scope, Reason: b.Reason}, nil
}

// scoped fills in a hold's scope and refuses what contradicts it.
func scoped(b *api.OnPipeline) error {
	if b.Scope == "" {
		switch {
		case b.Component != "" && b.Environment != "":
			return errorf(http.StatusBadRequest, "a hold is on a component in all its environments or on an environment with all its components: name one of them")
		case b.Component != "":
			b.Scope = command.ScopeComponent
		case b.Environment != "":
			b.Scope = command.ScopeEnvironment
		default:
			return errorf(http.StatusBadRequest, "say what it is about: a component, an environment, or \"scope\": \"pipeline\"")
		}
	}
	switch b.Scope {
	case command.ScopeComponent:
		if b.Component == "" || b.Environment != "" {
			return errorf(http.StatusBadRequest, "the scope component needs a component and covers all its environments")
		}
	case command.ScopeEnvironment:
		if b.Environment == "" || b.Component != "" {
			return errorf(http.StatusBadRequest, "the scope environment needs an environment and covers all its components")
		}
	case command.ScopePipeline:
		if b.Environment != "" || b.Component != "" {
			return errorf(http.StatusBadRequest, "the scope pipeline takes neither a component nor an environment")
		}
	default:
		return errorf(http.StatusBadRequest, "the scope is component, environment or pipeline, not %.40q", b.Scope)
	}
	return nil
}

// onPromotion takes POST /api/v1/promotions/{id}/{hold,unhold,retry,revert,skip}.
func (c *console) onPromotion(verb string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := c.auth.demand(w, r, roleFor(verb))
		if who == nil {
			return
		}
		if verb == command.Skip {
			fail(w, http.StatusNotImplemented, "skip is not supported yet")
			return
		}
		var body api.OnPromotion
		if err := decode(w, r, &body, true); err != nil {
			c.failed(w, r, err)
			return
		}
		o, err := c.orderOnPromotion(r, verb, &body)
		if err != nil {
			c.failed(w, r, err)
			return
		}
		c.command(w, r, who, o)
	}
}

func (c *console) orderOnPromotion(r *http.Request, verb string, b *api.OnPromotion) (*Order, error) {
	id, err := idOf(r)
	if err != nil {
		return nil, err
	}
	if b.Gate != "" {
		return nil, errorf(http.StatusBadRequest, "%s takes no gate", verb)
	}
	row, ok, err := c.o.Store.Promotion(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errorf(http.StatusNotFound, "there is no promotion %d", id)
	}
	if row.Pull == 0 {
		return nil, errorf(http.StatusConflict, "the promotion %d has no pull request that could be meant", id)
	}
	o := &Order{Repo: row.Repo, Pipeline: row.Pipeline, Component: row.Component, Environment: row.Environment, Pull: row.Pull, Verb: verb, Reason: b.Reason}
	if verb == command.Hold || verb == command.Unhold {
		o.Scope = command.ScopePR
	}
	return o, nil
}

// cleanBody checks pairs of a key and its value.
func cleanBody(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := clean(pairs[i+1], maxValue); err != nil {
			return errorf(http.StatusBadRequest, "%s %v", pairs[i], err)
		}
	}
	return nil
}

// command hands a well-formed order over and answers what came of it.
func (c *console) command(w http.ResponseWriter, r *http.Request, who *holder, o *Order) {
	// What a comment couldn't say, the API doesn't take either.
	if err := (command.Command{Verb: o.Verb, Scope: o.Scope, Environment: o.Environment, Reason: o.Reason}).Check(); err != nil {
		fail(w, http.StatusBadRequest, "%s", err)
		return
	}
	source, err := sourceOf(r, who)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	o.By, o.Role, o.Via, o.Source = who.name, who.role, "api", source
	if c.o.Command == nil {
		c.failed(w, r, ErrNotReady)
		return
	}
	text, err := c.o.Command(r.Context(), *o)
	var refusal *Refusal
	switch {
	case err == nil:
		if text == "" {
			text = o.Verb + " was taken; what comes of it shows in the console"
		}
		answer(w, http.StatusOK, api.Answer{Answer: text})
	case errors.As(err, &refusal):
		fail(w, http.StatusConflict, "%s", refusal.Reason)
	case errors.Is(err, ErrNotReady):
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, "%s", err)
	default:
		c.o.Log.Error("a command could not be carried out", zap.String("verb", o.Verb), zap.String("by", o.By),
			zap.String("pipeline", o.Pipeline), zap.String("component", o.Component), zap.String("environment", o.Environment), zap.Error(err))
		fail(w, http.StatusInternalServerError, "%s could not be carried out: %v", o.Verb, err)
	}
}

// maxKey bounds an Idempotency-Key.
const maxKey = 128

// sourceOf names the request. A client that isn't sure whether its command
// arrived sends it again with the same Idempotency-Key.
func sourceOf(r *http.Request, who *holder) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if err := clean(key, maxKey); err != nil {
		return "", errorf(http.StatusBadRequest, "the Idempotency-Key %v", err)
	}
	if key == "" {
		var b [12]byte
		if _, err := rand.Read(b[:]); err != nil {
			return "", fmt.Errorf("name the request: %w", err)
		}
		key = hex.EncodeToString(b[:])
	}
	return "api " + who.name + " " + key, nil
}
