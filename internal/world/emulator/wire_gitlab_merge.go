package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// readMergeStatus is a merge request's detailed_merge_status as far as GitLab has worked it
// out, and whether it is known to conflict.
func (f *Forge) readMergeStatus(p *pull) (status string, conflicts bool) {
	switch {
	case !p.open || p.gitlab.inMerge:
		return "not_open", false
	case p.testedPair == "":
		return "unchecked", false
	case p.testedPair != p.mergePair() && !strings.HasPrefix(p.testedPair, "checking "):
		return "unchecked", false
	case strings.HasPrefix(p.testedPair, "checking "):
		return "checking", false
	case p.gitlab.resetDue:
		return "approvals_syncing", !p.clean
	}
	return f.findGitLabBlocker(p), !p.clean
}

func (p *pull) mergePair() string { return p.head + " " + p.repo.branchHead(p.base) }

// computeMergeStatus works on when a merge request is shown. One that was never checked, or has
// changed since, is being checked now, and is known when it is shown next. The same holds for
// approvals that a push takes back.
func (f *Forge) computeMergeStatus(p *pull) error {
	if !p.open {
		return nil
	}
	switch pair := p.mergePair(); p.testedPair {
	case pair:
		if p.gitlab.resetDue && p.gitlab.resetShown {
			return f.resetApprovals(p)
		}
		p.gitlab.resetShown = p.gitlab.resetDue
	case "checking " + pair:
		p.gitlab.resetShown = p.gitlab.resetDue
		return f.finishCheck(p)
	default:
		p.testedPair = "checking " + pair
	}
	return nil
}

// finishCheck finds out whether a merge request conflicts.
func (f *Forge) finishCheck(p *pull) error {
	p.testedPair = p.mergePair()
	base := p.repo.branchHead(p.base)
	p.clean = base != ""
	if base == "" {
		return nil
	}
	var err error
	_, p.clean, err = p.repo.git.mergeTree(base, p.head)
	return err
}

// findGitLabBlocker is the first thing that keeps a checked merge request from merging, in
// GitLab's order: its state, its reviews, Git and last the pipeline. One hides the next.
func (f *Forge) findGitLabBlocker(p *pull) string {
	method := p.repo.gitlabMethod()
	need := p.repo.protections[p.base]
	tip := p.repo.branchHead(p.base)
	behind := false
	if method != "merge" || need.Strict {
		up, err := p.repo.git.isAncestor(tip, p.head)
		behind = err != nil || !up
	}
	missing, rejected := f.reviewsMissing(p)
	switch {
	case p.draft:
		return "draft_status"
	case len(p.commits) == 0 || tip == "":
		return "commits_status"
	case p.repo.gitlab.DiscussionsMustBeResolved && p.openThreads() > 0:
		return "discussions_not_resolved"
	case missing > 0:
		return "not_approved"
	case rejected:
		return "requested_changes"
	case behind:
		return "need_rebase"
	case !p.clean:
		return "conflict"
	case p.repo.needsPipeline(p.base):
		if word := f.pipelineBlocker(p); word != "" {
			return word
		}
	}
	return "mergeable"
}

// pipelineBlocker is why a pipeline that must succeed hasn't; empty: it has.
func (f *Forge) pipelineBlocker(p *pull) string {
	pipe := p.repo.findPipeline(p.head, "")
	if pipe == nil {
		return "ci_must_pass"
	}
	latest := f.latestStatuses(p.repo, p.head)
	for _, context := range p.repo.protections[p.base].Contexts { // jobs that a pipeline here would have
		if !slices.ContainsFunc(latest, func(s *status) bool { return s.context == context }) {
			return "ci_still_running"
		}
	}
	switch f.pipelineState(p.repo, pipe) {
	case "success":
		return ""
	case "pending", "running":
		return "ci_still_running"
	}
	return "ci_must_pass"
}

// acceptRequest is a request to merge a merge request.
type acceptRequest struct {
	sha                         string // empty: whatever the head is
	mergeMessage, squashMessage string // empty: GitLab's own
	squash, removeBranch        bool
	whenPipelineSucceeds        bool
}

// acceptMergeRequest merges now, or sets auto-merge (api/merge_requests.md, "Merge a merge
// request").
func acceptMergeRequest(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	o := acceptRequest{
		sha: q.text("sha"), mergeMessage: q.text("merge_commit_message"), squashMessage: q.text("squash_commit_message"),
		squash: p.gitlab.squash, removeBranch: p.gitlab.removeBranch, whenPipelineSucceeds: q.isTrue("auto_merge") && !c.oldGitLab ||
			q.isTrue("merge_when_pipeline_succeeds"),
	}
	if q.has("squash") {
		o.squash = q.isTrue("squash")
	}
	if q.has("should_remove_source_branch") {
		o.removeBranch = q.isTrue("should_remove_source_branch")
	}
	if err := c.acceptPull(p, c.user, o); err != nil {
		return nil, err
	}
	return c.mergeRequestInFull(p, c.user)
}

// acceptPull merges a merge request, or lets it merge when its pipeline succeeds, or says in
// GitLab's words why it can't.
func (f *Forge) acceptPull(p *pull, by *account, o acceptRequest) error {
	if !mayMergeInto(p.repo, p.base, by) {
		return gitlabUnauthorized()
	}
	notAllowed := gitlabRefusal(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	if !p.open || p.gitlab.inMerge {
		return notAllowed
	}
	if o.sha != "" && o.sha != p.head {
		return gitlabRefusal(http.StatusConflict, "SHA does not match HEAD of source branch: "+p.head)
	}
	if p.gitlab.resetDue {
		if err := f.resetApprovals(p); err != nil {
			return err
		}
	}
	if err := f.finishCheck(p); err != nil { // the check runs on the call
		return err
	}
	blocker := f.findGitLabBlocker(p)
	if o.whenPipelineSucceeds && (blocker == "ci_still_running" || blocker == "mergeable" && f.pipelineRuns(p)) {
		p.gitlab.autoMerge, p.gitlab.autoRequest = by, o
		f.markUpdated(p)
		f.emitMergeRequest(p, by, "update", nil, nil)
		return nil
	}
	if blocker != "mergeable" {
		return notAllowed
	}
	return f.landMergeRequest(p, by, o)
}

func (f *Forge) pipelineRuns(p *pull) bool {
	pipe := p.repo.findPipeline(p.head, "")
	return pipe != nil && slices.Contains([]string{"pending", "running"}, f.pipelineState(p.repo, pipe))
}

// landMergeRequest makes the commits of a merge and puts them on the branch.
func (f *Forge) landMergeRequest(p *pull, by *account, o acceptRequest) error {
	git, base := p.repo.git, p.repo.branchHead(p.base)
	failed := gitlabRefusal(http.StatusUnprocessableEntity, "Branch cannot be merged")
	switch p.repo.squashOption() {
	case "always":
		o.squash = true
	case "never":
		o.squash = false
	}
	tip, mergeCommit, squashCommit := p.head, "", ""
	if o.squash && len(p.commits) > 0 {
		from, err := git.mergeBase(base, p.head)
		if err != nil {
			return err
		}
		tree, err := git.objectID(p.head, "")
		if err != nil {
			return err
		}
		message := o.squashMessage
		if message == "" {
			message = p.title
		}
		squashCommit, err = git.commitTree(tree, []string{from}, f.commitIdent(p.author), f.commitIdent(by),
			strings.TrimRight(message, "\n")+"\n")
		if err != nil {
			return err
		}
		tip = squashCommit
	}
	if p.repo.gitlabMethod() != "ff" {
		tree, clean, err := git.mergeTree(base, tip)
		if err != nil {
			return err
		}
		if !clean {
			return failed
		}
		message := o.mergeMessage
		if message == "" {
			message = fmt.Sprintf("Merge branch '%s' into '%s'\n\n%s\n\nSee merge request %s!%d", p.branch, p.base, p.title,
				p.repo.fullName(), p.number)
		}
		who := f.commitIdent(by)
		if mergeCommit, err = git.commitTree(tree, []string{base, tip}, who, who, strings.TrimRight(message, "\n")+"\n"); err != nil {
			return err
		}
		tip = mergeCommit
	}
	if err := git.updateRef("refs/heads/"+p.base, tip, base); err != nil {
		p.gitlab.mergeError = "Something went wrong during merge: Could not update refs/heads/" + p.base + ". Please refresh and try again."
		return failed
	}
	var err error
	if p.landed, err = git.revList(base, tip); err != nil {
		return err
	}
	p.gitlab.mergeCommit, p.gitlab.squashCommit, p.gitlab.mergeError = mergeCommit, squashCommit, ""
	f.markMerged(p, by, tip)
	if (o.removeBranch || p.repo.deleteMerged) && p.headRepo == p.repo && p.branch != p.repo.branch {
		if err := git.deleteRef("refs/heads/"+p.branch, p.head); err != nil {
			return err
		}
	}
	return f.noticeRefs(p.repo, by)
}

// runAutoMerges merges what was waiting for a pipeline of a commit. Callers hold refsMu.
func (f *Forge) runAutoMerges(r *repository, sha string) error {
	for _, n := range sortedKeys(r.pulls) {
		p := r.pulls[n]
		if !p.open || p.gitlab.autoMerge == nil || p.head != sha || f.pipelineRuns(p) {
			continue
		}
		if err := f.finishCheck(p); err != nil {
			return err
		}
		if f.findGitLabBlocker(p) == "mergeable" {
			if err := f.landMergeRequest(p, p.gitlab.autoMerge, p.gitlab.autoRequest); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergesByItself says that a merge request is merged when its conditions are met: by
// auto-merge, which a merge train is one strategy of.
func (p *pull) mergesByItself() bool { return p.queuedBy() != nil }

// queuedBy is who wants it merged by itself; nil: nobody.
func (p *pull) queuedBy() *account {
	if o := p.findCar(); o != nil && o.active() {
		return o.by
	}
	return p.gitlab.autoMerge
}

// cancelAutoMerge also takes what is on a merge train off it. It is 201 also for what is merged
// already, and 406 for what is closed.
func cancelAutoMerge(c *call, p *pull) (any, error) {
	if !mayMergeInto(p.repo, p.base, c.user) && p.queuedBy() != c.user {
		return nil, gitlabUnauthorized()
	}
	if !p.open && !p.merged {
		return nil, gitlabRefusal(http.StatusNotAcceptable, "406 Not Acceptable")
	}
	c.dropCar(p, c.user)
	if p.gitlab.autoMerge != nil {
		p.gitlab.autoMerge = nil
		c.markUpdated(p)
		c.emitMergeRequest(p, c.user, "update", nil, nil)
	}
	c.status = http.StatusCreated
	return c.mergeRequestInFull(p, c.user)
}

// rebaseMergeRequest puts the source branch onto its target. The answer comes before the work
// in GitLab; here it is done before anybody can look.
func rebaseMergeRequest(c *call, p *pull) (any, error) {
	if !p.open || p.headRepo != p.repo || p.repo.permissionOf(c.user) < Write || p.repo.branchHead(p.branch) == "" {
		return nil, gitlabForbidden()
	}
	c.status = http.StatusAccepted
	git, base := p.repo.git, p.repo.branchHead(p.base)
	tip, clean, err := git.rebaseCommits(p.commits, base, c.commitIdent(c.user))
	if err != nil {
		return nil, err
	}
	if !clean {
		p.gitlab.mergeError = "Rebase failed: Rebase locally, resolve all conflicts, then push the branch."
		return restObject{"rebase_in_progress": true}, nil
	}
	p.gitlab.mergeError = ""
	if err := git.updateRef("refs/heads/"+p.branch, tip, p.head); err != nil {
		return nil, err
	}
	return restObject{"rebase_in_progress": true}, c.noticeRefs(p.repo, c.user)
}
