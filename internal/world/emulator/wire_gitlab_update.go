package emulator

import (
	"net/http"
	"slices"
	"strings"
)

// updateMergeRequest changes what a call names (api/merge_requests.md); naming nothing is 400.
func updateMergeRequest(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	known := []string{"title", "description", "target_branch", "state_event", "labels", "add_labels", "remove_labels",
		"reviewer_ids", "squash",
		"remove_source_branch", "discussion_locked", "assignee_id", "assignee_ids", "milestone_id", "allow_collaboration", "merge_after"}
	if !slices.ContainsFunc(known, func(name string) bool { _, ok := q[name]; return ok }) {
		return nil, badParameter("%s are missing, at least one parameter must be provided", strings.Join(known, ", "))
	}
	if err := q.oneOf("state_event", "close", "reopen"); err != nil {
		return nil, err
	}
	if c.user != p.author && c.repo.permissionOf(c.user) < Write {
		return nil, gitlabForbidden()
	}
	e := pullEdit{}
	var commands []quickAction
	if q.has("title") {
		e.Title = pointerTo(q.text("title"))
	}
	if q.has("description") {
		body, found := cutQuickActions(q.text("description"))
		e.Body, commands = &body, found
	}
	if q.has("target_branch") {
		e.Base = pointerTo(q.text("target_branch"))
		if o := c.findOpenPull(p.repo, p.headRepo, p.branch, *e.Base); o != nil && o != p {
			return nil, anotherOpen(o)
		}
	}
	if err := checkMergeRequestText(q.text("title"), q.text("description")); err != nil {
		return nil, err
	}
	if err := c.editPull(p, c.user, e); err != nil {
		return nil, err
	}
	if err := c.updateLabels(p, q); err != nil {
		return nil, err
	}
	if err := c.updateMergeSettings(p, q); err != nil {
		return nil, err
	}
	if err := c.changeState(p, q.text("state_event")); err != nil {
		return nil, err
	}
	if err := c.runQuickActions(p, c.user, commands); err != nil {
		return nil, err
	}
	return c.mergeRequestInFull(p, c.user)
}

func pointerTo[T any](v T) *T { return &v }

// changeState closes or opens a merge request again. A state that it has already, and a merged one,
// stay as they are, without an error.
func (c *call) changeState(p *pull, event string) error {
	state := map[string]string{"close": "closed", "reopen": "open"}[event]
	if state == "" || p.merged || p.gitlab.inMerge {
		return nil
	}
	if event == "reopen" && !p.open {
		if o := c.findOpenPull(p.repo, p.headRepo, p.branch, p.base); o != nil {
			return anotherOpen(o)
		}
	}
	return c.editPull(p, c.user, pullEdit{State: &state})
}

// updateLabels sets, adds and takes off labels: one event, whatever changed.
func (c *call) updateLabels(p *pull, q params) error {
	want := slices.Clone(p.labels)
	if _, set := q["labels"]; set {
		want = q.list("labels")
	}
	want = append(want, q.list("add_labels")...)
	drop := q.list("remove_labels")
	want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(drop, name) })
	return c.setLabels(p, c.user, want)
}

// setLabels gives a merge request these labels; those that the project doesn't have are made.
func (f *Forge) setLabels(p *pull, by *account, want []string) error {
	before := slices.Clone(p.labels)
	var labels []string
	for _, name := range want {
		if len(name) > 255 {
			return gitlabRefusal(http.StatusBadRequest, restObject{"labels": []string{"title is too long (maximum is 255 characters)"}})
		}
		if !slices.Contains(labels, name) {
			f.ensureLabel(p.repo, name)
			labels = append(labels, name)
		}
	}
	if slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(labels))) {
		return nil
	}
	p.labels = labels
	f.markUpdated(p)
	f.emitMergeRequest(p, by, "update", restObject{"labels": restObject{"previous": f.gitlabLabels(p.repo, before),
		"current": f.gitlabLabels(p.repo, labels)}}, nil)
	return nil
}

// updateMergeSettings changes the reviewers, and what is to be done at the merge.
func (c *call) updateMergeSettings(p *pull, q params) error {
	if q.has("squash") {
		p.gitlab.squash = q.isTrue("squash")
	}
	if q.has("remove_source_branch") {
		p.gitlab.removeBranch = q.isTrue("remove_source_branch")
	}
	if _, set := q["reviewer_ids"]; !set {
		return nil
	}
	found, err := c.findReviewers(q, p.repo)
	if err != nil || slices.Equal(found, p.reviewers) {
		return err
	}
	before := p.reviewers
	p.reviewers = found
	c.markUpdated(p)
	c.emitMergeRequest(p, c.user, "update", restObject{"reviewers": restObject{"previous": c.hookUsers(before),
		"current": c.hookUsers(found)}}, nil)
	return nil
}
