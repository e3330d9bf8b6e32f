package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
	"github.com/liftlock/liftlock/policies"
)

// TestMakersFail has each call fail that tells who made what came to a branch: by a push, by a pull
// request of each kind, and by one into another branch.
func TestMakersFail(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	pull := func(login, branch, base, message string) int {
		t.Helper()
		w.commitTo(login, branch, w.head(base), "First of "+branch, map[string]string{branch + "1": branch})
		w.commitTo(login, branch, w.head(branch), message, map[string]string{branch + "2": branch})
		n, err := w.forge.OpenPull(storyRepo, login, branch, base, "Topic", "")
		w.must(err)
		return n
	}
	merge := func(number int, method string) string {
		t.Helper()
		w.wait(time.Minute)
		landed, err := w.forge.MergeByHand(storyRepo, number, "grace", method)
		w.must(err)
		w.fetch()
		return landed
	}
	pushed := w.commit("ada", "Push", map[string]string{"a": "a"})
	merged := merge(pull("linus", "one", "main", "Second"), "merge")
	mallory := w.forge.Ident("mallory")
	squashed := merge(pull("linus", "two", "main", fmt.Sprintf("Second\n\nCo-authored-by: %s <%s>\n", mallory.Name, mallory.Email)), "squash")
	rebased := merge(pull("linus", "three", "main", "Second"), "rebase")
	info, err := w.repo.Mirror.Commit(w.ctx(), rebased)
	w.must(err)
	w.must(w.forge.Push(storyRepo, "ada", "side", w.head("main"), false))
	into := merge(pull("linus", "four", "side", "Second"), "merge")
	w.must(w.forge.Push(storyRepo, "ada", "main", into, false))
	w.fetch()
	for name, c := range map[string]struct {
		commit string
		want   []string
	}{
		"a push":                       {pushed, []string{"ada"}},
		"a merge":                      {merged, []string{"grace", "linus"}},
		"a squash, with a co-author":   {squashed, []string{"grace", "linus", "mallory"}},
		"a rebase":                     {rebased, []string{"grace", "linus"}},
		"in the middle of it":          {info.Parents[0], []string{"grace", "linus"}},
		"merged elsewhere, and pushed": {into, []string{"ada", "grace", "linus"}},
	} {
		var made people.Makers
		w.failUntilDone(name, func() { w.repo.Mirror = w.cloneRepository().Mirror }, func(ctx context.Context) (err error) {
			made, err = people.ReadMakers(ctx, w.repo, "main", c.commit)
			return err
		})
		var got []string
		for _, a := range made.Accounts {
			got = append(got, a.Login)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) || len(made.Unlinked) > 0 {
			t.Errorf("%s was made by %q and %q, want %q", name, got, made.Unlinked, c.want)
		}
	}
	for name, c := range map[string]struct{ branch, commit string }{"not on the branch": {"side", pushed + "0"}, "on no such branch": {"gone", pushed}} {
		if m, err := people.ReadMakers(w.ctx(), w.repo, c.branch, c.commit); err == nil {
			t.Errorf("%s: it was made by %+v", name, m.Accounts)
		}
	}
}

// TestArrivalsComeToTheirEnd has each call and statement of the looks fail at which something has landed,
// and then holds that it is written down once.
func TestArrivalsComeToTheirEnd(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	arrivals := func(step string, want ...string) {
		t.Helper()
		w.failUntilDone(step, func() { w.repo.Mirror = w.cloneRepository().Mirror }, func(ctx context.Context) error {
			g := w.newProcess()
			s, err := g.Targets.Snapshot(ctx, w.repo)
			if err != nil {
				return err
			}
			ev, _, err := g.Evaluate(ctx, s, w.unit("web"), true)
			if err == nil && w.faults.Hit != "" { // a fact that isn't known says why
				for _, e := range ev.Components[0].Facts.Envs {
					if e.Landed.Err != "" {
						return errors.New(e.Landed.Err)
					}
				}
				return w.mustSay(ev)
			}
			return err
		})
		rows, err := w.store.Arrivals(w.ctx(), "hub:acme/fleet|shop|web")
		w.must(err)
		var got []string
		for _, a := range rows {
			got = append(got, a.Environment+" by "+w.names[a.Commit])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: it arrived (-want +got):\n%s", step, diff)
		}
		events, err := w.store.Events(w.ctx(), store.EventFilter{Limit: 100})
		w.must(err)
		landed := 0
		for _, e := range events {
			if e.Kind == "landed" || e.Kind == "arrived" || e.Kind == "baseline" {
				landed++
			}
		}
		if landed > len(want) {
			t.Errorf("%s: %d events tell of %d arrivals", step, landed, len(want))
		}
	}
	arrivals("what was there", "dev by Begin", "qa by Begin")
	w.release("ada", "dev", "1.1.0", "web")
	arrivals("a release", "dev by Begin", "dev by Release web 1.1.0 to dev", "qa by Begin")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	w.merge(n, "grace")
	arrivals("a merge", "dev by Begin", "dev by Release web 1.1.0 to dev", "qa by Begin", fmt.Sprintf("qa by merge of #%d", n))
}

// TestRevertUnderRules looks at a revert where the forge drops approvals of what is pushed again: its
// reviews are known then.
func TestRevertUnderRules(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.must(w.forge.Protect(storyRepo, "main", memoryforge.Protection{Approvals: 1, DismissStale: true}))
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	ev, d := w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	w.must(w.forge.Review(storyRepo, n, "linus", memoryforge.Approve, ""))
	w.merge(n, "linus")
	w.soak("web")
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}
	w.becomes("web-qa", func(app *verification.App) { app.Health = "Degraded" })
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment"})
	ev, d = w.evaluate("web", false)
	revert := w.openRevert(ev, d)
	w.must(w.forge.Review(storyRepo, revert, "mallory", memoryforge.RequestChanges, ""))
	w.wait(time.Minute)
	w.refreshPull(revert)
	ev, _ = w.lookAtUnit("its revert is refused")
	if p := ev.OpenPulls[revert]; !p.Rules.DropsApprovals {
		t.Errorf("the revert is %+v", p.Pull)
	}
	for what, p := range map[string]*promotion.Pull{"the pull request": &ev.OpenPulls[revert].Pull, "the component's": ev.Components[0].Env("qa").Revert} {
		if len(p.Review.Rejections) != 1 || p.Review.Rejections[0].User != "mallory" {
			t.Errorf("%s is refused by %+v", what, p.Review.Rejections)
		}
	}
	w.end()
}

// TestOthersOnOurBranches leaves an environment alone while somebody's pull request is open from the
// branch that its promotions would use, and from no other branch of ours.
func TestOthersOnOurBranches(t *testing.T) {
	for name, c := range map[string]struct {
		branch string
		closed bool
		want   bool
	}{
		"a promotion's":                  {branch: promotion.Branch("shop", "qa", "web"), want: true},
		"a promotion's, closed":          {branch: promotion.Branch("shop", "qa", "web"), closed: true},
		"a revert's":                     {branch: promotion.RevertBranch("shop", "qa", "web", strings.Repeat("0", 64))},
		"another environment's":          {branch: promotion.Branch("shop", "prod", "web")},
		"another component's":            {branch: promotion.Branch("shop", "qa", "api")},
		"another pipeline's":             {branch: promotion.Branch("other", "qa", "web")},
		"of all, where each moves alone": {branch: promotion.Branch("shop", "qa", promotion.BatchName)},
	} {
		w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
		w.evaluate("web", false)
		w.commitTo("mallory", c.branch, w.head("main"), "Mine", map[string]string{"x": "x"})
		n, err := w.forge.OpenPull(storyRepo, "mallory", c.branch, "main", "Mine", "")
		w.must(err)
		if c.closed {
			w.must(w.forge.Close(storyRepo, n, "mallory"))
			w.must(w.forge.Push(storyRepo, "mallory", c.branch, "", true))
			w.fetch()
		}
		w.refreshPull(n)
		ev, _ := w.evaluate("web", false)
		env := ev.Components[0].Env("qa")
		if got := env.BranchReason != ""; got != c.want || got && !strings.Contains(env.BranchReason, fmt.Sprintf("#%d by mallory uses the branch %s", n, c.branch)) {
			t.Errorf("%s: %q", name, env.BranchReason)
		}
		if dev := ev.Components[0].Env("dev"); dev.BranchReason != "" {
			t.Errorf("%s: dev: %q", name, dev.BranchReason)
		}
	}
}

// TestBranchesLeftBySomebody leaves an environment alone while the branch that its promotions would use
// has somebody's commit, where there are promotions into it.
func TestBranchesLeftBySomebody(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.evaluate("web", false)
	unmanaged := func() (out []string) {
		t.Helper()
		ev, _ := w.evaluate("web", false)
		for i := range ev.Components[0].Facts.Envs {
			if e := &ev.Components[0].Facts.Envs[i]; e.BranchReason != "" {
				out = append(out, e.Name)
			}
		}
		return out
	}
	for _, env := range []string{"dev", "qa"} {
		w.commitTo("mallory", promotion.Branch("shop", env, "web"), w.head("main"), "Mine", map[string]string{"x": env})
	}
	if got := unmanaged(); !slices.Equal(got, []string{"qa"}) {
		t.Errorf("%q are left alone", got)
	}
	w.commit("ada", "No QA", map[string]string{overlayFile("web", "qa"): ""}) // there is no such place any more
	if got := unmanaged(); len(got) > 0 {
		t.Errorf("%q are left alone", got)
	}
}

// TestReadingsThatMayPass remembers what a commit's files say, and not that they couldn't be read.
func TestReadingsThatMayPass(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
	w.must(err)
	p, u := s.Unit(w.unit("web"))
	o := w.o.History.Releases
	for key, commit := range map[string]string{"known": w.head("main"), "unknown": strings.Repeat("0", 40), "": w.head("main")} {
		g := o.ReadCached(w.repo.Mirror.Tree(commit), key, p, u.Envs["qa"])
		if known := commit == w.head("main"); (g.Err == nil) != known || (g.Id != "") != known {
			t.Errorf("%q: %+v", key, g)
		}
		if _, kept := o.Readings.Get(key); kept != (key == "known") {
			t.Errorf("%q is remembered: %v", key, kept)
		}
	}
}

// TestChecksAreOfTheirHead counts checks only of the head that they were read of.
func TestChecksAreOfTheirHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has  bool
		head string
		want int
	}{"its own": {true, "h", 1}, "another's": {true, "g", 0}, "unread": {false, "h", 0}} {
		d := &people.Checks{Read: c.has, Err: "e", All: []forge.Check{{Name: "ci"}}, Commit: c.head}
		var f policies.Facts
		people.AddChecks(&f, "h", d)
		if len(f.Checks) != c.want || f.ChecksRead != (c.want > 0) || f.ChecksErr != "e" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestKnownLandings believes what was found of a landing when it was first seen, whatever it was.
func TestKnownLandings(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{promotion.ByPromotion: true, promotion.ByRevert: true} {
		env := &promotion.Env{Release: promotion.Sure(promotion.Release{ID: "r"}), History: []promotion.Arrival{{Commit: "other", Release: "r", By: by}, {Commit: "m", Release: "r", By: by}}}
		own := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{MergeCommit: "m"}}}
		if got, err := (&Gatherer{}).isComposedLanding(t.Context(), nil, env, own); got != want || err != nil {
			t.Errorf("by %s: %v, %v", by, got, err)
		}
	}
}

// TestSettledIsNotified looks again where something was heard of a pull request between the readings.
func TestSettledIsNotified(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o, _, r := newCachedPulls(t, now)
	pr := forge.PullRequest{Number: 7, Branch: promotion.Branch("shop", "qa", "web"), State: forge.Closed, UpdatedAt: now}
	if err := o.store.Tx(t.Context(), "test", func(tx *store.Tx) error { return tx.PutPulls(t.Context(), o.pullRow(r, pr, nil, true)) }); err != nil {
		t.Fatal(err)
	}
	record := func(number int, rules string) *pullRecord {
		return &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: number}}, row: store.Pull{Rules: rules}}
	}
	all := func(store.Pull) bool { return true }
	for name, c := range map[string]struct {
		env     string
		records []*pullRecord
		matters func(store.Pull) bool
		stale   bool
	}{
		"it is among those to be settled": {"qa", []*pullRecord{record(8, "now"), record(7, "before")}, all, false},
		"it was settled":                  {"qa", []*pullRecord{record(7, "now")}, all, true},
		"only another one":                {"qa", []*pullRecord{record(8, "before")}, all, true},
		"in another environment":          {"prod", []*pullRecord{record(7, "before")}, all, true},
		"none":                            {"qa", nil, all, true},
		"it doesn't matter":               {"qa", nil, func(store.Pull) bool { return false }, false},
	} {
		ev := &Evaluation{Basis: branch.Basis{Unit: promotion.Unit{Repo: r.ID, Pipeline: "shop", Component: "web"}}, rules: map[string]string{"web": "now"}, pulls: pullIndex{"web": {c.env: c.records}}}
		err := (&Gatherer{PullCache: o}).checkPullsCurrent(t.Context(), ev, c.matters)
		if errors.Is(err, forge.ErrConflict) != c.stale || (err != nil) != c.stale {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mustSay is an error where some fact isn't known, which says why.
func (sto *story) mustSay(ev *Evaluation) error {
	sto.t.Helper()
	text := fmt.Sprintf("%+v", ev.Components[0].Facts)
	if strings.Contains(text, "injected") {
		return errors.New(text)
	}
	return nil
}
