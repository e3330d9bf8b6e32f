package act

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

// file is a file of a commit.
func (f *fixture) file(commit, name string) string {
	f.t.Helper()
	raw, err := f.repo.Mirror.Tree(commit).ReadFile(name)
	f.must(err)
	return string(raw)
}

// mustBeStale fails unless an error says that nothing was done since something moved.
func (f *fixture) mustBeStale(err error, says ...string) {
	f.t.Helper()
	if !errors.Is(err, ErrStale) {
		f.t.Fatalf("it is not stale: %v", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			f.t.Errorf("%q isn't said: %v", s, err)
		}
	}
}

// compare fails when two things differ.
func (f *fixture) compare(what string, got, want any) {
	f.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		f.t.Errorf("%s: -want +got\n%s", what, d)
	}
}

// each makes a list with a line for each component.
func (f *fixture) each(format string) []string {
	var out []string
	for _, c := range f.names {
		out = append(out, fmt.Sprintf(format, c))
	}
	return out
}

// ready has a release in dev that may be promoted.
func (f *fixture) ready(tag string) (*facts.Evaluation, *promotion.Decision, promotion.Open) {
	f.t.Helper()
	f.evaluate()
	f.release(tag)
	f.verifyDev()
	ev, d := f.evaluate()
	return ev, d, decided[promotion.Open](f, d)
}

// openSlot is what the names of the slots begin with that those have who are about to open
// a pull request.
const openSlot = "open|hub:acme/fleet|shop|qa|"

func TestOpenPromotion(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		w.must(w.do(ev, d, open))
		pr := w.forge.pulls[1]
		tip := w.remoteHead("main")
		w.compare("branch, base, author, state", []string{pr.Branch, pr.Base, pr.Author, string(pr.State)}, []string{"liftlock/shop/qa/" + w.key(), "main", bot, "open"})
		if !pr.HasLabel(promotion.LabelOurs) || !strings.Contains(pr.Title, "2.0.0") || !strings.Contains(pr.Body, "release="+open.Release) || strings.Contains(pr.Body, "liftlock:revert") {
			t := *pr
			w.t.Errorf("opened %+v", t)
		}
		info, err := w.repo.Mirror.Commit(w.ctx(), pr.Head)
		w.must(err)
		w.compare("parents", info.Parents, []string{tip})
		for _, c := range w.names {
			w.compare("qa of "+c, w.file(pr.Head, kustomizationOf(c, "qa")), kustomization(c, "2.0.0"))
			p := w.promotionOf(c, 1)
			m, _ := promotion.FindMember(open.Members, c)
			w.compare("the row of "+c, []string{p.Kind, p.State, p.Release, p.Environment, p.Component}, []string{"promotion", promotion.Opened, m.Release, "qa", c})
		}
		w.compare("events", w.events("opened"), w.each("%s: #1 opened: "+open.Name+" to qa"))
		w.compare("it is held", w.held(openSlot), false)

		before := *pr
		w.must(w.do(ev, d, open)) // done again, nothing changes
		w.compare("pull requests", len(w.forge.pulls), 1)
		w.compare("the pull request", *w.forge.pulls[1], before)
		w.compare("events", w.events("opened"), w.each("%s: #1 opened: "+open.Name+" to qa"))
		ev, d = w.evaluate()
		w.compare("members", ev.OpenPulls[1].HeadState, promotion.HeadState(""))
		for _, s := range d.Steps() {
			if _, opens := s.Action.(promotion.Open); opens {
				w.t.Error("it is to be opened once more")
			}
		}
	})
}

// TestOpenFindsExistingPull holds that the pull request that an interrupted run opened is found,
// with the labels it lacks, and that another account's is left alone.
func TestOpenFindsExistingPull(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		branch := promotion.Branch("shop", "qa", w.key())
		w.forge.add(forge.NewPullRequest{Branch: branch, Base: "main", Labels: []string{"env/qa", "mine"}}, "linus", w.remoteHead("main"))
		w.mustBeStale(w.do(ev, d, open), "#1 by linus", branch)
		w.compare("events", w.events("opened"), []string(nil))
		w.compare("labels", w.forge.pulls[1].Labels, []string{"env/qa", "mine"})
		w.forge.pulls[1].Author = bot
		w.forgetOpening()
		w.faults.Calls = nil
		w.must(w.do(ev, d, open))
		w.compare("labels", w.forge.pulls[1].Labels, []string{"env/qa", "liftlock", "mine"})
		if !slices.Contains(w.faults.Calls, "forge: label #1 liftlock") {
			w.t.Errorf("the labels that are there are set again: %q", w.faults.Calls)
		}
		w.compare("pull requests", len(w.forge.pulls), 1)
		w.compare("events", w.events("opened"), w.each("%s: #1 opened: "+open.Name+" to qa"))
		w.compare("cached", w.cachedPull(1), *w.forge.pulls[1])
		clear(w.forge.pulls)
		w.forge.author = "liftlock-app" // what we open is ours, whatever the forge calls us there
		w.must(w.do(ev, d, open))
	})
}

// TestOpenedUnseenAndClosed holds that what a person closed isn't opened again where the
// run that opened it died before anything of it was read or recorded.
func TestOpenedUnseenAndClosed(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		w.faults.Hook = func(call string) {
			if strings.HasPrefix(call, "forge: create ") {
				w.faults.At, w.faults.After = len(w.faults.Calls), true
			}
		}
		if err := w.do(ev, d, open); !errors.Is(err, faulttest.ErrInjected) {
			w.t.Fatalf("opened: %v", err)
		}
		w.faults = faulttest.Faults{}
		w.now = w.now.Add(10 * time.Second)
		pr := w.forge.pulls[1]
		pr.State, pr.ClosedAt, pr.UpdatedAt = forge.Closed, w.now, w.now

		ev, d = w.evaluate() // nobody has heard of it
		w.mustBeStale(w.do(ev, d, decided[promotion.Open](w, d)), "#1")
		_, d = w.evaluate()
		for _, s := range d.Steps() {
			if _, opens := s.Action.(promotion.Open); opens {
				w.t.Error("what was closed is to be opened again")
			}
		}
		w.compare("pull requests", len(w.forge.pulls), 1)
	})
}

// cachedPull is the store's copy of a pull request.
func (f *fixture) cachedPull(number int) forge.PullRequest {
	f.t.Helper()
	open, err := f.gatherer.PullCache.OpenPulls(f.ctx(), f.repo)
	f.must(err)
	for _, pr := range open {
		if pr.Number == number {
			return pr
		}
	}
	f.t.Fatalf("#%d is not among the open ones", number)
	return forge.PullRequest{}
}

// TestPushKeepsUnknownHeads holds that a branch which moved behind the mirror's back
// stays as it is, and that the next look knows of it.
func TestPushKeepsUnknownHeads(t *testing.T) {
	eachKind(t, func(w *fixture) {
		theirs := w.remoteHead("main")
		ev, d, open := w.ready("2.0.0")
		branch := promotion.Branch("shop", "qa", w.key())
		w.setRemoteHead(branch, theirs)
		w.mustBeStale(w.do(ev, d, open), "open a promotion of "+open.Name+" into qa", git.ErrLeaseLost.Error())
		w.compare("the branch", w.remoteHead(branch), theirs)
		w.compare("pull requests", len(w.forge.pulls), 0)
		w.compare("it is held", w.held(openSlot), false)
		head, _, err := w.repo.Mirror.Head(w.ctx(), branch)
		w.must(err)
		w.compare("the mirror's branch", head, theirs)

		w.setRemoteHead(branch, "") // and again, while the remote is away
		w.fetch()
		w.beforePush = func() { w.breakRemote() }
		if err := w.do(ev, d, open); !errors.Is(err, git.ErrNoRepository) || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "open a promotion") {
			w.t.Errorf("a remote that is away: %v", err)
		}
		w.compare("pull requests", []any{len(w.forge.pulls), w.held(openSlot)}, []any{0, false})
		w.mendRemote()
		w.beforePush = nil
		w.must(w.do(ev, d, open))
		w.compare("pull requests", len(w.forge.pulls), 1)
	})
}

// TestPushIsProven holds that a pushed head is known as ours at any moment. The store knows it from
// before the push, and the signed mark proves it once the store is lost.
func TestPushIsProven(t *testing.T) {
	eachKind(t, func(w *fixture) {
		branchName := promotion.Branch("shop", "qa", w.key())
		pushed := func() branch.Pushed {
			w.t.Helper()
			out, _, err := branch.PushedHeads.Get(w.ctx(), w.store, record.OfBranch(w.repo.ID, branchName))
			w.must(err)
			return out
		}
		var during branch.Pushed
		w.beforePush = func() { during = pushed() }
		ev, d, open := w.ready("2.0.0")
		w.must(w.do(ev, d, open))
		pr := w.forge.pulls[1]
		first := branch.PushedHead{Head: pr.Head, Releases: map[string]string{}}
		for _, m := range open.Members {
			first.Releases[m.Component] = m.Release
		}
		w.compare("before the push", during, branch.Pushed{first})
		w.compare("after it", pushed(), branch.Pushed{first})
		w.compare("signed", strings.Contains(pr.Body, " sig="), true)

		w.release("3.0.0")
		w.verifyDev()
		ev, d = w.evaluate()
		w.compare("proven", ev.OpenPulls[1].Proven, first.Releases)
		replace := decided[promotion.Replace](w, d)
		w.must(w.do(ev, d, replace))
		second := branch.PushedHead{Head: pr.Head, Releases: map[string]string{}}
		for _, m := range replace.Members {
			second.Releases[m.Component] = m.Release
		}
		w.compare("before the push", during, branch.Pushed{first, second})
		w.compare("after it", pushed(), branch.Pushed{second})

		w.must(w.store.DeleteRecord(w.ctx(), branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName))))
		w.start()
		ev, _ = w.evaluate()
		w.compare("proven by the mark", ev.OpenPulls[1].Proven, second.Releases)
	})
}

// TestPushThatFailsForgetsNothing has a process compose something else at the same time, and come
// too late with it. The other's pushed head stays known as ours: a person may merge that.
func TestPushThatFailsForgetsNothing(t *testing.T) {
	eachKind(t, func(w *fixture) {
		late, d, open := w.ready("2.0.0")
		w.release("3.0.0")
		w.verifyDev()
		ev, other := w.evaluate()
		w.must(w.do(ev, other, decided[promotion.Open](w, other)))
		pr := w.forge.pulls[1]
		first := pr.Head
		w.refusePushes = true
		if err := w.do(late, d, open); err == nil {
			w.t.Error("it was pushed all the same")
		}
		w.refusePushes = false
		w.compare("the head", w.remoteHead(pr.Branch), first)
		ev, _ = w.evaluate()
		for c, release := range ev.OpenPulls[1].Proven {
			member, _ := promotion.FindMember(ev.OpenPulls[1].Members, c)
			w.compare("proven of "+c, release, member.Release)
		}
		w.compare("proven", len(ev.OpenPulls[1].Proven), len(w.names))
	})
}

// TestOpenBindsItsCommand holds that the command which a member fulfils is about what moves.
func TestOpenBindsItsCommand(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		open.Members[0].CommandID = w.command(w.names[0], "promote", "somewhere")
		w.must(w.do(ev, d, open))
		left, err := w.store.PendingCommands(w.ctx(), unitName(w, w.names[0]))
		w.must(err)
		w.compare("bound", []any{len(left), left[0].Release}, []any{1, open.Members[0].Release})
	})
}

func TestOpenNothing(t *testing.T) {
	eachKind(t, func(w *fixture) {
		ev, d, open := w.ready("2.0.0")
		open.Release = "unknown"
		if err := w.do(ev, d, open); err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "nothing to commit") {
			w.t.Errorf("it ended with %v", err)
		}
		w.compare("pull requests", len(w.forge.pulls), 0)
		w.compare("the branch", w.remoteHead(promotion.Branch("shop", "qa", w.key())), "")
		w.compare("it is held", w.held(openSlot), false)
	})
}

func TestReplaceHead(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		first := *w.forge.pulls[n]
		w.release("3.0.0")
		w.verifyDev()
		ev, d := w.evaluate()
		replace := decided[promotion.Replace](w, d)
		w.must(w.do(ev, d, replace))
		pr := w.forge.pulls[n]
		if pr.Head == first.Head || pr.State != forge.Open || !strings.Contains(pr.Title, "3.0.0") || !strings.Contains(pr.Body, "release="+replace.Release) {
			w.t.Errorf("replaced %+v", *pr)
		}
		for _, c := range w.names {
			w.compare("qa of "+c, w.file(pr.Head, kustomizationOf(c, "qa")), kustomization(c, "3.0.0"))
			m, _ := promotion.FindMember(replace.Members, c)
			p := w.promotionOf(c, n)
			w.compare("the row of "+c, []string{p.Kind, p.State, p.Release}, []string{"promotion", promotion.Opened, m.Release})
		}
		w.compare("events", w.events("replaced"), w.each("%s: #1 composed anew: "+replace.Why))
		w.compare("cached", w.cachedPull(n).Head, pr.Head)

		before := *pr
		w.mustBeStale(w.do(ev, d, replace), "#1 is open at")
		w.compare("the pull request", *w.forge.pulls[n], before)
		w.compare("events", w.events("replaced"), w.each("%s: #1 composed anew: "+replace.Why))
	})
}

// TestMergedWhileReplaced has a person merge a head while a newer one is pushed over it. It is
// still known as ours: a promotion landed and no change by hand.
func TestMergedWhileReplaced(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		pr := w.forge.pulls[n]
		w.release("3.0.0")
		w.verifyDev()
		ev, d := w.evaluate()
		replace := decided[promotion.Replace](w, d)
		w.beforePush = func() {
			w.beforePush = nil
			base := w.remoteHead("main")
			spec := git.CommitSpec{Message: "Merge #1", When: w.now, Author: &git.Ident{Name: "grace", Email: "grace@example.org"}, Parents: []string{base, pr.Head}, Base: base}
			for _, c := range w.names {
				spec.Files = append(spec.Files, git.FileWrite{Path: kustomizationOf(c, "qa"), Content: []byte(kustomization(c, "2.0.0"))})
			}
			landed, err := w.remote.Write(w.ctx(), spec)
			w.must(err)
			w.setRemoteHead("main", landed)
			pr.State, pr.MergeCommit, pr.MergedBy, pr.MergedAt, pr.ClosedAt, pr.UpdatedAt = forge.Merged, landed, "grace", w.now, w.now, w.now
		}
		w.mustBeStale(w.do(ev, d, replace), "#1 was merged at "+pr.Head[:12])
		w.compare("events", w.events("replaced"), []string(nil))
		w.fetch()
		ev, _ = w.evaluate()
		for _, c := range ev.Components {
			landed := c.Env("qa").Landed.Value
			w.compare("what landed of "+c.Facts.Unit.Component, []any{landed.By, landed.Pull, landed.ModifiedPull}, []any{promotion.ByPromotion, n, 0})
		}
	})
}

// TestMergeOfAnothersHead holds that another account's head on our branch never counts as ours.
// That holds also where it is merged while Liftlock composes the pull request anew on a person's
// word.
func TestMergeOfAnothersHead(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	pr := w.forge.pulls[n]
	ours := w.remoteHead(pr.Branch)
	theirs := w.pushOver(pr.Branch)
	w.fetch()
	w.evaluate() // since when it has that head
	w.command("web", "retry", CommentSource(w.repo.ID, n, 7))
	ev, d := w.evaluate()
	replace := decided[promotion.Replace](w, d)
	w.beforePush = func() {
		w.beforePush = nil
		pr.State, pr.MergeCommit, pr.MergedBy, pr.MergedAt, pr.ClosedAt, pr.UpdatedAt = forge.Merged, theirs, "grace", w.now, w.now, w.now
	}
	w.mustBeStale(w.do(ev, d, replace), "#1 was merged at")
	raw, _, err := w.store.Record(w.ctx(), branch.PushedHeads.Key(record.OfBranch(w.repo.ID, pr.Branch)))
	w.must(err)
	if strings.Contains(string(raw), theirs) || !strings.Contains(string(raw), ours) {
		t.Errorf("of %s, ours, and %s, theirs, the store names as ours: %s", ours, theirs, raw)
	}
}

// pushOver has somebody push a commit onto one of our branches.
func (f *fixture) pushOver(branch string) (commit string) {
	f.t.Helper()
	on := f.remoteHead(branch)
	if on == "" {
		on = f.remoteHead("main")
	}
	commit, err := f.remote.Write(f.ctx(), git.CommitSpec{Message: "Mine", When: f.now, Author: &git.Ident{Name: "grace", Email: "grace@example.org"}, Parents: []string{on}, Base: on,
		Files: []git.FileWrite{{Path: "mine.yaml", Content: []byte("mine: true\n")}}})
	f.must(err)
	f.setRemoteHead(branch, commit)
	return commit
}

// TestPushedWhileComposed holds that what somebody pushes onto our branch while a commit is composed
// and signed isn't overwritten, though it has been fetched by then.
func TestPushedWhileComposed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	branch := promotion.Branch("shop", "qa", "web")
	act := func(a promotion.Action, ev *facts.Evaluation, d *promotion.Decision) {
		t.Helper()
		theirs := ""
		w.faults.Hook = func(call string) {
			if call == "store: push" {
				w.faults.Hook = nil
				theirs = w.pushOver(branch)
				w.fetch()
			}
		}
		w.mustBeStale(w.do(ev, d, a))
		w.compare("the branch", w.remoteHead(branch), theirs)
	}
	ev, d, open := w.ready("2.0.0")
	act(open, ev, d)
	w.setRemoteHead(branch, "")
	w.fetch()
	ev, d = w.evaluate()
	w.must(w.do(ev, d, decided[promotion.Open](w, d)))
	w.release("3.0.0")
	w.verifyDev()
	ev, d = w.evaluate()
	act(decided[promotion.Replace](w, d), ev, d)
}

// TestReplacePinsTheJudgedHead holds that an open promotion which moved since it was judged is left
// alone, whether the mirror knows of the move or not.
func TestReplacePinsTheJudgedHead(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	branch, mine := w.forge.pulls[n].Branch, w.forge.pulls[n].Head
	w.release("3.0.0")
	w.verifyDev()
	ev, d := w.evaluate()
	replace := decided[promotion.Replace](w, d)
	otherCommit := w.remoteHead("main")
	m := w.repo.Mirror
	for _, c := range []struct {
		name        string
		do, restore func()
		says        string
	}{
		{"the forge has another head", func() { w.setRemoteHead(branch, otherCommit) }, func() { w.setRemoteHead(branch, mine) }, "#1 is open at " + otherCommit[:12]},
		{"it is closed", func() { w.forge.pulls[n].State = forge.Closed }, func() { w.forge.pulls[n].State = forge.Open }, "#1 is closed at"},
		{"the mirror has another head", func() {
			w.must(m.Push(w.ctx(), git.PushSpec{Branch: branch, Old: mine, New: otherCommit}))
			w.setRemoteHead(branch, mine)
		}, func() { _, err := m.Fetch(w.ctx()); w.must(err) }, branch + " is at " + otherCommit[:12]},
		{"the mirror has no such branch", func() {
			w.must(m.Push(w.ctx(), git.PushSpec{Branch: branch, Old: mine}))
			w.setRemoteHead(branch, mine)
		}, func() { _, err := m.Fetch(w.ctx()); w.must(err) }, branch + " is at"},
	} {
		c.do()
		head := w.remoteHead(branch)
		w.mustBeStale(w.do(ev, d, replace), c.says)
		w.compare(c.name, w.remoteHead(branch), head)
		w.compare(c.name, w.events("replaced"), []string(nil))
		c.restore()
	}
	replace.Pull = 7
	w.mustBeStale(w.do(ev, d, replace), "#7 is not open")
}

func TestClosePull(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		ev, d := w.evaluate()
		shut := promotion.Close{Environment: "qa", Pull: n, Why: "nobody needs it", Members: ev.OpenPulls[n].Members}
		pr := w.forge.pulls[n]
		release := pr.Head

		head := pr.Head
		w.setRemoteHead(pr.Branch, w.remoteHead("main"))
		w.mustBeStale(w.do(ev, d, shut), "#1 is open at")
		w.compare("what moved meanwhile", []any{pr.State, len(w.forge.comments[n]), pr.HasLabel(promotion.LabelSuperseded)}, []any{forge.Open, 0, false})
		w.setRemoteHead(pr.Branch, head)

		w.must(w.do(ev, d, shut))
		w.compare("state", pr.State, forge.Closed)
		for _, after := range []time.Duration{0, lastWordsDelay} {
			w.now = w.now.Add(after)
			claims, err := w.store.Claim(w.ctx(), "others", 1000)
			w.must(err)
			isDue := slices.ContainsFunc(claims, func(c store.Claim) bool { return c.Key == wake.ForPull(w.repo.ID, n).String() })
			w.compare(fmt.Sprintf("its comments are read after %s", after), isDue, after > 0)
		}
		if !slices.Contains(w.forge.closed[n], promotion.LabelSuperseded) {
			w.t.Errorf("it was closed with the labels %q: a veto", w.forge.closed[n])
		}
		if k := w.forge.comments[n]; len(k) != 1 || !strings.Contains(k[0].Body, "Closed by Liftlock:** nobody needs it") || !strings.Contains(k[0].Body, "no veto") {
			w.t.Errorf("the comments: %+v", k)
		}
		w.compare("the branch and warnings", []any{w.remoteHead(pr.Branch), w.logs.Len()}, []any{"", 0})
		for _, c := range w.names {
			p := w.promotionOf(c, n)
			m, _ := promotion.FindMember(shut.Members, c)
			w.compare("the row of "+c, []string{p.Kind, p.State, p.Release}, []string{"promotion", "superseded", m.Release})
		}
		w.compare("events", w.events("closed"), w.each("%s: #1 closed: nobody needs it"))

		w.mustBeStale(w.do(ev, d, shut), "#1 is closed at "+release[:12])
		w.compare("comments", len(w.forge.comments[n]), 1)
		w.compare("events", w.events("closed"), w.each("%s: #1 closed: nobody needs it"))
		ev, d = w.evaluate()
		w.compare("it is no veto", []any{len(ev.OpenPulls), decided[promotion.Open](w, d).Environment}, []any{0, "qa"})
	})
}

// TestCloseWithoutDeletion holds that a branch which can't be deleted keeps nothing from
// being written down.
func TestCloseWithoutDeletion(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	w.refuseDeletions()
	w.must(w.do(ev, d, promotion.Close{Environment: "qa", Pull: n, Revert: true, Why: "it is well again", Members: append(ev.OpenPulls[n].Members, promotion.Member{Component: "gone"})}))
	w.compare("events", w.events("closed"), w.each("%s: #1 closed: it is well again"))
	w.compare("warnings", w.logs.Len(), 1)
	w.compare("the branch", w.remoteHead(w.forge.pulls[n].Branch), w.forge.pulls[n].Head)
	if k := w.forge.comments[n]; !strings.Contains(k[0].Body, "nothing left to take back") {
		w.t.Errorf("the comments: %+v", k)
	}
}

// land has a release in dev promoted and merged.
func (f *fixture) land(tag string) int {
	f.t.Helper()
	n := f.open(tag)
	ev, d := f.evaluate()
	f.must(f.do(ev, d, f.merge(ev, n)))
	return n
}

// merge is the action that merges what was evaluated.
func (f *fixture) merge(ev *facts.Evaluation, n int) promotion.Merge {
	p := ev.OpenPulls[n]
	return promotion.Merge{Environment: "qa", Pull: n, Head: p.Head, Tip: ev.Environment("qa").Tip, Revert: p.Revert, Members: p.Members}
}

// requestRevert gives a command to take back what landed, for each component, and has it
// decided.
func (f *fixture) requestRevert() (*facts.Evaluation, *promotion.Decision, promotion.OpenRevert) {
	f.t.Helper()
	for _, c := range f.names {
		f.command(c, "revert", "comment 5 on #1 of acme/fleet for "+c)
	}
	ev, d := f.evaluate()
	for _, s := range d.Steps() {
		if _, ok := s.Action.(promotion.BindCommand); ok {
			f.must(f.doStep(ev, d, s))
		}
	}
	return ev, d, decided[promotion.OpenRevert](f, d)
}

const revertSlot = "revert|hub:acme/fleet|shop"

func TestOpenRevert(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.land("2.0.0")
		w.metrics.recorded = nil
		ev, d, revert := w.requestRevert()
		w.must(w.do(ev, d, revert))
		pr := w.forge.pulls[n+1]
		w.compare("branch, base, author", []string{pr.Branch, pr.Base, pr.Author}, []string{promotion.RevertBranch("shop", "qa", w.key(), revert.Release), "main", bot})
		if !strings.Contains(pr.Body, " sig=") {
			w.t.Error("nothing proves whose revert it is")
		}
		if !strings.Contains(pr.Title, "Revert") || !strings.Contains(pr.Body, "of=1") || !strings.Contains(pr.Body, "linus") || !strings.Contains(pr.Body, "it smells") {
			w.t.Errorf("opened %+v", *pr)
		}
		for _, c := range w.names {
			w.compare("qa of "+c, w.file(pr.Head, kustomizationOf(c, "qa")), kustomization(c, "1.0.0"))
			m, _ := promotion.FindMember(revert.Members, c)
			p := w.promotionOf(c, n+1)
			w.compare("the revert's row", []string{p.Kind, p.State, p.Release}, []string{"revert", promotion.Opened, m.Release})
			p = w.promotionOf(c, n)
			w.compare("the promotion's row", []string{p.Kind, p.State, p.Release}, []string{"promotion", promotion.Reverting, m.Release})
		}
		want := w.each("%s: #2 opened: takes #1 back from qa")
		w.compare("events", w.events("revert-opened"), want)
		w.compare("metrics", w.metrics.recorded, []string{"reverted qa"})
		w.compare("it is held", w.held(revertSlot), false)

		w.mustBeStale(w.do(ev, d, revert), "another revert was opened meanwhile") // it counts by now
		w.compare("it is held", w.held(revertSlot), false)
		ev, d = w.evaluate()
		w.compare("what is open", slices.Collect(maps.Keys(ev.OpenPulls)), []int{n + 1})
		w.compare("its head is ours", ev.OpenPulls[n+1].HeadState, promotion.HeadState(""))
		w.compare("pull requests", len(w.forge.pulls), 2)
		w.compare("events", w.events("revert-opened"), want)
		for _, s := range d.Steps() {
			if _, opens := s.Action.(promotion.OpenRevert); opens {
				w.t.Error("it is to be opened once more")
			}
		}
	})
}

// TestRecomposeRevert holds that an open revert follows the branch: the same pull request
// with the same words, on the newest commit.
func TestRecomposeRevert(t *testing.T) {
	eachKind(t, func(w *fixture) {
		w.actor.opts.Metrics = nil // nobody counts
		n := w.land("2.0.0")
		ev, d, revert := w.requestRevert()
		w.must(w.do(ev, d, revert))
		n++
		first := *w.forge.pulls[n]
		files := map[string]string{}
		for _, c := range w.names {
			files[kustomizationOf(c, "qa")] = "# looked after by linus\n" + kustomization(c, "2.0.0")
		}
		tip := w.commit("Say who looks after it", files)
		ev, d = w.evaluate()
		again := promotion.RecomposeRevert{Environment: "qa", Pull: n, Head: first.Head, Tip: tip, Members: ev.OpenPulls[n].Members}
		w.compare("decided", decided[promotion.RecomposeRevert](w, d), again)

		other := again
		other.Head = tip
		w.mustBeStale(w.do(ev, d, other), "the revert #2")
		of := ev.OpenPulls[n].Reverts
		ev.OpenPulls[n].Reverts = nil
		w.mustBeStale(w.do(ev, d, again), "the revert #2")
		ev.OpenPulls[n].Reverts = of
		w.setRemoteHead(first.Branch, tip)
		w.mustBeStale(w.do(ev, d, again), "#2 is open at "+tip[:12])
		w.setRemoteHead(first.Branch, first.Head)

		w.must(w.do(ev, d, again))
		pr := w.forge.pulls[n]
		w.compare("title and body", []string{pr.Title, pr.Body}, []string{first.Title, first.Body})
		info, err := w.repo.Mirror.Commit(w.ctx(), w.remoteHead(pr.Branch))
		w.must(err)
		w.compare("parents", info.Parents, []string{tip})
		if !strings.Contains(info.Message, "asked for by linus: it smells") {
			w.t.Errorf("its message doesn't say why: %s", info.Message)
		}
		for _, c := range w.names {
			w.compare("qa of "+c, w.file(info.SHA, kustomizationOf(c, "qa")), "# looked after by linus\n"+kustomization(c, "1.0.0"))
		}
		w.compare("cached", w.cachedPull(n).Head, info.SHA)
		ev, _ = w.evaluate()
		w.compare("stale", []any{ev.OpenPulls[n].Stale, ev.OpenPulls[n].HeadState}, []any{false, promotion.HeadState("")})
	})
}
