package facts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// reviewGatherer says who approved a pull request, and what programs say of commits.
type reviewGatherer struct {
	now          func() time.Time
	permissions  *cache.Cache[string, permission]   // by repository and login
	commitChecks *cache.Cache[string, commitChecks] // by repository and commit
}

func newReviewGatherer(now func() time.Time, group *cache.Group) *reviewGatherer {
	return &reviewGatherer{now: now, permissions: newCache[string, permission](group, "permissions", 10_000),
		commitChecks: newCache[string, commitChecks](group, "commit_checks", 1000)}
}

type permission struct {
	level forge.Permission
	at    time.Time
}

// permissionAge is how long a user's permission may be remembered for counting
// approvals. Before a merge it is always read anew, and commands are authorised anew.
const permissionAge = time.Minute

// approvalFacts are the facts about a pull request's reviews. What can't be read is
// said in them, so that a gate waits with the reason; what is worth another try is an
// error, because nothing else would bring one soon.
func (rg *reviewGatherer) approvalFacts(ctx context.Context, r *Repository, head string, d *pullDetail, base string, period approvalPeriod,
	fresh bool) (policies.Facts, error) {
	f := policies.Facts{Bot: r.bot(), ApprovalsErr: d.reviewsErr}
	for _, rv := range d.reviews {
		if !rv.Approved && !rv.Rejected || rv.Bot {
			continue
		}
		may, err := rg.mayWrite(ctx, r, &rv, fresh)
		if forge.IsRetryable(err) {
			return f, fmt.Errorf("read the permission of %s: %w", rv.User, err)
		}
		if err != nil {
			f.ApprovalsErr = fmt.Sprintf("the permission of %s can't be read: %v", rv.User, err)
			continue
		}
		given := policies.Approval{User: rv.User, UserID: rv.UserID, MayWrite: may, At: rv.At}
		given.Current = period.covers(&rv) && rg.showsSameDiff(ctx, r, rv.Commit, head, base)
		if rv.Rejected {
			f.Rejections = append(f.Rejections, given)
			continue
		}
		f.Approvals = append(f.Approvals, given)
	}
	return f, nil
}

// showsSameDiff says whether a review's commit shows the reader the same change as
// the head: then a recompose on a newer base keeps the approval.
func (rg *reviewGatherer) showsSameDiff(ctx context.Context, r *Repository, reviewed, head, base string) bool {
	if reviewed == head {
		return true
	}
	if reviewed == "" || base == "" {
		return false
	}
	if ok, err := r.Mirror.Has(ctx, reviewed); err != nil || !ok {
		return false
	}
	info, err := r.Mirror.Commit(ctx, reviewed)
	if err != nil || len(info.Parents) != 1 {
		return false
	}
	then, err := r.Mirror.PatchID(ctx, info.Parents[0], reviewed)
	if err != nil {
		return false
	}
	now, err := r.Mirror.PatchID(ctx, base, head)
	return err == nil && then == now && now != ""
}

// mayWrite says whether who reviewed may write to the repository: as the forge told it with the
// review, which is read again before a merge, or as it tells when it is asked.
func (rg *reviewGatherer) mayWrite(ctx context.Context, r *Repository, rv *forge.Review, fresh bool) (bool, error) {
	if rv.MayWrite != nil {
		return *rv.MayWrite, nil
	}
	level, err := rg.userPermission(ctx, r, rv.User, fresh)
	return level >= forge.PermissionWrite, err
}

func (rg *reviewGatherer) userPermission(ctx context.Context, r *Repository, login string, fresh bool) (forge.Permission, error) {
	key := r.ID + "/" + login
	if p, ok := rg.permissions.Get(key); ok && !fresh && rg.now().Sub(p.at) < permissionAge {
		return p.level, nil
	}
	level, err := r.Forge.Permission(ctx, r.Name, login)
	if err != nil {
		return forge.PermissionNone, err
	}
	rg.permissions.Put(key, permission{level: level, at: rg.now()})
	return level, nil
}

// requiresChecks says whether a gate of an environment asks for checks on the head.
func requiresChecks(env *promotion.Env) bool {
	return slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Checks != nil && g.Checks.On != policies.OnRelease })
}

// addChecks fills in the checks on a head, as far as they were read of that very one.
func addChecks(f *policies.Facts, head string, d *pullDetail) {
	f.ChecksErr, f.ChecksRead = d.checksErr, d.hasChecks && d.pr.Head == head
	if !f.ChecksRead {
		return
	}
	f.Checks = listChecks(d.checks)
}

func listChecks(all []forge.Check) []policies.Check {
	var out []policies.Check
	for _, c := range all {
		out = append(out, policies.Check{Name: c.Name, App: c.App, State: policies.CheckState(c.State), Word: c.Word})
	}
	return out
}

// Gates are an environment's gates, raised to the server's floor.
func (ga *Gatherer) Gates(spec *pipeline.Environment) []policies.Gate {
	return ga.opts.Floor(spec.Name, spec.Gates)
}
