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
	Set         bool // false: lift
}

// holdTries bounds how often a hold is written again when somebody else wrote
// the state branch at the same moment.
const holdTries = 5

// SetHold writes or removes a hold's file on the state branch, one commit each.
func (a *Actor) SetHold(ctx context.Context, r *facts.Repository, u promotion.Unit, h Hold) error {
	name := u.Component
	if h.Scope == "environment" {
		name = h.Environment
	}
	if h.Scope != "pipeline" && (name == "" || strings.ContainsAny(name, "/\\")) {
		return fmt.Errorf("hold a %s: its name %q can't be a file's", h.Scope, name)
	}
	file := history.HoldPath(u.Pipeline, h.Scope, name)
	var err error
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
		body, err := yaml.Marshal(history.HoldFile{By: h.By, Reason: h.Reason, At: a.opts.Now().UTC().Format(time.RFC3339)})
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
