package gitea

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDescription is the longest description, in characters, that Gitea's pages
// show in one line; it takes more.
const maxDescription = 255

// SetStatus sets a commit status.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	_, resp, err := d.newClient(ctx).CreateStatus(r.Owner, r.Name, commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), TargetURL: s.TargetURL, Description: wording.ClipRunes(s.Description, maxDescription), Context: s.Context,
	})
	if err != nil {
		return wrapError("set the status "+s.Context+" on a commit of "+r.String(), resp, err)
	}
	return nil
}

// Statuses reads the whole list and keeps, for each context, the one with the
// highest number.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	newest := map[string]*sdk.Status{}
	err := forEachPage("list the statuses of a commit of "+r.String(), func(o sdk.ListOptions) (int, bool, *sdk.Response, error) {
		page, resp, err := d.newClient(ctx).ListStatuses(r.Owner, r.Name, commit, sdk.ListStatusesOption{ListOptions: o})
		for _, s := range page {
			if known := newest[s.Context]; known == nil || s.ID > known.ID {
				newest[s.Context] = s
			}
		}
		return len(page), false, resp, err
	})
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

// Checks are the statuses: Gitea has nothing else, and its own actions report by them.
func (d *Driver) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	type key struct{ name, app string }
	newest := map[key]*sdk.Status{}
	err := forEachPage("list the statuses of a commit of "+r.String(), func(o sdk.ListOptions) (int, bool, *sdk.Response, error) {
		page, resp, err := d.newClient(ctx).ListStatuses(r.Owner, r.Name, commit, sdk.ListStatusesOption{ListOptions: o})
		for _, s := range page {
			k := key{s.Context, loginOf(s.Creator)}
			if known := newest[k]; known == nil || s.ID > known.ID {
				newest[k] = s
			}
		}
		return len(page), false, resp, err
	})
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
