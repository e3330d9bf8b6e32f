package emulator

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mergeRequestState is what only GitLab knows of a pull request.
type mergeRequestState struct {
	versions             []version // oldest first
	systemNotes          []*comment
	closedBy             *account
	squash, removeBranch bool // wished for when it is merged

	autoMerge   *account // who set it; nil: it isn't
	autoRequest acceptRequest

	inMerge      bool // a merge is under way: its state is locked
	resetDue     bool // approvals of a head before go when GitLab gets round to it
	resetShown   bool // that was shown once
	mergeCommit  string
	squashCommit string
	mergeError   string
}

// version is a head that a merge request had.
type version struct {
	id         int64
	head, base string
	at         time.Time
}

var draftTitle = regexp.MustCompile(`(?i)^\s*(draft:|\[draft\]|\(draft\))`)

// isDraftTitle says whether a title makes a draft.
func isDraftTitle(title string) bool { return draftTitle.MatchString(title) }

// withMergeRequest finds the merge request of the path, by its number in the project.
func withMergeRequest(answer func(*call, *pull) (any, error)) handler {
	return func(c *call) (any, error) {
		n, err := strconv.Atoi(cmp.Or(c.r.PathValue("merge_request_iid"), c.r.PathValue("noteable_id")))
		if err != nil || c.repo.pulls[n] == nil {
			return nil, gitlabNotFound("")
		}
		return answer(c, c.repo.pulls[n])
	}
}

// gitlabMRState is opened, closed, locked or merged.
func (p *pull) gitlabMRState() string {
	switch {
	case p.merged:
		return "merged"
	case !p.open:
		return "closed"
	case p.gitlab.inMerge:
		return "locked"
	}
	return "opened"
}

// mergeRequest is a merge request as lists show it: with what GitLab has worked out, which it
// doesn't begin to for a list.
func (f *Forge) mergeRequest(p *pull) restObject {
	status, conflicts := f.readMergeStatus(p)
	old := map[string]string{"unchecked": "unchecked", "checking": "checking", "preparing": "checking"}[status]
	if old == "" {
		old = "can_be_merged"
		if conflicts {
			old = "cannot_be_merged"
		}
	}
	full := fmt.Sprintf("%s!%d", p.repo.fullName(), p.number)
	self := fmt.Sprintf("!%d", p.number)
	squash := p.gitlab.squash
	switch p.repo.squashOption() {
	case "always":
		squash = true
	case "never":
		squash = false
	}
	w := restObject{
		"id": p.id, "iid": p.number, "project_id": p.repo.id, "title": p.title, "description": p.body, "state": p.gitlabMRState(),
		"created_at": formatGitLabTime(p.created), "updated_at": formatGitLabTime(p.updated), "merged_by": nil,
		"merge_user": f.gitlabUser(p.queuedBy()),
		"merged_at":  gitlabTimeOrNull(p.mergedAt), "prepared_at": formatGitLabTime(p.created),
		"closed_by": f.gitlabUser(p.gitlab.closedBy), "closed_at": nil,
		"target_branch": p.base, "source_branch": p.branch, "user_notes_count": len(p.comments), "upvotes": 0, "downvotes": 0,
		"author": f.gitlabUser(p.author), "assignee": nil, "assignees": []any{}, "reviewers": f.gitlabUsers(p.reviewers),
		"source_project_id": p.headRepo.id, "target_project_id": p.repo.id, "labels": orEmpty(slices.Sorted(slices.Values(p.labels))),
		"draft": p.draft, "work_in_progress": p.draft, "imported": false, "imported_from": "none", "milestone": nil,
		"merge_when_pipeline_succeeds": p.open && p.mergesByItself(), "merge_status": old, "detailed_merge_status": status, "sha": p.head,
		"merge_commit_sha": orNull(p.gitlab.mergeCommit), "squash_commit_sha": orNull(p.gitlab.squashCommit), "discussion_locked": nil,
		"should_remove_source_branch": nil, "force_remove_source_branch": p.gitlab.removeBranch, "reference": self,
		"references": restObject{"short": self, "relative": self, "full": full}, "web_url": f.pullPage(p),
		"time_stats": restObject{"time_estimate": 0, "total_time_spent": 0, "human_time_estimate": nil, "human_total_time_spent": nil},
		"squash":     p.gitlab.squash, "squash_on_merge": squash, "task_completion_status": restObject{"count": 0, "completed_count": 0},
		"has_conflicts": conflicts, "blocking_discussions_resolved": p.openThreads() == 0,
	}
	if p.merged {
		w["merged_by"], w["merge_user"] = f.gitlabUser(p.mergedBy), f.gitlabUser(p.mergedBy)
	} else {
		w["closed_at"] = gitlabTimeOrNull(p.closed)
	}
	return w
}

// mergeRequestInFull is one merge request by itself. Showing it begins to work out whether it
// can be merged.
func (f *Forge) mergeRequestInFull(p *pull, viewer *account) (restObject, error) {
	if err := f.computeMergeStatus(p); err != nil {
		return nil, err
	}
	w := f.mergeRequest(p)
	w["merge_error"], w["subscribed"], w["first_contribution"] = orNull(p.gitlab.mergeError), p.author == viewer, false
	w["changes_count"] = strconv.Itoa(len(p.commits))
	w["diff_refs"] = restObject{"base_sha": orNull(p.baseSHA), "head_sha": p.head, "start_sha": orNull(p.baseSHA)}
	w["head_pipeline"], w["pipeline"] = nil, nil
	if pipe := p.repo.findPipeline(p.head, ""); pipe != nil {
		brief := f.gitlabPipeline(p.repo, pipe)
		full := f.gitlabPipeline(p.repo, pipe)
		full["before_sha"], full["tag"], full["yaml_errors"], full["user"] = zeroCommit, false, nil, f.gitlabUser(pipe.by)
		w["pipeline"], w["head_pipeline"] = brief, full
	}
	w["user"] = restObject{"can_merge": mayMergeInto(p.repo, p.base, viewer)}
	return w, nil
}

// mergeRequestFilter says which merge requests a list has.
type mergeRequestFilter struct {
	params
	updatedAfter, updatedBefore, createdAfter, createdBefore time.Time
	viewer                                                   *account
}

func (m mergeRequestFilter) has(p *pull) bool {
	is := func(name, value string) bool { return m.text(name) == "" || m.text(name) == value }
	within := func(t, after, before time.Time) bool {
		return (after.IsZero() || !t.Before(after)) && (before.IsZero() || !t.After(before))
	}
	state := m.text("state")
	labels := true
	for _, name := range m.list("labels") {
		labels = labels && slices.Contains(p.labels, name)
	}
	iids := m.list("iids")
	isInState := state == "" || state == "all" || state == p.gitlabMRState()
	isChosen := len(iids) == 0 || slices.Contains(iids, strconv.Itoa(p.number))
	if !isInState || !isChosen || !labels || !is("draft", strconv.FormatBool(p.draft)) {
		return false
	}
	isOfBranches := is("source_branch", p.branch) && is("target_branch", p.base)
	if !isOfBranches || !is("source_project_id", strconv.FormatInt(p.headRepo.id, 10)) {
		return false
	}
	isByAuthor := is("author_id", strconv.FormatInt(p.author.id, 10)) && is("author_username", p.author.login)
	if !isByAuthor || m.text("scope") == "created_by_me" && p.author != m.viewer {
		return false
	}
	return within(p.updated, m.updatedAfter, m.updatedBefore) && within(p.created, m.createdAfter, m.createdBefore)
}

func listMergeRequests(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	for name, values := range map[string][]string{
		"state": {"opened", "closed", "locked", "merged", "all"}, "sort": {"asc", "desc"}, "view": {"simple"},
		"order_by": {"created_at", "label_priority", "milestone_due", "popularity", "priority", "title", "updated_at", "merged_at"},
		"scope":    {"created-by-me", "assigned-to-me", "created_by_me", "assigned_to_me", "reviews_for_me", "all"},
	} {
		if err := p.oneOf(name, values...); err != nil {
			return nil, err
		}
	}
	q := mergeRequestFilter{params: p, viewer: c.user}
	for name, t := range map[string]*time.Time{"updated_after": &q.updatedAfter, "updated_before": &q.updatedBefore,
		"created_after": &q.createdAfter, "created_before": &q.createdBefore} {
		if *t, err = p.when(name); err != nil {
			return nil, err
		}
	}
	var found []*pull
	for _, n := range sortedKeys(c.repo.pulls) {
		if q.has(c.repo.pulls[n]) {
			found = append(found, c.repo.pulls[n])
		}
	}
	slices.SortStableFunc(found, func(a, b *pull) int {
		switch p.text("order_by") {
		case "updated_at":
			return a.updated.Compare(b.updated)
		case "merged_at":
			return a.mergedAt.Compare(b.mergedAt)
		case "title":
			return strings.Compare(a.title, b.title)
		}
		return a.created.Compare(b.created)
	})
	if p.text("sort") != "asc" {
		slices.Reverse(found)
	}
	var failed error
	shown := pageOf(c, found, func(o *pull) restObject {
		w := c.mergeRequest(o)
		// A check that was begun ends by itself.
		if w["detailed_merge_status"] == "checking" || p.isTrue("with_merge_status_recheck") {
			if err := c.computeMergeStatus(o); err != nil {
				failed = err
			}
		}
		if p.isTrue("with_labels_details") {
			var labels []restObject
			for _, name := range o.labels {
				l := c.ensureLabel(c.repo, name)
				labels = append(labels, restObject{"id": l.ID, "name": l.Name, "color": "#" + l.Color, "description": nil,
					"description_html": "", "text_color": "#FFFFFF"})
			}
			w["labels"] = labels
		}
		return w
	})
	return shown, failed
}

func getMergeRequest(c *call, p *pull) (any, error) { return c.mergeRequestInFull(p, c.user) }

// createMergeRequest opens a merge request from a branch of the path's project, into it or
// into the project that it was forked from.
func createMergeRequest(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := p.require("source_branch", "target_branch", "title"); err != nil {
		return nil, err
	}
	target := c.repo
	if id := p.number("target_project_id"); id != 0 && id != c.repo.id {
		target, _ = c.findProject(strconv.FormatInt(id, 10))
		if target == nil || target.permissionOf(c.user) < Read {
			return nil, gitlabNotFound("Project")
		}
		if c.repo.parent != target {
			return nil, gitlabRefusal(http.StatusUnprocessableEntity, []string{"Source project is not a fork of the target project"})
		}
	}
	if c.repo.permissionOf(c.user) < Write {
		return nil, gitlabForbidden()
	}
	body, commands := cutQuickActions(p.text("description"))
	n := pullSpec{title: p.text("title"), body: body, head: c.repo, branch: p.text("source_branch"), base: p.text("target_branch"),
		labels: append(p.list("labels"), p.list("add_labels")...), squash: p.isTrue("squash"),
		removeBranch: p.isTrue("remove_source_branch")}
	n.draft = isDraftTitle(n.title)
	if n.reviewers, err = c.findReviewers(p, target); err != nil {
		return nil, err
	}
	if err := checkMergeRequestText(n.title, n.body); err != nil {
		return nil, err
	}
	if c.repo == target && n.branch == n.base {
		return nil, gitlabRefusal(http.StatusUnprocessableEntity, []string{"You can't use same project/branch for source and target"})
	}
	if other := c.findOpenPull(target, c.repo, n.branch, n.base); other != nil {
		return nil, anotherOpen(other)
	}
	head := c.repo.branchHead(n.branch)
	if head == "" { // GitLab's documentation doesn't say
		return nil, gitlabRefusal(http.StatusUnprocessableEntity, []string{fmt.Sprintf("Source branch %q does not exist", n.branch)})
	}
	made, err := c.createPull(target, c.user, n, head)
	if err != nil {
		return nil, err
	}
	if err := c.runQuickActions(made, c.user, commands); err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return c.mergeRequestInFull(made, c.user)
}

func anotherOpen(p *pull) error {
	return gitlabRefusal(http.StatusConflict, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d",
		p.number)})
}

// GitLab's limits for a title and a description.
const (
	maxMergeRequestTitle       = 255
	maxMergeRequestDescription = 1048576
)

func checkMergeRequestText(title, body string) error {
	if len([]rune(title)) > maxMergeRequestTitle {
		return gitlabRefusal(http.StatusBadRequest, restObject{"title": []string{"is too long (maximum is 255 characters)"}})
	}
	if len([]rune(body)) > maxMergeRequestDescription {
		return gitlabRefusal(http.StatusBadRequest, restObject{"description": []string{"is too long (maximum is 1048576 characters)"}})
	}
	return nil
}

// findReviewers finds the accounts of reviewer_ids; who can't read the project is left out
// without a word.
func (c *call) findReviewers(p params, r *repository) ([]*account, error) {
	var found []*account
	for _, id := range p.list("reviewer_ids") {
		if a := c.accountByID(id); a != nil && r.permissionOf(a) >= Read && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found, nil
}

func listVersions(c *call, p *pull) (any, error) {
	all := slices.Clone(p.gitlab.versions)
	slices.Reverse(all)
	return pageOf(c, all, func(v version) restObject {
		return restObject{"id": v.id, "head_commit_sha": v.head, "base_commit_sha": orNull(v.base), "start_commit_sha": orNull(v.base),
			"created_at": formatGitLabTime(v.at), "merge_request_id": p.id, "state": "collected", "real_size": strconv.Itoa(len(p.commits))}
	}), nil
}

func listMergeRequestCommits(c *call, p *pull) (any, error) {
	all := slices.Clone(p.commits)
	slices.Reverse(all) // newest first
	var failed error
	shown := pageOf(c, all, func(sha string) restObject {
		found, err := c.repo.git.readCommit(sha)
		if err != nil {
			failed = err
			return nil
		}
		return c.gitlabCommit(c.repo, found)
	})
	return shown, failed
}
