package controller

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// onboardingFixture is a repository that has lost its pipeline file, and whose proposals a test makes.
type onboardingFixture struct {
	*fixture
	mu    sync.Mutex
	text  string // of the proposed file
	made  int    // how often it was made
	fails error  // why it can't be
}

func newOnboardingFixture(t *testing.T) *onboardingFixture {
	t.Helper()
	w := &onboardingFixture{fixture: newFixture(t, "", manualQA, "web"), text: "kind: Pipeline\n"}
	w.addOnboarding(w.opts.Store, "me")
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Without a pipeline", nil, ".liftlock.yaml")
	w.must(err)
	w.runRepository()
	return w
}

// addOnboarding begins a process, on a store that others may use too.
func (o *onboardingFixture) addOnboarding(st *store.Store, owner string) {
	o.t.Helper()
	o.addProcess(st, owner)
	o.signMarks()
	o.repo.Onboard = true
	o.opts.Propose = o.propose
}

func (o *onboardingFixture) propose(context.Context, *onboard.Request) (*onboard.Proposal, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made++
	if o.fails != nil {
		return nil, o.fails
	}
	if o.text == "" {
		return &onboard.Proposal{Nothing: "no ApplicationSet is there"}, nil
	}
	return &onboard.Proposal{File: ".liftlock.yaml", Text: o.text, Components: []string{"web"}, Environments: []string{"dev", "qa"}, Steps: [][]string{{"dev"}, {"qa"}}}, nil
}

// runProposal runs the proposal's key until the world stands still under it.
func (o *onboardingFixture) runProposal() error {
	o.t.Helper()
	for range 5 {
		o.runRepository()
		if err := o.run(wake.ForOnboarding(o.repo.ID)); !isStale(err) {
			return err
		}
	}
	o.t.Fatal("the world never stands still")
	return nil
}

// mustRun has nothing fail, and gives the pull requests.
func (o *onboardingFixture) mustRun() []emulator.PullRequest {
	o.t.Helper()
	o.must(o.runProposal())
	return o.pulls()
}

// state is what is known of the repository's proposal.
func (o *onboardingFixture) state() Onboarding {
	o.t.Helper()
	all, err := o.Onboardings(o.t.Context())
	o.must(err)
	return all[o.repo.ID]
}

// moveMain moves the tracked branch.
func (o *onboardingFixture) moveMain(file string) {
	o.t.Helper()
	_, err := o.forge.CommitAs(repoName, "linus", "main", "Touch "+file, map[string]string{file: "x\n"})
	o.must(err)
}

// proposed is the proposed file on its branch.
func (o *onboardingFixture) proposed() string {
	o.t.Helper()
	text, _, err := o.forge.File(repoName, promotion.OnboardingBranch, ".liftlock.yaml")
	o.must(err)
	return text
}

// TestOnboarding opens one pull request and keeps it up to date: a commit that proposes the same moves nothing, and
// one that proposes something else moves branch and text.
func TestOnboarding(t *testing.T) {
	w := newOnboardingFixture(t)
	all := w.mustRun()
	if len(all) != 1 || !all[0].Open || all[0].Branch != promotion.OnboardingBranch || all[0].Author != bot || w.proposed() != w.text {
		t.Fatalf("it opens %+v with %q", all, w.proposed())
	}
	if s := w.state(); s.State != onboard.Proposed || s.Pull != all[0].Number {
		t.Errorf("it is %+v", s)
	}
	w.moveMain("README.md")
	again := w.mustRun()
	if len(again) != 1 || again[0].Head != all[0].Head || w.made != 2 {
		t.Errorf("after a commit that changes no proposal there is %+v, made %d times", again, w.made)
	}
	if w.mustRun(); w.made != 2 {
		t.Errorf("where nothing moved it is made again: %d times", w.made)
	}
	w.text = "kind: Pipeline # another\n"
	w.moveMain("apps/x")
	again = w.mustRun()
	if len(again) != 1 || again[0].Head == all[0].Head || w.proposed() != w.text || !strings.Contains(again[0].Body, "liftlock:onboarding sig=") {
		t.Errorf("after a commit that changes it there is %+v with %q", again, w.proposed())
	}
}

// TestOnboardingModified leaves a branch alone to which somebody has pushed, and says so once.
func TestOnboardingModified(t *testing.T) {
	w := newOnboardingFixture(t)
	before := w.mustRun()[0]
	own, err := w.forge.Head(repoName, promotion.OnboardingBranch)
	w.must(err)
	head, err := w.forge.CommitAs(repoName, "ada", promotion.OnboardingBranch, "Mine", map[string]string{".liftlock.yaml": "kind: Mine\n"})
	w.must(err)
	w.text = "kind: Pipeline # another\n"
	for range 3 {
		w.moveMain("apps/" + head[:4])
		p := w.mustRun()[0]
		if p.Head != head || strings.Count(p.Body, "Somebody has pushed") != 1 || !strings.HasSuffix(p.Body, before.Body) {
			t.Fatalf("it is at %s with:\n%s", p.Head, p.Body)
		}
	}
	if s := w.state(); s.State != onboard.Modified {
		t.Errorf("it is %+v", s)
	}
	w.must(w.forge.SetBranch(repoName, "ada", promotion.OnboardingBranch, own))
	if p := w.mustRun()[0]; p.Head == own || w.proposed() != w.text || strings.Contains(p.Body, "Somebody has pushed") {
		t.Errorf("taken back, it is at %s with:\n%s", p.Head, p.Body)
	}
}

// TestOnboardingDeclined opens no other one after a close, also where the database is lost, until a person opens it
// again.
func TestOnboardingDeclined(t *testing.T) {
	w := newOnboardingFixture(t)
	number := w.mustRun()[0].Number
	w.must(w.forge.ClosePull(repoName, number, "ada"))
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	stays := func(when string) {
		t.Helper()
		w.text += "# more\n"
		w.moveMain("apps/" + when)
		if all := w.mustRun(); len(all) != 1 || all[0].Open || w.state().State != onboard.Declined {
			t.Fatalf("%s there is %+v, and it is %+v", when, all, w.state())
		}
	}
	stays("closed")
	calls := w.callsFor("pull requests of")
	stays("once-more")
	if more := w.callsFor("pull requests of") - calls; more > 0 {
		t.Errorf("after a no the forge is asked %d times", more)
	}
	w.addOnboarding(store.OpenMemory(store.Options{Now: w.clock.Now}), "another")
	stays("lost")
	w.must(w.forge.ReopenPull(repoName, number, "ada"))
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if all := w.mustRun(); len(all) != 1 || !all[0].Open || w.proposed() != w.text || w.state().State != onboard.Proposed {
		t.Errorf("opened again it is %+v with %q", all, w.proposed())
	}
}

// TestOnboardingMerged ends with the merge, also where the file goes again.
func TestOnboardingMerged(t *testing.T) {
	w := newOnboardingFixture(t)
	number := w.mustRun()[0].Number
	_, err := w.forge.MergePull(repoName, number, "ada", "merge")
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if w.mustRun(); w.state().State != onboard.Settled {
		t.Errorf("it is %+v", w.state())
	}
	if heads, err := w.repo.Mirror.RemoteHeads(t.Context(), promotion.OnboardingBranch); err != nil || len(heads) > 0 {
		t.Errorf("the branch is left over: %v, %v", heads, err)
	}
	_, err = w.forge.CommitAs(repoName, "linus", "main", "Without a pipeline", nil, ".liftlock.yaml")
	w.must(err)
	for range 2 {
		if all := w.mustRun(); len(all) != 1 || w.state().State != onboard.Merged {
			t.Errorf("without the file there is %+v, and it is %+v", all, w.state())
		}
	}
}

// TestOnboardingRetired closes the pull request where a pipeline file comes otherwise; that is no person's no.
func TestOnboardingRetired(t *testing.T) {
	w := newOnboardingFixture(t)
	w.mustRun()
	_, err := w.forge.CommitAs(repoName, "linus", "main", "By hand", map[string]string{".liftlock.yaml": "kind: Mine\n"})
	w.must(err)
	if all := w.mustRun(); len(all) != 1 || all[0].Open || !strings.Contains(all[0].Body, "liftlock:closed at=") || w.state().State != onboard.Settled {
		t.Fatalf("there is %+v, and it is %+v", all, w.state())
	}
	w.addOnboarding(store.OpenMemory(store.Options{Now: w.clock.Now}), "another")
	_, err = w.forge.CommitAs(repoName, "linus", "main", "Without a pipeline", nil, ".liftlock.yaml")
	w.must(err)
	if all := w.mustRun(); len(all) != 2 || !all[1].Open {
		t.Errorf("without the file again there is %+v", all)
	}
}

// TestOnboardingOfStrangers takes nobody else's pull request or branch for its own.
func TestOnboardingOfStrangers(t *testing.T) {
	w := newOnboardingFixture(t)
	head, err := w.forge.CommitAs(repoName, "ada", promotion.OnboardingBranch, "Mine", map[string]string{".liftlock.yaml": "kind: Mine\n"})
	w.must(err)
	if all := w.mustRun(); len(all) != 0 || w.state().State != onboard.Occupied || !strings.Contains(w.state().Why, "somebody else's commits") {
		t.Errorf("with somebody's branch there is %+v, and it is %+v", all, w.state())
	}
	number, err := w.forge.OpenPull(repoName, "ada", promotion.OnboardingBranch, "main", "Mine", "<!-- liftlock:onboarding -->")
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if all := w.mustRun(); len(all) != 1 || all[0].Head != head || all[0].Title != "Mine" || !strings.Contains(w.state().Why, "by ada") {
		t.Errorf("with somebody's pull request there is %+v, and it is %+v", all, w.state())
	}
	w.must(w.forge.ClosePull(repoName, number, "ada"))
	own, err := w.forge.Head(repoName, "main")
	w.must(err)
	w.must(w.forge.SetBranch(repoName, "ada", promotion.OnboardingBranch, own))
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if all := w.mustRun(); len(all) != 1 || w.state().State != onboard.Occupied {
		t.Errorf("with a branch that is where main is there is %+v, and it is %+v", all, w.state())
	}
}

// TestOnboardingRefused tries nothing again for an hour where the forge refuses for want of a right, unless the branch
// moves.
func TestOnboardingRefused(t *testing.T) {
	w := newOnboardingFixture(t)
	w.fail("open", forge.ErrForbidden)
	w.must(w.runProposal())
	if s := w.state(); s.State != onboard.Refused || !strings.Contains(s.Why, "it shall fail") {
		t.Fatalf("it is %+v", s)
	}
	made := w.made
	for range 3 {
		w.must(w.runProposal())
	}
	if w.made != made {
		t.Errorf("it is tried again %d times", w.made-made)
	}
	w.failNothing()
	w.clock.Step(refusedDelay + time.Minute)
	if all := w.mustRun(); len(all) != 1 || w.state().Why != "" {
		t.Errorf("with the right there is %+v, and it is %+v", all, w.state())
	}
}

// TestOnboardingOfNothing opens nothing, and says why; it tries again when the branch has moved.
func TestOnboardingOfNothing(t *testing.T) {
	w := newOnboardingFixture(t)
	w.text = ""
	w.mustRun()
	if all := w.mustRun(); len(all) != 0 || w.state().State != onboard.Nothing || w.state().Why != "no ApplicationSet is there" || w.made != 1 {
		t.Fatalf("there is %+v, it is %+v, made %d times", all, w.state(), w.made)
	}
	w.text = "kind: Pipeline\n"
	w.moveMain("argocd/new.yaml")
	if all := w.mustRun(); len(all) != 1 {
		t.Errorf("there is %+v", all)
	}
	w.fails = errors.New("it crashed")
	w.moveMain("argocd/newer.yaml")
	w.mustRun()
	if made := w.made; w.mustRun() == nil || w.made != made || w.state().State != onboard.Refused || !strings.Contains(w.state().Why, "it crashed") {
		t.Errorf("where it can't be made it is %+v, tried %d times more", w.state(), w.made-made)
	}
}

// TestOnboardingByTwo has one process die between its push and the pull request: the other one, on its database or on
// an empty one, opens it, and there is one.
func TestOnboardingByTwo(t *testing.T) {
	for name, isLost := range map[string]bool{"one database": false, "a lost one": true} {
		t.Run(name, func(t *testing.T) {
			w := newOnboardingFixture(t)
			w.fail("open", forge.ErrRetryable)
			if err := w.runProposal(); err == nil {
				t.Fatal("it doesn't fail")
			}
			w.failNothing()
			st := w.opts.Store
			if isLost {
				st = store.OpenMemory(store.Options{Now: w.clock.Now})
			}
			w.addOnboarding(st, "another")
			for range 2 {
				if all := w.mustRun(); len(all) != 1 || !all[0].Open || w.state().State != onboard.Proposed {
					t.Errorf("there is %+v, and it is %+v", all, w.state())
				}
			}
		})
	}
}

// TestOnboardingWakes holds that a move of the branch and a sweep look at the proposal, and only where it is wanted.
func TestOnboardingWakes(t *testing.T) {
	w := newOnboardingFixture(t)
	for _, is := range []bool{true, false} {
		w.repo.Onboard = is
		claims, err := w.opts.Store.Claim(t.Context(), "me", 100)
		w.must(err)
		for _, c := range claims {
			w.must(w.opts.Store.Finish(t.Context(), "me", c, store.Outcome{}))
		}
		for _, run := range []func(){func() { w.moveMain("apps/" + time.Duration(w.calls.Load()).String()); w.runRepository() }, func() { w.must(w.run(wake.ForSweep(w.repo.ID))) }} {
			run()
			claims, err := w.opts.Store.Claim(t.Context(), "me", 100)
			w.must(err)
			woken := false
			for _, c := range claims {
				woken = woken || c.Key == wake.ForOnboarding(w.repo.ID).String()
				w.must(w.opts.Store.Finish(t.Context(), "me", c, store.Outcome{}))
			}
			if woken != is {
				t.Errorf("wanted: %t; woken: %t", is, woken)
			}
		}
	}
}

// TestOnboardingOfFailingCalls has each call of the store, the forge or Git fail once, before its effect and after it.
// In the end there is what there is without failures.
func TestOnboardingOfFailingCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("what one run comes to after each failure is nothing that goroutines share")
	}
	w := newOnboardingFixture(t)
	w.injected.Once = map[string]bool{}
	w.mustRun()
	w.text = "kind: Pipeline # another\n"
	w.moveMain("apps/x")
	all := w.mustRun()
	if len(all) != 1 || !all[0].Open || w.proposed() != w.text || w.state().State != onboard.Proposed {
		t.Errorf("there is %+v with %q, and it is %+v", all, w.proposed(), w.state())
	}
	_, err := w.forge.CommitAs(repoName, "linus", "main", "By hand", map[string]string{".liftlock.yaml": "kind: Mine\n"})
	w.must(err)
	if all := w.mustRun(); len(all) != 1 || all[0].Open || w.state().State != onboard.Settled {
		t.Errorf("with a file there is %+v, and it is %+v", all, w.state())
	}
	_, err = w.forge.CommitAs(repoName, "linus", "main", "Without a pipeline", nil, ".liftlock.yaml")
	w.must(err)
	if all := w.mustRun(); len(all) != 2 || !all[1].Open {
		t.Errorf("without the file again there is %+v", all)
	}
	if len(w.injected.Once) < 20 {
		t.Errorf("only %d calls failed", len(w.injected.Once))
	}
}

// TestOnboardingAtOnce has two processes on one database run the key in the same moment, as where a lease ends under
// one of them: there is one pull request.
func TestOnboardingAtOnce(t *testing.T) {
	one := newOnboardingFixture(t)
	two := &onboardingFixture{fixture: &fixture{t: t, forge: one.forge, newProcess: one.newProcess, clock: one.clock, health: map[string]string{}}, text: one.text}
	two.addOnboarding(one.opts.Store, "another")
	for _, text := range []string{one.text, "kind: Pipeline # another\n"} {
		one.text, two.text = text, text
		one.moveMain("apps/" + text[len(text)-4:len(text)-1])
		one.runRepository()
		two.runRepository()
		var wg sync.WaitGroup
		for _, o := range []*onboardingFixture{one, two} {
			wg.Go(func() {
				if _, err := o.runKey(t.Context(), wake.ForOnboarding(o.repo.ID).String()); err != nil && !isStale(err) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, o := range []*onboardingFixture{one, two} {
			if all := o.mustRun(); len(all) != 1 || !all[0].Open || o.proposed() != text || o.state().State != onboard.Proposed {
				t.Errorf("there is %+v with %q, and it is %+v", all, o.proposed(), o.state())
			}
		}
	}
}
