package act

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/engine/observe"
	"github.com/liftlock/liftlock/internal/gitrepo"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/tracked"
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
func (a *Actor) SetHold(ctx context.Context, r *observe.Repository, u promotion.Unit, h Hold) error {
	name := u.Component
	if h.Scope == "environment" {
		name = h.Environment
	}
	if h.Scope != "pipeline" && (name == "" || strings.ContainsAny(name, "/\\")) {
		return fmt.Errorf("hold a %s: its name %q can't be a file's", h.Scope, name)
	}
	file := tracked.HoldPath(u.Pipeline, h.Scope, name)
	var err error
	for range holdTries {
		if err = a.writeHold(ctx, r, file, h); !errors.Is(err, gitrepo.ErrLeaseLost) {
			return err
		}
		if _, ferr := r.Mirror.Fetch(ctx); ferr != nil {
			return ferr
		}
	}
	return err
}

func (a *Actor) writeHold(ctx context.Context, r *observe.Repository, file string, h Hold) error {
	m := r.Mirror
	head, ok, err := m.Head(ctx, tracked.StateBranch)
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
	spec := gitrepo.CommitSpec{When: a.o.Now()}
	if ok {
		spec.Parents, spec.Base = []string{head}, head
	}
	verb := "Lift the hold on"
	w := gitrepo.FileWrite{Path: file, Delete: true}
	if h.Set {
		verb = "Hold"
		body, err := yaml.Marshal(tracked.HoldFile{By: h.By, Reason: h.Reason, At: a.o.Now().UTC().Format(time.RFC3339)})
		if err != nil {
			return fmt.Errorf("write the hold %s: %w", file, err)
		}
		w = gitrepo.FileWrite{Path: file, Content: body}
	}
	spec.Files = []gitrepo.FileWrite{w}
	spec.Message = fmt.Sprintf("%s %s\n\nBy: %s\n", verb, strings.TrimSuffix(strings.TrimPrefix(file, "holds/"), ".yaml"), h.By)
	commit, err := m.Write(ctx, spec)
	if err != nil {
		return err
	}
	return m.Push(ctx, gitrepo.PushSpec{Branch: tracked.StateBranch, New: commit, Old: head})
}
