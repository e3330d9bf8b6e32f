package emulator

import (
	"fmt"
	"strconv"
	"strings"
)

// EditPull gives a pull request another title and body.
func (f *Forge) EditPull(repo string, number int, login, title, body string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		return f.editPull(p, u, pullEdit{Title: &title, Body: &body})
	})
}

// EditComment gives a comment another body.
func (f *Forge) EditComment(repo, login string, id int64, body string) error {
	err := f.withRepository(repo, login, func(r *repository, u *account) error {
		c := r.findComment(id)
		if c == nil {
			return notFound()
		}
		return f.editComment(c, u, body)
	})
	if err != nil {
		return fmt.Errorf("editing the comment %d in %s as %s: %w", id, repo, login, err)
	}
	return nil
}

// OpenPullFrom opens a pull request from a branch of a fork.
func (f *Forge) OpenPullFrom(repo, login, fork, branch, base, title string) (int, error) {
	number := 0
	err := f.withRepository(repo, login, func(r *repository, u *account) error {
		from, err := f.findRepository(fork)
		if err != nil {
			return err
		}
		p, err := f.openPull(r, u, pullSpec{title: title, head: from, branch: branch, base: base,
			draft: f.face == GitLab && isDraftTitle(title)})
		if err == nil {
			number = p.number
		}
		return err
	})
	return number, err
}

// ClosePull closes a pull request without merging it; ReopenPull opens it again.
func (f *Forge) ClosePull(repo string, number int, login string) error {
	return f.setState(repo, number, login, "closed")
}

// ReopenPull opens a closed pull request again.
func (f *Forge) ReopenPull(repo string, number int, login string) error {
	return f.setState(repo, number, login, "open")
}

func (f *Forge) setState(repo string, number int, login, state string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		return f.editPull(p, u, pullEdit{State: &state})
	})
}

// SetBase gives a pull request another base.
func (f *Forge) SetBase(repo string, number int, login, base string) error {
	return f.withPull(repo, number, login, func(p *pull, u *account) error {
		return f.editPull(p, u, pullEdit{Base: &base})
	})
}

// MergePull merges by the method (merge, squash or rebase) and returns the
// commit that landed.
func (f *Forge) MergePull(repo string, number int, login, method string) (string, error) {
	var sha string
	err := f.withPull(repo, number, login, func(p *pull, u *account) error {
		var err error
		sha, err = f.mergePull(p, u, mergeRequest{Method: method})
		return err
	})
	return sha, err
}

// landingPrefix begins the branches from which LandAs brings changes.
const landingPrefix = "change-"

// IsLanding says whether a pull request is one that LandAs made.
func (p *PullRequest) IsLanding() bool { return strings.HasPrefix(p.Branch, landingPrefix) }

// LandAs brings a change to a branch in the way in which the forge can tell afterwards who did it.
// On GitHub it is a push, as with CommitAs. On GitLab, whose commits carry no accounts, it is a
// merge request of its own, merged by its author. It returns the commit that the branch is at then.
func (f *Forge) LandAs(repo, login, branch, message string, files map[string]string, remove ...string) (string, error) {
	tip, err := f.Head(repo, branch)
	if err != nil || tip == "" || f.face == GitHub {
		return f.CommitAs(repo, login, branch, message, files, remove...)
	}
	f.mu.Lock()
	from := landingPrefix + strconv.FormatInt(f.nextID(), 10)
	f.mu.Unlock()
	if err := f.SetBranch(repo, login, from, tip); err != nil {
		return "", err
	}
	sha, err := f.CommitAs(repo, login, from, message, files, remove...)
	if err != nil {
		return "", err
	}
	if err := f.passChecks(repo, login, branch, sha); err != nil {
		return "", err
	}
	title, _, _ := strings.Cut(message, "\n")
	n, err := f.OpenPull(repo, login, from, branch, title, "")
	if err != nil {
		return "", err
	}
	landed, err := f.MergePull(repo, n, login, "merge")
	if err != nil {
		return "", err
	}
	return landed, f.SetBranch(repo, login, from, "")
}

// passChecks has everything succeed on a commit that a protected branch asks for.
func (f *Forge) passChecks(repo, login, branch, sha string) error {
	f.mu.Lock()
	r := f.repos[repo]
	var contexts []string
	if r != nil {
		contexts = r.protections[branch].Contexts
	}
	f.mu.Unlock()
	for _, context := range contexts {
		if err := f.SetStatus(repo, login, sha, Status{Context: context, State: "success"}); err != nil {
			return err
		}
	}
	return nil
}
