package act

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// Refusal is what the forge doesn't take, until it takes it.
type Refusal struct {
	Reason string // its words, and what to do where that is known
	Since  time.Time
}

// setDeployment shows the state of a landed promotion in an environment, and records that it did.
// After a death in between, the deployment is found again on the forge by what it is of, and its
// state is said twice. A final refusal of the forge is recorded too, so that it is tried rarely,
// and fails nothing. needsLook says that there is more to show because of it, or that what people
// are told of it changes.
func (a *Actor) setDeployment(ctx context.Context, ev *facts.Evaluation, x promotion.SetDeployment) (needsLook bool, err error) {
	r := ev.Snapshot.Repo
	stored, err := facts.ReadDeployments(ctx, a.opts.Store, ev.Unit)
	if err != nil {
		return false, err
	}
	others := len(stored[x.Environment])
	known, _ := stored.Find(x.Environment, x.Commit)
	needsLook = known.Refused != ""
	known.Commit, known.At, known.Refused, known.RefusedAt = x.Commit, x.At, "", time.Time{}
	if known.ID == 0 {
		if known.ID, err = a.ensureDeployment(ctx, ev, x, &stored); err != nil && !isRefusal(err) {
			return false, err
		}
	}
	needsLook = needsLook || len(stored[x.Environment]) > others
	if err == nil {
		err = a.putDeploymentState(ctx, r, known, x, a.pageURL(ev.Unit, ev.IsBatch()))
	}
	if x.State == promotion.DeploymentInactive && errors.Is(err, forge.ErrNotFound) {
		err = nil // somebody deleted it
	}
	switch {
	case err == nil:
		known.State = x.State
		a.refusals.Delete(r.ID)
	case isRefusal(err):
		needsLook = true
		known.Refused, known.RefusedAt = wording.ClipLine(refusalWords(err), maxRefusalText), a.opts.Now()
		if _, again := a.refusals.Swap(r.ID, Refusal{Reason: known.Refused, Since: known.RefusedAt}); !again {
			a.opts.Log.Warn("the forge takes no deployments", zap.String("repository", r.ID), zap.String("environment", x.Environment),
				zap.String("reason", known.Refused))
		}
	default:
		return false, err
	}
	stored.Put(x.Environment, known, func(commit string) bool {
		return ev.MayHaveLanded(x.Environment, func(l *promotion.Landed) bool { return l.Commit == commit })
	})
	return needsLook, facts.Deployments.Put(ctx, a.opts.Store, record.Unit(ev.Unit), stored)
}

// maxRefusalText bounds the forge's words.
const maxRefusalText = 300

// isRefusal says that trying again changes nothing.
func isRefusal(err error) bool {
	return errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrInvalid)
}

// DeploymentRefusals are the repositories, by ID, of which the forge took no deployment last
// time it was given one.
func (a *Actor) DeploymentRefusals() map[string]Refusal {
	out := map[string]Refusal{}
	a.refusals.Range(func(repo, refusal any) bool {
		out[repo.(string)] = refusal.(Refusal)
		return true
	})
	return out
}

// ensureDeployment finds the deployment of what landed, or creates it. Where nothing is known
// of the environment, those before it are noted, to be shown as inactive when it is time.
func (a *Actor) ensureDeployment(ctx context.Context, ev *facts.Evaluation, x promotion.SetDeployment,
	stored *facts.StoredDeployments) (int64, error) {
	r, task := ev.Snapshot.Repo, promotion.DeploymentTask(ev.Unit)
	list, err := r.Forge.Deployments(ctx, r.Name, x.Environment, task)
	if err != nil {
		return 0, err
	}
	_, seen := (*stored)[x.Environment]
	var id int64
	for _, d := range list {
		switch {
		case d.Commit == x.Commit:
			id = d.ID
		case !seen && d.CreatedAt.Before(x.At):
			earlier := facts.StoredDeployment{ID: d.ID, DeploymentRecord: promotion.DeploymentRecord{Commit: d.Commit, At: d.CreatedAt}}
			stored.Put(x.Environment, earlier, func(string) bool { return true })
		}
	}
	if id != 0 {
		return id, nil
	}
	name, release := deploymentName(x.Members)
	u := ev.Unit
	return r.Forge.CreateDeployment(ctx, r.Name, forge.Deployment{Environment: x.Environment, Task: task, Commit: x.Commit,
		Description: fmt.Sprintf("%s (#%d)", name, x.Pull),
		Payload: map[string]string{"pipeline": u.Pipeline, "component": u.Component, "environment": x.Environment, "release": release,
			"pull": strconv.Itoa(x.Pull),
			"kind": deploymentKind(x.Revert)}})
}

func deploymentKind(revert bool) string {
	if revert {
		return promotion.KindRevert
	}
	return promotion.KindPromotion
}

// deploymentName is what people call what landed, and its identity.
func deploymentName(members []promotion.Member) (name, release string) {
	if len(members) == 1 {
		return members[0].String(), members[0].Release
	}
	return wording.Count(len(members), "component"), promotion.BatchID(members)
}

// putDeploymentState says it on the forge. One of which it isn't known how it stands only
// becomes inactive where it isn't over in some other way.
func (a *Actor) putDeploymentState(ctx context.Context, r *branch.Repository, known facts.StoredDeployment, x promotion.SetDeployment,
	logURL string) error {
	if x.State == promotion.DeploymentInactive && known.State == "" {
		state, err := r.Forge.DeploymentState(ctx, r.Name, known.ID)
		if err != nil {
			return err
		}
		if state == forge.DeploymentInactive || state == forge.DeploymentFailure || state == forge.DeploymentError {
			return nil
		}
	}
	return r.Forge.SetDeploymentStatus(ctx, r.Name, known.ID, forge.DeploymentStatus{State: forge.DeploymentState(x.State),
		Description: x.Reason, LogURL: logURL})
}
