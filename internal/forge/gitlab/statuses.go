package gitlab

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxDescription is the longest description, in characters, that GitLab takes.
const maxDescription = 255

// commitStatus is what is read of a status: one that was set, or a job of a pipeline.
type commitStatus struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	Status      string   `json:"status"`
	Description string   `json:"description"`
	TargetURL   string   `json:"target_url"`
	Author      *account `json:"author"`
}

// newStatus sets a status.
type newStatus struct {
	State       string `json:"state"`
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
}

// setStates are GitLab's states for ours. It has one for what failed by an error too.
var setStates = map[forge.StatusState]string{
	forge.StatusPending: "pending", forge.StatusSuccess: "success", forge.StatusFailure: "failed", forge.StatusError: "failed",
}

// SetStatus sets a commit status. GitLab refuses to set one to the state that it is in, and
// keeps its description then. ErrUnsupported: the commit is a fork's alone, and has its
// pipelines there.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	_, err := d.callProject(ctx, "set the status "+s.Context+" on a commit of "+r.String(), r, http.MethodPost, newStatus{
		State: setStates[s.State], Name: s.Context, TargetURL: s.TargetURL, Description: wording.ClipRunes(s.Description, maxDescription),
	}, nil, "statuses", commit)
	if statusOf(err) == http.StatusBadRequest && strings.Contains(asError(err).Message, "Cannot transition status") {
		return nil
	}
	if statusOf(err) == http.StatusNotFound && strings.Contains(asError(err).Message, "References for commit") {
		asError(err).Kind = forge.ErrUnsupported // the commit is there, and on none of the project's branches
	}
	return err
}

// listStatuses gives, for each key, the status with the highest number, as it was listed last.
func listStatuses[K comparable](ctx context.Context, d *Driver, r forge.Repo, commit string, key func(commitStatus) K) (map[K]commitStatus, error) {
	newest := map[K]commitStatus{}
	err := forEach(ctx, d, "list the statuses of a commit of "+r.String(), r, maxPages, query{All: true}, func(s commitStatus) bool {
		if known, ok := newest[key(s)]; !ok || s.ID >= known.ID {
			newest[key(s)] = s
		}
		return false
	}, "repository", "commits", commit, "statuses")
	return newest, err
}

// Statuses are the newest of each name, of whatever branch and pipeline.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	newest, err := listStatuses(ctx, d, r, commit, func(s commitStatus) string { return s.Name })
	if err != nil {
		return nil, err
	}
	found := make([]forge.Status, 0, len(newest))
	for _, s := range newest {
		found = append(found, forge.Status{Context: s.Name, State: toStatusState(s.Status), Description: s.Description, TargetURL: s.TargetURL, Creator: s.Author.login()})
	}
	slices.SortFunc(found, func(a, b forge.Status) int { return cmp.Compare(a.Context, b.Context) })
	return found, nil
}

// waitingStates are those of what may still succeed.
var waitingStates = []string{"created", "waiting_for_resource", "preparing", "pending", "running", "manual", "scheduled"}

// toStatusState reads a state. What neither waits nor succeeded didn't pass.
func toStatusState(state string) forge.StatusState {
	switch {
	case slices.Contains(waitingStates, state):
		return forge.StatusPending
	case state == "success":
		return forge.StatusSuccess
	case state == "failed":
		return forge.StatusFailure
	}
	return forge.StatusError
}

// Checks are the statuses, among them the jobs of GitLab's own pipelines.
func (d *Driver) Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error) {
	type key struct{ name, app string }
	newest, err := listStatuses(ctx, d, r, commit, func(s commitStatus) key { return key{s.Name, s.Author.login()} })
	if err != nil {
		return nil, err
	}
	var found []forge.Check
	for k, s := range newest {
		c := forge.Check{Name: k.name, App: k.app, State: forge.CheckFailed, Word: s.Status}
		switch {
		case s.Status == "skipped":
			c.State = forge.CheckSkipped
		case toStatusState(s.Status) == forge.StatusSuccess:
			c.State = forge.CheckPassed
		case toStatusState(s.Status) == forge.StatusPending:
			c.State = forge.CheckPending
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b forge.Check) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App)) })
	return found, nil
}
