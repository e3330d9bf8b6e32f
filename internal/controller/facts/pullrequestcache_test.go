package facts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

// slowForge says of every pull request what a test does, and stamps whole seconds.
type slowForge struct {
	forge.Forge
	calls  int
	answer func(call int) forge.State
	at     time.Time
}

func (s *slowForge) PullRequest(context.Context, forge.Repo, int) (*forge.PullRequest, error) {
	s.calls++
	return &forge.PullRequest{Number: 1, Branch: "liftlock/shop/qa/web", Author: "bot", Head: "c1", State: s.answer(s.calls), UpdatedAt: s.at}, nil
}

func (s *slowForge) PullRequests(context.Context, forge.Repo, time.Time) ([]forge.PullRequest, error) {
	return []forge.PullRequest{{Number: 1, Branch: "liftlock/shop/qa/web", Author: "bot", Head: "c1", State: s.answer(0), UpdatedAt: s.at}}, nil
}

// newCachedPulls has an empty store and a forge that answers as a test says.
func newCachedPulls(t *testing.T, now time.Time) (*pullGatherer, *slowForge, *branch.Repository) {
	t.Helper()
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	f := &slowForge{at: now}
	return newPullGatherer(st, func() time.Time { return now }, time.Hour, nil), f, &branch.Repository{ID: "hub:acme/fleet", Forge: f, BotLogin: "bot", BotID: 7}
}

// TestMergeIsRecorded holds that our own merge is known without reading it, by the forge's clock.
// It is read where there was other news of it or the forge made no commit of its own.
func TestMergeIsRecorded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	merge := &git.CommitInfo{SHA: "m1", CommitTime: now.Add(-3 * time.Second)}
	for name, c := range map[string]struct {
		landed *git.CommitInfo
		later  time.Duration // when the forge last changed what the store has of it
		reads  int
	}{
		"a merge":          {merge, 0, 0},
		"moved forward":    {&git.CommitInfo{SHA: "c1", CommitTime: now}, 0, 1},
		"heard of by then": {merge, time.Second, 1},
	} {
		o, f, r := newCachedPulls(t, now)
		f.answer = func(int) forge.State { return forge.Open }
		pr, err := o.RefreshPullRequest(t.Context(), r, 1)
		if err != nil {
			t.Fatal(err)
		}
		if f.at = f.at.Add(c.later); c.later > 0 {
			if _, err := o.RefreshPullRequest(t.Context(), r, 1); err != nil {
				t.Fatal(err)
			}
		}
		f.calls = 0
		f.answer = func(int) forge.State { return forge.Merged }
		if err := o.RecordMerged(t.Context(), r, pr, c.landed); err != nil {
			t.Fatal(err)
		}
		known, err := o.findCachedPull(t.Context(), r, 1)
		if err != nil || known.PR.State != forge.Merged || f.calls != c.reads {
			t.Errorf("%s: read %d times, want %d; known is %+v, %v", name, f.calls, c.reads, known, err)
		}
		if p := known.PR; c.reads == 0 && (p.MergeCommit != "m1" || !p.MergedAt.Equal(merge.CommitTime) || p.MergedBy != "bot" || p.MergedByID != 7 || !p.UpdatedAt.Equal(pr.UpdatedAt)) {
			t.Errorf("%s: it is %+v", name, p)
		}
	}
}

// TestTheNewerReadWins holds that an answer which another one of the same second overtook
// is neither believed nor kept, whether one pull request is read or the list.
func TestTheNewerReadWins(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o, f, r := newCachedPulls(t, now)
	f.answer = func(call int) forge.State {
		if call > 1 {
			return forge.Closed
		}
		if _, err := o.RefreshPullRequest(t.Context(), r, 1); err != nil { // while the first answer is on its way
			t.Error(err)
		}
		return forge.Open
	}
	pr, err := o.RefreshPullRequest(t.Context(), r, 1)
	if err != nil || pr.State != forge.Closed {
		t.Errorf("it is %+v, %v", pr, err)
	}
	check := func() {
		t.Helper()
		known, err := o.findCachedPull(t.Context(), r, 1)
		if err != nil || known.PR.State != forge.Closed {
			t.Errorf("known is %+v, %v", known, err)
		}
		if d, _ := o.details.Get(detailKey(r, 1)); d == nil || d.pr.State != forge.Closed {
			t.Errorf("remembered is %+v", d)
		}
	}
	check()
	o.putDetail(r, &pullDetail{pr: forge.PullRequest{Number: 1, State: forge.Open}, version: 1}) // late
	f.answer = func(int) forge.State { return forge.Open }
	if err := o.RefreshPullRequests(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	check()
	if at, due, err := o.store.(*store.Store).NextDue(t.Context()); err != nil || !due || at.After(now) {
		t.Errorf("what the list says otherwise is not read again: %s %t %v", at, due, err)
	}
}

// longHistory is a forge with a repository that has had many pull requests.
type longHistory struct {
	forge.Forge
	all    []forge.PullRequest // the last that was updated first
	sinces []time.Time         // that were listed
	read   int                 // pull requests that were given
}

func (l *longHistory) PullRequests(_ context.Context, _ forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	l.sinces = append(l.sinces, since)
	i := slices.IndexFunc(l.all, func(p forge.PullRequest) bool { return p.UpdatedAt.Before(since) })
	if i < 0 {
		i = len(l.all)
	}
	l.read += i
	return l.all[:i], nil
}

// TestStartWithALongHistory starts with an empty store where a repository has had more than 10,000
// pull requests, most of them people's. Open ones are found however old they are, and so are those
// that restrain. Only open ones, and recently closed ones, are evaluated, and later only changes
// are read.
func TestStartWithALongHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o, _, r := newCachedPulls(t, now)
	const strangers, day = 10_001, 24 * time.Hour
	f := &longHistory{}
	ours := func(number int, env string, state forge.State, age time.Duration) forge.PullRequest {
		return forge.PullRequest{Number: number, Branch: "liftlock/shop/" + env + "/web", Author: "bot", Head: fmt.Sprintf("h%d", number), State: state, UpdatedAt: now.Add(-age)}
	}
	const closedLately, theirOpen, open, vetoed = strangers + 1, strangers + 2, strangers + 3, strangers + 4
	f.all = append(f.all, ours(closedLately, "qa", forge.Closed, day))
	for i := range strangers {
		f.all = append(f.all, forge.PullRequest{Number: i + 1, Branch: "topic", Author: "linus", State: forge.Closed, UpdatedAt: now.Add(-day - time.Duration(i+1)*time.Minute)})
	}
	f.all = append(f.all, forge.PullRequest{Number: theirOpen, Branch: "old-topic", Author: "linus", State: forge.Open, UpdatedAt: now.Add(-300 * day)},
		ours(open, "prod", forge.Open, 400*day), ours(vetoed, "qa", forge.Closed, 500*day))
	r.Forge = f
	if err := o.RefreshPullRequests(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	st := o.store.(*store.Store)
	rows, err := st.OpenPulls(t.Context(), r.ID, "liftlock/")
	if err != nil || len(rows) != 1 || rows[0].Number != open {
		t.Errorf("open are %+v (%v), want #%d", rows, err, open)
	}
	for _, number := range []int{closedLately, vetoed} {
		if known, err := o.findCachedPull(t.Context(), r, number); err != nil || known == nil || known.PR.State != forge.Closed {
			t.Errorf("of #%d is known %+v (%v)", number, known, err)
		}
	}
	claims, err := st.Claim(t.Context(), "a", 100)
	if err != nil {
		t.Fatal(err)
	}
	var woken []string
	for _, c := range claims {
		woken = append(woken, c.Key)
	}
	slices.Sort(woken)
	var want []string
	for _, number := range []int{closedLately, theirOpen, open} {
		want = append(want, wake.ForPull(r.ID, number).String())
	}
	if !slices.Equal(woken, want) {
		t.Errorf("it wakes %q, want %q", woken, want)
	}
	f.read = 0
	if err := o.RefreshPullRequests(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if f.read != 1 || !f.sinces[1].Equal(now.Add(-day-cursorOverlap)) {
		t.Errorf("later %d are read, since %v", f.read, f.sinces[1:])
	}
}

// TestSameListedPull holds what of a pull request in a list is news.
func TestSameListedPull(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	was := forge.PullRequest{Number: 3, State: forge.Open, Head: "h", UpdatedAt: at, Title: "Promote", MergeCommit: "", Labels: []string{"a"}, Mergeable: forge.MergeableYes}
	for name, c := range map[string]struct {
		change func(p *forge.PullRequest)
		same   bool
	}{
		"nothing":                  {func(*forge.PullRequest) {}, true},
		"what no list tells":       {func(p *forge.PullRequest) { p.Mergeable = forge.MergeableUnknown }, true},
		"the time of another zone": {func(p *forge.PullRequest) { p.UpdatedAt = at.In(time.FixedZone("x", 3600)) }, true},
		"its state":                {func(p *forge.PullRequest) { p.State = forge.Closed }, false},
		"its head":                 {func(p *forge.PullRequest) { p.Head = "i" }, false},
		"when it was changed last": {func(p *forge.PullRequest) { p.UpdatedAt = at.Add(time.Second) }, false},
		"its title":                {func(p *forge.PullRequest) { p.Title = "Demote" }, false},
		"what it was merged as":    {func(p *forge.PullRequest) { p.MergeCommit = "m" }, false},
		"a label more":             {func(p *forge.PullRequest) { p.Labels = []string{"a", "b"} }, false},
		"another label":            {func(p *forge.PullRequest) { p.Labels = []string{"b"} }, false},
	} {
		now := was
		c.change(&now)
		if sameListedPull(&was, &now) != c.same {
			t.Errorf("%s: the same is %t", name, !c.same)
		}
	}
}

// TestSinceWhenAHeadIsThere keeps since when a head is there while it is the same, and takes the later of
// two clocks for a new one.
func TestSinceWhenAHeadIsThere(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := now.Add(-time.Hour)
	o, _, r := newCachedPulls(t, now)
	for name, c := range map[string]struct {
		known   *stored.Pull
		updated time.Time
		want    time.Time
	}{
		"it is new":                        {nil, before, now},
		"it is new, by a clock ahead":      {nil, now.Add(time.Second), now.Add(time.Second)},
		"it is the same":                   {&stored.Pull{PR: forge.PullRequest{Head: "h"}, HeadSince: before}, now.Add(time.Second), before},
		"it is another":                    {&stored.Pull{PR: forge.PullRequest{Head: "g"}, HeadSince: before}, before, now},
		"nobody wrote down since when":     {&stored.Pull{PR: forge.PullRequest{Head: "h"}}, before, now},
		"nobody did, and a clock is ahead": {&stored.Pull{PR: forge.PullRequest{Head: "h"}}, now.Add(time.Second), now.Add(time.Second)},
	} {
		row := o.pullRow(r, forge.PullRequest{Number: 1, Branch: "liftlock/shop/qa/web", State: forge.Open, Head: "h", UpdatedAt: c.updated}, c.known, true)
		got, err := o.decodePull(row)
		if err != nil || !got.HeadSince.Equal(c.want) || !got.NotifiedAt.Equal(now) || !row.ClosedAt.IsZero() {
			t.Errorf("%s: since %s, notified at %s, %v; want %s", name, got.HeadSince, got.NotifiedAt, err, c.want)
		}
	}
}
