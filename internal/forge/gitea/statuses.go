package gitea

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDescription is the longest description, in characters, that Gitea's pages
// show in one line; it takes more.
const maxDescription = 255

// SetStatus sets a commit status.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	_, _, err := d.newClient(ctx).CreateStatus(r.Owner, r.Name, commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), TargetURL: s.TargetURL, Description: wording.ClipRunes(s.Description, maxDescription),
		Context: s.Context,
	})
	return rest.Wrap("set the status "+s.Context+" on a commit of "+r.String(), err)
}

// Statuses reads the whole list and keeps, for each context, the one with the
// highest number.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	newest, err := readNewest(ctx, d, r, commit, func(s *sdk.Status) string { return s.Context })
	if err != nil {
		return nil, err
	}
	found := make([]forge.Status, 0, len(newest))
	for _, s := range newest {
		state := forge.StatusState(s.State)
		if s.State == sdk.StatusWarning { // no other forge has it; it doesn't pass a required check
			state = forge.StatusFailure
		}
		found = append(found, forge.Status{
			Context: s.Context, State: state, Description: s.Description, TargetURL: s.TargetURL, Creator: loginOf(s.Creator),
		})
	}
	slices.SortFunc(found, func(a, b forge.Status) int { return strings.Compare(a.Context, b.Context) })
	return found, nil
}

// readNewest reads the statuses of a commit, and keeps for each key the one with the highest number.
func readNewest[K comparable](ctx context.Context, d *Driver, r forge.Repo, commit string,
	keyOf func(*sdk.Status) K) (map[K]*sdk.Status, error) {
	newest := map[K]*sdk.Status{}
	return newest, forEach("list the statuses of a commit of "+r.String(), bounds,
		func(o sdk.ListOptions) ([]*sdk.Status, *sdk.Response, error) {
			return d.newClient(ctx).ListStatuses(r.Owner, r.Name, commit, sdk.ListStatusesOption{ListOptions: o})
		}, func(s *sdk.Status) bool {
			if known := newest[keyOf(s)]; known == nil || s.ID > known.ID {
				newest[keyOf(s)] = s
			}
			return false
		})
}

// Checks are the statuses: Gitea has nothing else, and its own actions report by them.
func (d *Driver) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	type key struct{ name, app string }
	newest, err := readNewest(ctx, d, r, commit, func(s *sdk.Status) key { return key{s.Context, loginOf(s.Creator)} })
	if err != nil {
		return nil, err
	}
	var found []forge.Check
	for k, s := range newest {
		found = append(found, forge.CheckOfStatus(k.name, k.app, string(s.State)))
	}
	slices.SortFunc(found, func(a, b forge.Check) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App)) })
	return found, nil
}
