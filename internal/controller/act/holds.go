package act

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	Via         string // api: By is the name of one of its tokens
	Reverts     bool   // reverts stand still too
	Set         bool   // false: lift
}

// holdTries bounds how often a hold is written again when somebody else wrote
// the state branch at the same moment.
const holdTries = 5

// SetHold writes or removes a hold's file on the state branch, one commit each.
func (a *Actor) SetHold(ctx context.Context, r *facts.Repository, u promotion.Unit, h Hold) error {
	file, err := holdFile(u, h.Scope, h.Environment)
	if err != nil {
		return err
	}
	for range holdTries {
		if err = a.writeHold(ctx, r, file, h); !errors.Is(err, git.ErrLeaseLost) {
			return err
		}
		if _, ferr := r.Mirror.Fetch(ctx); ferr != nil {
			return ferr
		}
	}
	return err
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
	data, err := fs.ReadFile(r.Mirror.Tree(head), file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", file, err)
	}
	var h history.HoldFile
	if yaml.Unmarshal(data, &h) != nil {
		return "", "", nil
	}
	return h.By, h.Via, nil
}

func (a *Actor) writeHold(ctx context.Context, r *facts.Repository, file string, h Hold) error {
	m := r.Mirror
	head, ok, err := m.Head(ctx, history.StateBranch)
	if err != nil {
		return err
	}
	exists := false
	if ok {
		_, err := fs.Stat(m.Tree(head), file)
		exists = err == nil
	}
	if exists == h.Set {
		return nil
	}
	spec := git.CommitSpec{When: a.opts.Now()}
	if ok {
		spec.Parents, spec.Base = []string{head}, head
	}
	verb := "Lift the hold on"
	w := git.FileWrite{Path: file, Delete: true}
	if h.Set {
		verb = "Hold"
		body, err := yaml.Marshal(history.HoldFile{By: h.By, Reason: h.Reason, At: a.opts.Now().UTC().Format(time.RFC3339), Reverts: h.Reverts, Via: h.Via})
		if err != nil {
			return fmt.Errorf("write the hold %s: %w", file, err)
		}
		w = git.FileWrite{Path: file, Content: body}
	}
	spec.Files = []git.FileWrite{w}
	spec.Message = fmt.Sprintf("%s %s\n\nBy: %s\n", verb, strings.TrimSuffix(strings.TrimPrefix(file, "holds/"), ".yaml"), h.By)
	commit, err := m.Write(ctx, spec)
	if err != nil {
		return err
	}
	return m.Push(ctx, git.PushSpec{Branch: history.StateBranch, New: commit, Old: head})
}
