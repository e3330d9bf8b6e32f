package gitlab

import (
	"context"
	"net/http"

	"github.com/liftlock/liftlock/internal/forge"
)

// project is what is read of a project.
type project struct {
	ID           int64  `json:"id"`
	MergeMethod  string `json:"merge_method"`         // merge, rebase_merge or ff
	SquashOption string `json:"squash_option"`        // never, always, default_on or default_off
	QueueMerges  bool   `json:"merge_trains_enabled"` // merge trains are on; not shown in the free edition

	ChecksSucceed   bool `json:"only_allow_merge_if_pipeline_succeeds"`
	ThreadsResolved bool `json:"only_allow_merge_if_all_discussions_are_resolved"`
	StatusChecks    bool `json:"only_allow_merge_if_all_status_checks_passed"` // external ones; not shown below Ultimate
	// that rules of merge requests don't replace; nil: not shown, in the free edition
	Approvals *int `json:"approvals_before_merge"`
}

func (p *project) missing() string {
	if p.ID <= 0 {
		return "a project's number"
	}
	return ""
}

// projectID is the number of a project, found once by its path. ErrNotFound when there is
// none, or when it can't be seen.
func (d *Driver) projectID(ctx context.Context, r forge.Repo) (int64, error) {
	if id, ok := d.projects.Get(r); ok {
		return id, nil
	}
	id, err := d.RepositoryNumber(ctx, r)
	if err == nil {
		d.projects.Put(r, id)
	}
	return id, err
}

// RepositoryNumber reads the project's number, by its path. ErrNotFound as for every other call.
func (d *Driver) RepositoryNumber(ctx context.Context, r forge.Repo) (int64, error) {
	var p project
	if _, err := d.call(ctx, "find the project "+r.String(), http.MethodGet, nil, &p, "projects", r.String()); err != nil {
		return 0, err
	}
	return p.ID, nil
}

// readProject reads how a project merges, as it is now.
func (d *Driver) readProject(ctx context.Context, r forge.Repo) (p project, err error) {
	_, err = d.callProject(ctx, "read the project "+r.String(), r, http.MethodGet, nil, &p)
	return p, err
}
