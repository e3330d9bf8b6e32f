package facts

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestMergesCountWhereTheyLanded holds which merges are an environment's: those into its branch, and those
// into a branch of another name whose commit is on it by now.
func TestMergesCountWhereTheyLanded(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	begin := w.head("main")
	onOther := w.commitTo("mallory", "elsewhere", begin, "Elsewhere", map[string]string{"more": "x"})
	ev, _ := w.evaluate("web", false)
	pull := func(change func(p *forge.PullRequest)) *pullRecord {
		p := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: 7, State: forge.Merged, Base: "main", MergeCommit: begin}}, ref: promotion.BranchRef{Pipeline: "shop", Environment: "qa", Component: "web"}}
		change(&p.PR)
		return p
	}
	for name, c := range map[string]struct {
		change func(p *forge.PullRequest)
		want   bool
	}{
		"into the branch":                     {func(*forge.PullRequest) {}, true},
		"into it, which was taken back since": {func(p *forge.PullRequest) { p.MergeCommit = onOther }, true},
		"into another":                        {func(p *forge.PullRequest) { p.Base, p.MergeCommit = "elsewhere", onOther }, false},
		"into one that is gone":               {func(p *forge.PullRequest) { p.Base, p.MergeCommit = "elsewhere", landedHash }, false},
		"into another, nobody knows as what":  {func(p *forge.PullRequest) { p.Base, p.MergeCommit = "elsewhere", "" }, false},
		"into the branch by its name before":  {func(p *forge.PullRequest) { p.Base = "master" }, true},
		"not at all":                          {func(p *forge.PullRequest) { p.State = forge.Closed }, false},
	} {
		p := pull(c.change)
		for range 2 { // also from memory
			if got, err := hasLanded(w.ctx(), ev, p); err != nil || got != c.want {
				t.Errorf("%s: it landed %t, %v", name, got, err)
			}
		}
	}
	gone := pull(func(p *forge.PullRequest) { p.Base = "elsewhere" })
	gone.ref.Environment = "gone"
	if got, err := hasLanded(w.ctx(), ev, gone); err != nil || !got {
		t.Errorf("of an environment that is gone nobody can tell: %t, %v", got, err)
	}
}

// TestPullEnds holds how a pull request that isn't open any more ended.
func TestPullEnds(t *testing.T) {
	for name, c := range map[string]struct {
		state  forge.State
		revert bool
		end    pullEnd
		of     string // release
		want   store.PastKind
	}{
		"a promotion that landed":               {forge.Merged, false, pullEnd{landed: true}, "a", store.PastMerged},
		"a revert that landed":                  {forge.Merged, true, pullEnd{landed: true}, "a", store.PastRevert},
		"a promotion merged elsewhere":          {forge.Merged, false, pullEnd{}, "a", store.PastSuperseded},
		"a revert merged elsewhere":             {forge.Merged, true, pullEnd{}, "a", store.PastRevertOnOtherBranch},
		"a revert merged elsewhere and retried": {forge.Merged, true, pullEnd{superseded: map[string]bool{"web": true}}, "a", store.PastSuperseded},
		"a veto":                                {forge.Closed, false, pullEnd{}, "a", store.PastRefused},
		"a veto of what isn't known":            {forge.Closed, false, pullEnd{}, "", store.PastRefusedUnknown},
		"a revert that was refused":             {forge.Closed, true, pullEnd{}, "a", store.PastRefusedRevert},
		"closed by us":                          {forge.Closed, false, pullEnd{superseded: map[string]bool{"web": true}}, "a", store.PastSuperseded},
		"closed by us for another":              {forge.Closed, false, pullEnd{superseded: map[string]bool{"api": true}}, "a", store.PastRefused},
		"closed by us, as we signed":            {forge.Closed, true, pullEnd{all: true}, "a", store.PastSuperseded},
	} {
		p := &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{State: c.state}}, ref: promotion.BranchRef{Revert: c.revert}}
		if got := c.end.kindOf(p, "web", c.of); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSupersededIsProven believes the label of what Liftlock closed itself only with the store's record, or
// with the mark that it signed then, for this very pull request and close.
func TestSupersededIsProven(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	pr := forge.PullRequest{Number: 5, Branch: promotion.Branch("shop", "qa", "web"), Head: landedHash, State: forge.Closed, ClosedAt: at.Add(time.Second), Labels: []string{promotion.LabelSuperseded}}
	mark := func(p forge.PullRequest, at time.Time) string {
		return w.repo.Marks.MarkClosed(w.repo.ID, &p, at, "Text\n")
	}
	other := newTestSigner(t, "another")
	for name, c := range map[string]struct {
		change func(p *forge.PullRequest)
		all    bool
	}{
		"a label alone": {func(p *forge.PullRequest) { p.Body = "Text" }, false},
		"signed":        {func(p *forge.PullRequest) { p.Body = mark(*p, at) }, true},
		"signed, among others": {func(p *forge.PullRequest) {
			p.Body = strings.Repeat("<!-- liftlock:closed at=1 sig="+release("a")+" -->\n", 2) + mark(*p, at)
		}, true},
		"signed, without the label": {func(p *forge.PullRequest) { p.Body, p.Labels = mark(*p, at), nil }, false},
		"by another secret":         {func(p *forge.PullRequest) { p.Body = other.MarkClosed(w.repo.ID, p, at, "") }, false},
		"of another pull request": {func(p *forge.PullRequest) {
			q := *p
			q.Number = 4
			p.Body = mark(q, at)
		}, false},
		"of another head": {func(p *forge.PullRequest) {
			q := *p
			q.Head = release("b")[:40]
			p.Body = mark(q, at)
		}, false},
		"of an earlier close":       {func(p *forge.PullRequest) { p.Body = mark(*p, at.Add(-time.Hour)) }, false},
		"with another time written": {func(p *forge.PullRequest) { p.Body = strings.Replace(mark(*p, at.Add(-time.Hour)), "at=", "at=1", 1) }, false},
	} {
		p := pr
		c.change(&p)
		components, all, err := w.o.findSuperseded(w.ctx(), w.repo, &p)
		if err != nil || all != c.all || len(components) > 0 {
			t.Errorf("%s: %t %v, %v", name, all, components, err)
		}
	}
	for what, begun := range map[string]time.Time{"an hour before": at.Add(-time.Hour), "just before": at} {
		w.must(w.store.Tx(w.ctx(), "closing", func(tx *store.Tx) error { return PutClosing(w.ctx(), tx, w.repo.ID, 5, begun) }))
		if _, all, err := w.o.findSuperseded(w.ctx(), w.repo, &pr); err != nil || all != (begun == at) {
			t.Errorf("Liftlock began to close it %s: %t, %v", what, all, err)
		}
	}
	w.must(w.store.DeleteRecord(w.ctx(), Closing.Key(record.OfPull(w.repo.ID, 5))))
	w.must(w.store.Tx(w.ctx(), "records", func(tx *store.Tx) error {
		for component, state := range map[string]string{"web": recordSuperseded, "api": promotion.Closed} {
			if _, err := tx.PutPromotion(w.ctx(), store.Promotion{Unit: w.repo.ID + "|shop|" + component, Repo: w.repo.ID, Pipeline: "shop", Component: component, Environment: "qa", Kind: promotion.KindPromotion, Pull: 5, State: state, UpdatedAt: at}); err != nil {
				return err
			}
		}
		return nil
	}))
	if components, all, err := w.o.findSuperseded(w.ctx(), w.repo, &pr); err != nil || all || len(components) != 1 || !components["web"] {
		t.Errorf("by the record: %t %v, %v", all, components, err)
	}
}

// TestUnrequestedMerges lifts what keeps a release out only by a merge of Liftlock's own, or of what somebody
// who may asked for.
func TestUnrequestedMerges(t *testing.T) {
	a := release("a")
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	ev, _ := w.evaluate("web", false)
	at := w.now
	put := func(number int, mergedBy string) {
		t.Helper()
		pr := forge.PullRequest{Number: number, Branch: promotion.Branch("shop", "qa", "web"), Base: "main", Head: landedHash, State: forge.Merged, MergeCommit: landedHash, MergedBy: mergedBy, MergedAt: at, ClosedAt: at, UpdatedAt: at}
		_, err := w.store.PutPullSince(w.ctx(), w.o.PullCache.pullRow(w.repo, pr, nil, true), 0)
		w.must(err)
	}
	put(21, "mallory")
	put(22, storyBot)
	put(23, "mallory")
	w.must(w.store.Tx(w.ctx(), "requested", func(tx *store.Tx) error { return PutRequested(w.ctx(), tx, w.repo.ID, 23, "web", a) }))
	revert := promotion.PastPull{Number: 20, Revert: true, Merged: true, Release: a[:12], At: at.Add(-time.Hour)}
	merged := func(number int) promotion.PastPull {
		return promotion.PastPull{Number: number, Merged: true, Release: a, At: at}
	}
	for name, c := range map[string]struct {
		past []promotion.PastPull // the first is compared
		want bool
	}{
		"by a person":                                {[]promotion.PastPull{merged(21), revert}, true},
		"by Liftlock":                                {[]promotion.PastPull{merged(22), revert}, false},
		"by a person, as somebody who may asked":     {[]promotion.PastPull{merged(23), revert}, false},
		"of which nothing is known":                  {[]promotion.PastPull{merged(24), revert}, true},
		"by a person, over a veto":                   {[]promotion.PastPull{merged(21), {Number: 19, Release: a}}, true},
		"by a person, over what we closed":           {[]promotion.PastPull{merged(21), {Number: 19, Release: a, Superseded: true}}, false},
		"by a person, with nothing to be lifted":     {[]promotion.PastPull{merged(21)}, false},
		"by a person, with something else reverted":  {[]promotion.PastPull{merged(21), {Number: 20, Revert: true, Merged: true, Release: release("b")}}, false},
		"by a person, over a revert on other branch": {[]promotion.PastPull{merged(21), {Number: 20, Revert: true, OnOtherBranch: true, Release: a}}, true},
	} {
		env := promotion.Env{Name: "qa", PastPulls: c.past}
		if err := w.o.markUnrequested(w.ctx(), ev, &env, "web"); err != nil || env.PastPulls[0].Unrequested != c.want {
			t.Errorf("%s: %t, %v", name, env.PastPulls[0].Unrequested, err)
		}
	}
}

// TestFormerAccounts holds that what an account did while it was the server's stays the server's doing, and
// nothing that it did afterwards.
func TestFormerAccounts(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	first, second := policies.Account{ID: 1, Login: storyBot}, policies.Account{ID: 2, Login: "another"}
	remember := func(me policies.Account, want ...string) []branch.FormerAccount {
		t.Helper()
		w.wait(time.Hour)
		former, err := branch.RememberAccount(w.ctx(), w.store, w.repo.ID, me, w.now)
		w.must(err)
		if len(former) != len(want) {
			t.Fatalf("%s had %+v before", me.Login, former)
		}
		for i := range want {
			if former[i].Login != want[i] {
				t.Errorf("%s had %+v before", me.Login, former)
			}
		}
		return former
	}
	remember(first)
	remember(policies.Account{ID: 1, Login: "renamed"})
	w.repo.Former = remember(second, storyBot)
	replaced := w.now
	w.repo.Former = remember(second, storyBot)
	w.repo.BotLogin, w.repo.BotID = second.Login, second.ID
	for name, c := range map[string]struct {
		login string
		id    int64
		at    time.Time
		want  bool
	}{
		"its own":                          {"another", 2, w.now, true},
		"the former's, before":             {storyBot, 1, replaced.Add(-time.Minute), true},
		"the former's, by its new login":   {"renamed", 1, replaced.Add(-time.Minute), true},
		"the former's, as a list tells it": {storyBot, 0, replaced.Add(-time.Minute), true},
		"the former's, afterwards":         {storyBot, 1, replaced.Add(time.Minute), false},
		"somebody's":                       {"mallory", 13, replaced.Add(-time.Minute), false},
	} {
		if got := w.repo.WasOurs(c.login, c.id, c.at); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	remember(first, storyBot, "another")
}

// TestSignedPullsAreOurs takes a closed pull request of an unknown account for the server's where
// its mark is signed for its head, and no open one.
func TestSignedPullsAreOurs(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	branchName := promotion.RevertBranch("shop", "qa", "web", release("a"))
	body := w.repo.Marks.Sign(w.repo.ID, branchName, landedHash, branch.Marker{Kind: promotion.KindRevert, Release: release("a"), Of: 3})
	for name, c := range map[string]struct {
		pr   forge.PullRequest
		want bool
	}{
		"merged":           {forge.PullRequest{State: forge.Merged, Branch: branchName, Head: landedHash, Body: body}, true},
		"closed":           {forge.PullRequest{State: forge.Closed, Branch: branchName, Head: landedHash, Body: body}, true},
		"open":             {forge.PullRequest{State: forge.Open, Branch: branchName, Head: landedHash, Body: body}, false},
		"of another head":  {forge.PullRequest{State: forge.Merged, Branch: branchName, Head: release("b")[:40], Body: body}, false},
		"on another":       {forge.PullRequest{State: forge.Merged, Branch: branchName + "x", Head: landedHash, Body: body}, false},
		"without a mark":   {forge.PullRequest{State: forge.Merged, Branch: branchName, Head: landedHash}, false},
		"open, by the bot": {forge.PullRequest{State: forge.Open, Author: storyBot, Branch: branchName, Head: landedHash}, true},
	} {
		if c.pr.Author == "" {
			c.pr.Author = "mallory"
		}
		if got := (&pullRecord{Pull: stored.Pull{PR: c.pr}}).isOurs(w.repo); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestApprovalPeriods holds that approvals of what was replaced count no longer, whatever is pushed back.
func TestApprovalPeriods(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	n, branchName, head := openToQA(w)
	ev, _ := w.evaluate("web", false)
	p := ev.OpenPulls[n]
	covers := func(what, commit string, at time.Time, want bool) {
		t.Helper()
		period, err := w.o.Reviews.ReadApprovalPeriod(w.ctx(), w.repo, branchName, &p.Pull, p.Proven != nil)
		if got := period.Covers(&forge.Review{Commit: commit, At: at}); err != nil || got != want {
			t.Errorf("%s: it counts %t, %v", what, got, err)
		}
	}
	covers("nothing was replaced", "any", time.Time{}, true)
	w.wait(time.Minute)
	replaced := w.now
	w.must(w.store.Tx(w.ctx(), "replaced", func(tx *store.Tx) error {
		return people.PutReplaced(w.ctx(), tx, w.repo.ID, n, replaced, head, head)
	}))
	w.putRecord(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), branch.Pushed{{Head: "new", Releases: map[string]string{"web": release("b")}}})
	covers("given before, on what was replaced", head, replaced.Add(-time.Second), false)
	covers("given before, on another head", "older", replaced.Add(-time.Second), false)
	covers("given in that second, on the new head", "new", replaced, true)
	covers("given in that second, on the old one", head, replaced, false)
	covers("given since, whatever it shows", head, replaced.Add(time.Second), true)
	w.putRecord(branch.PushedHeads.Key(record.OfBranch(w.repo.ID, branchName)), branch.Pushed{{Head: head, Releases: map[string]string{"web": release("a")}}})
	covers("what was replaced is back by us", head, replaced.Add(-time.Second), false)
	w.restart()
	lost := *p
	lost.HeadSince = w.now
	period, err := w.o.Reviews.ReadApprovalPeriod(w.ctx(), w.repo, branchName, &lost.Pull, lost.Proven != nil)
	if err != nil || !period.Since.IsZero() {
		t.Errorf("the store is lost, and the head is proven: since %s, %v", period.Since, err)
	}
	lost.Proven = nil
	if period, err = w.o.Reviews.ReadApprovalPeriod(w.ctx(), w.repo, branchName, &lost.Pull, lost.Proven != nil); err != nil || !period.Since.Equal(w.now) {
		t.Errorf("the store is lost, and nothing proves the head: since %s, %v", period.Since, err)
	}
}
