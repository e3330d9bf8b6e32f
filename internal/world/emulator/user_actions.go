package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The methods in this file act as people do: with an account, at once, and with every consequence
// (events, new heads, closing and merging). A refusal by the forge is an error with the forge's
// words.

// PullRequest is a pull request as a person sees it. It is a copy.
type PullRequest struct {
	Number             int
	Title, Body        string
	Author             string
	Branch, Base       string
	Head               string // commit
	Open, Merged       bool
	Queued             bool // it is in a merge queue, on a merge train, or merges by itself otherwise
	MergedBy           string
	MergeCommit        string // when Merged
	Labels             []string
	Reviews            []Review
	Requested          []string // logins and teams (organisation/slug) from whom a review is requested
	Comments           []Comment
	Statuses           []Status // the newest of each context on the head
	Created, Updated   time.Time
	ClosedAt, MergedAt time.Time
	URL                string
}

// Review is one review of a PullRequest.
type Review struct {
	User, State, Body, Commit string
	At                        time.Time
}

// Comment is one comment of a PullRequest, with reactions as "login content".
type Comment struct {
	ID        int64
	User      string
	Body      string
	Created   time.Time
	Updated   time.Time
	Reactions []string
}

// Status is a commit status.
type Status struct {
	Context, State, Description, TargetURL, Creator string
	// to be set, GitLab: of the pipeline that it joins or makes; empty: a branch that has the commit
	Ref string
}

// Deployment is one of a repository, with the states that it went through.
type Deployment struct {
	ID                                     int64
	Environment, Task, Commit, Description string
	Payload                                string // JSON
	States                                 []string
	LogURL                                 string // of the newest state
}

// CommitAs makes one commit on a branch and pushes it, as a person would: files
// are path → content, remove are paths. A branch that doesn't exist starts at
// the default branch. It returns the commit.
func (f *Forge) CommitAs(repo, login, branch, message string, files map[string]string, remove ...string) (string, error) {
	return f.CommitUnder(repo, login, branch, "", message, files, remove...)
}

// CommitUnder is CommitAs with another address in the commit than the account's own,
// which anybody can write; empty: the account's own.
func (f *Forge) CommitUnder(repo, login, branch, email, message string, files map[string]string, remove ...string) (string, error) {
	var sha string
	err := f.withRepositoryRefs(repo, login, func(r *repository, u *account) error {
		from := r.branchHead(branch)
		if from == "" {
			from = r.branchHead(r.branch)
		}
		author := f.commitIdent(u)
		author.Email = cmp.Or(email, author.Email)
		var err error
		sha, err = r.git.commitFiles(commitSpec{
			Branch: branch, From: from, Author: author, Message: strings.TrimRight(message, "\n") + "\n", Write: files, Remove: remove,
		})
		if err != nil {
			return err
		}
		return f.noticeRefs(r, u)
	})
	if err != nil {
		return "", fmt.Errorf("committing to %s in %s as %s: %w", branch, repo, login, err)
	}
	return sha, nil
}

// SetBranch makes a branch point to a commit, forced, as "git push --force"
// does; an empty commit deletes the branch.
func (f *Forge) SetBranch(repo, login, branch, commit string) error {
	err := f.withRepositoryRefs(repo, login, func(r *repository, u *account) error {
		ref := "refs/heads/" + branch
		var err error
		if commit == "" {
			err = r.git.deleteRef(ref, r.branchHead(branch))
		} else {
			err = r.git.updateRef(ref, commit, "")
		}
		if err != nil {
			return err
		}
		return f.noticeRefs(r, u)
	})
	if err != nil {
		return fmt.Errorf("moving branch %s in %s as %s: %w", branch, repo, login, err)
	}
	return nil
}

// Head is a branch's tip; empty when there is no such branch.
func (f *Forge) Head(repo, branch string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return "", err
	}
	return r.branchHead(branch), nil
}

// Branches are a repository's branches, sorted.
func (f *Forge) Branches(repo string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ref := range sortedKeys(r.refs) {
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			out = append(out, branch)
		}
	}
	return out, nil
}

// File reads a file at a branch, tag or commit; ok is false when there is none.
func (f *Forge) File(repo, rev, path string) (content string, ok bool, err error) {
	git, err := f.findGit(repo)
	if err != nil {
		return "", false, err
	}
	b, err := git.readFile(rev, path)
	if errors.Is(err, errNoObject) {
		return "", false, nil
	}
	return string(b), err == nil, err
}

// Tree lists everything at a branch, tag or commit: path → object id, of files
// and folders, equal for equal content. "." is the whole.
func (f *Forge) Tree(repo, rev string) (map[string]string, error) {
	git, err := f.findGit(repo)
	if err != nil {
		return nil, err
	}
	return git.listTree(rev)
}

// Blob reads a file by its object id.
func (f *Forge) Blob(repo, id string) (string, error) {
	git, err := f.findGit(repo)
	if err != nil {
		return "", err
	}
	return git.runGit("cat-file", "blob", id)
}

// CloneURL is the repository's address for Git, without credentials.
func (f *Forge) CloneURL(repo string) string { return f.url + "/" + repo + ".git" }

// GitDir is the folder of the bare repository.
func (f *Forge) GitDir(repo string) (string, error) {
	git, err := f.findGit(repo)
	if err != nil {
		return "", err
	}
	return git.dir, nil
}

func (f *Forge) findGit(repo string) (*bareRepo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	return r.git, nil
}

// OpenPull opens a pull request from a branch of the same repository.
func (f *Forge) OpenPull(repo, login, branch, base, title, body string) (int, error) {
	number := 0
	err := f.withRepository(repo, login, func(r *repository, u *account) error {
		p, err := f.openPull(r, u, pullSpec{title: title, body: body, head: r, branch: branch, base: base,
			draft: f.face == GitLab && isDraftTitle(title)})
		if err == nil {
			number = p.number
		}
		return err
	})
	return number, err
}

// withPull runs fn on a pull request, as a user.
func (f *Forge) withPull(repo string, number int, login string, fn func(p *pull, u *account) error) error {
	err := f.withRepositoryRefs(repo, login, func(r *repository, u *account) error {
		p := r.pulls[number]
		if p == nil {
			return notFound()
		}
		return fn(p, u)
	})
	if err != nil {
		return fmt.Errorf("%s on %s#%d: %w", login, repo, number, err)
	}
	return nil
}

// Approve gives an approving review of the head.
func (f *Forge) Approve(repo string, number int, login string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		_, err := f.addReview(p, u, "APPROVE", "", "")
		return err
	})
}

// RemoveReviewRequest takes the request for somebody's review off a pull request.
func (f *Forge) RemoveReviewRequest(repo string, number int, login, reviewer string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		i := slices.IndexFunc(p.reviewers, func(a *account) bool { return strings.EqualFold(a.login, reviewer) })
		if i < 0 {
			return notFound()
		}
		a := p.reviewers[i]
		p.reviewers = slices.Delete(p.reviewers, i, i+1)
		f.markUpdated(p)
		f.emitPull(p, u, "review_request_removed", map[string]any{"requested_reviewer": f.wireUser(a)})
		return nil
	})
}

// RequestChanges gives a review that asks for changes.
func (f *Forge) RequestChanges(repo string, number int, login, body string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		_, err := f.addReview(p, u, "REQUEST_CHANGES", body, "")
		return err
	})
}

// Review gives a review by GitHub's event (APPROVE, REQUEST_CHANGES or COMMENT)
// on a commit of the pull request; an empty one is its head.
func (f *Forge) Review(repo string, number int, login, event, body, commit string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		_, err := f.addReview(p, u, event, body, commit)
		return err
	})
}

// DismissReviews takes back what a user said in reviews.
func (f *Forge) DismissReviews(repo string, number int, login, of string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		for _, v := range p.reviews {
			if strings.EqualFold(v.user.login, of) && (v.state == "APPROVED" || v.state == "CHANGES_REQUESTED") {
				if err := f.dismissReview(p, u, v); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Comment adds a comment to the conversation and returns its id.
func (f *Forge) Comment(repo string, number int, login, body string) (int64, error) {
	var id int64
	err := f.withPull(repo, number, login, func(p *pull, u *account) error {
		if f.face == GitLab {
			var commands []quickAction
			body, commands = cutQuickActions(body)
			if err := f.runQuickActions(p, u, commands); err != nil || body == "" && commands != nil {
				return err
			}
		}
		c, err := f.addComment(p, u, body)
		if err == nil {
			id = c.id
		}
		return err
	})
	return id, err
}

// AddLabel adds a label; Unlabel removes it.
func (f *Forge) AddLabel(repo string, number int, login, name string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		return f.addLabels(p, u, []string{name})
	})
}

// RemoveLabel removes a label; one that isn't there is an error.
func (f *Forge) RemoveLabel(repo string, number int, login, name string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error { return f.removeLabel(p, u, name) })
}

// SetStatus sets a commit status, as a build system would.
func (f *Forge) SetStatus(repo, login, commit string, s Status) error {
	return f.withRepositoryRefs(repo, login, func(r *repository, u *account) error {
		made := &status{context: s.Context, state: s.State, description: s.Description, target: s.TargetURL}
		if f.face == GitLab {
			made.ref = cmp.Or(s.Ref, r.branchWith(commit))
		}
		return f.addStatus(r, u, commit, made)
	})
}

// Statuses are the newest statuses of each context on a commit.
func (f *Forge) Statuses(repo, commit string) ([]Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	return f.publicStatuses(r, commit), nil
}

func (f *Forge) publicStatuses(r *repository, commit string) []Status {
	var all []Status
	for _, s := range f.latestStatuses(r, commit) {
		all = append(all, Status{Context: s.context, State: s.state, Description: s.description, TargetURL: s.target,
			Creator: s.creator.login})
	}
	return all
}

// Deployments are all deployments of a repository, oldest first.
func (f *Forge) Deployments(repo string) ([]Deployment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	var all []Deployment
	for _, d := range r.deployments {
		shown := Deployment{ID: d.id, Environment: d.environment, Task: d.task, Commit: d.sha, Description: d.description,
			Payload: string(d.payload)}
		for _, s := range d.statuses {
			shown.States, shown.LogURL = append(shown.States, s.state), s.logURL
		}
		all = append(all, shown)
	}
	return all, nil
}

// Pulls are all pull requests of a repository, by number.
func (f *Forge) Pulls(repo string) ([]PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findRepository(repo)
	if err != nil {
		return nil, err
	}
	var all []PullRequest
	for _, n := range sortedKeys(r.pulls) {
		all = append(all, f.publicPull(r.pulls[n]))
	}
	return all, nil
}

// Pull is one pull request; an unknown number is an error.
func (f *Forge) Pull(repo string, number int) (PullRequest, error) {
	all, err := f.Pulls(repo)
	if err != nil {
		return PullRequest{}, err
	}
	i := slices.IndexFunc(all, func(p PullRequest) bool { return p.Number == number })
	if i < 0 {
		return PullRequest{}, fmt.Errorf("%s#%d: %w", repo, number, notFound())
	}
	return all[i], nil
}

func (f *Forge) publicPull(p *pull) PullRequest {
	s := PullRequest{
		Number: p.number, Title: p.title, Body: p.body, Author: p.author.login, Branch: p.branch, Base: p.base,
		Head: p.head, Open: p.open, Merged: p.merged, Queued: p.open && (p.mergesByItself() || p.findEntry() != nil || p.autoMerge != nil),
		Labels: slices.Clone(p.labels), Created: p.created,
		Updated: p.updated, ClosedAt: p.closed, MergedAt: p.mergedAt, URL: f.pullPage(p), Statuses: f.publicStatuses(p.repo, p.head),
	}
	if p.merged {
		s.MergeCommit, s.MergedBy = p.mergeSHA, p.mergedBy.login
	}
	for _, v := range p.reviews {
		s.Reviews = append(s.Reviews, Review{User: v.user.login, State: v.state, Body: v.body, Commit: v.commit, At: v.at})
	}
	for _, a := range p.reviewers {
		if f.face == GitHub || p.reviewerState(a) == "unreviewed" {
			s.Requested = append(s.Requested, a.login)
		}
	}
	for _, t := range p.teams {
		s.Requested = append(s.Requested, t.organisation+"/"+t.slug)
	}
	for _, c := range p.comments {
		o := Comment{ID: c.id, User: c.user.login, Body: c.body, Created: c.created, Updated: c.updated}
		for _, r := range c.reactions {
			o.Reactions = append(o.Reactions, r.user.login+" "+r.content)
		}
		s.Comments = append(s.Comments, o)
	}
	return s
}
