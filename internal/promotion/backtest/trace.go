package backtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// Rules are what decisions were made by besides the facts.
type Rules struct {
	Pipeline *pipeline.Pipeline `json:"pipeline"`
	// Floor are the gates that the server's file demands, by environment.
	Floor map[string][]policies.Gate `json:"floor,omitempty"`
}

// RulesOf are the rules that are in force in a component's facts; without a pipeline where no good one
// is known.
func RulesOf(c *promotion.ComponentFacts) Rules {
	r := Rules{Pipeline: c.Pipeline, Floor: map[string][]policies.Gate{}}
	for i := range c.Envs {
		if e := &c.Envs[i]; len(e.Floor) > 0 {
			r.Floor[e.Name] = e.Floor
		}
	}
	return r
}

// Digest is by which a Record has the rules: 32 hex digits of the sha256 of their JSON. An error says
// that they can't be written as JSON.
func (r Rules) Digest() (string, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write the rules as JSON: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// gatesOf are an environment's gates, raised to the floor.
func (r Rules) gatesOf(e *pipeline.Environment) []policies.Gate {
	gates := append([]policies.Gate(nil), e.Gates...)
	for _, f := range r.Floor[e.Name] {
		if f.Approvals == nil {
			gates = append(gates, f)
		}
	}
	for _, f := range r.Floor[e.Name] {
		if f.Approvals != nil {
			gates = policies.ApplyFloor(gates, f.Approvals)
		}
	}
	return gates
}

// Trace is what happened to one component, oldest first. The first change leads from nothing to what
// was known then.
type Trace struct {
	Unit    promotion.Unit `json:"unit"`
	Changes []Change       `json:"changes"`
}

// Record is what happened to the components of one pipeline.
type Record struct {
	Rules  map[string]Rules `json:"rules"` // by digest
	Traces []Trace          `json:"traces"`
	// Until is when the record was read: nothing is known of later times. Zero: the last change's time.
	Until time.Time `json:"until,omitzero"`
	// Unknown says of a record that wasn't kept at the time, but made from what is left, what it
	// doesn't have.
	Unknown []string `json:"unknown,omitempty"`
}

// errUnordered says that a trace isn't oldest first.
var errUnordered = errors.New("the changes aren't oldest first")

// States walks through what was known: the time of each change with the state from then on, which
// nobody changes. It ends with the first error, which says at which change and what is wrong with it.
func (t *Trace) States() iter.Seq2[time.Time, stateOrError] {
	return func(yield func(time.Time, stateOrError) bool) {
		var last time.Time
		state := &State{}
		for i, c := range t.Changes {
			next := *state
			err := applyPatch(&next, c.Patch)
			if err == nil && c.At.Before(last) {
				err = errUnordered
			}
			if err != nil {
				yield(c.At, stateOrError{err: fmt.Errorf("%s, change %d: %w", t.Unit.Component, i+1, err)})
				return
			}
			state, last = &next, c.At
			if !yield(c.At, stateOrError{state: state}) {
				return
			}
		}
	}
}

type stateOrError struct {
	state *State
	err   error
}
