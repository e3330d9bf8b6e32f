package doctor

import (
	"context"
	"errors"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// Prober is what a probe writes by: nothing else in this package writes.
type Prober interface {
	SetStatus(ctx context.Context, r forge.Repo, commit string, s forge.Status) error
	DeleteBranch(ctx context.Context, r forge.Repo, branch string) error
}

const (
	// probeBranch is among those that Liftlock pushes, and no promotion's: no pipeline has an
	// underscore in its name.
	probeBranch = "liftlock/_probe"
	probeStatus = "liftlock-probe"
)

// probe pushes a branch, sets a status on its commit, and deletes it. The commit has no parent and
// one file, so that what runs on pushes finds nothing to run. What a probe left that was killed is
// replaced, and deleted with it.
func (k *repositoryCheck) probe(ctx context.Context, m *git.Mirror, by Prober) {
	before := len(k.found)
	where := "probe of " + k.config.Name
	unknown := func(err error) {
		k.found.add("probe-unread", where, err.Error(), "try again; the branch "+probeBranch+" is deleted then, should it be there")
	}
	left, err := m.RemoteHeads(ctx, probeBranch)
	if err != nil {
		unknown(err)
		return
	}
	commit, err := m.Write(ctx, git.CommitSpec{Files: []git.FileWrite{{Path: "probe.txt", Content: []byte("What liftlock doctor --probe pushes, and deletes at once.\n")}}, Message: "Probe what may be written [skip ci]\n", When: k.Now()})
	if err != nil {
		unknown(err)
		return
	}
	// What has begun is cleaned up also where somebody interrupts it.
	written, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.Timeout)
	defer cancel()
	switch err := m.Push(written, git.PushSpec{Branch: probeBranch, New: commit, Old: left[probeBranch]}); {
	case errors.Is(err, git.ErrRejected), errors.Is(err, git.ErrAuth):
		k.found.add("probe-push", where, "no branch could be pushed: "+err.Error(), "let Liftlock's account push to liftlock/**, liftlock-revert/** and liftlock-state: its role, the token's scopes, a ruleset that it isn't let past")
		return
	case err != nil:
		unknown(err)
		return
	}
	if ctx.Err() == nil {
		if err := by.SetStatus(written, k.repo, commit, forge.Status{Context: probeStatus, State: forge.StatusSuccess, Description: "a probe by liftlock doctor"}); err != nil {
			k.found.addProbe("probe-status", where, "no commit status could be set: ", err, "give the token the right to write commit statuses")
		}
	}
	if err := by.DeleteBranch(written, k.repo, probeBranch); err != nil {
		k.found.addProbe("probe-delete", where, "the branch "+probeBranch+" can't be deleted: ", err, "let Liftlock's account delete its branches, and delete this one by hand")
	}
	k.found.addOK(before, CodeProbe, where, "a branch was pushed, given a commit status, and deleted")
}

// addProbe adds what a probe couldn't do; unknown where the forge only doesn't answer.
func (f *findings) addProbe(c Code, where, what string, err error, cure string) {
	if forge.IsRetryable(err) {
		f.add("probe-unread", where, what+err.Error(), "try again; the branch "+probeBranch+" is deleted then, should it be there")
		return
	}
	f.add(c, where, what+err.Error(), cure)
}
