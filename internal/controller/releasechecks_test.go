package controller

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
	"github.com/liftlock/liftlock/webhooks"
)

// TestChecksOnTheRelease has a gate that goes by the commit that brought the release to the
// environment before. It waits for that commit's checks without a wake-up, and doesn't merge once
// they have turned.
func TestChecksOnTheRelease(t *testing.T) {
	t.Parallel()
	const gated = "    - {name: qa, after: [dev], merge: auto, gates: [{checks: {require: [smoke], from: [linus], on: release}}], verify: " + quickly + "}\n"
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, gated, c.components...)
			w.must(w.run(wake.ForUnit(w.unit(c.key)))) // the baseline is written down
			files := map[string]string{}
			for _, component := range c.components {
				files[kustomizationOf(component, "dev")] = kustomization(component, "2.0.0")
			}
			commit, err := w.forge.CommitAs(repoName, "linus", "main", "Release 2.0.0", files)
			w.must(err)
			w.runRepository()
			w.settle(c.key, "a pull request is open", func() bool { return len(w.pulls()) == 1 })
			short := commit[:12]
			says := func(by, state string) {
				t.Helper()
				w.must(w.forge.SetStatus(repoName, by, commit, emulator.Status{Context: "smoke", State: state}))
			}
			w.gateWaits(c.key, "checks", policies.Wait, short+" in dev: no check named smoke from linus has reported")
			// A status of the pull request's own head, or by another account, is nothing to it.
			w.must(w.forge.SetStatus(repoName, "linus", w.pulls()[0].Head, emulator.Status{Context: "smoke", State: "success"}))
			says("grace", "success")
			w.lookAfter(c.key, 2*time.Minute)
			w.gateWaits(c.key, "checks", policies.Wait, "by nobody who is asked: smoke by grace")
			says("linus", "failure")
			w.lookAfter(c.key, 2*time.Minute)
			w.gateWaits(c.key, "checks", policies.Fail, short+" in dev: failed: smoke (failure)")
			calls := w.calls.Load()
			w.gateWaits(c.key, "checks", policies.Fail, "failed")
			if n := w.calls.Load() - calls; n != 0 {
				t.Errorf("it is read again at once, with %d calls: %v", n, w.callsOf)
			}
			says("linus", "success")
			// The forge tells of it: it is read at once, long before it is looked again.
			w.clock.Step(time.Second)
			for _, key := range KeysOfEvent(t.Context(), w.opts.Store, w.repo.ID, bot, &webhooks.Event{Kind: webhooks.Status, Commit: commit, Sender: "linus"}) {
				w.must(w.run(key))
			}
			w.gateWaits(c.key, "checks", policies.Pass, "passed on "+short+" in dev")
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
		})
	}
}

// TestChecksOnTheReleaseAreReadBeforeTheMerge holds that a check that turns bad after it was
// read keeps the merge from happening.
func TestChecksOnTheReleaseAreReadBeforeTheMerge(t *testing.T) {
	w := newFixture(t, "", "    - {name: qa, after: [dev], merge: auto, gates: [{checks: {require: [smoke], on: release}}, {approvals: {count: 1}}], verify: "+quickly+"}\n", "web")
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	commit, err := w.forge.CommitAs(repoName, "linus", "main", "Release 2.0.0", map[string]string{kustomizationOf("web", "dev"): kustomization("web", "2.0.0")})
	w.must(err)
	w.runRepository()
	w.settle("web", "a pull request is open", func() bool { return len(w.pulls()) == 1 })
	w.must(w.forge.SetStatus(repoName, "linus", commit, emulator.Status{Context: "smoke", State: "success"}))
	w.lookAfter("web", 2*time.Minute)
	w.gateWaits("web", "checks", policies.Pass, "passed on "+commit[:12]+" in dev")
	w.must(w.forge.SetStatus(repoName, "linus", commit, emulator.Status{Context: "smoke", State: "failure"}))
	w.must(w.forge.Approve(repoName, 1, "grace"))
	w.must(w.run(wake.ForPull(w.repo.ID, 1)))
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	for range 3 {
		if err := w.run(wake.ForMerge(w.repo.ID)); err != nil && !isStale(err) {
			t.Fatal(err)
		}
	}
	if w.pulls()[0].Merged {
		t.Error("it is merged while a check has failed")
	}
}
