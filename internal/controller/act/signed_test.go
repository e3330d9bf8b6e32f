package act

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

var (
	ownIdent   = git.Ident{Name: "Liftlock", Email: "liftlock@example.org"}
	forgeIdent = git.Ident{Name: "GitHub", Email: "noreply@git.example"}
)

// signingForge is a forge that commits what Liftlock pushes.
type signingForge struct{ *fakeForge }

func (signingForge) SignCommit(context.Context, forge.Repo, forge.NewCommit) (string, error) {
	return "", errors.New("a mirror has its own signer here")
}

func (signingForge) IsSigner(email string) bool { return email == forgeIdent.Email }

// signByForge has the forge sign from now on, through a new mirror, and counts how often.
func (f *fixture) signByForge() (calls *int) {
	f.t.Helper()
	calls = new(int)
	f.repo.Mirror = git.OpenMemory(f.remote, git.MemoryOptions{Author: ownIdent, Now: func() time.Time { return f.now }, BeforeRemote: f.beforeRemote,
		RemoteSigner: func(ctx context.Context, c git.RemoteCommit) (string, error) {
			*calls++
			f.now = f.now.Add(time.Second) // what is made again is another
			return f.remote.Write(ctx, git.CommitSpec{Message: c.Message, Parents: c.Parents, Base: c.Base, Files: c.Changes, When: f.now, Author: &ownIdent, Committer: &forgeIdent})
		}})
	f.repo.Forge, f.repo.SignedByForge = signingForge{f.forge}, true
	f.fetch()
	f.start()
	return calls
}

// TestSignedOnce holds that the commit that the forge signed is pushed, by any process that goes on
// after a failed push. One pull request is opened from it, and its head is known as ours.
func TestSignedOnce(t *testing.T) {
	eachKind(t, func(w *fixture) {
		calls := w.signByForge()
		ev, d, open := w.ready("2.0.0")
		w.refusePushes = true
		if err := w.do(ev, d, open); !errors.Is(err, git.ErrRejected) {
			w.t.Fatalf("the push: %v", err)
		}
		w.refusePushes = false
		w.start()
		ev, d = w.evaluate()
		w.must(w.do(ev, d, decided[promotion.Open](w, d)))
		pr := w.forge.pulls[1]
		info, err := w.repo.Mirror.Commit(w.ctx(), w.remoteHead(pr.Branch))
		w.must(err)
		w.compare("signed, pull requests, committer", []any{*calls, len(w.forge.pulls), info.Committer}, []any{1, 1, forgeIdent})
		ev, _ = w.evaluate()
		w.compare("state of the head", ev.OpenPulls[1].HeadState, promotion.HeadComposed)
		w.compare("proven", len(ev.OpenPulls[1].Proven), len(w.names))
	})
}

// TestSignedAndLost holds that a head that was pushed before everything but the forge and Git was
// lost is known as ours, and gives one pull request. A head that only looks like it isn't.
func TestSignedAndLost(t *testing.T) {
	eachKind(t, func(w *fixture) {
		w.signByForge()
		branchName := promotion.Branch("shop", "qa", w.key())
		ev, d, open := w.ready("2.0.0")
		w.faults.Hook = func(call string) {
			if strings.HasPrefix(call, "forge: create ") {
				w.faults.At = len(w.faults.Calls)
			}
		}
		if err := w.do(ev, d, open); !errors.Is(err, faulttest.ErrInjected) {
			w.t.Fatalf("opened: %v", err)
		}
		pushed := w.remoteHead(branchName)
		lose := func() {
			w.faults, w.store = faulttest.Faults{}, store.OpenMemory(store.Options{Now: func() time.Time { return w.now }})
			w.signByForge()
		}
		made, err := w.repo.Mirror.Commit(w.ctx(), pushed)
		w.must(err)
		changed, err := w.repo.Mirror.Changed(w.ctx(), made.Parents[0], pushed)
		w.must(err)
		var files []git.FileWrite
		for _, c := range changed {
			files = append(files, git.FileWrite{Path: c.Path, Content: []byte(w.file(pushed, c.Path))})
		}
		forged := func(author, committer git.Ident) (unmanaged string) {
			w.t.Helper()
			spec := git.CommitSpec{Message: made.Message, Parents: made.Parents, Base: made.Parents[0], Files: files, When: w.now, Author: &author, Committer: &committer}
			sha, err := w.remote.Write(w.ctx(), spec)
			w.must(err)
			w.setRemoteHead(branchName, sha)
			lose()
			ev, _ := w.evaluate()
			return ev.Components[0].Env("qa").BranchReason
		}
		linus := git.Ident{Name: "linus", Email: "linus@example.org"}
		for name, by := range map[string][2]git.Ident{"in the forge's pages": {linus, forgeIdent}, "rebased": {ownIdent, linus}, "by a person": {linus, linus}} {
			if why := forged(by[0], by[1]); !strings.Contains(why, "Liftlock did not commit it") {
				w.t.Errorf("%s: it is taken for ours: %q", name, why)
			}
		}
		w.setRemoteHead(branchName, pushed)
		lose()
		ev, _ = w.evaluate()
		w.compare("ours", ev.Components[0].Env("qa").BranchReason, "")
		w.verifyDev()
		ev, d = w.evaluate()
		w.must(w.do(ev, d, decided[promotion.Open](w, d)))
		w.compare("pull requests", len(w.forge.pulls), 1)
		raw, _, err := w.store.Record(w.ctx(), branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)))
		w.must(err)
		if !strings.Contains(string(raw), w.remoteHead(branchName)) {
			w.t.Errorf("the store doesn't know the head: %s", raw)
		}
	})
}
