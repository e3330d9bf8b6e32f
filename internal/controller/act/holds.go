package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Hold is a hold on more than a pull request that is set or lifted.
type Hold struct {
	Scope       string // component, environment or pipeline
	Environment string
	By, Reason  string
	Via         string    // api: By is the name of one of its tokens
	Reverts     bool      // reverts stand still too
	Until       time.Time // zero: until somebody lifts it
	Set         bool      // false: lift
}

// holdTries bounds how often a hold is written again when somebody else wrote
// the state branch at the same moment.
const holdTries = 5

// SetHold writes or removes a hold's file on the state branch, one commit each, and gives
// the hold that stands then. One that stands already is never made weaker: the later
// end counts, and it stays that of whoever set it first.
func (a *Actor) SetHold(ctx context.Context, r *facts.Repository, u promotion.Unit, h Hold) (active promotion.Hold, err error) {
	file, err := holdFile(u, h.Scope, h.Environment)
	if err != nil {
		return active, err
	}
	for range holdTries {
		if active, err = a.writeHold(ctx, r, file, h); !errors.Is(err, git.ErrLeaseLost) {
			return active, err
		}
		if _, ferr := r.Mirror.Fetch(ctx); ferr != nil {
			return active, ferr
		}
	}
	return active, err
}

// holdFile is the file of a hold on a unit's component, on an environment or on its pipeline.
func holdFile(u promotion.Unit, scope, environment string) (string, error) {
	name := u.Component
	if scope == "environment" {
		name = environment
	}
	if scope != "pipeline" && (name == "" || strings.ContainsAny(name, "/\\")) {
		return "", fmt.Errorf("hold a %s: its name %q can't be a file's", scope, name)
	}
	return history.HoldPath(u.Pipeline, scope, name), nil
}

// WhoHolds says who set a hold, and whether by the API; empty when there is none, or that
// can't be told.
func (a *Actor) WhoHolds(ctx context.Context, r *facts.Repository, u promotion.Unit, scope, environment string) (by, via string, err error) {
	file, err := holdFile(u, scope, environment)
	if err != nil {
		return "", "", nil // there can't be one
	}
	head, ok, err := r.Mirror.Head(ctx, history.StateBranch)
	if err != nil || !ok {
		return "", "", err
	}
	h, via, ok, err := history.ReadHold(r.Mirror.Tree(head), file)
	if err != nil || !ok || h.IsOver(a.opts.Now()) {
		return "", "", err
	}
	return h.By, via, nil
}

// extendHold is what stands where a hold is set while another one stands.
func extendHold(active promotion.Hold, h Hold) promotion.Hold {
	active.Reverts = active.Reverts || h.Reverts
	if h.Until.IsZero() || !active.Until.IsZero() && h.Until.After(active.Until) {
		active.Until = h.Until
	}
	return active
}

func (a *Actor) writeHold(ctx context.Context, r *facts.Repository, file string, h Hold) (active promotion.Hold, err error) {
	m, now := r.Mirror, a.opts.Now()
	head, ok, err := m.Head(ctx, history.StateBranch)
	if err != nil {
		return active, err
	}
	there, spec, via := false, git.CommitSpec{When: now}, h.Via
	if ok {
		spec.Parents, spec.Base = []string{head}, head
		if active, via, there, err = history.ReadHold(m.Tree(head), file); err != nil {
			return active, err
		}
	}
	verb, w := "Lift the hold on", git.FileWrite{Path: file, Delete: true}
	if h.Set {
		verb = "Hold"
		next := promotion.Hold{By: h.By, Reason: h.Reason, At: now, Reverts: h.Reverts, Until: h.Until}
		if there && !active.IsOver(now) {
			next = extendHold(active, h)
			if next == active {
				return active, nil
			}
		} else {
			via = h.Via
		}
		if w.Content, err = encodeHold(next, via); err != nil {
			return active, fmt.Errorf("write the hold %s: %w", file, err)
		}
		w.Delete, active = false, next
	} else if !there {
		return active, nil
	}
	spec.Files = []git.FileWrite{w}
	spec.Message = fmt.Sprintf("%s %s\n\nBy: %s\n", verb, strings.TrimSuffix(strings.TrimPrefix(file, "holds/"), ".yaml"), h.By)
	commit, err := m.Write(ctx, spec)
	if err != nil {
		return active, err
	}
	return active, m.Push(ctx, git.PushSpec{Branch: history.StateBranch, New: commit, Old: head})
}

// encodeHold is the content of a hold's file.
func encodeHold(h promotion.Hold, via string) ([]byte, error) {
	f := history.HoldFile{By: h.By, Reason: h.Reason, At: h.At.UTC().Format(time.RFC3339), Reverts: h.Reverts, Via: via}
	if !h.Until.IsZero() {
		f.Until = h.Until.UTC().Format(time.RFC3339)
	}
	return yaml.Marshal(f)
}
