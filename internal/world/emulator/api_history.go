package emulator

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

func getCommit(c *call, sha string) (any, error) {
	found, err := c.repo.git.readCommit(sha)
	if err != nil {
		return nil, err
	}
	verified, err := c.verifyCommit(c.repo, sha)
	if err != nil {
		return nil, err
	}
	w := c.wireCommit(c.repo, found)
	w.Commit.Verification = &verified
	return w, nil
}

// commitPulls are the merged pull requests that brought a commit. For one that isn't on the default
// branch, they are also those that would ("List pull requests associated with a commit").
func commitPulls(c *call, sha string) (any, error) {
	landed := false
	if tip := c.repo.branchHead(c.repo.branch); tip != "" {
		var err error
		if landed, err = c.repo.git.isAncestor(sha, tip); err != nil {
			return nil, err
		}
	}
	var found []*pull
	for _, n := range sortedKeys(c.repo.pulls) {
		p := c.repo.pulls[n]
		has := slices.Contains(p.commits, sha) || slices.Contains(p.landed, sha)
		isAbout := has && !landed
		if p.merged {
			isAbout = has || p.mergeSHA == sha
		}
		if isAbout {
			found = append(found, p)
		}
	}
	return paginateAs(c, found, c.wirePull), nil
}

// The types of activities.
const (
	activityPush     = "push"
	activityForce    = "force_push"
	activityCreation = "branch_creation"
	activityDeletion = "branch_deletion"
	activityMerge    = "pr_merge"
)

// activity is a move of a branch.
type activity struct {
	id            int64
	ref           string
	before, after string // commits; empty: none
	merge         bool   // of a pull request, in the forge's pages
	by            *account
	at            time.Time
}

type wireActivity struct {
	ID     int64     `json:"id"`
	NodeID string    `json:"node_id"`
	Before string    `json:"before"`
	After  string    `json:"after"`
	Ref    string    `json:"ref"`
	At     time.Time `json:"timestamp"`
	Type   string    `json:"activity_type"`
	Actor  *wireUser `json:"actor"`
}

// recordActivity remembers that a branch moved.
func (f *Forge) recordActivity(r *repository, by *account, ref, before, after string) {
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return
	}
	a := activity{id: f.nextID(), ref: ref, before: before, after: after, by: by, at: f.now()}
	for _, p := range r.pulls {
		a.merge = a.merge || p.merged && p.base == branch && p.mergeSHA == after
	}
	r.activities = append(r.activities, a)
}

// typeOf is GitHub's word for a move.
func (a *activity) typeOf(git *bareRepo) (string, error) {
	switch {
	case a.merge:
		return activityMerge, nil
	case a.before == "":
		return activityCreation, nil
	case a.after == "":
		return activityDeletion, nil
	}
	if follows, err := git.isAncestor(a.before, a.after); err != nil || follows {
		return activityPush, err
	}
	return activityForce, nil
}

// listActivity lists moves of branches, newest first. Its pages have cursors.
func listActivity(c *call) (any, error) {
	q := c.r.URL.Query()
	ref := q.Get("ref")
	if ref != "" && !strings.HasPrefix(ref, "refs/") {
		ref = "refs/heads/" + ref
	}
	shown := []wireActivity{}
	size := min(atLeast(q.Get("per_page"), 1, defaultPageSize), maxPageSize)
	after := atLeast(q.Get("after"), 1, 1<<62)
	for _, a := range slices.Backward(c.repo.activities) {
		isOfOther := ref != "" && a.ref != ref
		isByOther := q.Get("actor") != "" && !strings.EqualFold(q.Get("actor"), a.by.login)
		if isOfOther || isByOther || a.id >= int64(after) {
			continue
		}
		if len(shown) == size {
			c.setNextCursor(shown[size-1].ID)
			break
		}
		kind, err := a.typeOf(c.repo.git)
		if err != nil {
			return nil, err
		}
		if want := q.Get("activity_type"); want != "" && want != kind {
			continue
		}
		shown = append(shown, wireActivity{ID: a.id, NodeID: nodeID("PSH", a.id), Before: orZeroCommit(a.before),
			After: orZeroCommit(a.after),
			Ref:   a.ref, At: a.at, Type: kind, Actor: c.wireUser(a.by)})
	}
	return shown, nil
}

// setNextCursor links to what comes after an element.
func (c *call) setNextCursor(id int64) {
	u := *c.r.URL
	q := u.Query()
	q.Set("after", strconv.FormatInt(id, 10))
	u.RawQuery = q.Encode()
	c.header.Set("Link", "<"+c.url+u.RequestURI()+`>; rel="next"`)
}

func orZeroCommit(sha string) string {
	if sha == "" {
		return zeroCommit
	}
	return sha
}

type wireComparison struct {
	URL       string       `json:"url"`
	HTMLURL   string       `json:"html_url"`
	Permalink string       `json:"permalink_url"`
	DiffURL   string       `json:"diff_url"`
	PatchURL  string       `json:"patch_url"`
	Base      wireCommit   `json:"base_commit"`
	MergeBase wireCommit   `json:"merge_base_commit"`
	Status    string       `json:"status"`
	Ahead     int          `json:"ahead_by"`
	Behind    int          `json:"behind_by"`
	Total     int          `json:"total_commits"`
	Commits   []wireCommit `json:"commits"`
}

// compareCommits lists what head has and base hasn't, oldest first, as GitHub does.
func compareCommits(c *call) (any, error) {
	base, head, ok := strings.Cut(c.r.PathValue("basehead"), "...")
	if !ok {
		return nil, notFound()
	}
	git := c.repo.git
	mergeBase, err := git.mergeBase(base, head)
	if err != nil {
		return nil, notFound() // an unknown commit, or nothing in common
	}
	ahead, err := git.revList(base, head)
	if err != nil {
		return nil, err
	}
	behind, err := git.revList(head, base)
	if err != nil {
		return nil, err
	}
	w := wireComparison{Ahead: len(ahead), Behind: len(behind), Total: len(ahead), Commits: []wireCommit{},
		Status: compareStatus(len(ahead), len(behind))}
	w.HTMLURL = c.url + "/" + c.repo.fullName() + "/compare/" + base + "..." + head
	w.URL, w.Permalink, w.DiffURL, w.PatchURL = c.repoURL(c.repo)+"/compare/"+base+"..."+head, w.HTMLURL, w.HTMLURL+".diff",
		w.HTMLURL+".patch"
	for _, one := range []struct {
		sha  string
		into *wireCommit
	}{{base, &w.Base}, {mergeBase, &w.MergeBase}} {
		found, err := git.readCommit(one.sha)
		if err != nil {
			return nil, err
		}
		*one.into = c.wireListedCommit(found)
	}
	w.Commits, err = c.wireListedCommits(paginate(c, ahead))
	return w, err
}

func compareStatus(ahead, behind int) string {
	switch {
	case ahead > 0 && behind > 0:
		return "diverged"
	case ahead > 0:
		return "ahead"
	case behind > 0:
		return "behind"
	}
	return "identical"
}

// wireListedCommits are commits as lists show them.
func (c *call) wireListedCommits(all []string) ([]wireCommit, error) {
	shown := []wireCommit{}
	for _, sha := range all {
		found, err := c.repo.git.readCommit(sha)
		if err != nil {
			return nil, err
		}
		shown = append(shown, c.wireListedCommit(found))
	}
	return shown, nil
}

// wireListedCommit shows no files.
func (c *call) wireListedCommit(found commit) wireCommit {
	found.Added, found.Removed, found.Changed = nil, nil, nil
	return c.wireCommit(c.repo, found)
}

// queryAuthors says who made a commit with whom.
func queryAuthors(c *call, in graphqlRequest) (any, error) {
	r := c.repositoryOf(in.Variables.Owner, in.Variables.Name)
	if r == nil {
		return map[string]any{"data": map[string]any{"repository": nil}, "errors": []map[string]any{{"type": "NOT_FOUND"}}}, nil
	}
	found, err := r.git.readCommit(in.Variables.OID)
	if err != nil {
		return map[string]any{"data": map[string]any{"repository": map[string]any{"object": nil}}}, nil
	}
	nodes := []map[string]any{}
	for _, email := range append([]string{found.Author.Email}, coAuthorEmails(found.Message)...) {
		node := map[string]any{"email": email, "user": nil}
		if a := c.accountByEmail(email); a != nil && a.kind == "User" {
			node["user"] = map[string]any{"databaseId": a.id, "login": a.login}
		}
		nodes = append(nodes, node)
	}
	return map[string]any{"data": map[string]any{"repository": map[string]any{
		"object": map[string]any{"authors": map[string]any{"nodes": nodes}}}}}, nil
}

// coAuthorEmails are the addresses of the Co-authored-by trailers.
func coAuthorEmails(message string) []string {
	var out []string
	for line := range strings.Lines(message) {
		name, rest, _ := strings.Cut(line, "<")
		if email, _, ok := strings.Cut(rest, ">"); ok && strings.HasPrefix(strings.ToLower(name), "co-authored-by:") {
			out = append(out, email)
		}
	}
	return out
}
