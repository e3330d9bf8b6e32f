package emulator

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxPullCommits is how many commits GitHub lists of a pull request.
const maxPullCommits = 250

func listPulls(c *call) (any, error) {
	q := c.r.URL.Query()
	state := cmp.Or(q.Get("state"), "open")
	// GitHub ignores a head without "owner:" and then lists everything.
	owner, branch, byHead := strings.Cut(q.Get("head"), ":")
	var found []*pull
	for _, n := range sortedKeys(c.repo.pulls) {
		p := c.repo.pulls[n]
		switch {
		case state == "open" && !p.open, state == "closed" && p.open:
		case byHead && (!strings.EqualFold(p.headRepo.owner.login, owner) || p.branch != branch):
		case q.Get("base") != "" && p.base != q.Get("base"):
		default:
			found = append(found, p)
		}
	}
	sort := cmp.Or(q.Get("sort"), "created")
	slices.SortStableFunc(found, func(a, b *pull) int {
		if sort == "updated" {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	direction := q.Get("direction")
	if direction == "" && sort == "created" {
		direction = "desc"
	}
	if direction == "desc" {
		slices.Reverse(found)
	}
	return paginateAs(c, found, c.wirePull), nil
}

func createPull(c *call) (any, error) {
	var in struct {
		Title string `json:"title"`
		Body  string `json:"body"`
		Head  string `json:"head"`
		Base  string `json:"base"`
		Draft bool   `json:"draft"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	n := pullSpec{title: in.Title, body: in.Body, head: c.repo, branch: in.Head, base: in.Base, draft: in.Draft}
	if owner, branch, ok := strings.Cut(in.Head, ":"); ok {
		n.branch = branch
		if !strings.EqualFold(owner, c.repo.owner.login) {
			n.head = c.findFork(owner)
		}
	}
	if n.head == nil {
		return nil, invalidField("PullRequest", "head", "invalid", "")
	}
	if n.head.permissionOf(c.user) < Write {
		return nil, newAPIError(http.StatusForbidden, "must be a collaborator")
	}
	p, err := c.openPull(c.repo, c.user, n)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return c.wirePullWithDetail(p)
}

// findFork finds the repository of an owner that was forked from the call's.
func (c *call) findFork(owner string) *repository {
	for _, r := range c.repos {
		if r.parent == c.repo && strings.EqualFold(r.owner.login, owner) {
			return r
		}
	}
	return nil
}

func getPull(c *call, p *pull) (any, error) {
	return c.wirePullWithDetail(p)
}

func patchPull(c *call, p *pull) (any, error) {
	var in pullEdit
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if c.user != p.author && c.repo.permissionOf(c.user) < Write {
		return nil, notPermitted(c)
	}
	if err := c.editPull(p, c.user, in); err != nil {
		return nil, err
	}
	return c.wirePullWithDetail(p)
}

func isMerged(c *call, p *pull) (any, error) {
	if !p.merged {
		return nil, notFound()
	}
	c.status = http.StatusNoContent
	return nil, nil
}

func putMerge(c *call, p *pull) (any, error) {
	var in mergeRequest
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	sha, err := c.mergePull(p, c.user, in)
	if err != nil {
		return nil, err
	}
	return map[string]any{"sha": sha, "merged": true, "message": "Pull Request successfully merged"}, nil
}

// updateBranch merges the base into a pull request's branch. GitHub does it later; here it is
// done when it is answered.
func updateBranch(c *call, p *pull) (any, error) {
	var in struct {
		Head string `json:"expected_head_sha"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	base := c.repo.branchHead(p.base)
	switch upToDate, err := c.repo.git.isAncestor(base, p.head); {
	case err != nil:
		return nil, err
	case !p.open:
		return nil, newAPIError(http.StatusUnprocessableEntity, "Pull request is closed")
	case in.Head != "" && in.Head != p.head:
		return nil, newAPIError(http.StatusUnprocessableEntity, "expected head sha didn’t match current head ref.")
	case upToDate:
		return nil, newAPIError(http.StatusUnprocessableEntity, "There are no new commits on the base branch.")
	}
	tree, clean, err := c.repo.git.mergeTree(p.head, base)
	if err != nil {
		return nil, err
	}
	if !clean {
		return nil, newAPIError(http.StatusUnprocessableEntity, "merge conflict between base and head")
	}
	merge, err := c.repo.git.commitTree(tree, []string{p.head, base}, c.commitIdent(c.user), c.webFlow(), "Merge branch '"+p.base+"' into "+
		p.branch+"\n")
	if err == nil {
		merge, err = c.signByForge(c.repo, merge)
	}
	if err != nil {
		return nil, err
	}
	if err := c.repo.git.updateRef("refs/heads/"+p.branch, merge, p.head); err != nil {
		return nil, newAPIError(http.StatusUnprocessableEntity, "expected head sha didn’t match current head ref.")
	}
	c.status = http.StatusAccepted
	return map[string]any{"message": "Updating pull request branch.", "url": c.repoURL(c.repo) + "/pulls/" + strconv.Itoa(p.number)},
		c.noticeRefs(c.repo, c.user)
}

func pullCommits(c *call, p *pull) (any, error) {
	return c.wireListedCommits(paginate(c, p.commits[:min(len(p.commits), maxPullCommits)]))
}

func listReviews(c *call, p *pull) (any, error) {
	return paginateAs(c, p.reviews, func(v *review) wireReview { return c.wireReview(p, v) }), nil
}

func createReview(c *call, p *pull) (any, error) {
	var in struct {
		Event  string `json:"event"`
		Body   string `json:"body"`
		Commit string `json:"commit_id"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	v, err := c.addReview(p, c.user, in.Event, in.Body, in.Commit)
	if err != nil {
		return nil, err
	}
	return c.wireReview(p, v), nil
}

func dismissReview(c *call, p *pull) (any, error) {
	id, err := c.pathNumber("id")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.reviews, func(v *review) bool { return v.id == id })
	if i < 0 {
		return nil, notFound()
	}
	if err := c.dismissReview(p, c.user, p.reviews[i]); err != nil {
		return nil, err
	}
	return c.wireReview(p, p.reviews[i]), nil
}
