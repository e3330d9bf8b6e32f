package emulator

import "fmt"

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
		p, err := f.openPull(r, u, pullSpec{title: title, head: from, branch: branch, base: base, draft: f.face == GitLab && isDraftTitle(title)})
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
