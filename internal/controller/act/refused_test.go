package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

func (f *fixture) inTx(do func(tx *store.Tx) error) error {
	return f.store.Tx(f.ctx(), "test", do)
}

// TestCommentsThatAreRefused holds that a conversation which somebody has locked keeps nothing else
// from being shown, and that its comment is written once it is open again.
func TestCommentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]error{"forbidden": forge.ErrForbidden, "invalid": forge.ErrInvalid} {
		for _, edited := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, edited: %v", name, edited), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, "", "web")
				n := w.open("2.0.0")
				pr := w.forge.pulls[n]
				before := ""
				if edited {
					w.present()
					before = w.forge.comments[n][0].Body
					pr.Labels = append(pr.Labels, promotion.LabelHold)
					w.now = w.now.Add(commentInterval)
				}
				status := w.forge.statuses[pr.Head]
				w.forge.refuseTexts = &forge.Error{Op: "comment", Kind: kind, Message: "locked"}
				ev, d := w.evaluate()
				next, err := w.actor.Present(w.ctx(), ev, d)
				w.must(err)
				w.compare("a next look", next, time.Time{})
				w.compare("warnings", w.logs.FilterMessageSnippet("the comment on a pull request can't be written").Len(), 1)
				if now := w.forge.statuses[pr.Head]; now == status || now.State != forge.StatusPending {
					t.Errorf("the status is %+v", now)
				}
				w.forge.refuseTexts = nil
				w.present()
				if k := w.forge.comments[n]; len(k) != 1 || k[0].Body == before || !prtext.IsStatusComment(k[0].Body) {
					t.Errorf("once it is open again there is %+v", k)
				}
			})
		}
	}
}

// TestStatusesThatAreRefused holds that a commit status that the forge doesn't take keeps nothing
// else from being shown. It is set with a later run; any other failure is an error.
func TestStatusesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	w.forge.refuseStatus = &forge.Error{Op: "status", Kind: forge.ErrForbidden}
	ev, d := w.evaluate()
	if err := presentError(w.actor.Present(w.ctx(), ev, d)); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("without a permission: %v", err)
	}
	w.compare("comments while it isn't said that it waits", len(w.forge.comments[n]), 0)
	w.forge.refuseStatus = &forge.Error{Op: "status", Kind: forge.ErrInvalid, Message: "too many"}
	w.must(presentError(w.actor.Present(w.ctx(), ev, d)))
	w.compare("warnings", w.logs.FilterMessageSnippet("the commit status can't be set").Len(), 1)
	w.compare("comments", len(w.forge.comments[n]), 1)
	w.forge.refuseStatus = nil
	w.present()
	w.compare("once it is taken", w.forge.statuses[w.forge.pulls[n].Head].State, forge.StatusPending)
}

// TestStatusOfAPipeline holds that the commit status is set in the run of checks which counts for
// the pull request's head, and again in each later one. On a commit of the tracked branch it is set
// without one.
func TestStatusOfAPipeline(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	pr := w.forge.pulls[n]
	for i, pipeline := range []int64{0, 41, 42, 42} {
		pr.Pipeline, pr.UpdatedAt = pipeline, w.now
		_, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, n)
		w.must(err)
		did := w.present()
		w.compare("the pipeline", w.forge.statuses[pr.Head].Pipeline, pipeline)
		w.compare(fmt.Sprintf("it is set, the time %d", i+1), slices.Contains(did, "forge: status"), i < 3)
	}
	main := w.remoteHead("main")
	st := prtext.Status{State: string(forge.StatusFailure), Description: "it is broken"}
	for number, want := range map[int]int64{0: 0, n: 0} { // main isn't the pull request's head
		w.must(w.actor.SetStatus(w.ctx(), w.repo, number, main, st))
		w.compare(fmt.Sprintf("on main, of #%d", number), w.forge.statuses[main], forge.Status{Context: StatusContext, State: forge.StatusFailure, Description: "it is broken", TargetURL: console, Pipeline: want})
	}
	w.must(w.actor.SetStatus(w.ctx(), w.repo, n, pr.Head, st))
	w.compare("on its head", w.forge.statuses[pr.Head].Pipeline, int64(42))
}

// TestBlockedByOurOwnStatus looks again soon where the forge blocks a merge and its status turned
// green with this look. Where the forge requires that very status, no event says that it unblocks.
func TestBlockedByOurOwnStatus(t *testing.T) {
	t.Parallel()
	for mergeable, soon := range map[promotion.MergeState]bool{promotion.MergeBlocked: true, promotion.MergeState(forge.MergeableYes): false} {
		w := newFixture(t, "", "web")
		n := w.open("2.0.0")
		w.verifyDev()
		pass := func() time.Time {
			t.Helper()
			ev, d := w.evaluate()
			gates := d.Components[0].Env("qa").Gates
			for i := range gates {
				gates[i].Outcome = "pass"
			}
			ev.OpenPulls[n].Mergeable = mergeable
			next, err := w.actor.Present(w.ctx(), ev, d)
			w.must(err)
			w.compare("the status", w.forge.statuses[w.forge.pulls[n].Head].State, forge.StatusSuccess)
			if next.IsZero() {
				return next
			}
			return next.Add(-ownStatusDelay)
		}
		want := time.Time{}
		if soon {
			want = w.now.Add(time.Second) // when it is evaluated
		}
		w.compare(string(mergeable)+": it looks again", pass(), want)
		w.compare(string(mergeable)+", and nothing new: it looks again", pass(), time.Time{})
	}
}

// TestMergeThatTheForgeExplains holds that a merge which the forge blocks is only tried while it
// demands what it was judged by.
func TestMergeThatTheForgeExplains(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	w.forge.pulls[n].Mergeable, w.forge.pulls[n].UpdatedAt = forge.MergeableBlocked, w.now
	_, err := w.gatherer.PullCache.RefreshPullRequest(w.ctx(), w.repo, n)
	w.must(err)
	w.gatherer.PullCache.ForgetMergeable(w.repo, n)
	ev, d := w.evaluate()
	merge := w.merge(ev, n)
	merge.Attempt = true

	w.forge.refuseRules = &forge.Error{Op: "read the rules", Kind: forge.ErrRetryable}
	if err := w.do(ev, d, merge); !errors.Is(err, forge.ErrRetryable) || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "read what the forge demands of merges into main before #1 is tried") {
		t.Errorf("rules that can't be read: %v", err)
	}
	w.forge.refuseRules = nil
	w.forge.rules.Sets = []forge.RuleSet{{Name: "branch protection", Approvals: 2}}
	w.mustBeStale(w.do(ev, d, merge), "what the forge demands of merges into main changed since #1 was judged")
	w.compare("merges", len(w.forge.merges), 0)
	ev, d = w.evaluate()
	merge = w.merge(ev, n)
	merge.Attempt = true
	w.must(w.do(ev, d, merge))
	w.compare("merges", len(w.forge.merges), 1)
}

// TestMergeInOurWords holds that a commit that landed with our own message is known as our merge
// without another call of the forge's. Any other is read again.
func TestMergeInOurWords(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"ours": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "", "web")
			n := w.open("2.0.0")
			ev, d := w.evaluate()
			merge := w.merge(ev, n)
			w.forge.merging = func() {
				sent := w.forge.merges[len(w.forge.merges)-1]
				message := "\n" + sent.Title + "\n\n" + sent.Message + "\n"
				if other {
					message = sent.Title
				}
				landed, err := w.remote.Write(w.ctx(), git.CommitSpec{Message: message, When: w.now, Base: merge.Head, Parents: []string{merge.Tip, merge.Head}})
				w.must(err)
				w.forge.landed = landed
			}
			w.faults.Calls = nil
			w.must(w.do(ev, d, merge))
			w.compare("it is read again", slices.Contains(w.faults.Calls, "forge: read #1"), other)
			row, ok, err := w.store.Pull(w.ctx(), w.repo.ID, n)
			w.must(err)
			w.compare("the store has", []any{ok, row.State}, []any{true, string(forge.Merged)})
			w.compare("events", []int{len(w.events("merged")), len(w.events("unjudged"))}, []int{1, 0})
			ev, _ = w.evaluate()
			w.compare("what landed", []any{ev.Components[0].Env("qa").Landed.Value.Pull, ev.Components[0].Env("qa").Landed.Value.Commit}, []any{n, w.forge.landed})
		})
	}
}

// TestWhyUnjudged says so only where a commit's first parent isn't what it was judged on.
func TestWhyUnjudged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parents []string
		said    bool
	}{"a root": {nil, false}, "as judged": {[]string{"tip", "head"}, false}, "another": {[]string{"other", "tip"}, true}} {
		if got := whyUnjudged(7, &git.CommitInfo{Parents: c.parents}, "tip"); (got != "") != c.said || c.said && !strings.Contains(got, "#7 landed on other and was judged on tip") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestUpdateRevert brings a revert up to date with its edits as they are; the store names no releases
// of it, as a revert proves none.
func TestUpdateRevert(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.must(w.do(ev, d, revert))
	opened := clonePull(w.forge.pulls[2])
	tip := w.commit("Say more", map[string]string{"README.md": "more"})
	ev, d = w.evaluate()
	merge := w.merge(ev, 2)
	merge.Behind, merge.Tip = true, tip
	w.failEach(func() (func() error, func()) {
		pr := clonePull(&opened)
		w.forge.pulls[2] = &pr
		w.setRemoteHead(pr.Branch, opened.Head)
		w.fetch()
		var err error
		return func() error { err = w.do(ev, d, merge); return err }, func() {
			info, cerr := w.repo.Mirror.Commit(w.ctx(), w.remoteHead(pr.Branch))
			w.must(cerr)
			w.compare("parents", info.Parents, []string{tip})
			w.compare("qa", w.file(w.remoteHead(pr.Branch), kustomizationOf("web", "qa")), kustomization("web", "1.0.0"))
			w.compare("what is kept of pushes", w.kept(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, pr.Branch))), false)
			if err == nil { // else the look after it says it
				w.compare("events", len(w.events("updated")), 1)
			}
		}
	})
}

// TestDeploymentsThatAreGone holds what becomes of a deployment which somebody deleted: what is over
// is so without it, and what isn't is refused, which is said.
func TestDeploymentsThatAreGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  deployments: true\n", "web")
	w.open("2.0.0")
	ev, d := w.evaluate()
	put := func(state promotion.DeploymentState) {
		t.Helper()
		var stored facts.StoredDeployments
		stored.Put("qa", facts.StoredDeployment{ID: 901, DeploymentRecord: promotion.DeploymentRecord{Commit: "before", At: w.now, State: state}}, func(string) bool { return true })
		w.must(facts.Deployments.Put(w.ctx(), w.store, record.Unit(ev.Unit), stored))
	}
	for _, state := range []promotion.DeploymentState{"", promotion.DeploymentInProgress} {
		put(state)
		w.faults.Calls = nil
		w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "before", At: w.now, State: promotion.DeploymentInactive}))
		w.compare("its state is read where it isn't known", slices.Contains(w.faults.Calls, "forge: read a deployment"), state == "")
		w.compare("refusals", len(w.actor.DeploymentRefusals()), 0)
		stored, err := facts.ReadDeployments(w.ctx(), w.store, ev.Unit)
		w.must(err)
		_, still := stored.Find("qa", "before")
		w.compare("it is kept", still, false)
	}
	put("")
	w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "before", At: w.now, State: promotion.DeploymentSuccess}))
	w.compare("refused", w.actor.DeploymentRefusals()[w.repo.ID].Reason, "Not Found")
}

// TestSetDeploymentNeedsLook holds after which deployments there is more to show: those that were
// found of before, and what is refused or isn't any more.
func TestSetDeploymentNeedsLook(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  deployments: true\n", "web")
	w.open("2.0.0")
	ev, d := w.evaluate()
	at := w.now
	set := func(commit string, state promotion.DeploymentState) bool {
		t.Helper()
		needsLook, err := w.actor.Do(w.ctx(), ev, d, promotion.Step{Component: -1, Action: promotion.SetDeployment{Environment: "qa", Commit: commit, At: at, State: state, Pull: 1, Members: []promotion.Member{{Component: "web", Release: "r2", Name: "2.0.0"}}}})
		w.must(err)
		return needsLook
	}
	commit := ev.Components[0].Env("qa").Landed.Value.Commit
	w.forge.refuseDeployments = &forge.Error{Op: "create", Kind: forge.ErrForbidden, Message: "no"}
	w.compare("with one that is refused", set(commit, promotion.DeploymentInProgress), true)
	w.compare("with one that is refused still", set(commit, promotion.DeploymentInProgress), true)
	w.forge.refuseDeployments = nil
	w.compare("not refused any more", set(commit, promotion.DeploymentInProgress), true)
	w.compare("with the same", set(commit, promotion.DeploymentSuccess), false)
	w.must(w.store.DeleteRecord(w.ctx(), facts.Deployments.Key(record.Unit(ev.Unit))))
	w.forge.deployments = []forge.Deployment{{ID: 901, Environment: "qa", Task: promotion.DeploymentTask(ev.Unit), Commit: "before", CreatedAt: at.Add(-time.Hour)}}
	w.compare("with one from before", set(commit, promotion.DeploymentInProgress), true)
	w.must(w.store.DeleteRecord(w.ctx(), facts.Deployments.Key(record.Unit(ev.Unit))))
	w.forge.deployments = []forge.Deployment{{ID: 902, Environment: "qa", Task: promotion.DeploymentTask(ev.Unit), Commit: commit, CreatedAt: at}}
	w.compare("with itself", set(commit, promotion.DeploymentInProgress), false)
}

// TestPresentIsStopped gives up at once when its time is over: what is left would fail as well.
func TestPresentIsStopped(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.land("2.0.0")
	w.now = w.now.Add(landingGrace)
	w.release("3.0.0")
	w.verifyDev()
	w.recordArrivals("qa", func(e *promotion.Env) promotion.Record {
		return promotion.Record{Environment: "qa", Release: e.Release.Value.ID, Commit: e.Landed.Value.Commit, Verified: true}
	})
	ev, d := w.evaluate()
	w.must(w.do(ev, d, decided[promotion.Open](w, d)))
	ev, d = w.evaluate()
	present := func(at string) error {
		over, cancel := context.WithCancel(w.ctx())
		defer cancel()
		w.faults = faulttest.Faults{Hook: func(call string) {
			if strings.HasPrefix(call, at) {
				cancel()
				w.faults.At = len(w.faults.Calls)
			}
		}}
		err := presentError(w.actor.Present(over, ev, d))
		calls := slices.Clone(w.faults.Calls)
		w.faults = faulttest.Faults{}
		if i := slices.Index(calls, at); i < 0 || i != len(calls)-1 {
			t.Errorf("after %s it goes on: %q", at, calls)
		}
		return err
	}
	for _, at := range []string{"forge: status", "forge: comment #1"} {
		if err := present(at); err == nil {
			t.Errorf("that it was stopped at %s isn't said", at)
		}
	}
}

// TestDeleteByTheForgesAPI holds that a branch whose deletion Git is refused is deleted by the
// forge's API, as GitLab does for protected branches. It is deleted only where it is still at the
// commit that was seen.
func TestDeleteByTheForgesAPI(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	branch, head := w.leave()
	main := w.remoteHead("main")
	w.refusePushes = true
	tip := w.commit("Say more", map[string]string{"README.md": "more"})
	for at, deleted := range map[string]bool{head: true, tip: false} {
		w.setRemoteHead(branch, at)
		err := w.actor.deleteBranch(w.ctx(), w.repo, branch, head)
		w.compare("deleted", []bool{err == nil, w.remoteHead(branch) == ""}, []bool{deleted, deleted})
		if !deleted && !errors.Is(err, git.ErrRejected) {
			t.Errorf("it ends with %v", err)
		}
	}
	w.setRemoteHead(branch, head)
	w.forge.undeleted = true
	if err := w.actor.deleteBranch(w.ctx(), w.repo, branch, head); !errors.Is(err, git.ErrRejected) || !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("what both refuse: %v", err)
	}
	w.compare("main moved", w.remoteHead("main") != main, true)
}

// TestListHolds lists nothing where there can't be a hold or none was ever set, and says so where a
// file can't be read.
func TestListHolds(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	list := func(u promotion.Unit) ([]promotion.Holding, error) {
		return w.actor.ListHolds(w.ctx(), w.repo, u, "component", "")
	}
	for name, u := range map[string]promotion.Unit{"without a branch": w.unit("web"), "of nobody": w.unit("")} {
		if all, err := list(u); len(all) != 0 || err != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	w.setHold(Hold{Scope: "component", By: "ada", Set: true})
	if all, err := list(w.unit("")); len(all) != 0 || err != nil {
		t.Errorf("of nobody: %v, %v", all, err)
	}
	broken, err := w.remote.Write(w.ctx(), git.CommitSpec{Message: "Break it", When: w.now, Files: []git.FileWrite{{Path: "holds/shop/component/web.yaml/x", Content: []byte("x")}}})
	w.must(err)
	w.setRemoteHead(history.StateBranch, broken)
	w.fetch()
	if _, err := list(w.unit("web")); err == nil {
		t.Error("a file that can't be read has no holds")
	}
	if _, err := w.actor.SetHold(w.ctx(), w.repo, w.unit("web"), Hold{Scope: "component", By: "grace", Set: true}); err == nil {
		t.Error("it is written over")
	}
	w.compare("the branch", w.remoteHead(history.StateBranch), broken)
}

// TestOpeningIsOnlyForgottenByItself holds that what another process says to be opening stays known.
func TestOpeningIsOnlyForgottenByItself(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	s, err := actionSubject(ev, d, open)
	w.must(err)
	w.must(openings.Put(w.ctx(), w.store, s.opening(), "head by another"))
	w.must(w.actor.forgetOpening(w.ctx(), &s, "head by me"))
	w.compare("it is kept", w.kept(openings.Key(s.opening())), true)
	w.must(w.actor.forgetOpening(w.ctx(), &s, "head by another"))
	w.compare("it is kept", w.kept(openings.Key(s.opening())), false)
}

// TestPushedHeadsAreBounded holds which heads of a branch of ours are kept for pushes that may have
// failed: the newest, each once.
func TestPushedHeadsAreBounded(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	s := subjectOf(ev, d, ev.OpenPulls[n])
	branchName := w.forge.pulls[n].Branch
	kept := func() (heads []string) {
		t.Helper()
		all, _, err := branch.PushedHeads.Get(w.ctx(), w.store, record.OfBranch(w.repo.ID, branchName))
		w.must(err)
		for _, p := range all {
			heads = append(heads, p.Head)
		}
		return heads
	}
	add := func(head string) {
		t.Helper()
		w.must(w.inTx(func(tx *store.Tx) error {
			return addPushed(w.ctx(), tx, w.repo, branchName, branch.Pushed{{Head: head}})
		}))
	}
	var want []string
	for i := range maxPushed + 2 {
		head := fmt.Sprintf("head%d", i)
		add(head)
		want = append(want, head)
	}
	w.compare("kept", kept(), want[2:])
	add("head5")
	w.compare("kept", kept(), append(slices.DeleteFunc(slices.Clone(want[2:]), func(h string) bool { return h == "head5" }), "head5"))
	pr := clonePull(w.forge.pulls[n])
	before := kept()
	w.must(w.inTx(func(tx *store.Tx) error { return putOnlyPushed(w.ctx(), tx, &s, &pr, "another") }))
	w.compare("while the pull request shows another head", kept(), before)
	w.must(w.inTx(func(tx *store.Tx) error { return putOnlyPushed(w.ctx(), tx, &s, &pr, pr.Head) }))
	w.compare("once it shows it", kept(), []string{pr.Head})
	w.must(w.store.PutRecord(w.ctx(), branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), []byte("{")))
	if err := w.inTx(func(tx *store.Tx) error {
		return addPushed(w.ctx(), tx, w.repo, branchName, branch.Pushed{{Head: "h"}})
	}); err == nil {
		t.Error("what can't be read is written over")
	}
}
