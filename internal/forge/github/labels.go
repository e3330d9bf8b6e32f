package github

import (
	"context"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// AddLabels adds labels; GitHub creates those that don't exist.
func (d *Driver) AddLabels(ctx context.Context, r forge.Repo, n int, labels ...string) error {
	if len(labels) == 0 {
		return nil
	}
	ctx, owner, name := inRepo(ctx, r)
	_, _, err := d.api.Issues.AddLabelsToIssue(ctx, owner, name, n, labels)
	return wrapError("label "+r.Number(n), err)
}

// RemoveLabel takes a label off. go-github puts it into the path as it is, and
// labels have slashes.
func (d *Driver) RemoveLabel(ctx context.Context, r forge.Repo, n int, label string) error {
	ctx, owner, name := inRepo(ctx, r)
	_, err := d.api.Issues.RemoveLabelForIssue(ctx, owner, name, n, rest.Segment(label))
	if err == nil || rest.StatusOf(err) == http.StatusNotFound && rest.Says(err, "label does not exist") {
		return nil
	}
	return wrapError("take the label "+label+" off "+r.Number(n), err)
}
