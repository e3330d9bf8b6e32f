package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

type pull struct {
	id       int64
	number   int
	title    string
	body     string
	author   *account
	repo     *repository // where it is
	headRepo *repository // where its branch is: repo, or a fork
	branch   string
	head     string // commit
	base     string // branch
	baseSHA  string // its tip when the head was last compared
	commits  []string
	draft    bool
	open     bool
	merged   bool
	mergedBy *account
	mergeSHA string   // of the merge, or of the last test merge
	landed   []string // when merged by the forge: the commits that this made on the base branch
	labels   []string
	reviews  []*review
	comments []*comment

	reviewers []*account // from whom a review is requested
	teams     []*team    // likewise
	autoMerge *autoMerge // nil: nobody has it merged by itself

	created, updated, closed, mergedAt time.Time

	// GitHub computes mergeability in the background: the first to ask hears
	// "unknown". tested is the pair of commits that clean is about.
	testedPair string
	clean      bool

	gitlab mergeRequestState // what only GitLab knows of it
}

type review struct {
	id     int64
	user   *account
	state  string // APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED
	body   string
	commit string
	at     time.Time
}

// headRef is where the pull request's head is kept in its own repository, whatever
// happens to the branch.
func (p *pull) headRef() string { return p.repo.pullRefs + strconv.Itoa(p.number) + "/head" }

// pullRefs is where forges keep the heads of pull requests.
var pullRefs = map[Face]string{GitHub: "refs/pull/", GitLab: "refs/merge-requests/"}

func (f *Forge) markUpdated(p *pull) { p.updated = f.now() }

// pullSpec is a request to open a pull request.
type pullSpec struct {
	title, body  string
	head         *repository
	branch, base string
	draft        bool

	labels               []string
	reviewers            []*account
	squash, removeBranch bool // GitLab's wishes for the merge
}

// openPull opens a pull request, or says in GitHub's words why it can't.
func (f *Forge) openPull(r *repository, by *account, n pullSpec) (*pull, error) {
	const resource = "PullRequest"
	if n.title == "" {
		return nil, invalidField(resource, "title", "missing_field", "")
	}
	baseSHA := r.branchHead(n.base)
	if baseSHA == "" {
		return nil, invalidField(resource, "base", "invalid", "")
	}
	head := n.head.branchHead(n.branch)
	if head == "" {
		return nil, invalidField(resource, "head", "invalid", "")
	}
	if f.findOpenPull(r, n.head, n.branch, n.base) != nil {
		return nil, invalidField(resource, "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.",
			n.head.owner.login, n.branch))
	}
	return f.createPull(r, by, n, head)
}

// findOpenPull finds the open pull request from a branch into another; nil: there is none.
func (f *Forge) findOpenPull(r, head *repository, branch, base string) *pull {
	for _, p := range r.pulls {
		if p.open && p.headRepo == head && p.branch == branch && p.base == base {
			return p
		}
	}
	return nil
}

// createPull opens a pull request whose request is in order. GitLab opens those too that have
// nothing to merge.
func (f *Forge) createPull(r *repository, by *account, n pullSpec, head string) (*pull, error) {
	p := &pull{
		number: r.lastNumber + 1, title: n.title, body: n.body, author: by, repo: r, headRepo: n.head,
		branch: n.branch, base: n.base, draft: n.draft, open: true, created: f.now(), reviewers: n.reviewers,
		gitlab: mergeRequestState{squash: n.squash, removeBranch: n.removeBranch},
	}
	if err := f.setHead(p, head); err != nil {
		return nil, err
	}
	if len(p.commits) == 0 && f.face == GitHub {
		return nil, invalidField("PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", n.base, n.branch))
	}
	for _, name := range n.labels {
		f.ensureLabel(r, name)
		p.labels = append(p.labels, name)
	}
	r.lastNumber = p.number
	p.id = f.nextID()
	r.pulls[p.number] = p
	f.markUpdated(p)
	f.emitPull(p, by, "opened", nil)
	return p, nil
}

// setHead makes a commit the pull request's head.
func (f *Forge) setHead(p *pull, head string) error {
	git := p.repo.git
	if p.headRepo != p.repo {
		if _, err := git.runGit("fetch", "--quiet", "--no-tags", "--", p.headRepo.git.dir, "refs/heads/"+p.branch); err != nil {
			return err
		}
	}
	var commits []string
	base := p.repo.branchHead(p.base)
	if base != "" { // GitLab takes a base that isn't there
		var err error
		if commits, err = git.revList(base, head); err != nil {
			return err
		}
	}
	if len(commits) > 0 || f.face == GitLab {
		if err := git.updateRef(p.headRef(), head, ""); err != nil {
			return err
		}
	}
	if p.head != head {
		p.gitlab.versions = append(p.gitlab.versions, version{id: f.nextID(), head: head, base: base, at: f.now()})
	}
	p.head, p.commits, p.baseSHA = head, commits, base
	return nil
}

// closePull closes a pull request without merging it.
func (f *Forge) closePull(p *pull, by *account) {
	p.open, p.closed, p.gitlab.closedBy, p.gitlab.autoMerge = false, f.now(), by, nil
	f.dropCar(p, by)
	p.repo.queue = slices.DeleteFunc(p.repo.queue, func(e *queueEntry) bool { return e.pull == p })
	f.markUpdated(p)
	f.emitPull(p, by, "closed", nil)
}

// reopenPull opens a closed one again, unless its branch is no longer what it was.
func (f *Forge) reopenPull(p *pull, by *account) error {
	refused := func(why string) error {
		return invalidField("PullRequest", "state", "invalid", "state cannot be changed. "+why)
	}
	if p.merged {
		return refused("The pull request is already merged.")
	}
	tip := p.headRepo.branchHead(p.branch)
	if tip == "" {
		return refused(fmt.Sprintf("The %s branch has been deleted.", p.branch))
	}
	if f.face == GitHub { // compares with the head that it closed with
		grown, err := p.headRepo.git.isAncestor(p.head, tip)
		if err != nil {
			return err
		}
		if !grown {
			return refused(fmt.Sprintf("The %s branch was force-pushed or recreated.", p.branch))
		}
	}
	if f.findOpenPull(p.repo, p.headRepo, p.branch, p.base) != nil {
		return refused(fmt.Sprintf("There is already an open pull request from %s to %s.", p.branch, p.base))
	}
	if err := f.setHead(p, tip); err != nil {
		return err
	}
	if len(p.commits) == 0 && f.face == GitHub {
		return refused(fmt.Sprintf("There are no new commits on the %s branch.", p.branch))
	}
	p.open, p.closed = true, time.Time{}
	f.markUpdated(p)
	f.emitPull(p, by, "reopened", nil)
	return nil
}

// pullEdit says what to change; nil leaves a thing as it is.
type pullEdit struct {
	Title *string `json:"title"`
	Body  *string `json:"body"`
	State *string `json:"state"`
	Base  *string `json:"base"`
}

func (f *Forge) editPull(p *pull, by *account, e pullEdit) error {
	changes := map[string]any{}
	if e.Title != nil && *e.Title != p.title {
		changes["title"] = changedFrom(p.title)
		p.title = *e.Title
		p.draft = p.draft && f.face == GitHub || f.face == GitLab && isDraftTitle(p.title)
	}
	if e.Body != nil && *e.Body != p.body {
		changes["body"] = changedFrom(p.body)
		p.body = *e.Body
	}
	if e.Base != nil && *e.Base != p.base {
		if p.repo.branchHead(*e.Base) == "" && f.face == GitHub {
			return invalidField("PullRequest", "base", "invalid", "")
		}
		changes["base"] = map[string]any{"ref": changedFrom(p.base), "sha": changedFrom(p.baseSHA)}
		p.base = *e.Base
		if err := f.setHead(p, p.head); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		f.markUpdated(p)
		f.emitPull(p, by, "edited", map[string]any{"changes": changes})
	}
	switch {
	case e.State == nil:
	case *e.State == "closed" && p.open:
		f.closePull(p, by)
	case *e.State == "open" && !p.open:
		return f.reopenPull(p, by)
	case *e.State != "open" && *e.State != "closed":
		return invalidField("PullRequest", "state", "invalid", "")
	}
	return nil
}

func changedFrom(s string) map[string]any { return map[string]any{"from": s} }

// addReview is a person's word on the pull request.
func (f *Forge) addReview(p *pull, by *account, event, body, commit string) (*review, error) {
	state := map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}[event]
	if state == "" {
		return nil, invalidField("PullRequestReview", "event", "invalid", "")
	}
	if by == p.author && state != "COMMENTED" {
		word := map[string]string{"APPROVED": "approve", "CHANGES_REQUESTED": "request changes on"}[state]
		return nil, &apiError{
			Status: http.StatusUnprocessableEntity, Message: "Unprocessable Entity",
			Errors: []any{fmt.Sprintf("Can not %s your own pull request", word)},
		}
	}
	if body == "" && state != "APPROVED" {
		return nil, &apiError{Status: http.StatusUnprocessableEntity, Message: "Unprocessable Entity",
			Errors: []any{"Body can not be blank"}}
	}
	if commit == "" {
		commit = p.head
	}
	if commit != p.head && !slices.Contains(p.commits, commit) {
		return nil, invalidField("PullRequestReview", "commit_id", "invalid", "commit_id is not part of the pull request")
	}
	v := &review{id: f.nextID(), user: by, state: state, body: body, commit: commit, at: f.now()}
	p.reviews = append(p.reviews, v)
	f.endReviewRequests(p, by)
	f.markUpdated(p)
	f.emitReview(p, by, v, "submitted")
	if f.face == GitLab {
		return v, f.followReview(p, v)
	}
	return v, nil
}

// dismissReview takes a review's word back.
func (f *Forge) dismissReview(p *pull, by *account, v *review) error {
	if v.state != "APPROVED" && v.state != "CHANGES_REQUESTED" {
		return invalidField("PullRequestReview", "state", "invalid", "Can not dismiss a commented pull request review")
	}
	v.state = "DISMISSED"
	f.markUpdated(p)
	f.emitReview(p, by, v, "dismissed")
	return nil
}

// reviewStates is the last word of everybody who approved or asked for changes;
// mere comments don't take a word back.
func (p *pull) reviewStates() map[*account]string {
	last := map[*account]string{}
	for _, v := range p.reviews {
		if v.state != "COMMENTED" {
			last[v.user] = v.state
		}
	}
	return last
}
