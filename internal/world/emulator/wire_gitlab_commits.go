package emulator

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pipeline is what statuses on a commit make: GitLab's external one.
type pipeline struct {
	id, iid          int64
	sha, ref         string
	by               *account
	created, updated time.Time
}

// withGitLabCommit finds the commit of the path: an id, a branch or a tag.
func withGitLabCommit(answer func(*call, string) (any, error)) handler {
	return func(c *call) (any, error) {
		sha, err := c.repo.git.resolveRevision(c.r.PathValue("sha"))
		if errors.Is(err, errNoObject) {
			return nil, gitlabNotFound("Commit")
		}
		if err != nil {
			return nil, err
		}
		return answer(c, sha)
	}
}

func (f *Forge) gitlabCommit(r *repository, c commit) restObject {
	title, _, _ := strings.Cut(c.Message, "\n")
	return restObject{
		"id": c.SHA, "short_id": c.SHA[:8], "created_at": formatGitLabTime(c.Committer.When), "parent_ids": orEmpty(c.Parents),
		"title":   title,
		"message": c.Message + "\n", "author_name": c.Author.Name, "author_email": c.Author.Email,
		"authored_date":  formatGitLabTime(c.Author.When),
		"committer_name": c.Committer.Name, "committer_email": c.Committer.Email, "committed_date": formatGitLabTime(c.Committer.When),
		"trailers": restObject{}, "extended_trailers": restObject{}, "web_url": f.url + "/" + r.fullName() + "/-/commit/" + c.SHA,
	}
}

func getGitLabCommit(c *call, sha string) (any, error) {
	found, err := c.repo.git.readCommit(sha)
	if err != nil {
		return nil, err
	}
	w := c.gitlabCommit(c.repo, found)
	w["project_id"], w["status"], w["last_pipeline"] = c.repo.id, nil, nil
	if p := c.repo.findPipeline(sha, ""); p != nil {
		w["status"], w["last_pipeline"] = c.pipelineState(c.repo, p), c.gitlabPipeline(c.repo, p)
	}
	return w, nil
}

// compareGitLabCommits lists what one commit has and another hasn't, oldest first
// (api/repositories.md, "Compare branches, tags or commits"). The changed files are left out.
func compareGitLabCommits(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := p.require("from", "to"); err != nil {
		return nil, err
	}
	var ends [2]string
	for i, name := range []string{"from", "to"} {
		ends[i], err = c.repo.git.resolveRevision(p.text(name))
		if errors.Is(err, errNoObject) {
			return nil, gitlabNotFound("Ref")
		}
		if err != nil {
			return nil, err
		}
	}
	shas, err := c.repo.git.revList(ends[0], ends[1])
	if err != nil {
		return nil, err
	}
	w := restObject{"commit": nil, "diffs": []any{}, "compare_timeout": false, "compare_same_ref": ends[0] == ends[1],
		"web_url": c.url + "/" + c.repo.fullName() + "/-/compare/" + ends[0] + "..." + ends[1]}
	commits := []restObject{}
	for _, sha := range shas {
		found, err := c.repo.git.readCommit(sha)
		if err != nil {
			return nil, err
		}
		commits = append(commits, c.gitlabCommit(c.repo, found))
		w["commit"] = commits[len(commits)-1]
	}
	w["commits"] = commits
	return w, nil
}

// listCommitMergeRequests are those that have a commit among theirs, or made it when they
// merged.
func listCommitMergeRequests(c *call, sha string) (any, error) {
	var found []*pull
	for _, n := range sortedKeys(c.repo.pulls) {
		p := c.repo.pulls[n]
		if slices.Contains(p.commits, sha) || p.gitlab.mergeCommit == sha || p.gitlab.squashCommit == sha {
			found = append(found, p)
		}
	}
	return pageOf(c, found, c.mergeRequest), nil
}

// The states of GitLab's statuses that the world has no word for, beside those that it has.
var worldStates = map[string]string{"pending": "pending", "running": "pending", "success": "success", "failed": "failure",
	"canceled": "failure", "skipped": "success"}

// gitlabState is a status's state in GitLab's words.
func (s *status) gitlabState() string {
	return cmp.Or(s.word, map[string]string{"pending": "pending", "success": "success", "failure": "failed", "error": "failed"}[s.state])
}

// createCommitStatus makes a status, or changes one that hasn't ended (api/commits.md).
func createCommitStatus(c *call) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.require("state"), p.oneOf("state", sortedKeys(worldStates)...)); err != nil {
		return nil, badParameter("state does not have a valid value")
	}
	sha, err := c.repo.git.resolveRevision(c.r.PathValue("sha"))
	if errors.Is(err, errNoObject) {
		return nil, gitlabNotFound("Commit")
	}
	if err != nil {
		return nil, err
	}
	ref := strings.TrimPrefix(p.text("ref"), "refs/heads/")
	if ref == "" {
		if ref = c.repo.branchWith(sha); ref == "" {
			return nil, gitlabNotFound("References for commit")
		}
	}
	s := &status{state: worldStates[p.text("state")], word: p.text("state"), context: cmp.Or(p.text("name"), p.text("context"), "default"),
		description: p.text("description"), target: p.text("target_url"), ref: ref}
	if len([]rune(s.description)) > 255 {
		return nil, gitlabRefusal(http.StatusBadRequest, restObject{"description": []string{"is too long (maximum is 255 characters)"}})
	}
	if id := p.number("pipeline_id"); id != 0 {
		i := slices.IndexFunc(c.repo.pipelines, func(o *pipeline) bool { return o.id == id && o.sha == sha })
		if i < 0 {
			return nil, gitlabNotFound("Pipeline")
		}
		s.ref = c.repo.pipelines[i].ref
	}
	if err := c.checkTransition(sha, s); err != nil {
		return nil, err
	}
	if err := c.recordStatus(c.repo, c.user, sha, s); err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return c.gitlabStatus(c.repo, sha, s), nil
}

// branchWith is the first branch that has a commit; empty: none has.
func (r *repository) branchWith(sha string) string {
	out, err := r.git.runGit("for-each-ref", "--contains="+sha, "--format=%(refname)", "refs/heads")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(out, "\n")
	return strings.TrimPrefix(first, "refs/heads/")
}

// checkTransition refuses a step to the state that a status is in, or backwards; what the
// status says changes all the same. One that has ended isn't changed but followed by another of
// its name.
func (c *call) checkTransition(sha string, s *status) error {
	for _, o := range c.latestStatuses(c.repo, sha) {
		if o.context != s.context || o.ref != s.ref || o.state != "pending" {
			continue
		}
		event := map[string]string{"pending": "enqueue", "running": "run"}[s.word]
		if s.word == "pending" || s.word == o.gitlabState() {
			// Known from GitLab's source, not from its documentation: its texts change before the step is tried.
			o.description, o.target = cmp.Or(s.description, o.description), cmp.Or(s.target, o.target)
			return gitlabRefusal(http.StatusBadRequest, "Cannot transition status via :"+event+" from :"+o.gitlabState()+
				` (Reason(s): Status cannot transition via "`+event+`")`)
		}
		s.id = o.id // the same one goes on
	}
	return nil
}

func (f *Forge) gitlabStatus(r *repository, sha string, s *status) restObject {
	w := restObject{
		"id": s.id, "sha": sha, "ref": orNull(s.ref), "status": s.gitlabState(), "name": s.context, "target_url": orNull(s.target),
		"description": orNull(s.description),
		"created_at":  formatGitLabTime(s.at), "started_at": nil, "finished_at": nil, "allow_failure": false, "coverage": nil,
		"pipeline_id": nil, "author": f.gitlabUser(s.creator),
	}
	if p := r.findPipeline(sha, s.ref); p != nil {
		w["pipeline_id"] = p.id
	}
	if s.state != "pending" {
		w["finished_at"] = formatGitLabTime(s.at)
	}
	return w
}

// listCommitStatuses are a commit's statuses, the latest of each name and branch unless all
// are wanted.
func listCommitStatuses(c *call, sha string) (any, error) {
	p, err := c.params()
	if err != nil {
		return nil, err
	}
	all := c.latestStatuses(c.repo, sha)
	if p.isTrue("all") {
		all = slices.Clone(c.repo.statuses[sha])
	}
	all = slices.DeleteFunc(all, func(s *status) bool {
		return p.has("ref") && s.ref != p.text("ref") || p.has("name") && s.context != p.text("name")
	})
	if p.text("sort") == "desc" {
		slices.Reverse(all)
	}
	return pageOf(c, all, func(s *status) restObject { return c.gitlabStatus(c.repo, sha, s) }), nil
}

// findPipeline finds the newest pipeline of a commit, on a branch where one is named.
func (r *repository) findPipeline(sha, ref string) *pipeline {
	for _, p := range slices.Backward(r.pipelines) {
		if p.sha == sha && (ref == "" || p.ref == ref) {
			return p
		}
	}
	return nil
}

// followStatus makes the pipeline that a status belongs to, or moves it on.
func (f *Forge) followStatus(r *repository, by *account, sha string, s *status) {
	p := r.findPipeline(sha, s.ref)
	if p == nil {
		p = &pipeline{id: f.nextID(), iid: int64(len(r.pipelines) + 1), sha: sha, ref: s.ref, by: by, created: f.now()}
		r.pipelines = append(r.pipelines, p)
	}
	p.updated = f.now()
	f.emitPipeline(r, by, p)
}

// pipelineState is what the statuses of a pipeline make of it.
func (f *Forge) pipelineState(r *repository, p *pipeline) string {
	var states []string
	for _, s := range f.latestStatuses(r, p.sha) {
		if s.ref == p.ref {
			states = append(states, s.gitlabState())
		}
	}
	has := func(state string) bool { return slices.Contains(states, state) }
	only := func(state string) bool {
		return !slices.ContainsFunc(states, func(s string) bool { return s != state })
	}
	switch {
	case only("pending"):
		return "pending"
	case only("skipped"):
		return "skipped"
	case has("pending"), has("running"):
		return "running"
	case has("failed"):
		return "failed"
	case has("canceled"):
		return "canceled"
	}
	return "success"
}

func (f *Forge) gitlabPipeline(r *repository, p *pipeline) restObject {
	return restObject{
		"id": p.id, "iid": p.iid, "project_id": r.id, "sha": p.sha, "ref": p.ref, "status": f.pipelineState(r, p), "source": "external",
		"created_at": formatGitLabTime(p.created), "updated_at": formatGitLabTime(p.updated), "web_url": f.pipelinePage(r, p),
	}
}
