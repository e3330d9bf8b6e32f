package gitea

import (
	"context"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// labelColor is that of the labels which Liftlock creates; people may change it.
const labelColor = "#1d76db"

// AddLabels adds labels and creates those that the repository doesn't have.
func (d *Driver) AddLabels(ctx context.Context, r forge.Repo, n int, labels ...string) error {
	if len(labels) == 0 {
		return nil
	}
	ids, err := d.labelIDs(ctx, r, labels)
	if err != nil {
		return err
	}
	_, _, err = d.newClient(ctx).AddIssueLabels(r.Owner, r.Name, int64(n), sdk.IssueLabelsOption{Labels: ids})
	return rest.Wrap("label "+r.Number(n), err)
}

// labelIDs finds the repository's labels by name, which Gitea has no call for.
func (d *Driver) labelIDs(ctx context.Context, r forge.Repo, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	unlock, err := d.labels.Lock(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	have := map[string]int64{}
	err = forEach("list the labels of "+r.String(), bounds, func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return d.newClient(ctx).ListRepoLabels(r.Owner, r.Name, sdk.ListLabelsOptions{ListOptions: o})
	}, func(l *sdk.Label) bool {
		if slices.Contains(names, l.Name) {
			have[l.Name] = l.ID
		}
		return len(have) == len(names)
	})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(names))
	for _, name := range names {
		if _, ok := have[name]; !ok {
			l, _, err := d.newClient(ctx).CreateLabel(r.Owner, r.Name, sdk.CreateLabelOption{Name: name, Color: labelColor})
			if err != nil {
				return nil, rest.Wrap("create the label "+name+" of "+r.String(), err)
			}
			have[name] = l.ID
		}
		ids = append(ids, have[name])
	}
	return ids, nil
}

// RemoveLabel takes off every label of that name: there may be several, and some
// of the organisation's.
func (d *Driver) RemoveLabel(ctx context.Context, r forge.Repo, n int, label string) error {
	// This list has neither pages nor a count.
	all, _, err := d.newClient(ctx).GetIssueLabels(r.Owner, r.Name, int64(n),
		sdk.ListLabelsOptions{ListOptions: sdk.ListOptions{Page: 1, PageSize: perPage}})
	if err != nil {
		return rest.Wrap("list the labels of "+r.Number(n), err)
	}
	var ids []int64
	for _, l := range all {
		if l.Name == label && !slices.Contains(ids, l.ID) {
			ids = append(ids, l.ID)
		}
	}
	for _, id := range ids {
		if _, err := d.newClient(ctx).DeleteIssueLabel(r.Owner, r.Name, int64(n), id); err != nil {
			return rest.Wrap("take the label "+label+" off "+r.Number(n), err)
		}
	}
	return nil
}
