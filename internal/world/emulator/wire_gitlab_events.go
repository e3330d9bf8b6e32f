package emulator

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of GitLab's events, as X-Gitlab-Event has them.
const (
	pushHook             = "Push Hook"
	tagPushHook          = "Tag Push Hook"
	mergeRequestHook     = "Merge Request Hook"
	noteHook             = "Note Hook"
	confidentialNoteHook = "Confidential Note Hook"
	pipelineHook         = "Pipeline Hook"
	emojiHook            = "Emoji Hook"
)

// gitlabEventFlags are the events by the flag of a hook that wants them.
var gitlabEventFlags = map[string]string{
	pushHook: "push_events", tagPushHook: "tag_push_events", mergeRequestHook: "merge_requests_events", noteHook: "note_events",
	confidentialNoteHook: "confidential_note_events", pipelineHook: "pipeline_events", emojiHook: "emoji_events",
}

const (
	// maxHookCommits is how many commits a push event names at most.
	maxHookCommits = 20
	// hookTime is how object_attributes write times.
	hookTime = "2006-01-02 15:04:05 UTC"
)

func formatHookTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(hookTime)
}

// eventCause is what the events of one call have in common. A call that a hook's receiver
// makes, and says so by the event's own header, goes on with its UUID; the events of any
// other share one for each hook. Events that no call made have a new one each.
type eventCause struct {
	uuid   string
	byHook map[int64]string
}

func newEventCause(r *http.Request) *eventCause {
	uuid := r.Header.Get("X-Gitlab-Event-UUID")
	if len(uuid) > 64 {
		uuid = ""
	}
	return &eventCause{uuid: uuid, byHook: map[int64]string{}}
}

// eventUUID is the value of X-Gitlab-Event-UUID for a hook.
func (f *Forge) eventUUID(h *hook) string {
	switch {
	case f.cause == nil:
		return newUUID()
	case f.cause.uuid != "":
		return f.cause.uuid
	case f.cause.byHook[h.id] == "":
		f.cause.byHook[h.id] = newUUID()
	}
	return f.cause.byHook[h.id]
}

// emitGitLab sends an event to the project's hooks that want it and aren't disabled.
func (f *Forge) emitGitLab(r *repository, event string, payload restObject) {
	for _, h := range r.hooks {
		if h.wants(gitlabEventFlags[event]) && h.wantsRef(payload) {
			f.sender.sendGitLabEvent(h, event, f.eventUUID(h), payload)
		}
	}
}

// wantsRef holds a push against the hook's filter of branches: a name, or one with a *.
func (h *hook) wantsRef(payload restObject) bool {
	ref, _ := payload["ref"].(string)
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok || h.branchFilter == "" {
		return true
	}
	before, after, wild := strings.Cut(h.branchFilter, "*")
	if !wild {
		return branch == h.branchFilter
	}
	return len(branch) >= len(before)+len(after) && strings.HasPrefix(branch, before) && strings.HasSuffix(branch, after)
}

func (f *Forge) hookUser(a *account) restObject {
	return restObject{"id": a.id, "name": a.login, "username": a.login, "avatar_url": nil, "email": "[REDACTED]"}
}

func (f *Forge) hookUsers(all []*account) []restObject {
	shown := []restObject{}
	for _, a := range all {
		u := f.hookUser(a)
		delete(u, "email")
		shown = append(shown, u)
	}
	return shown
}

func (f *Forge) hookProject(r *repository) restObject {
	page := f.url + "/" + r.fullName()
	return restObject{
		"id": r.id, "name": r.name, "description": nil, "web_url": page, "avatar_url": nil, "git_ssh_url": "git@127.0.0.1:" +
			r.fullName() + ".git",
		"git_http_url": page + ".git", "namespace": r.owner.login, "visibility_level": 0, "path_with_namespace": r.fullName(),
		"default_branch": r.branch,
		"ci_config_path": nil, "homepage": page, "url": "git@127.0.0.1:" + r.fullName() + ".git", "ssh_url": "git@127.0.0.1:" +
			r.fullName() + ".git", "http_url": page + ".git",
	}
}

func (f *Forge) hookRepository(r *repository) restObject {
	page := f.url + "/" + r.fullName()
	return restObject{"name": r.name, "url": "git@127.0.0.1:" + r.fullName() + ".git", "description": nil, "homepage": page}
}

func (f *Forge) hookCommit(r *repository, c wirePushCommit) restObject {
	title, _, _ := strings.Cut(c.Message, "\n")
	return restObject{"id": c.ID, "message": c.Message + "\n", "title": title, "timestamp": c.Timestamp.Format(time.RFC3339),
		"url": f.url + "/" + r.fullName() + "/-/commit/" + c.ID, "author": restObject{"name": c.Author.Name, "email": c.Author.Email}}
}

// emitGitLabPush sends a push of a branch or a tag.
func (f *Forge) emitGitLabPush(r *repository, by *account, ref, before, after string, commits []wirePushCommit) {
	event, kind := pushHook, "push"
	if strings.HasPrefix(ref, "refs/tags/") {
		event, kind = tagPushHook, "tag_push"
	}
	f.emitGitLab(r, event, f.pushPayload(r, by, kind, ref, before, after, commits))
}

func (f *Forge) pushPayload(r *repository, by *account, kind, ref, before, after string, commits []wirePushCommit) restObject {
	shown := []restObject{}
	for _, c := range commits[max(0, len(commits)-maxHookCommits):] {
		w := f.hookCommit(r, c)
		w["added"], w["modified"], w["removed"] = c.Added, c.Modified, c.Removed
		shown = append(shown, w)
	}
	repo := f.hookRepository(r)
	repo["git_http_url"], repo["git_ssh_url"], repo["visibility_level"] = f.url+"/"+r.fullName()+".git", "git@127.0.0.1:"+
		r.fullName()+".git", 0
	return restObject{
		"object_kind": kind, "event_name": kind, "before": cmp.Or(before, zeroCommit), "after": cmp.Or(after, zeroCommit), "ref": ref,
		"ref_protected": r.protections[strings.TrimPrefix(ref, "refs/heads/")].MergeRole != NoPermission, "checkout_sha": orNull(after),
		"message": nil,
		"user_id": by.id, "user_name": by.login, "user_username": by.login, "user_email": nil, "user_avatar": nil, "project_id": r.id,
		"project": f.hookProject(r), "repository": repo, "commits": shown, "total_commits_count": len(commits),
		"push_options": restObject{},
	}
}

func (f *Forge) gitlabLabels(r *repository, names []string) []restObject {
	shown := []restObject{}
	for _, name := range names {
		l := f.ensureLabel(r, name)
		shown = append(shown, restObject{"id": l.ID, "title": l.Name, "color": "#" + l.Color, "project_id": r.id,
			"created_at": formatHookTime(r.created),
			"updated_at": formatHookTime(r.created), "template": false, "description": nil, "type": "ProjectLabel", "group_id": nil})
	}
	return shown
}

// pullChanges are what GitHub calls the changes of an edit, in GitLab's words.
func pullChanges(p *pull, more map[string]any) restObject {
	edit, _ := more["changes"].(map[string]any)
	changes := restObject{}
	from := func(name string) any {
		m, _ := edit[name].(map[string]any)
		return m["from"]
	}
	if edit["title"] != nil {
		changes["title"] = restObject{"previous": from("title"), "current": p.title}
		before, _ := from("title").(string)
		if isDraftTitle(before) != p.draft {
			changes["draft"] = restObject{"previous": !p.draft, "current": p.draft}
		}
	}
	if edit["body"] != nil {
		changes["description"] = restObject{"previous": from("body"), "current": p.body}
	}
	if base, ok := edit["base"].(map[string]any); ok {
		ref, _ := base["ref"].(map[string]any)
		changes["target_branch"] = restObject{"previous": ref["from"], "current": p.base}
	}
	return changes
}

// emitPullToGitLab sends what GitHub calls an action of a pull request.
func (f *Forge) emitPullToGitLab(p *pull, by *account, action string, more map[string]any) {
	word := map[string]string{"opened": "open", "closed": "close", "reopened": "reopen"}[action]
	if p.merged {
		word = "merge"
	}
	f.emitMergeRequest(p, by, cmp.Or(word, "update"), pullChanges(p, more), nil)
}

// emitMergeRequest sends a merge_request event; attributes are added to object_attributes.
func (f *Forge) emitMergeRequest(p *pull, by *account, action string, changes, attributes restObject) {
	f.emitGitLab(p.repo, mergeRequestHook, f.mergeRequestPayload(p, by, action, changes, attributes))
}

func (f *Forge) mergeRequestPayload(p *pull, by *account, action string, changes, attributes restObject) restObject {
	if changes == nil {
		changes = restObject{}
	}
	o := f.hookMergeRequest(p)
	o["action"] = action
	for k, v := range attributes {
		o[k] = v
	}
	return restObject{
		"object_kind": "merge_request", "event_type": "merge_request", "user": f.hookUser(by), "project": f.hookProject(p.repo),
		"repository":        f.hookRepository(p.repo),
		"object_attributes": o, "labels": f.gitlabLabels(p.repo, p.labels), "changes": changes, "assignees": []any{},
		"reviewers": f.hookUsers(p.reviewers),
	}
}

// hookMergeRequest is a merge request as webhooks show it. GitLab sends it before it has worked
// out whether it can be merged, and has no sha in it but the last commit.
func (f *Forge) hookMergeRequest(p *pull) restObject {
	source, target := f.hookProject(p.headRepo), f.hookProject(p.repo)
	w := restObject{
		"id": p.id, "iid": p.number, "target_branch": p.base, "source_branch": p.branch, "source_project_id": p.headRepo.id,
		"target_project_id": p.repo.id,
		"author_id":         p.author.id, "assignee_id": nil, "assignee_ids": []any{}, "reviewer_ids": accountIDs(p.reviewers),
		"title": p.title, "description": p.body,
		"created_at": formatHookTime(p.created), "updated_at": formatHookTime(p.updated), "milestone_id": nil, "state": p.gitlabMRState(),
		"state_id": map[string]int{"opened": 1, "closed": 2, "merged": 3, "locked": 4}[p.gitlabMRState()], "url": f.pullPage(p),
		"source": source, "target": target,
		"blocking_discussions_resolved": p.openThreads() == 0, "work_in_progress": p.draft, "draft": p.draft, "first_contribution": false,
		"merge_status": "checking", "detailed_merge_status": "checking", "last_edited_at": nil, "last_edited_by_id": nil,
		"head_pipeline_id": nil,
		"merge_commit_sha": orNull(p.gitlab.mergeCommit), "merge_error": nil, "merge_user_id": nil,
		"merge_when_pipeline_succeeds": p.open && p.mergesByItself(),
		"merge_params":                 restObject{"force_remove_source_branch": strconv.FormatBool(p.gitlab.removeBranch)},
		"labels":                       f.gitlabLabels(p.repo, p.labels),
		"last_commit":                  nil, "time_estimate": 0, "total_time_spent": 0, "prepared_at": formatHookTime(p.created),
	}
	if pipe := p.repo.findPipeline(p.head, ""); pipe != nil {
		w["head_pipeline_id"] = pipe.id
	}
	if found, err := p.repo.git.readCommit(p.head); err == nil {
		w["last_commit"] = f.hookCommit(p.repo, wirePushCommit{ID: found.SHA, Message: found.Message, Timestamp: found.Committer.When,
			Author: f.pushIdent(found.Author)})
	}
	return w
}

func accountIDs(all []*account) []int64 {
	ids := []int64{}
	for _, a := range all {
		ids = append(ids, a.id)
	}
	return ids
}

// emitReviewToGitLab sends the approval or its end. Asking for changes is an update; what a
// reviewer only says comes as a note.
func (f *Forge) emitReviewToGitLab(p *pull, by *account, v *review, action string) {
	missing, _ := f.reviewsMissing(p)
	word := ""
	switch {
	case action == "submitted" && v.state == "APPROVED":
		word = "approval"
		if missing == 0 {
			word = "approved"
		}
	case action == "submitted" && v.state == "CHANGES_REQUESTED":
		word = "update"
	case action == "dismissed":
		word = "unapproval"
		if missing > 0 || p.repo.protections[p.base].Approvals == 0 {
			word = "unapproved"
		}
	}
	if word != "" {
		f.emitMergeRequest(p, by, word, nil, nil)
	}
}

// emitNote sends a note; GitLab sends none for one that is deleted, nor for its own.
func (f *Forge) emitNote(c *comment, by *account, action string) {
	word := map[string]string{"created": "create", "edited": "update"}[action]
	if word == "" || c.system {
		return
	}
	event, kind := noteHook, "note"
	if c.internal {
		event, kind = confidentialNoteHook, "confidential_note"
	}
	f.emitGitLab(c.pull.repo, event, f.notePayload(c, by, kind, word))
}

func (f *Forge) notePayload(c *comment, by *account, kind, action string) restObject {
	p := c.pull
	w := f.hookMergeRequest(p)
	for _, name := range []string{"merge_params", "merge_error", "merge_user_id", "merge_commit_sha", "head_pipeline_id", "last_edited_at",
		"last_edited_by_id", "prepared_at",
		"state_id", "time_estimate", "total_time_spent", "merge_when_pipeline_succeeds", "first_contribution",
		"blocking_discussions_resolved"} {
		delete(w, name)
	}
	for _, name := range []string{"source", "target"} {
		side, _ := w[name].(restObject)
		delete(side, "id")
		delete(side, "ci_config_path")
	}
	project := f.hookProject(p.repo)
	delete(project, "ci_config_path")
	return restObject{
		"object_kind": "note", "event_type": kind, "user": f.hookUser(by), "project_id": p.repo.id, "project": project,
		"repository": f.hookRepository(p.repo),
		"object_attributes": restObject{
			"id": c.id, "note": c.body, "noteable_type": "MergeRequest", "noteable_id": p.id, "author_id": c.user.id,
			"created_at": formatHookTime(c.created),
			"updated_at": formatHookTime(c.updated), "project_id": p.repo.id, "attachment": nil, "line_code": nil, "commit_id": "",
			"system": c.system, "st_diff": nil,
			"action": action, "url": fmt.Sprintf("%s#note_%d", f.pullPage(p), c.id), "discussion_id": discussionID(c), "type": nil,
		},
		"merge_request": w,
	}
}

func (f *Forge) pipelinePage(r *repository, p *pipeline) string {
	return fmt.Sprintf("%s/%s/-/pipelines/%d", f.url, r.fullName(), p.id)
}

// emitPipeline sends that a pipeline has come to another state.
func (f *Forge) emitPipeline(r *repository, by *account, p *pipeline) {
	f.emitGitLab(r, pipelineHook, f.pipelinePayload(r, by, p))
}

func (f *Forge) pipelinePayload(r *repository, by *account, p *pipeline) restObject {
	state := f.pipelineState(r, p)
	var finished any
	if !slices.Contains([]string{"pending", "running"}, state) {
		finished = formatHookTime(p.updated)
	}
	project := f.hookProject(r)
	for _, name := range []string{"homepage", "url", "ssh_url", "http_url"} {
		delete(project, name)
	}
	w := restObject{
		"object_kind": "pipeline", "object_attributes": restObject{
			"id": p.id, "iid": p.iid, "ref": p.ref, "tag": false, "sha": p.sha, "before_sha": zeroCommit, "source": "external",
			"status": state, "detailed_status": state,
			"stages": []string{"external"}, "created_at": formatHookTime(p.created), "finished_at": finished, "duration": nil,
			"queued_duration": nil,
			"variables":       []any{}, "name": nil, "url": f.pipelinePage(r, p),
		},
		"merge_request": nil, "user": f.hookUser(by), "project": project, "commit": nil, "builds": []any{},
	}
	if found, err := r.git.readCommit(p.sha); err == nil {
		c := f.hookCommit(r, wirePushCommit{ID: found.SHA, Message: found.Message, Timestamp: found.Committer.When,
			Author: f.pushIdent(found.Author)})
		delete(c, "title")
		w["commit"] = c
	}
	for _, builds := range f.latestStatuses(r, p.sha) {
		if builds.ref == p.ref {
			all, _ := w["builds"].([]any)
			w["builds"] = append(all, restObject{"id": builds.id, "stage": "external", "name": builds.context,
				"status":     builds.gitlabState(),
				"created_at": formatHookTime(builds.at), "when": "on_success", "manual": false, "allow_failure": false,
				"user": f.hookUser(builds.creator)})
		}
	}
	return w
}

// emitAward sends a reaction to a note, or its end.
func (f *Forge) emitAward(c *comment, r *reaction, action string) {
	p := c.pull
	url := fmt.Sprintf("%s#note_%d", f.pullPage(p), c.id)
	f.emitGitLab(p.repo, emojiHook, restObject{
		"object_kind": "emoji", "event_type": action, "user": f.hookUser(r.user), "project_id": p.repo.id, "project": f.hookProject(p.repo),
		"object_attributes": restObject{"user_id": r.user.id, "created_at": formatHookTime(r.at), "id": r.id, "name": awardName(r.content),
			"awardable_type": "Note",
			"awardable_id":   c.id, "updated_at": formatHookTime(r.at), "action": action, "awarded_on_url": url},
		"note": restObject{"id": c.id, "note": c.body, "noteable_type": "MergeRequest", "noteable_id": p.id, "author_id": c.user.id,
			"project_id": p.repo.id,
			"created_at": formatHookTime(c.created), "updated_at": formatHookTime(c.updated), "description": c.body, "url": url},
		"merge_request": restObject{"id": p.id, "iid": p.number, "project_id": p.repo.id, "source_project_id": p.headRepo.id,
			"target_project_id": p.repo.id,
			"author_id":         p.author.id, "assignee_id": nil, "assignee_ids": []any{}, "reviewer_ids": []any{}, "title": p.title,
			"description": p.body,
			"state":       p.gitlabMRState(), "merge_status": "checking", "target_branch": p.base, "source_branch": p.branch,
			"created_at": formatHookTime(p.created),
			"updated_at": formatHookTime(p.updated), "milestone_id": nil, "labels": []any{}, "url": f.pullPage(p)},
	})
}
