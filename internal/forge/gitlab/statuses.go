package gitlab

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
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

func (c *commitStatus) missing() string {
	if c.Name == "" || c.Status == "" {
		return "a status's name and state"
	}
	return ""
}

// newStatus sets a status.
type newStatus struct {
	State       string `json:"state"`
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Pipeline    int64  `json:"pipeline_id,omitempty"`
}

// setStates are GitLab's states for ours. It has one for what failed by an error too.
var setStates = map[forge.StatusState]string{
	forge.StatusPending: "pending", forge.StatusSuccess: "success", forge.StatusFailure: "failed", forge.StatusError: "failed",
}

// pipeline is the one by which GitLab tells whether a merge request's pipelines succeed.
type pipeline struct {
	ID  int64  `json:"id"`
	SHA string `json:"sha"` // the head; of merged results the commit that a merge would make
}

// commitPlace is a commit in a project.
type commitPlace struct {
	repo   forge.Repo
	commit string
}

// statusPlace is where a status is.
type statusPlace struct {
	commitPlace
	context string
}

// placedStatus is a status that was set, and the pipeline that it has joined.
type placedStatus struct {
	status   forge.Status // without its Pipeline
	pipeline int64
}

// SetStatus sets a commit status. It belongs to a pipeline: s.Pipeline, or one of the commit's, or
// an external one that GitLab makes for it. Its last state isn't set again there. GitLab refuses to
// set one to the state that it is in, and keeps its description then. ErrUnsupported: the commit is
// a fork's alone, and has its pipelines there.
func (d *Driver) SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error {
	place, wanted := statusPlace{commitPlace{r, commit}, s.Context}, s.Pipeline
	s.Pipeline = 0
	if last, ok := d.statuses.Get(place); ok && last.status == s && (wanted == 0 || wanted == last.pipeline) {
		return nil
	}
	joined, err := d.postStatus(ctx, r, commit, s, wanted)
	if wanted != 0 && rest.StatusOf(err) == http.StatusNotFound && !isMissingProject(err) { // somebody deleted it
		joined, err = d.postStatus(ctx, r, commit, s, 0)
	}
	if err == nil && joined != 0 {
		d.statuses.Put(place, placedStatus{s, joined})
	}
	return err
}

// postStatus sets a status on a commit, in a pipeline unless that is 0, and gives the pipeline that
// it is in then; 0: GitLab didn't say.
func (d *Driver) postStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status, pipeline int64) (joined int64, err error) {
	if p, ok := d.pipelines.Get(commitPlace{r, commit}); ok && pipeline != 0 && p.ID == pipeline && p.SHA != "" {
		commit = p.SHA
	}
	set := struct {
		Pipeline int64 `json:"pipeline_id"`
	}{pipeline}
	_, err = d.callProject(ctx, "set the status "+s.Context+" on a commit of "+r.String(), r, http.MethodPost, newStatus{
		State: setStates[s.State], Name: s.Context, TargetURL: s.TargetURL, Description: wording.ClipRunes(s.Description, maxDescription),
		Pipeline: pipeline,
	}, &set, "statuses", commit)
	if rest.StatusOf(err) == http.StatusBadRequest && rest.Says(err, "Cannot transition status") {
		return pipeline, nil
	}
	if rest.StatusOf(err) == http.StatusNotFound && rest.Says(err, "References for commit") {
		rest.ErrorOf(err).Kind = forge.ErrUnsupported // the commit is there, and on none of the project's branches
	}
	return set.Pipeline, err
}

// listStatuses gives, for each key, the status with the highest number, as it was listed last. It
// lists the commit's statuses. Where the pipeline that counts for it is of merged results, it also
// lists those of the commit that a merge would make.
func listStatuses[K comparable](ctx context.Context, d *Driver, r forge.Repo, commit string,
	key func(commitStatus) K) (map[K]commitStatus, error) {
	commits := []string{commit}
	if p, ok := d.pipelines.Get(commitPlace{r, commit}); ok && p.SHA != "" && p.SHA != commit {
		commits = append(commits, p.SHA)
	}
	newest := map[K]commitStatus{}
	for _, sha := range commits {
		err := forEach(ctx, d, "list the statuses of a commit of "+r.String(), r, maxPages, query{All: true}, func(s commitStatus) bool {
			if known, ok := newest[key(s)]; !ok || s.ID >= known.ID {
				newest[key(s)] = s
			}
			return false
		}, "repository", "commits", sha, "statuses")
		if err != nil {
			return nil, err
		}
	}
	return newest, nil
}

// Statuses are the newest of each name, of whatever branch and pipeline.
func (d *Driver) Statuses(ctx context.Context, r forge.Repo, commit string) ([]forge.Status, error) {
	newest, err := listStatuses(ctx, d, r, commit, func(s commitStatus) string { return s.Name })
	if err != nil {
		return nil, err
	}
	found := make([]forge.Status, 0, len(newest))
	for _, s := range newest {
		found = append(found, forge.Status{Context: s.Name, State: toStatusState(s.Status), Description: s.Description,
			TargetURL: s.TargetURL, Creator: s.Author.login()})
	}
	slices.SortFunc(found, func(a, b forge.Status) int { return cmp.Compare(a.Context, b.Context) })
	return found, nil
}

// waitingStates are those of what may still succeed.
var waitingStates = []string{"created", "waiting_for_resource", "preparing", "pending", "running", "manual", "scheduled"}

// toStatusState reads a state. A state that neither waits nor succeeded didn't pass.
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
