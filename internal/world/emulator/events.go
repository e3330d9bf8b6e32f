package emulator

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"
)

// maxPushCommits is how many commits a push event names at most.
const maxPushCommits = 2048

type wirePushCommit struct {
	ID        string        `json:"id"`
	TreeID    string        `json:"tree_id"`
	Distinct  bool          `json:"distinct"`
	Message   string        `json:"message"`
	Timestamp time.Time     `json:"timestamp"`
	URL       string        `json:"url"`
	Author    wirePushIdent `json:"author"`
	Committer wirePushIdent `json:"committer"`
	Added     []string      `json:"added"`
	Removed   []string      `json:"removed"`
	Modified  []string      `json:"modified"`
}

type wirePushIdent struct {
	Name     string `json:"name"`
	Email    string `json:"email"`
	Username string `json:"username,omitempty"`
}

// emitEvent sends an event to the repository's hooks. The payload is what the world
// looks like now, however late it arrives. Fields are the event's own.
func (f *Forge) emitEvent(r *repository, by *account, event string, fields map[string]any) {
	payload := map[string]any{"repository": f.wireRepo(r, nil), "sender": f.wireUser(by)}
	if r.owner.kind == "Organization" {
		payload["organization"] = map[string]any{"login": r.owner.login, "id": r.owner.id, "url": f.url + "/orgs/" + r.owner.login}
	}
	maps.Copy(payload, fields)
	for _, h := range f.hooksOf(r) {
		if !h.wants(event) {
			continue
		}
		sent := payload
		if h.app != nil {
			sent = maps.Clone(payload)
			sent["installation"] = map[string]any{"id": h.installation, "node_id": nodeID("MDIzOklu", h.installation)}
		}
		f.sender.sendEvent(h, event, sent)
	}
}

func (f *Forge) emitPush(r *repository, by *account, ref, before, after string) error {
	if len(f.hooksOf(r)) == 0 {
		return nil
	}
	commits, forced, err := f.listPushedCommits(r, ref, before, after)
	if err != nil {
		return err
	}
	if f.face == GitLab {
		f.emitGitLabPush(r, by, ref, before, after, commits)
		return nil
	}
	fields := map[string]any{
		"ref": ref, "before": cmp.Or(before, zeroCommit), "after": cmp.Or(after, zeroCommit),
		"created": before == "", "deleted": after == "", "forced": forced, "base_ref": nil,
		"compare": f.url + "/" + r.fullName() + "/compare/" + cmp.Or(before, zeroCommit)[:12] + "..." + cmp.Or(after, zeroCommit)[:12],
		"commits": commits, "head_commit": nil,
		"pusher": map[string]any{"name": by.login, "email": by.email},
	}
	if len(commits) > 0 {
		fields["head_commit"] = commits[len(commits)-1]
	}
	repo := f.wireRepo(r, nil)
	repo.CreatedAt, repo.PushedAt = r.created.Unix(), r.pushed.Unix()
	fields["repository"] = repo
	f.emitEvent(r, by, "push", fields)
	return nil
}

// listPushedCommits lists the commits that a push brought to the repository.
func (f *Forge) listPushedCommits(r *repository, ref, before, after string) (commits []wirePushCommit, forced bool, err error) {
	commits = []wirePushCommit{}
	if after == "" || strings.HasPrefix(ref, "refs/tags/") {
		return commits, false, nil
	}
	args := []string{"--reverse", "--topo-order", "--max-count=" + strconv.Itoa(maxPushCommits), "--end-of-options", after}
	if before != "" {
		in, err := r.git.isAncestor(before, after)
		if err != nil {
			return nil, false, err
		}
		forced = !in
		args = append(args, "^"+before)
	} else {
		for _, name := range sortedKeys(r.refs) {
			if name != ref {
				args = append(args, "^"+r.refs[name])
			}
		}
	}
	list, err := r.git.readLog(args...)
	if err != nil {
		return nil, false, err
	}
	for _, c := range list {
		commits = append(commits, wirePushCommit{
			ID: c.SHA, TreeID: c.Tree, Distinct: true, Message: c.Message, Timestamp: c.Committer.When,
			URL:    f.url + "/" + r.fullName() + "/commit/" + c.SHA,
			Author: f.pushIdent(c.Author), Committer: f.pushIdent(c.Committer),
			Added: orEmpty(c.Added), Removed: orEmpty(c.Removed), Modified: orEmpty(c.Changed),
		})
	}
	return commits, forced, nil
}

func (f *Forge) pushIdent(i gitIdent) wirePushIdent {
	w := wirePushIdent{Name: i.Name, Email: i.Email}
	if a := f.accountByEmail(i.Email); a != nil {
		w.Username = a.login
	}
	return w
}

// emitPull sends a pull_request event. The payload's mergeability is always
// "unknown": GitHub sends it before it has computed any.
func (f *Forge) emitPull(p *pull, by *account, action string, more map[string]any) {
	if f.face == GitLab {
		f.emitPullToGitLab(p, by, action, more)
		return
	}
	w := f.wirePull(p)
	w.wirePullDetail = &wirePullDetail{
		Merged: p.merged, MergeableState: "unknown", MergedBy: f.wireUser(p.mergedBy),
		Comments: len(p.comments), Commits: len(p.commits),
	}
	fields := map[string]any{"action": action, "number": p.number, "pull_request": w}
	maps.Copy(fields, more)
	f.emitEvent(p.repo, by, "pull_request", fields)
}

func (f *Forge) emitReview(p *pull, by *account, v *review, action string) {
	if f.face == GitLab {
		f.emitReviewToGitLab(p, by, v, action)
		return
	}
	w := f.wireReview(p, v)
	w.State = strings.ToLower(w.State) // lower case in events, upper case in the API
	f.emitEvent(p.repo, by, "pull_request_review", map[string]any{"action": action, "review": w, "pull_request": f.wirePull(p)})
}

func (f *Forge) emitComment(c *comment, by *account, action string, more map[string]any) {
	if f.face == GitLab {
		f.emitNote(c, by, action)
		return
	}
	p := c.pull
	state := "closed"
	if p.open {
		state = "open"
	}
	labels := []wireLabel{}
	for _, l := range p.labels {
		labels = append(labels, f.wireLabel(p.repo, l))
	}
	fields := map[string]any{
		"action": action, "comment": f.wireComment(c),
		"issue": map[string]any{
			"id": p.id, "number": p.number, "title": p.title, "state": state, "user": f.wireUser(p.author),
			"url": f.issueURL(p), "html_url": f.pullPage(p), "comments": len(p.comments), "labels": labels,
			"pull_request": map[string]any{"url": f.pullURL(p), "html_url": f.pullPage(p), "merged_at": timeOrNull(p.mergedAt)},
		},
	}
	maps.Copy(fields, more)
	f.emitEvent(p.repo, by, "issue_comment", fields)
}

func (f *Forge) emitStatus(r *repository, by *account, sha string, s *status) {
	branches := []map[string]any{}
	for _, name := range sortedKeys(r.refs) {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok && r.refs[name] == sha {
			branches = append(branches, map[string]any{"name": branch,
				"commit": wireObject{SHA: sha, URL: f.repoURL(r) + "/commits/" + sha}})
		}
	}
	f.emitEvent(r, by, "status", map[string]any{
		"id": s.id, "sha": sha, "name": r.fullName(), "state": s.state, "context": s.context,
		"description": orNull(s.description), "target_url": orNull(s.target), "branches": branches,
		"created_at": s.at, "updated_at": s.at,
	})
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
