package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// roleFor is the least role that a verb needs. The Command decides what an operator may do to an
// environment with an approvals gate.
func roleFor(verb command.Verb) string {
	if command.Needs(verb) == command.NeedBreakGlass {
		return command.RoleBreakGlass
	}
	return command.RoleOperator
}

// handlePipelineCommand takes POST /api/v1/pipelines/{pipeline}/{promote,hold,unhold}.
func (se *server) handlePipelineCommand(verb command.Verb) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := se.auth.requireRole(w, r, roleFor(verb))
		if caller == nil {
			return
		}
		var body api.PipelineCommand
		if err := decodeBody(w, r, &body, false); err != nil {
			se.writeError(w, r, err)
			return
		}
		r = se.withReader(r, caller, nil)
		o, err := se.parsePipelineCommand(r, verb, &body)
		if err != nil {
			se.writeError(w, r, err)
			return
		}
		se.runCommand(w, r, caller, o)
	}
}

func (se *server) parsePipelineCommand(r *http.Request, verb command.Verb, b *api.PipelineCommand) (*Command, error) {
	if err := checkBodyFields("repository", b.Repository, "component", b.Component, "environment", b.Environment, "scope",
		b.Scope); err != nil {
		return nil, err
	}
	if verb == command.Promote {
		if b.Scope != "" || b.Component == "" || b.Environment == "" {
			return nil, apiErrorf(http.StatusBadRequest, "promote needs a component and an environment, and takes no scope")
		}
	} else if err := resolveScope(b); err != nil {
		return nil, err
	}
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		return nil, err
	}
	p, err := se.reader.findPipeline(s, b.Repository, r.PathValue("pipeline"))
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
	o := &Command{Repo: p.Repository, Pipeline: p.Name, Component: b.Component, Environment: b.Environment, Verb: verb, Scope: b.Scope,
		Reverts: b.Reverts, Reason: b.Reason}
	return o, o.setEnd(b.For, b.Until)
}

// resolveScope fills in a hold's scope and refuses what contradicts it.
func resolveScope(b *api.PipelineCommand) error {
	if b.Scope == "" {
		switch {
		case b.Component != "" && b.Environment != "":
			return apiErrorf(http.StatusBadRequest, "a hold is on a component in all its environments or on an environment with all its "+
				"components: name one of them")
		case b.Component != "":
			b.Scope = command.ScopeComponent
		case b.Environment != "":
			b.Scope = command.ScopeEnvironment
		default:
			return apiErrorf(http.StatusBadRequest, "say what it is about: a component, an environment, or \"scope\": \"pipeline\"")
		}
	}
	switch b.Scope {
	case command.ScopeComponent:
		if b.Component == "" || b.Environment != "" {
			return apiErrorf(http.StatusBadRequest, "the scope component needs a component and covers all its environments")
		}
	case command.ScopeEnvironment:
		if b.Environment == "" || b.Component != "" {
			return apiErrorf(http.StatusBadRequest, "the scope environment needs an environment and covers all its components")
		}
	case command.ScopePipeline:
		if b.Environment != "" || b.Component != "" {
			return apiErrorf(http.StatusBadRequest, "the scope pipeline takes neither a component nor an environment")
		}
	default:
		return apiErrorf(http.StatusBadRequest, "the scope is component, environment or pipeline, not %.40q", b.Scope)
	}
	return nil
}

// handlePromotionCommand takes POST /api/v1/promotions/{id}/{hold,unhold,retry,revert,skip}.
func (se *server) handlePromotionCommand(verb command.Verb) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := se.auth.requireRole(w, r, roleFor(verb))
		if caller == nil {
			return
		}
		var body api.PromotionCommand
		if err := decodeBody(w, r, &body, true); err != nil {
			se.writeError(w, r, err)
			return
		}
		r = se.withReader(r, caller, nil)
		o, err := se.parsePromotionCommand(r, verb, &body)
		if err != nil {
			se.writeError(w, r, err)
			return
		}
		se.runCommand(w, r, caller, o)
	}
}

func (se *server) parsePromotionCommand(r *http.Request, verb command.Verb, b *api.PromotionCommand) (*Command, error) {
	id, err := parsePromotionID(r)
	if err != nil {
		return nil, err
	}
	if b.Gate != "" && verb != command.Skip {
		return nil, apiErrorf(http.StatusBadRequest, "%s takes no gate", verb)
	}
	if b.Head != "" && verb != command.Skip {
		return nil, apiErrorf(http.StatusBadRequest, "%s takes no head", verb)
	}
	if b.Head != "" && (len(b.Head) < 7 || len(b.Head) > 64 || strings.Trim(b.Head, "0123456789abcdefABCDEF") != "") {
		return nil, apiErrorf(http.StatusBadRequest, "the head %.70q is not a commit; write its hex digits, at least 7 of them", b.Head)
	}
	row, ok, err := se.records.Promotion(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, apiErrorf(http.StatusNotFound, "there is no promotion %d", id)
	}
	if row.Pull == 0 {
		return nil, apiErrorf(http.StatusConflict, "the promotion %d has no pull request that could be meant", id)
	}
	o := &Command{Repo: row.Repo, Pipeline: row.Pipeline, Component: row.Component, Environment: row.Environment, Pull: row.Pull,
		Verb: verb, Gate: b.Gate, Head: b.Head, Reason: b.Reason}
	if verb == command.Hold || verb == command.Unhold {
		o.Scope = command.ScopePR
	}
	return o, o.setEnd(b.For, b.Until)
}

// setEnd sets a hold's end as a body has it.
func (c *Command) setEnd(lasts, until string) (err error) {
	if c.For, c.Until, err = command.ParseHoldEnd(lasts, until); err != nil {
		return apiErrorf(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// Grammar is the command as a comment would have said it.
func (c *Command) Grammar() command.Command {
	return command.Command{Verb: c.Verb, Scope: c.Scope, Reverts: c.Reverts, For: c.For, Until: c.Until, Environment: c.Environment,
		Gate: c.Gate, Reason: c.Reason}
}

// checkBodyFields checks pairs of a key and its value.
func checkBodyFields(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := checkText(pairs[i+1], maxValue); err != nil {
			return apiErrorf(http.StatusBadRequest, "%s %v", pairs[i], err)
		}
	}
	return nil
}

// runCommand hands a well-formed order over and answers what came of it.
func (se *server) runCommand(w http.ResponseWriter, r *http.Request, caller *tokenHolder, o *Command) {
	source, err := commandSource(r, caller)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	o.By, o.Role, o.Via, o.Source = caller.name, caller.role, "api", source
	text, err := se.giveCommand(r.Context(), o)
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, api.CommandReply{Text: text})
}

// giveCommand hands a command over, whoever gave it, and returns its result. The error knows its
// answer.
func (se *server) giveCommand(ctx context.Context, o *Command) (string, error) {
	// A command that a comment couldn't have is refused from anybody.
	if err := o.Grammar().Check(); err != nil {
		return "", apiErrorf(http.StatusBadRequest, "%s", err)
	}
	if se.opts.Command == nil {
		return "", apiErrorf(http.StatusServiceUnavailable, "%s", ErrNotReady)
	}
	text, err := se.opts.Command(ctx, *o)
	var refusal *Refusal
	switch {
	case err == nil:
		if text == "" {
			text = string(o.Verb) + " was taken; what comes of it shows in the console"
		}
		return text, nil
	case errors.As(err, &refusal):
		return "", apiErrorf(http.StatusConflict, "%s", refusal.Reason)
	case errors.Is(err, ErrNotReady):
		return "", apiErrorf(http.StatusServiceUnavailable, "%s", err)
	}
	se.opts.Log.Error("a command could not be carried out", zap.String("verb", string(o.Verb)), zap.String("by", o.By),
		zap.String("pipeline", o.Pipeline), zap.String("component", o.Component), zap.String("environment", o.Environment), zap.Error(err))
	return "", apiErrorf(http.StatusInternalServerError, "it isn't known whether %s was carried out: %v", o.Verb, err)
}

// maxKey bounds an Idempotency-Key.
const maxKey = 128

// commandSource names the request. A client that isn't sure whether its command
// arrived sends it again with the same Idempotency-Key.
func commandSource(r *http.Request, caller *tokenHolder) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if err := checkText(key, maxKey); err != nil {
		return "", apiErrorf(http.StatusBadRequest, "the Idempotency-Key %v", err)
	}
	if key == "" {
		var b [12]byte
		if _, err := rand.Read(b[:]); err != nil {
			return "", fmt.Errorf("name the request: %w", err)
		}
		key = hex.EncodeToString(b[:])
	}
	return "api " + caller.name + " " + key, nil
}
