package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// mergeRequest is what is read of a merge request.
type mergeRequest struct {
	IID             int        `json:"iid"`
	Title           string     `json:"title"`
	Description     string     `json:"description"`
	State           string     `json:"state"` // opened, closed, locked or merged
	WebURL          string     `json:"web_url"`
	Author          *account   `json:"author"`
	Reviewers       []account  `json:"reviewers"`
	SourceBranch    string     `json:"source_branch"`
	TargetBranch    string     `json:"target_branch"`
	SourceProjectID int64      `json:"source_project_id"` // null: it was deleted
	TargetProjectID int64      `json:"target_project_id"`
	Labels          []string   `json:"labels"`
	Draft           bool       `json:"draft"`
	SHA             string     `json:"sha"`
	MergeCommitSHA  string     `json:"merge_commit_sha"`
	SquashCommitSHA string     `json:"squash_commit_sha"`
	MergeStatus     string     `json:"detailed_merge_status"`
	HeadPipeline    *pipeline  `json:"head_pipeline"`                // not in lists
	MergesByItself  bool       `json:"merge_when_pipeline_succeeds"` // on a merge train, or by auto-merge
	MergeUser       *account   `json:"merge_user"`                   // also who wants it merged later
	MergedBy        *account   `json:"merged_by"`                    // before 14.7
	CreatedAt       *time.Time `json:"created_at"`
	UpdatedAt       *time.Time `json:"updated_at"`
	ClosedAt        *time.Time `json:"closed_at"`
	MergedAt        *time.Time `json:"merged_at"`
}

// missing is what a merge request can't be understood without. A state that isn't known could be open
// as well as over.
func (m *mergeRequest) missing() string {
	switch {
	case m.IID <= 0:
		return "a merge request's number"
	case m.TargetProjectID == 0:
		return "a merge request's project"
	}
	switch m.State {
	case "opened", "closed", "merged", mergeLocked:
		return ""
	}
	return fmt.Sprintf("a merge request's state that is known: it is %q", m.State)
}

// landed is the commit that a merge put on the target branch: by merging, by squashing, or by
// moving the branch forward.
func (m *mergeRequest) landed() string {
	for _, commit := range []string{m.MergeCommitSHA, m.SquashCommitSHA} {
		if commit != "" {
			return commit
		}
	}
	return m.SHA
}

// pullRequest translates.
func (m *mergeRequest) pullRequest() forge.PullRequest {
	pr := forge.PullRequest{
		Number:    m.IID,
		URL:       m.WebURL,
		Title:     m.Title,
		Body:      unescapeActions(m.Description),
		Author:    m.Author.login(),
		AuthorID:  m.Author.id(),
		Branch:    m.SourceBranch,
		Fork:      m.SourceProjectID != m.TargetProjectID,
		Head:      m.SHA,
		Ref:       fmt.Sprintf("refs/merge-requests/%d/head", m.IID),
		Base:      m.TargetBranch,
		State:     forge.Open,
		Draft:     m.Draft,
		Labels:    slices.Compact(slices.Sorted(slices.Values(m.Labels))),
		CreatedAt: timeOrZero(m.CreatedAt),
		UpdatedAt: timeOrZero(m.UpdatedAt),
	}
	pr.Mergeable, pr.MergeReason = toMergeable(m.State, m.MergeStatus)
	if m.MergesByItself && (m.State == "opened" || m.State == mergeLocked) {
		pr.Queue = forge.Queued
	}
	if m.HeadPipeline != nil {
		pr.Pipeline = m.HeadPipeline.ID
	}
	switch m.State {
	case "merged":
		pr.State, pr.MergeCommit, pr.MergedAt = forge.Merged, m.landed(), timeOrZero(m.MergedAt)
		if m.SquashCommitSHA != pr.MergeCommit {
			pr.SquashCommit = m.SquashCommitSHA
		}
		by := m.MergeUser
		if by == nil {
			by = m.MergedBy
		}
		pr.MergedBy, pr.MergedByID, pr.ClosedAt = by.login(), by.id(), pr.MergedAt
	case "closed":
		pr.State, pr.ClosedAt = forge.Closed, timeOrZero(m.ClosedAt)
	}
	return pr
}

// mergeLocked is the state of a merge request that is being merged.
const mergeLocked = "locked"

// untoldMergeability stands for the word that a GitLab doesn't have which is older than any that
// Liftlock works with. Without it nothing merges.
const untoldMergeability = "it says nothing of it; GitLab does from 15.6 on"

// toMergeable reads GitLab's opinion (api/merge_requests, "Merge status"). A word that isn't
// known is of something new that keeps it from merging.
func toMergeable(state, status string) (forge.Mergeable, string) {
	switch {
	case state == mergeLocked:
		return forge.MergeableUnknown, mergeLocked
	case state != "opened":
		return forge.MergeableUnknown, ""
	}
	switch status {
	case "mergeable":
		return forge.MergeableYes, ""
	case "":
		return forge.MergeableUnknown, untoldMergeability
	case "unchecked", "checking", "preparing", "approvals_syncing", "not_open": // just opened again
		return forge.MergeableUnknown, status
	case "conflict", "broken_status":
		return forge.MergeableDirty, status
	case "need_rebase":
		return forge.MergeableBehind, status
	}
	return forge.MergeableBlocked, status
}

// PullRequests lists with what GitLab has worked out of Mergeable.
func (d *Driver) PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	q := query{Scope: "all", State: "all", OrderBy: "updated_at", Sort: "desc"}
	if !since.IsZero() {
		q.UpdatedAfter = since.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	found := []forge.PullRequest{}
	seen := map[int]bool{} // one that is updated meanwhile moves, and shifts a page
	err := forEach(ctx, d, "list the merge requests of "+r.String(), r, maxPullPages, q, func(m mergeRequest) bool {
		if pr := m.pullRequest(); !seen[pr.Number] && !pr.UpdatedAt.Before(since) {
			seen[pr.Number] = true
			found = append(found, pr)
		}
		return false
	}, "merge_requests")
	if err != nil {
		return nil, err
	}
	return found, nil
}

// PullRequest reads one, with what its approval rules lack where that keeps it from being merged.
// Reading it makes GitLab work out whether it can be merged, where it hasn't yet.
func (d *Driver) PullRequest(ctx context.Context, r forge.Repo, n int) (*forge.PullRequest, error) {
	m, err := d.readMergeRequest(ctx, r, n)
	if err != nil {
		return nil, err
	}
	pr := m.pullRequest()
	if m.HeadPipeline != nil {
		d.pipelines.Put(commitPlace{r, m.SHA}, *m.HeadPipeline)
	}
	d.addApprovalRules(ctx, r, &pr)
	return &pr, nil
}

func (d *Driver) readMergeRequest(ctx context.Context, r forge.Repo, n int) (*mergeRequest, error) {
	m := &mergeRequest{}
	_, err := d.callMergeRequest(ctx, "read "+number(r, n), r, n, http.MethodGet, nil, m)
	return m, err
}

// callMergeRequest is callProject below a merge request.
func (d *Driver) callMergeRequest(ctx context.Context, op string, r forge.Repo, n int, method string, options, out any,
	segments ...string) (int, error) {
	resp, err := d.callProject(ctx, op, r, method, options, out, below(n, segments...)...)
	if resp == nil || resp.Response == nil {
		return 0, err
	}
	return resp.StatusCode, err
}

// below are the segments of a merge request's address, within its project.
func below(n int, segments ...string) []string {
	return append([]string{"merge_requests", fmt.Sprint(n)}, segments...)
}

// number is how people write a merge request.
func number(r forge.Repo, n int) string { return fmt.Sprintf("%s!%d", r, n) }

// newMergeRequest opens a merge request.
type newMergeRequest struct {
	Title        string `json:"title"`
	Description  string `json:"description"`
	SourceBranch string `json:"source_branch"`
	TargetBranch string `json:"target_branch"`
	Labels       string `json:"labels,omitempty"` // separated by commas; those that aren't there are made
}

// MayOpen goes by what is known of the limits.
func (d *Driver) MayOpen(ctx context.Context, r forge.Repo) error {
	return d.budget.MayCall(ctx, "open a merge request in "+r.String(), "POST merge_requests")
}

// CreatePullRequest opens one, or finds the open one that GitLab says is there.
func (d *Driver) CreatePullRequest(ctx context.Context, r forge.Repo, n forge.NewPullRequest) (*forge.PullRequest, bool, error) {
	op := "open a merge request in " + r.String() + " from " + n.Branch
	var m mergeRequest
	_, err := d.callProject(ctx, op, r, http.MethodPost, newMergeRequest{
		Title: n.Title, Description: escapeActions(n.Body), SourceBranch: n.Branch, TargetBranch: n.Base,
		Labels: strings.Join(n.Labels, ","),
	}, &m, "merge_requests")
	if err == nil {
		pr := m.pullRequest()
		return &pr, true, nil
	}
	if rest.StatusOf(err) != http.StatusConflict {
		return nil, false, err
	}
	pr, findErr := d.findOpenPull(ctx, r, n.Branch, n.Base)
	if findErr != nil {
		return nil, false, findErr
	}
	if pr == nil { // closed between the two calls
		return nil, false, err
	}
	if err := rest.AddMissingLabels(pr, n.Labels, func(missing ...string) error {
		return d.AddLabels(ctx, r, pr.Number,
			missing...)
	}); err != nil {
		return nil, false, err
	}
	return pr, false, nil
}

// findOpenPull finds the open merge request of a branch onto a base; nil when there is none.
func (d *Driver) findOpenPull(ctx context.Context, r forge.Repo, branch, base string) (*forge.PullRequest, error) {
	var found *forge.PullRequest
	err := forEach(ctx, d, "list the open merge requests of "+r.String(), r, maxPages,
		query{Scope: "all", State: "opened", SourceBranch: branch, TargetBranch: base}, func(m mergeRequest) bool {
			if pr := m.pullRequest(); pr.Branch == branch && pr.Base == base && !pr.Fork {
				found = &pr
			}
			return found != nil
		}, "merge_requests")
	return found, err
}

// mergeRequestChange changes a merge request; what is nil or empty stays.
type mergeRequestChange struct {
	Title        *string `json:"title,omitempty"`
	Description  *string `json:"description,omitempty"`
	StateEvent   string  `json:"state_event,omitempty"`
	TargetBranch *string `json:"target_branch,omitempty"`
	AddLabels    string  `json:"add_labels,omitempty"`
	RemoveLabels string  `json:"remove_labels,omitempty"`
	ReviewerIDs  []int64 `json:"reviewer_ids,omitempty"`
}

// UpdatePullRequest sets what c names.
func (d *Driver) UpdatePullRequest(ctx context.Context, r forge.Repo, n int, c forge.PullRequestUpdate) error {
	if c == (forge.PullRequestUpdate{}) {
		return nil
	}
	change := mergeRequestChange{Title: c.Title, TargetBranch: c.Base}
	if c.Body != nil {
		body := escapeActions(*c.Body)
		change.Description = &body
	}
	if c.State != nil {
		change.StateEvent = map[forge.State]string{forge.Open: "reopen", forge.Closed: "close"}[*c.State]
	}
	_, err := d.callMergeRequest(ctx, "update "+number(r, n), r, n, http.MethodPut, change, nil)
	return err
}
