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
	// probeBranch is as deep as a promotion's, so that the same rules are for it, and none of them:
	// no pipeline has an underscore in its name.
	probeBranch = "liftlock/_doctor/environment/probe"
	probeStatus = "liftlock-probe"
	// probeAgain is the cure where it isn't known how far the probe came.
	probeAgain = "try again; the branch " + probeBranch + " is deleted then, should it be there"
)

// probe pushes a branch, sets a status on its commit, and deletes it. The commit has no parent and
// one file, so that what runs on pushes finds nothing to run. A killed probe's branch is replaced,
// and deleted with it. Each call has its own time: one that stalls takes none of the deletion's,
// nor of what is checked after it.
func (r *repositoryCheck) probe(ctx context.Context, m *git.Mirror, by Prober) {
	before := len(r.found)
	where := "probe of " + r.config.Name
	commit, err := r.pushProbe(ctx, m)
	switch {
	case errors.Is(err, git.ErrRejected), errors.Is(err, git.ErrAuth):
		r.found.add("probe-push", where, "no branch could be pushed: "+err.Error(),
			"let Liftlock's account push to the branches below liftlock/ and liftlock-revert/, and to liftlock-state: its role, the "+
				"token's scopes, rules that it isn't let past (for "+guardPatterns(r.forgeOf.Type)+")")
		return
	case err != nil:
		r.found.add("probe-unread", where, err.Error(), probeAgain)
		if commit == "" {
			return // nothing was pushed
		}
	case ctx.Err() == nil:
		r.setProbeStatus(ctx, where, commit, by)
	}
	// A branch that was pushed, or may have been, is deleted also where the probe is interrupted.
	ctx, cancel := r.limit(context.WithoutCancel(ctx))
	defer cancel()
	if err := by.DeleteBranch(ctx, r.repo, probeBranch); err != nil {
		r.found.addProbe("probe-delete", where, "the branch "+probeBranch+" can't be deleted: ", err,
			"let Liftlock's account delete its branches, and delete this one by hand")
	}
	r.found.addOK(before, CodeProbe, where, "a branch was pushed, given a commit status, and deleted")
}

// pushProbe pushes the probe's commit to its branch. With an error the commit is empty where
// nothing was pushed; otherwise the push may have arrived.
func (r *repositoryCheck) pushProbe(ctx context.Context, m *git.Mirror) (commit string, err error) {
	reading, cancel := r.limit(ctx)
	defer cancel()
	left, err := m.RemoteHeads(reading, probeBranch)
	if err != nil {
		return "", err
	}
	commit, err = m.Write(reading, git.CommitSpec{Files: []git.FileWrite{{Path: "probe.txt",
		Content: []byte("What liftlock doctor --probe pushes, and deletes at once.\n")}}, Message: "Probe what may be written [skip ci]\n",
		When: r.Now()})
	if err != nil {
		return "", err
	}
	// An interrupt doesn't cut a push, which might arrive after the deletion.
	pushing, cancel := r.limit(context.WithoutCancel(ctx))
	defer cancel()
	return commit, m.Push(pushing, git.PushSpec{Branch: probeBranch, New: commit, Old: left[probeBranch]})
}

// setProbeStatus sets a status on the probe's commit.
func (r *repositoryCheck) setProbeStatus(ctx context.Context, where, commit string, by Prober) {
	ctx, cancel := r.limit(ctx)
	defer cancel()
	if err := by.SetStatus(ctx, r.repo, commit, forge.Status{Context: probeStatus, State: forge.StatusSuccess,
		Description: "a probe by liftlock doctor"}); err != nil {
		r.found.addProbe("probe-status", where, "no commit status could be set: ", err, "give the token the right to write commit statuses")
	}
}

// addProbe adds what a probe couldn't do; unknown where the forge only doesn't answer.
func (f *findings) addProbe(c Code, where, what string, err error, cure string) {
	if forge.IsRetryable(err) {
		f.add("probe-unread", where, what+err.Error(), probeAgain)
		return
	}
	f.add(c, where, what+err.Error(), cure)
}
