package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/webhooks"
)

type storedPulls struct {
	rows    []store.Pull
	err     error
	arrived map[string][]string // units by commit
	views   map[string]string   // by unit
	failing error               // of units
}

func (s storedPulls) UnitsArrivedBy(_ context.Context, commit string, _ int) ([]string, error) {
	return s.arrived[commit], nil
}

func (s storedPulls) Unit(_ context.Context, key string) (store.Unit, bool, error) {
	view, is := s.views[key]
	repo, _, _ := strings.Cut(key, "|")
	return store.Unit{Key: key, Repo: repo, Data: []byte(view)}, is, s.failing
}

func (s storedPulls) PullsAt(_ context.Context, _, head string) ([]store.Pull, error) {
	return slices.DeleteFunc(slices.Clone(s.rows), func(row store.Pull) bool { return row.Head != head }), s.err
}

// TestKeysOfEvent holds where each event makes us look again.
func TestKeysOfEvent(t *testing.T) {
	t.Parallel()
	row := func(number int, state forge.State, head string) store.Pull {
		p := store.Pull{Repo: testRepo, Number: number, State: string(state), Head: head}
		if state != forge.Open {
			p.ClosedAt = time.Unix(7, 0)
		}
		return p
	}
	pulls := storedPulls{rows: []store.Pull{row(1, forge.Open, "c1"), row(2, forge.Merged, "c1"), row(3, forge.Open, "c2"), row(4, forge.Open, "c1"), row(5, forge.Open, "")}}
	unit := func(component string) string { return testRepo + "|shop|" + component }
	const checked = `{"decision":{"envs":[{"environment":"dev"},{"environment":"qa","pull":8,"gates":[{"gate":"checks","outcome":"wait"}]}]}}`
	landed := storedPulls{rows: []store.Pull{row(8, forge.Open, "both")}, arrived: map[string][]string{"landed": {unit("web"), unit("api"), unit("soaked"), unit("odd"), unit("gone"), unit("twice"), "hub:acme/other|shop|web"}, "both": {unit("web")}},
		views: map[string]string{unit("web"): checked, unit("twice"): checked, "hub:acme/other|shop|web": checked, unit("odd"): "{",
			unit("api"):    `{"decision":{"envs":[{"environment":"qa","pull":9,"gates":[{"gate":"soak","outcome":"pass"},{"gate":"checks","outcome":"pass"}]}]}}`,
			unit("soaked"): `{"decision":{"envs":[{"environment":"qa","pull":10,"gates":[{"gate":"soak","outcome":"wait"}]},{"environment":"prod","gates":[{"gate":"checks"}]}]}}`}}
	big := storedPulls{rows: []store.Pull{row(8, forge.Open, "big")}, arrived: map[string][]string{"big": make([]string, maxUnitsOfStatus+1)}, failing: errors.New("read before the delivery is answered")}
	failing := landed
	failing.failing = errors.New("locked")
	repo, sweep, pull := []wake.Key{wake.ForRepository(testRepo)}, []wake.Key{wake.ForSweep(testRepo)}, []wake.Key{wake.ForPull(testRepo, 7)}
	for _, c := range []struct {
		name  string
		ev    webhooks.Event
		pulls EventStore
		want  []wake.Key
	}{
		{name: "a push", ev: webhooks.Event{Kind: webhooks.Push}, want: repo},
		{name: "our own push", ev: webhooks.Event{Kind: webhooks.Push, Sender: "bot"}, want: repo},
		{name: "a merge group", ev: webhooks.Event{Kind: webhooks.Push, Forge: webhooks.GitHub, Branch: "gh-readonly-queue/main/pr-7-c1"}, want: []wake.Key{wake.ForMergeGroup(testRepo, "gh-readonly-queue/main/pr-7-c1")}},
		{name: "a merge group that is over", ev: webhooks.Event{Kind: webhooks.Push, Forge: webhooks.GitHub, Branch: "gh-readonly-queue/main/pr-7-c1", Deleted: true}},
		{name: "a branch that is called so elsewhere", ev: webhooks.Event{Kind: webhooks.Push, Forge: webhooks.GitLab, Branch: "gh-readonly-queue/main/pr-7-c1"}, want: repo},
		{name: "a pull request", ev: webhooks.Event{Kind: webhooks.PullRequest, Number: 7, Sender: "ada"}, want: pull},
		{name: "a review", ev: webhooks.Event{Kind: webhooks.Review, Number: 7}, want: pull},
		{name: "a comment", ev: webhooks.Event{Kind: webhooks.Comment, Number: 7}, want: pull},
		{name: "our own comment", ev: webhooks.Event{Kind: webhooks.Comment, Number: 7, Sender: "bot"}},
		{name: "a comment that doesn't say where", ev: webhooks.Event{Kind: webhooks.Comment}, want: sweep},
		{name: "a status of a head", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c1"}, want: []wake.Key{wake.ForPull(testRepo, 1), wake.ForPull(testRepo, 4)}},
		{name: "our own status", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c2", Context: "liftlock", Sender: "bot"}},
		{name: "a build job's status with our account", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c2", Context: "ci/test", Sender: "bot"}, want: []wake.Key{wake.ForPull(testRepo, 3)}},
		{name: "checks that name us because we pushed", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c2", Sender: "bot"}, want: []wake.Key{wake.ForPull(testRepo, 3)}},
		{name: "somebody's status of our name", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c2", Context: "liftlock", Sender: "ada"}, want: []wake.Key{wake.ForPull(testRepo, 3)}},
		{name: "a status of a commit that is no head", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c3"}},
		{name: "a status of no commit", ev: webhooks.Event{Kind: webhooks.Status}},
		{name: "a status while the store can't be read", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c1"}, pulls: storedPulls{err: errors.New("locked")}, want: sweep},
		{name: "a status of a commit that landed", ev: webhooks.Event{Kind: webhooks.Status, Commit: "landed"}, pulls: landed, want: []wake.Key{wake.ForPull(testRepo, 8), wake.ForPull(testRepo, 9)}},
		{name: "a status of one that is a head too", ev: webhooks.Event{Kind: webhooks.Status, Commit: "both"}, pulls: landed, want: []wake.Key{wake.ForPull(testRepo, 8)}},
		{name: "a status of one that landed while units can't be read", ev: webhooks.Event{Kind: webhooks.Status, Commit: "landed"}, pulls: failing, want: sweep},
		{name: "a status of one by which many arrived", ev: webhooks.Event{Kind: webhooks.Status, Commit: "big"}, pulls: big, want: []wake.Key{wake.ForPull(testRepo, 8), wake.ForChecks(testRepo, "big")}},
		{name: "rules of the forge that changed", ev: webhooks.Event{Kind: webhooks.Rules}, want: []wake.Key{wake.ForRules(testRepo)}},
		{name: "the repository itself", ev: webhooks.Event{Kind: webhooks.Repository}, want: []wake.Key{wake.ForRepository(testRepo), wake.ForSweep(testRepo)}},
		{name: "anything else", ev: webhooks.Event{Kind: webhooks.Other, Number: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.pulls == nil {
				c.pulls = pulls
			}
			if diff := cmp.Diff(c.want, KeysOfEvent(t.Context(), c.pulls, testRepo, "bot", &c.ev)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUrgencyOfEvents holds that nobody who says something of a pull request, nor a merge group,
// waits behind what was pushed.
func TestUrgencyOfEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ev   webhooks.Event
		want store.Urgency
	}{
		{webhooks.Event{Kind: webhooks.Push, Branch: "main"}, store.Normal},
		{webhooks.Event{Kind: webhooks.Push, Branch: groupPrefix + "main/pr-7-c1"}, store.Urgent},
		{webhooks.Event{Kind: webhooks.Push, Branch: groupPrefix + "main"}, store.Normal},
		{webhooks.Event{Kind: webhooks.Installation}, store.Normal},
		{webhooks.Event{Kind: webhooks.Comment}, store.Urgent},
		{webhooks.Event{Kind: webhooks.Review}, store.Urgent},
		{webhooks.Event{Kind: webhooks.PullRequest}, store.Urgent},
		{webhooks.Event{Kind: webhooks.Status}, store.Urgent},
	} {
		if got := UrgencyOfEvent(&c.ev); got != c.want {
			t.Errorf("%s of %q is %d, not %d", c.ev.Kind, c.ev.Branch, got, c.want)
		}
	}
}

// TestChecksOfABigPush finds whom a status concerns by whose commit many components arrived.
func TestChecksOfABigPush(t *testing.T) {
	var components []string
	for i := range maxUnitsOfStatus + 1 {
		components = append(components, fmt.Sprint("c", i))
	}
	w := newFixture(t, "  limits: {openPerEnvironment: 100}\n", strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{checks: {require: [smoke], on: release}}]", 1), components...)
	for _, c := range components {
		w.must(w.run(wake.ForUnit(w.unit(c))))
	}
	w.release("2.0.0", components...)
	for _, c := range components {
		w.settle(c, "its promotion is open", func() bool {
			return slices.ContainsFunc(w.pulls(), func(p emulator.PullRequest) bool { return strings.HasSuffix(p.Branch, "/"+c) })
		})
		w.must(w.run(wake.ForUnit(w.unit(c))))
	}
	var want []string
	for _, p := range w.pulls() {
		want = append(want, wake.ForPull(w.repo.ID, p.Number).String())
	}
	slices.Sort(want)
	commit, err := w.forge.Head(repoName, "main")
	w.must(err)
	keys := KeysOfEvent(t.Context(), w.opts.Store, w.repo.ID, bot, &webhooks.Event{Kind: webhooks.Status, Commit: commit, Sender: "ci"})
	if diff := cmp.Diff([]wake.Key{wake.ForChecks(w.repo.ID, commit)}, keys); diff != "" {
		t.Errorf("a status of the push wakes (-want +got):\n%s", diff)
	}
	w.dropDue()
	w.injected.Once = map[string]bool{}
	w.must(w.run(wake.ForChecks(w.repo.ID, commit)))
	got := w.takeDue()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != len(components) {
		t.Errorf("and that wakes (-want +got):\n%s", diff)
	}
}
