package people

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// ReviewGatherer says who approved a pull request, and what programs say of commits.
type ReviewGatherer struct {
	records      record.Reader
	teams        *TeamGatherer
	now          func() time.Time
	permissions  *cache.Cache[string, permission]   // by repository and login
	commitChecks *cache.Cache[string, CommitChecks] // by repository and commit
}

// NewReviewGatherer reads what the store has of approvals and skips from records.
func NewReviewGatherer(records record.Reader, teams *TeamGatherer, now func() time.Time, group *cache.Group) *ReviewGatherer {
	return &ReviewGatherer{records: records, teams: teams, now: now,
		permissions:  branch.NewCache[string, permission](group, "permissions", 10_000),
		commitChecks: branch.NewCache[string, CommitChecks](group, "commit_checks", 1000)}
}

// Reviews are the reviews of a pull request as they were read.
type Reviews struct {
	All  []forge.Review
	Err  string // why they can't be read, where trying again at once can't help
	Read bool   // they were read, or can't be
}

// Checks are the checks on a commit as they were read.
type Checks struct {
	All    []forge.Check
	Err    string // why they can't be read, where trying again at once can't help
	Read   bool   // they were read, or can't be
	Commit string
}

type permission struct {
	level forge.Permission
	at    time.Time
}

// permissionAge is how long a user's permission may be remembered for counting
// approvals. Before a merge it is always read anew, and commands are authorised anew.
const permissionAge = time.Minute

// ApprovalFacts are the facts about a pull request's reviews. Facts that can't be read say so, so
// that a gate waits with the reason. A failure that is worth another try is an error, because
// nothing else would bring one soon.
func (rg *ReviewGatherer) ApprovalFacts(ctx context.Context, r *branch.Repository, head, base string, reviews *Reviews,
	period ApprovalPeriod, fresh bool) (policies.Facts, error) {
	f := policies.Facts{Bot: r.Bot(), ApprovalsErr: reviews.Err}
	for _, rv := range reviews.All {
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
		given.Current = period.Covers(&rv) && rg.ShowsSameDiff(ctx, r, rv.Commit, head, base)
		if rv.Rejected {
			f.Rejections = append(f.Rejections, given)
			continue
		}
		f.Approvals = append(f.Approvals, given)
	}
	return f, nil
}

// ShowsSameDiff says whether a review's commit shows the reader the same change as
// the head: then a recompose on a newer base keeps the approval.
func (rg *ReviewGatherer) ShowsSameDiff(ctx context.Context, r *branch.Repository, reviewed, head, base string) bool {
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

// mayWrite says whether a reviewer may write to the repository. The forge told it with the review,
// which is read again before a merge, or tells it when asked.
func (rg *ReviewGatherer) mayWrite(ctx context.Context, r *branch.Repository, rv *forge.Review, fresh bool) (bool, error) {
	if rv.MayWrite != nil {
		return *rv.MayWrite, nil
	}
	level, err := rg.userPermission(ctx, r, rv.User, fresh)
	return level >= forge.PermissionWrite, err
}

func (rg *ReviewGatherer) userPermission(ctx context.Context, r *branch.Repository, login string, fresh bool) (forge.Permission, error) {
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

// RequiresChecks says whether a gate of an environment asks for checks on the head.
func RequiresChecks(env *promotion.Env) bool {
	return slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.Checks != nil && g.Checks.On != policies.OnRelease })
}

// AddChecks fills in the checks on a head, as far as they were read of that very one.
func AddChecks(f *policies.Facts, head string, checks *Checks) {
	f.ChecksErr, f.ChecksRead = checks.Err, checks.Read && checks.Commit == head
	if !f.ChecksRead {
		return
	}
	f.Checks = ListChecks(checks.All)
}

// ListChecks has checks as gates know them.
func ListChecks(all []forge.Check) []policies.Check {
	var out []policies.Check
	for _, c := range all {
		out = append(out, policies.Check{Name: c.Name, App: c.App, State: policies.CheckState(c.State), Word: c.Word})
	}
	return out
}

// CommitChecks are the checks on a commit as they were read.
type CommitChecks struct {
	Checks []forge.Check
	Why    string // why they can't be, where trying again at once can't help
	At     time.Time
}

// ReadCommitChecks gives the checks on a commit as they were at most an interval ago, and not
// before a time.
func (rg *ReviewGatherer) ReadCommitChecks(ctx context.Context, r *branch.Repository, commit string, notBefore time.Time,
	interval time.Duration,
	fresh bool) (CommitChecks, error) {
	key := r.ID + "|" + commit
	if known, ok := rg.commitChecks.Get(key); ok && !fresh && !known.At.Before(notBefore) && rg.now().Sub(known.At) < interval {
		return known, nil
	}
	read := CommitChecks{At: rg.now()}
	var err error
	if read.Checks, err = r.Forge.Checks(ctx, r.Name, commit); err != nil {
		if forge.IsRetryable(err) || ctx.Err() != nil {
			return CommitChecks{}, err
		}
		read.Why = err.Error()
	}
	rg.commitChecks.Put(key, read)
	return read, nil
}
