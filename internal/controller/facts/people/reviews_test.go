package people

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/policies"
)

// permissionForge is a forge that knows what users may do.
type permissionForge struct {
	forge.Forge
	levels map[string]forge.Permission
	err    error
	calls  int
}

func (p *permissionForge) Permission(_ context.Context, _ forge.Repo, login string) (forge.Permission, error) {
	p.calls++
	return p.levels[login], p.err
}

// TestPermissionsAreRememberedShortly asks the forge again after a minute, and keeps
// no failure.
func TestPermissionsAreRememberedShortly(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f := &permissionForge{levels: map[string]forge.Permission{"ann": forge.PermissionWrite}}
	r := &branch.Repository{ID: "hub:acme/fleet", Forge: f}
	g := NewReviewGatherer(nil, nil, func() time.Time { return now }, nil)
	away := errors.New("away")
	for i, step := range []struct {
		after time.Duration
		level forge.Permission // at the forge
		err   error
		want  forge.Permission
		calls int
	}{
		{0, forge.PermissionWrite, nil, forge.PermissionWrite, 1},
		{permissionAge - time.Second, forge.PermissionNone, nil, forge.PermissionWrite, 1},
		{time.Second, forge.PermissionNone, away, forge.PermissionNone, 2},
		{0, forge.PermissionNone, nil, forge.PermissionNone, 3},
		{time.Second, forge.PermissionWrite, nil, forge.PermissionNone, 3},
	} {
		now = now.Add(step.after)
		f.levels["ann"], f.err = step.level, step.err
		got, err := g.userPermission(t.Context(), r, "ann", false)
		if got != step.want || !errors.Is(err, step.err) || f.calls != step.calls {
			t.Errorf("step %d: %v, %v after %d calls", i, got, err, f.calls)
		}
	}
	f.levels["ann"] = forge.PermissionRead
	if got, err := g.userPermission(t.Context(), r, "ann", true); got != forge.PermissionRead || err != nil {
		t.Errorf("before a merge: %v, %v", got, err)
	}
}

// TestApprovalFacts counts people's approvals, and keeps those whose reader saw what the
// head changes now.
func TestApprovalFacts(t *testing.T) {
	c := newTestRepo(t, "fleet", map[string]string{"a": "1\n", "b": "1\n"})
	base := c.at
	first := c.commit("promote", map[string]string{"a": "2\n"})
	c.at = base
	newBase := c.commit("main", map[string]string{"b": "2\n"})
	head := c.commit("again", map[string]string{"a": "2\n"}) // the same on a newer base
	c.at = newBase
	other := c.commit("other", map[string]string{"a": "3\n"})
	f := &permissionForge{levels: map[string]forge.Permission{"ann": forge.PermissionWrite, "bob": forge.PermissionRead}}
	c.Forge, c.BotLogin = f, "liftlock"
	g := NewReviewGatherer(nil, nil, time.Now, nil)
	approval := func(user, commit string) forge.Review {
		return forge.Review{User: user, Commit: commit, Approved: true}
	}
	refused := fmt.Errorf("%w: no", forge.ErrForbidden)
	for name, c2 := range map[string]struct {
		reviews []forge.Review
		err     error
		want    policies.Facts
		retry   bool
	}{
		"of the head":        {reviews: []forge.Review{approval("ann", head)}, want: policies.Facts{Approvals: []policies.Approval{{User: "ann", MayWrite: true, Current: true}}}},
		"of the same diff":   {reviews: []forge.Review{approval("ann", first)}, want: policies.Facts{Approvals: []policies.Approval{{User: "ann", MayWrite: true, Current: true}}}},
		"of another diff":    {reviews: []forge.Review{approval("ann", other)}, want: policies.Facts{Approvals: []policies.Approval{{User: "ann", MayWrite: true}}}},
		"of nothing known":   {reviews: []forge.Review{approval("ann", ""), approval("ann", "0123456789012345678901234567890123456789")}, want: policies.Facts{Approvals: []policies.Approval{{User: "ann", MayWrite: true}, {User: "ann", MayWrite: true}}}},
		"who may not write":  {reviews: []forge.Review{approval("bob", head)}, want: policies.Facts{Approvals: []policies.Approval{{User: "bob", Current: true}}}},
		"a bot's, a comment": {reviews: []forge.Review{{User: "ci", Bot: true, Approved: true, Commit: head}, {User: "ann", Commit: head}}},
		"asks for changes":   {reviews: []forge.Review{{User: "ann", Commit: other, Rejected: true, At: time.Unix(7, 0)}, {User: "ci", Bot: true, Rejected: true}}, want: policies.Facts{Rejections: []policies.Approval{{User: "ann", MayWrite: true, At: time.Unix(7, 0)}}}},
		"can't be read":      {reviews: []forge.Review{approval("ann", head)}, err: refused, want: policies.Facts{ApprovalsErr: "the permission of ann can't be read: " + refused.Error()}},
		"another time":       {reviews: []forge.Review{approval("ann", head)}, err: forge.ErrRetryable, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			g.permissions.Clear()
			f.err = c2.err
			got, err := g.ApprovalFacts(t.Context(), c.Repository, head, newBase, &Reviews{All: c2.reviews}, ApprovalPeriod{}, false)
			c2.want.Bot = policies.Account{Login: "liftlock"}
			if diff := cmp.Diff(c2.want, got); diff != "" || (err != nil) != c2.retry {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestSameDiffOfMerges keeps no approval of a merge: what it changes depends on which parent it is
// compared with.
func TestSameDiffOfMerges(t *testing.T) {
	c := newTestRepo(t, "fleet", map[string]string{"a": "1\n", "b": "1\n"})
	base := c.at
	head := c.commit("promote", map[string]string{"a": "2\n"})
	c.at = base
	c.commit("main", map[string]string{"b": "2\n"})
	merged := c.merge("merged", "Merge", head)
	g := NewReviewGatherer(nil, nil, time.Now, nil)
	for reviewed, want := range map[string]bool{head: true, merged: false, base: false, "": false} {
		if got := g.ShowsSameDiff(t.Context(), c.Repository, reviewed, head, base); got != want {
			t.Errorf("of %q: %t", reviewed, got)
		}
	}
	if g.ShowsSameDiff(t.Context(), c.Repository, base, head, "") || g.ShowsSameDiff(t.Context(), c.Repository, base, base+"0", base) {
		t.Error("where what the head is made on isn't known, another commit shows the same")
	}
}
