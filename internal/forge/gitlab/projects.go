package gitlab

import (
	"context"
	"net/http"
	"strings"

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
	Approvals       *int `json:"approvals_before_merge"`                       // that rules of merge requests don't replace; nil: not shown, in the free edition
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

// page is the address of a project's page for people, or of one below it.
func (d *Driver) page(r forge.Repo, segments ...string) string {
	return d.base.JoinPath(append(strings.Split(r.String(), "/"), segments...)...).String()
}

// CloneURL follows from the server's address: the token goes nowhere else.
func (d *Driver) CloneURL(_ context.Context, r forge.Repo) (string, error) {
	return d.page(r) + ".git", nil
}

// CommitURL is the page of a commit.
func (d *Driver) CommitURL(r forge.Repo, commit string) string {
	return d.page(r, "-", "commit", commit)
}

// CompareURL is the page of what head has and base hasn't.
func (d *Driver) CompareURL(r forge.Repo, base, head string) string {
	return d.page(r, "-", "compare", base+"..."+head)
}
