package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

var mergeMethods = []string{"merge", "squash", "rebase"}

// notUpToDate keeps a pull request from merging where the branch's checks are strict.
const notUpToDate = "The head branch is not up to date with the base branch."

// computeMergeability is what GitHub says about a pull request: mergeable is nil while
// it is computing, state is its mergeable_state. Asking starts the computation.
func (f *Forge) computeMergeability(p *pull) (mergeable *bool, state string, err error) {
	if !p.open {
		return nil, "unknown", nil
	}
	pair := p.head + " " + p.repo.branchHead(p.base)
	if p.testedPair != pair {
		if err := f.testMerge(p); err != nil {
			return nil, "", err
		}
		p.testedPair = pair
		return nil, "unknown", nil
	}
	clean := p.clean
	if !clean {
		return &clean, "dirty", nil
	}
	if p.draft {
		return &clean, "draft", nil
	}
	switch why, err := f.findMergeBlocker(p); {
	case err != nil:
		return nil, "", err
	case why == notUpToDate:
		return &clean, "behind", nil
	case why != "":
		return &clean, "blocked", nil
	}
	if f.combinedState(p.repo, p.head) != "success" && len(f.latestStatuses(p.repo, p.head)) > 0 {
		return &clean, "unstable", nil
	}
	return &clean, "clean", nil
}

// testMerge tries the merge, and leaves the test merge's commit where GitHub
// does: merge_commit_sha is set long before anything is merged.
func (f *Forge) testMerge(p *pull) error {
	base := p.repo.branchHead(p.base)
	tree, clean, err := p.repo.git.mergeTree(base, p.head)
	if err != nil {
		return err
	}
	p.clean, p.mergeSHA = clean, ""
	if clean {
		who := f.webFlow()
		p.mergeSHA, err = p.repo.git.commitTree(tree, []string{base, p.head}, who, who, "Merge "+p.head+" into "+base+"\n")
	}
	return err
}

// findMergeBlocker says in GitHub's words what protection keeps a pull request from
// merging; empty when nothing does.
func (f *Forge) findMergeBlocker(p *pull) (string, error) {
	need := p.repo.protections[p.base]
	if need.Strict {
		up, err := p.repo.git.isAncestor(p.repo.branchHead(p.base), p.head)
		if err != nil {
			return "", err
		}
		if !up {
			return notUpToDate, nil
		}
	}
	if need.Signatures {
		switch signed, err := f.areVerified(p); {
		case err != nil:
			return "", err
		case !signed:
			return "Commits must have verified signatures.", nil
		}
	}
	latest := f.latestStatuses(p.repo, p.head)
	for _, context := range need.Contexts {
		i := slices.IndexFunc(latest, func(s *status) bool { return s.context == context })
		switch {
		case i < 0:
			return fmt.Sprintf("Required status check %q is expected.", context), nil
		case latest[i].state == "pending":
			return fmt.Sprintf("Required status check %q is pending.", context), nil
		case latest[i].state != "success":
			return fmt.Sprintf("Required status check %q is failing.", context), nil
		}
	}
	return f.findReviewBlocker(p), nil
}

// findReviewBlocker says which reviews a pull request lacks; empty when none.
func (f *Forge) findReviewBlocker(p *pull) string {
	need := p.repo.protections[p.base]
	given, owned := 0, len(need.CodeOwners) == 0
	for who, state := range p.reviewStates() {
		if p.repo.permissionOf(who) < Write {
			continue
		}
		if state == "CHANGES_REQUESTED" && need.Approvals > 0 {
			return "Changes have been requested by a reviewer with write access."
		}
		if state == "APPROVED" {
			given, owned = given+1, owned || slices.Contains(need.CodeOwners, who.login)
		}
	}
	if !owned {
		return "Waiting on code owner review from " + strings.Join(need.CodeOwners, ", ") + "."
	}
	if given < need.Approvals {
		plural := "s are"
		if need.Approvals == 1 {
			plural = " is"
		}
		return fmt.Sprintf("At least %d approving review%s required by reviewers with write access.", need.Approvals, plural)
	}
	return ""
}

// mergeRequest asks for a merge.
type mergeRequest struct {
	Title   string `json:"commit_title"`
	Message string `json:"commit_message"`
	SHA     string `json:"sha"` // the head that is meant; empty: whatever it is
	Method  string `json:"merge_method"`
}

// mergePull merges, for real, and gives the commit that landed.
func (f *Forge) mergePull(p *pull, by *account, o mergeRequest) (string, error) {
	if f.face == GitLab { // the project says how; only squashing is a choice
		err := f.acceptPull(p, by, acceptRequest{squash: o.Method == "squash" || p.gitlab.squash, removeBranch: p.gitlab.removeBranch})
		return p.mergeSHA, err
	}
	cannot := func(words string) (string, error) { return "", newAPIError(http.StatusMethodNotAllowed, "%s", words) }
	if !p.open {
		return cannot("Pull Request is not mergeable")
	}
	if o.SHA != "" && o.SHA != p.head {
		return "", newAPIError(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	if o.Method == "" {
		o.Method = "merge"
	}
	if !slices.Contains(p.repo.methods, o.Method) {
		word := map[string]string{"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}[o.Method]
		if word == "" {
			return "", invalidField("PullRequest", "merge_method", "invalid", "")
		}
		return cannot(word + " are not allowed on this repository.")
	}
	if p.draft {
		return cannot("Pull Request is still a draft")
	}
	why, err := f.findMergeBlocker(p)
	if err != nil {
		return "", err
	}
	need := p.repo.protections[p.base]
	bypassed := need.isBypassedBy(p.repo, by)
	withoutReviews := need.Ruleset == "" && slices.Contains(need.Bypass, by.login) && why == f.findReviewBlocker(p)
	if why != "" && !bypassed && !withoutReviews {
		return cannot(why)
	}
	if need.Queue != nil && !bypassed {
		return cannot(queueOnly)
	}
	base := p.repo.branchHead(p.base)
	landed, clean, err := f.createMergeCommit(p, by, base, o)
	if err != nil {
		return "", err
	}
	if !clean {
		if o.Method == "rebase" {
			return cannot("This branch can't be rebased")
		}
		return cannot("Pull Request is not mergeable")
	}
	if err := p.repo.git.updateRef("refs/heads/"+p.base, landed, base); err != nil {
		return cannot("Base branch was modified. Review and try the merge again.")
	}
	if p.landed, err = p.repo.git.revList(base, landed); err != nil {
		return "", err
	}
	f.markMerged(p, by, landed)
	if p.repo.deleteMerged && p.headRepo == p.repo {
		if err := p.repo.git.deleteRef("refs/heads/"+p.branch, p.head); err != nil {
			return "", err
		}
	}
	return landed, f.noticeRefs(p.repo, by)
}

// createMergeCommit makes the commit that a merge puts on the base branch.
func (f *Forge) createMergeCommit(p *pull, by *account, base string, o mergeRequest) (commit string, clean bool, err error) {
	git, web := p.repo.git, f.webFlow()
	if o.Method == "rebase" {
		return git.rebaseCommits(p.commits, base, f.commitIdent(by))
	}
	tree, clean, err := git.mergeTree(base, p.head)
	if err != nil || !clean {
		return "", clean, err
	}
	parents, author := []string{base, p.head}, f.commitIdent(by)
	title, message := o.Title, o.Message
	if o.Method == "squash" {
		parents, author = []string{base}, f.commitIdent(p.author)
		if title == "" {
			title = fmt.Sprintf("%s (#%d)", p.title, p.number)
		}
	} else {
		if title == "" {
			title = fmt.Sprintf("Merge pull request #%d from %s/%s", p.number, p.headRepo.owner.login, p.branch)
		}
		if message == "" {
			message = p.title
		}
	}
	text := strings.TrimRight(title+"\n\n"+message, "\n") + "\n"
	commit, err = git.commitTree(tree, parents, author, web, text)
	return commit, true, err
}
