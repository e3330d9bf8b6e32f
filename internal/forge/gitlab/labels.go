package gitlab

import (
	"context"
	"net/http"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// AddLabels adds labels; GitLab makes those that the project doesn't have. A label's name has
// no comma there.
func (d *Driver) AddLabels(ctx context.Context, r forge.Repo, n int, labels ...string) error {
	if len(labels) == 0 {
		return nil
	}
	_, err := d.callMergeRequest(ctx, "label "+number(r, n), r, n, http.MethodPut,
		mergeRequestChange{AddLabels: strings.Join(labels, ",")}, nil)
	return err
}

// RemoveLabel takes a label off.
func (d *Driver) RemoveLabel(ctx context.Context, r forge.Repo, n int, label string) error {
	_, err := d.callMergeRequest(ctx, "take the label "+label+" off "+number(r, n), r, n, http.MethodPut,
		mergeRequestChange{RemoveLabels: label}, nil)
	return err
}
