package gitea

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// maxRemembered bounds each of the driver's caches.
const maxRemembered = 10_000

// headKey is a closed pull request as it was last changed.
type headKey struct {
	repo    forge.Repo
	number  int64
	updated time.Time
}

// correctHead corrects the head of a closed or merged pull request. As long as its branch lives,
// Gitea shows the branch's commit, which is another one as soon as the next pull request uses the
// branch again. refs/pull/N/head stays at the closed head (services/convert/pull.go,
// ToAPIPullRequest).
func (d *Driver) correctHead(ctx context.Context, r forge.Repo, p *sdk.PullRequest) error {
	if p.Head == nil || p.State == sdk.StateOpen || p.Head.Ref != p.Head.Name {
		return nil
	}
	key := headKey{r, p.Index, timeOrZero(p.Updated)}
	head, known := d.heads.Get(key)
	if !known {
		name := fmt.Sprintf("refs/pull/%d/head", p.Index)
		refs, _, err := d.newClient(ctx).GetRepoRefs(r.Owner, r.Name, name) // by prefix
		if err != nil && rest.StatusOf(err) != http.StatusNotFound {
			return rest.Wrap("read the head of "+r.Number(int(p.Index)), err)
		}
		for _, ref := range refs {
			if ref.Ref == name && ref.Object != nil {
				head = ref.Object.SHA
			}
		}
		if head == "" {
			return nil // imported without its ref: what is shown is all there is
		}
		d.heads.Put(key, head)
	}
	p.Head.Sha = head
	return nil
}

// mergeCheck is since when a pull request has not been mergeable as it is.
type mergeCheck struct {
	head, base string
	since      time.Time
}

// toMergeable reads Gitea's opinion. It has only a bool, and false stands for a check that is under
// way, a conflict, a failed check and a draft. A check takes about a second and starts again when
// the head or the base moves. So a false that stays for the check time with the same two commits is
// a conflict. Branch protection is not part of it: that shows at the merge.
func (d *Driver) toMergeable(r forge.Repo, p *sdk.PullRequest) (forge.Mergeable, string) {
	key := r.Number(int(p.Index))
	hasBranches := p.Head != nil && p.Base != nil
	if p.State != sdk.StateOpen || p.Mergeable || p.Draft || !hasBranches {
		d.mergeChecks.Remove(key)
		switch {
		case p.State != sdk.StateOpen:
			return forge.MergeableUnknown, ""
		case p.Draft:
			return forge.MergeableBlocked, "work in progress"
		case p.Mergeable:
			return forge.MergeableYes, ""
		}
		return forge.MergeableUnknown, ""
	}
	seen, ok := d.mergeChecks.Get(key)
	if !ok || seen.head != p.Head.Sha || seen.base != p.Base.Sha {
		seen = mergeCheck{p.Head.Sha, p.Base.Sha, d.now()}
		d.mergeChecks.Put(key, seen)
	}
	if d.now().Sub(seen.since) < d.checkTime {
		return forge.MergeableUnknown, "being checked for conflicts"
	}
	return forge.MergeableDirty, "not mergeable"
}
