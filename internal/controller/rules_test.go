package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
)

// TestAGateNamesTheForgesRules holds that a promotion that the forge's own rules keep from being
// merged says which, by name, and what is missing. The rules are read once an hour, and anew when
// the forge says that they changed.
func TestAGateNamesTheForgesRules(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Approvals: 2, Contexts: []string{"ci/build"}, Ruleset: "main"}))
	p := w.openOne("web", "2.0.0", "web")
	says := func(want string) {
		t.Helper()
		w.must(w.run(wake.ForPull(w.repo.ID, p.Number))) // as an event of it does
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		w.gateWaits("web", "mergeable", policies.Wait, want)
	}
	const blocks = `the forge blocks the merge by ruleset "main": `
	says(blocks + `needs 2 approvals; check "ci/build" is missing`)
	w.must(w.emulated.Approve(repoName, p.Number, "ada"))
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/build", State: "pending"}))
	says(blocks + `needs 2 approvals and has 1; check "ci/build" is pending`)
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/build", State: "failure"}))
	w.must(w.emulated.RequestChanges(repoName, p.Number, "linus", "no"))
	says(blocks + `linus asked for changes; check "ci/build" ended with failure`)

	reads := w.emulated.Calls()["GET /repos/{owner}/{repo}/rules/branches/{branch}"]
	if reads != 1 {
		t.Errorf("the rules were read %d times within an hour", reads)
	}
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Contexts: []string{"ci/test"}}))
	w.must(w.run(wake.ForRules(w.repo.ID)))
	says(`the forge blocks the merge by branch protection: check "ci/test" is missing`)
	w.must(w.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/test", State: "success"}))
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
}

// TestRulesThatCannotBeRead holds that a promotion says so, and waits.
func TestRulesThatCannotBeRead(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Approvals: 1}))
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "GET", Path: "/rules/branches/", Status: 403, Body: `{"message":"no rules for you"}`}))
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it waits", func() bool {
		g := w.gateResult("web", "mergeable")
		return g.Outcome == policies.Wait && strings.Contains(g.Reason, "its rules can't be read") && strings.Contains(g.Reason, "no rules for you")
	})
}

// TestRulesThatCannotBeReadJustNow holds that a forge that can't tell its rules right now holds up
// nothing else. No merge is tried meanwhile, and the rules are read soon again.
func TestRulesThatCannotBeReadJustNow(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{CodeOwners: []string{"grace"}, Ruleset: "main"}))
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "GET", Path: "/rules/branches/", Status: 502, Times: -1}))
	w.openOne("web", "2.0.0", "web")
	look := func() {
		for range 4 {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			w.must(w.run(wake.ForMerge(w.repo.ID)))
		}
	}
	look()
	w.gateWaits("web", "mergeable", policies.Wait, "its rules can't be read")
	attempts := func() int { return w.emulated.Calls()["PUT /repos/{owner}/{repo}/pulls/{number}/merge"] }
	if n := attempts(); n != 0 {
		t.Errorf("%d merges were sent", n)
	}
	w.emulated.ClearFaults()
	w.clock.Step(time.Minute)
	look()
	if n := attempts(); n != 1 {
		t.Errorf("once they can be read %d merges were sent", n)
	}
}

// TestHasLostTurn holds who gives way to others that are to be brought up to date.
func TestHasLostTurn(t *testing.T) {
	now := time.Now()
	blocked := func(r promotion.RuleReport) promotion.Pull {
		return promotion.Pull{Mergeable: promotion.MergeBlocked, Rules: r}
	}
	for name, c := range map[string]struct {
		p    promotion.Pull
		want bool
	}{
		"its checks run":                      {blocked(promotion.RuleReport{Read: true, OnlyRunning: true}), false},
		"it lacks an approval":                {blocked(promotion.RuleReport{Read: true}), true},
		"the rules can't be read just now":    {blocked(promotion.RuleReport{UnreadSince: now.Add(-9 * time.Minute)}), false},
		"the rules can't be read for so long": {blocked(promotion.RuleReport{UnreadSince: now.Add(-10 * time.Minute)}), true},
		"somebody else's head":                {promotion.Pull{HeadState: promotion.HeadModified}, true},
	} {
		if got := hasLostTurn(&facts.OpenPull{Pull: c.p}, nil, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// strictly has main demand that what is merged is up to date and passes a check.
var strictly = emulator.Protection{Strict: true, Contexts: []string{"ci/build"}, Ruleset: "main"}

// buildHeads has CI succeed on the heads of all open pull requests that it didn't see, and says
// how many those were.
func (f *fixture) buildHeads(seen map[string]bool) (n int) {
	f.t.Helper()
	for _, p := range f.pulls() {
		if !p.Open || seen[p.Head] {
			continue
		}
		seen[p.Head] = true
		n++
		f.must(f.emulated.SetStatus(repoName, "grace", p.Head, emulator.Status{Context: "ci/build", State: "success"}))
		f.must(f.run(wake.ForPull(f.repo.ID, p.Number)))
	}
	return n
}

// TestStrictMergesOneAfterTheOther holds that where the forge demands that a branch is up to date,
// all promotions merge without a person. One is brought up to date and merged, then the next, so
// that each is built twice at the most.
func TestStrictMergesOneAfterTheOther(t *testing.T) {
	components := []string{"api", "web", "worker"}
	w := newEmulatedFixture(t, "", autoQA, components...)
	w.must(w.emulated.Protect(repoName, "main", strictly))
	for _, c := range components {
		w.must(w.run(wake.ForUnit(w.unit(c)))) // the baseline is written down
	}
	w.release("2.0.0", components...)
	for _, c := range components {
		w.open(c)
	}
	seen, merged := map[string]bool{}, 0
	for range 20 {
		w.clock.Step(time.Minute)
		w.buildHeads(seen)
		for _, c := range components {
			if err := w.run(wake.ForUnit(w.unit(c))); err != nil && !isStale(err) {
				t.Fatal(err)
			}
		}
		if err := w.run(wake.ForMerge(w.repo.ID)); err != nil && !isStale(err) {
			t.Fatal(err)
		}
		w.runRepository()
		merged = 0
		for _, p := range w.pulls() {
			if p.Merged {
				merged++
			}
		}
		if merged == len(components) {
			break
		}
	}
	if merged != len(components) {
		t.Fatalf("%d of %d are merged", merged, len(components))
	}
	if len(seen) > 2*len(components)-1 {
		t.Errorf("%d heads were built for %d promotions", len(seen), len(components))
	}
}

// TestBringingUpToDateKeepsApprovals holds that one that is approved on a forge which drops
// approvals with a push is brought up to date by the forge, and merges.
func TestBringingUpToDateKeepsApprovals(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Strict: true, Contexts: []string{"ci/build"}, Approvals: 1, DismissStale: true}))
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.emulated.Approve(repoName, p.Number, "ada"))
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Docs", map[string]string{"docs.md": "more"})
	w.must(err)
	w.runRepository()
	seen := map[string]bool{}
	w.settle("web", "it is merged", func() bool {
		w.buildHeads(seen)
		return w.pulls()[0].Merged
	})
	if n := w.emulated.Calls()["PUT /repos/{owner}/{repo}/pulls/{number}/update-branch"]; n != 1 {
		t.Errorf("it was brought up to date %d times", n)
	}
	events, err := w.opts.Store.Events(t.Context(), store.EventFilter{Component: "web", Limit: 100})
	w.must(err)
	if n := len(slices.DeleteFunc(events, func(e store.Event) bool { return e.Kind != "updated" })); n != 1 {
		t.Errorf("%d events say that it was", n)
	}
}

// TestTheForgeUpdatesLater has a forge that takes its time to bring a branch up to date. It is
// asked once a minute, three times, and then the branch is composed anew. No event says that the
// branch is up to date before it is.
func TestTheForgeUpdatesLater(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Strict: true, Approvals: 1, DismissStale: true, Ruleset: "main"}))
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.emulated.Approve(repoName, p.Number, "ada"))
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "PUT", Path: "/update-branch$", Status: 202, Body: `{"message":"Updating pull request branch."}`, Times: -1}))
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Docs", map[string]string{"docs.md": "more"})
	w.must(err)
	w.runRepository()
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	look := func() {
		for range 4 {
			for _, k := range []wake.Key{wake.ForUnit(w.unit("web")), wake.ForMerge(w.repo.ID)} {
				if err := w.run(k); err != nil && !isStale(err) {
					t.Fatal(err)
				}
			}
		}
	}
	events := func() (n int) {
		all, err := w.opts.Store.Events(t.Context(), store.EventFilter{Component: "web", Limit: 100})
		w.must(err)
		for _, e := range all {
			if e.Kind == "updated" {
				n++
			}
		}
		return n
	}
	for sent := 1; sent <= 3; sent++ {
		look()
		if n := w.emulated.Calls()["PUT /repos/{owner}/{repo}/pulls/{number}/update-branch"]; n != sent || w.pulls()[0].Head != p.Head || events() != 0 {
			t.Fatalf("the forge was sent it %d times, want %d; the head is %s, %d events", n, sent, w.pulls()[0].Head, events())
		}
		w.clock.Step(time.Minute)
	}
	look()
	if w.pulls()[0].Head == p.Head || events() != 1 {
		t.Errorf("the head is %s still, %d events", w.pulls()[0].Head, events())
	}
}

// TestUnmergeablePullLosesItsTurn holds that one that was brought up to date and whose check fails
// keeps nobody else waiting.
func TestUnmergeablePullLosesItsTurn(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "api", "web")
	w.must(w.emulated.Protect(repoName, "main", strictly))
	for _, c := range []string{"api", "web"} {
		w.must(w.run(wake.ForUnit(w.unit(c))))
	}
	w.release("2.0.0", "api", "web")
	w.open("api")
	w.open("web")
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Docs", map[string]string{"docs.md": "more"})
	w.must(err)
	w.runRepository()
	look := func() {
		w.clock.Step(time.Minute)
		for _, k := range []wake.Key{wake.ForPull(w.repo.ID, 1), wake.ForPull(w.repo.ID, 2), wake.ForUnit(w.unit("api")), wake.ForUnit(w.unit("web")), wake.ForMerge(w.repo.ID)} {
			if err := w.run(k); err != nil && !isStale(err) {
				t.Fatal(err)
			}
		}
	}
	heads := func() []string { return []string{w.pulls()[0].Head, w.pulls()[1].Head} }
	before := heads()
	for range 3 {
		look()
	}
	after := heads()
	if before[0] == after[0] || before[1] != after[1] {
		t.Fatalf("from %v to %v: want the first alone brought up to date", before, after)
	}
	w.gateWaits("web", "mergeable", policies.Wait, "#1 is brought up to date and merged first")
	w.must(w.emulated.SetStatus(repoName, "grace", after[0], emulator.Status{Context: "ci/build", State: "failure"}))
	for range 4 {
		look()
	}
	if now := heads(); now[1] == after[1] {
		t.Error("the second isn't brought up to date")
	}
}

// TestAMergeThatNoRuleExplains has a forge block a promotion for a reason that can't be seen. Its
// merge is sent once, for the words, and again only after some news and ten minutes. An account
// that may bypass the rule never sends it.
func TestAMergeThatNoRuleExplains(t *testing.T) {
	owned := emulator.Protection{CodeOwners: []string{"grace"}}
	ruleset, bypassed, exempt := owned, owned, owned
	ruleset.Ruleset, bypassed.Ruleset, bypassed.Bypass, exempt.AdminsExempt = "main", "main", []string{bot}, true
	for name, c := range map[string]struct {
		rules    emulator.Protection
		may      emulator.Permission
		attempts int
		says     string // where it isn't tried
	}{
		"bound":                         {ruleset, emulator.Write, 1, ""},
		"bypass":                        {bypassed, emulator.Write, 0, `ruleset "main": code owners approve`},
		"bound by classic protection":   {owned, emulator.Admin, 1, ""},
		"an administrator is exempt":    {exempt, emulator.Admin, 0, "branch protection: code owners approve"},
		"classic protection isn't seen": {owned, emulator.Write, 0, "Liftlock doesn't see what else the branch protection"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEmulatedFixture(t, "", autoQA, "web")
			w.must(w.emulated.Grant(repoName, bot, c.may))
			w.must(w.emulated.Protect(repoName, "main", c.rules))
			p := w.openOne("web", "2.0.0", "web")
			attempts := func() int { return w.emulated.Calls()["PUT /repos/{owner}/{repo}/pulls/{number}/merge"] }
			look := func(d time.Duration) {
				t.Helper()
				w.clock.Step(d)
				for range 3 {
					w.must(w.run(wake.ForUnit(w.unit("web"))))
					w.must(w.run(wake.ForMerge(w.repo.ID)))
				}
			}
			look(0)
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
			look(0)
			look(11 * time.Minute)
			look(30 * time.Minute)
			if n := attempts(); n != c.attempts+c.attempts { // the second time because of the event
				t.Errorf("%d merges were sent", n)
			}
			if c.attempts == 0 {
				w.gateWaits("web", "mergeable", policies.Wait, c.says)
				return
			}
			w.gateWaits("web", "mergeable", policies.Wait, "Waiting on code owner review from grace.")
			w.must(w.emulated.Approve(repoName, p.Number, "grace"))
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
			w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
		})
	}
}

// TestRulesThatChangedSinceAreNotMergedPast holds that the rules are read anew before a merge is
// tried that the forge blocks: what an account may bypass since isn't merged past.
func TestRulesThatChangedSinceAreNotMergedPast(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	rules := emulator.Protection{CodeOwners: []string{"grace"}, Ruleset: "main"}
	w.must(w.emulated.Protect(repoName, "main", rules))
	p := w.openOne("web", "2.0.0", "web")
	for range 3 { // it is refused
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		w.must(w.run(wake.ForMerge(w.repo.ID)))
	}
	rules.Bypass = []string{bot}
	w.must(w.emulated.Protect(repoName, "main", rules)) // and no event says so
	w.clock.Step(11 * time.Minute)
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	for range 3 {
		for _, k := range []wake.Key{wake.ForUnit(w.unit("web")), wake.ForMerge(w.repo.ID)} {
			if err := w.run(k); err != nil && !isStale(err) {
				t.Fatal(err)
			}
		}
	}
	if n := w.emulated.Calls()["PUT /repos/{owner}/{repo}/pulls/{number}/merge"]; n != 1 || w.pulls()[0].Merged {
		t.Errorf("%d merges were sent; it is %+v", n, w.pulls()[0])
	}
}

// TestOurOwnStatusIsRequired holds that a promotion merges where the forge waits for nothing but
// Liftlock's own status, of which no event tells.
func TestOurOwnStatusIsRequired(t *testing.T) {
	w := newEmulatedFixture(t, "", autoQA, "web")
	w.must(w.emulated.Protect(repoName, "main", emulator.Protection{Contexts: []string{act.StatusContext}, Ruleset: "main"}))
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
}
