package facts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// listedPulls is a forge that lists what a test says, and notes since when it was to.
type listedPulls struct {
	forge.Forge
	prs   []forge.PullRequest
	since time.Time
	err   error
}

func (l *listedPulls) PullRequests(_ context.Context, _ forge.Repo, since time.Time) ([]forge.PullRequest, error) {
	l.since = since
	return l.prs, l.err
}

// claimAll gives the keys that are due, with how urgent they are.
func claimAll(t *testing.T, s *store.Store) map[string]store.Urgency {
	t.Helper()
	claims, err := s.Claim(t.Context(), "test", 100)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]store.Urgency{}
	for _, c := range claims {
		out[c.Key] = c.Urgency
	}
	return out
}

// TestRefreshPullRequests says whom what a list tells wakes, and what the store has of it then.
func TestRefreshPullRequests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const branchName = "liftlock/shop/qa/web"
	before := forge.PullRequest{Number: 1, Branch: branchName, Author: "bot", Head: "c1", State: forge.Open, UpdatedAt: now.Add(-time.Hour), Queue: forge.Queued, Pipeline: 5}
	with := func(change func(pr *forge.PullRequest)) forge.PullRequest {
		pr := before
		pr.Queue, pr.Pipeline, pr.UpdatedAt = forge.NotQueued, 0, now.Add(-time.Minute) // as not every list tells
		change(&pr)
		return pr
	}
	wakes := func(u store.Urgency) map[string]store.Urgency {
		return map[string]store.Urgency{wake.ForPull("hub:acme/fleet", 1).String(): u}
	}
	for name, c := range map[string]struct {
		listed  forge.PullRequest
		unknown bool // the store is empty
		shown   bool // we wrote on it
		want    map[string]store.Urgency
		kept    *forge.PullRequest // what the store has then; nil: nothing
	}{
		"as it was": {listed: before, kept: &before},
		"another title": {listed: with(func(pr *forge.PullRequest) { pr.Title = "x" }), want: wakes(store.Normal),
			kept: new(with(func(pr *forge.PullRequest) { pr.Title, pr.Queue, pr.Pipeline = "x", forge.Queued, 5 }))},
		"another head": {listed: with(func(pr *forge.PullRequest) { pr.Head = "c2" }), want: wakes(store.Normal), kept: new(with(func(pr *forge.PullRequest) { pr.Head = "c2" }))},
		"closed": {listed: with(func(pr *forge.PullRequest) { pr.State, pr.ClosedAt = forge.Closed, pr.UpdatedAt }), want: wakes(store.Normal),
			kept: new(with(func(pr *forge.PullRequest) { pr.State, pr.Pipeline, pr.ClosedAt = forge.Closed, 5, pr.UpdatedAt }))},
		"something else of the same second": {listed: with(func(pr *forge.PullRequest) { pr.UpdatedAt, pr.Title = before.UpdatedAt, "x" }), want: wakes(store.Normal), kept: &before},
		"closed for a while": {listed: with(func(pr *forge.PullRequest) { pr.State, pr.UpdatedAt = forge.Closed, now.Add(-lateAfter-time.Second) }), want: wakes(store.Background),
			kept: new(with(func(pr *forge.PullRequest) {
				pr.State, pr.UpdatedAt, pr.Pipeline = forge.Closed, now.Add(-lateAfter-time.Second), 5
			}))},
		"closed just so long": {listed: with(func(pr *forge.PullRequest) { pr.State, pr.UpdatedAt = forge.Closed, now.Add(-lateAfter) }), want: wakes(store.Normal),
			kept: new(with(func(pr *forge.PullRequest) {
				pr.State, pr.UpdatedAt, pr.Pipeline = forge.Closed, now.Add(-lateAfter), 5
			}))},
		"closed for days": {listed: with(func(pr *forge.PullRequest) { pr.State, pr.UpdatedAt = forge.Closed, now.Add(-lateChangeWindow) }), unknown: true,
			kept: new(with(func(pr *forge.PullRequest) { pr.State, pr.UpdatedAt = forge.Closed, now.Add(-lateChangeWindow) }))},
		"new": {listed: with(func(*forge.PullRequest) {}), unknown: true, want: wakes(store.Normal), kept: new(with(func(*forge.PullRequest) {}))},

		"a person's":                                 {listed: with(func(pr *forge.PullRequest) { pr.Branch = "topic" }), unknown: true, want: wakes(store.Normal)},
		"a fork's, with a branch like ours":          {listed: with(func(pr *forge.PullRequest) { pr.Fork = true }), unknown: true, want: wakes(store.Normal)},
		"a person's, closed":                         {listed: with(func(pr *forge.PullRequest) { pr.Branch, pr.State = "topic", forge.Closed }), shown: false},
		"a person's, closed, with a comment of ours": {listed: with(func(pr *forge.PullRequest) { pr.Branch, pr.State = "topic", forge.Closed }), shown: true, want: wakes(store.Background)},
		"that one with an empty store":               {listed: with(func(pr *forge.PullRequest) { pr.Branch, pr.State = "topic", forge.Closed }), unknown: true, shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store.OpenMemory(store.Options{Now: func() time.Time { return now }})
			t.Cleanup(func() { _ = s.Close() })
			f := &listedPulls{prs: []forge.PullRequest{c.listed}}
			r := &branch.Repository{ID: "hub:acme/fleet", Forge: f, BotLogin: "bot", BotID: 7}
			o := newPullGatherer(s, func() time.Time { return now }, time.Hour, nil)
			cursor, ours := time.Time{}, c.listed.Branch == branchName && !c.listed.Fork
			if err := s.Tx(t.Context(), "test", func(tx *store.Tx) error {
				if c.shown {
					if err := tx.PutRecord(t.Context(), Shown.Key(record.OfPull(r.ID, 1)), nil); err != nil {
						return err
					}
				}
				if c.unknown {
					return nil
				}
				cursor = before.UpdatedAt
				if err := tx.SetPullCursor(t.Context(), r.ID, cursor); err != nil || !ours {
					return err
				}
				return tx.PutPulls(t.Context(), o.pullRow(r, before, nil, true))
			}); err != nil {
				t.Fatal(err)
			}
			if err := o.RefreshPullRequests(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				c.want = map[string]store.Urgency{}
			}
			if got := claimAll(t, s); !maps.Equal(got, c.want) {
				t.Errorf("woken are %v, want %v", got, c.want)
			}
			known, err := o.KnownPull(t.Context(), r.ID, 1)
			if diff := cmp.Diff(c.kept, known); diff != "" || err != nil {
				t.Errorf("the store has (-want +got, %v):\n%s", err, diff)
			}
			after, err := s.PullCursor(t.Context(), r.ID)
			if want := latest(cursor, c.listed.UpdatedAt); !after.Equal(want) || err != nil {
				t.Errorf("the next list is since %s, want %s (%v)", after, want, err)
			}
			if want := cursor.Add(-cursorOverlap); c.unknown && !f.since.IsZero() || !c.unknown && !f.since.Equal(want) {
				t.Errorf("it was listed since %s, want %s", f.since, want)
			}
			f.prs, f.err = nil, errors.New("nobody lists twice")
			if err := o.ensurePullsCached(t.Context(), r); err != nil {
				t.Errorf("it is listed again: %v", err)
			}
		})
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// TestWritesOfPullsComeToTheirEnd has each call of the writes about pull requests fail, and then
// holds what the store has.
func TestWritesOfPullsComeToTheirEnd(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, branch, head := openToQA(w)
	topic := w.commitTo("ada", "topic", w.head("main"), "Topic", map[string]string{"x": "x"})
	person, err := w.forge.OpenPull(storyRepo, "ada", "topic", "main", "Topic", "")
	w.must(err)

	w.must(w.store.Tx(w.ctx(), "test", func(tx *store.Tx) error {
		return errors.Join(CountOwnComment(w.ctx(), tx, w.repo.ID, n, w.now, true), tx.PutRecord(w.ctx(), Shown.Key(record.OfPull(w.repo.ID, person)), nil))
	}))
	w.failUntilDone("list", func() {
		w.wait(time.Minute)
		w.must(w.forge.EditTitle(storyRepo, n, storyBot, w.now.String()))
	}, func(ctx context.Context) error { return w.o.PullCache.RefreshPullRequests(ctx, w.repo) })
	if pr, err := w.o.PullCache.KnownPull(w.ctx(), w.repo.ID, n); err != nil || pr.Title != w.now.String() {
		t.Errorf("listed, it is %+v, %v", pr, err)
	}
	if c, err := ReadCommentsRead(w.ctx(), w.store, w.repo.ID, n); err != nil || c.Count != nil {
		t.Errorf("its comments needn't be read: %+v, %v", c, err)
	}

	w.failUntilDone("read", func() {
		w.wait(time.Minute)
		w.must(w.forge.EditTitle(storyRepo, n, storyBot, w.now.String()))
	}, func(ctx context.Context) error {
		pr, err := w.o.PullCache.RefreshPullRequest(ctx, w.repo, n)
		if (pr == nil) != (err != nil) || pr != nil && (pr.Number != n || pr.Title != w.now.String()) {
			t.Errorf("read, it is %+v, %v", pr, err)
		}
		return err
	})
	w.failUntilDone("read a person's", nil, func(ctx context.Context) error {
		pr, err := w.o.PullCache.RefreshPullRequest(ctx, w.repo, person)
		if (pr == nil) != (err != nil) || pr != nil && (pr.Number != person || pr.Head != topic) {
			t.Errorf("the person's is %+v, %v", pr, err)
		}
		return err
	})
	if pr, err := w.o.PullCache.KnownPull(w.ctx(), w.repo.ID, person); pr != nil || err != nil {
		t.Errorf("the person's is kept: %+v, %v", pr, err)
	}

	w.failUntilDone("refuse", nil, func(ctx context.Context) error {
		return w.o.PullCache.RecordRefusedMerge(ctx, w.repo, n, head, errors.New("closed"))
	})
	ev, _ := w.evaluate("web", false)
	if p := ev.OpenPulls[n]; p.Refusal == nil || p.Refusal.Why != "closed" || p.Mergeable != promotion.MergeBlocked {
		t.Errorf("it was refused, and is %+v", p.Pull)
	}

	pr := w.refreshPull(n)
	w.wait(time.Minute)
	landed, err := w.forge.MergeByHand(storyRepo, n, storyBot, "merge")
	w.must(err)
	w.fetch()
	info, err := w.repo.Mirror.Commit(w.ctx(), landed)
	w.must(err)
	w.failUntilDone("merged", nil, func(ctx context.Context) error { return w.o.PullCache.RecordMerged(ctx, w.repo, pr, info) })
	if pr, err := w.o.PullCache.KnownPull(w.ctx(), w.repo.ID, n); err != nil || pr.State != forge.Merged || pr.MergeCommit != landed || pr.Branch != branch {
		t.Errorf("merged, it is %+v, %v", pr, err)
	}
}

// TestRecordCreated holds that a pull request that was just made is known without reading it,
// unless something is known of it by then.
func TestRecordCreated(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	ev, d := func() (*Evaluation, *promotion.Decision) {
		w.evaluate("web", false)
		w.release("ada", "dev", "1.1.0", "web")
		w.soak("web")
		return w.evaluate("web", false)
	}()
	x := storyAction[promotion.Open](w, d)
	branch := promotion.Branch("shop", "qa", "web")
	w.pushEdits(branch, x.Tip, "Promote", ev.ComposedEdits("qa", x.Release))
	made, _, err := w.repo.Forge.CreatePullRequest(w.ctx(), storyRepo, forge.NewPullRequest{Title: "Promote", Branch: branch, Base: "main"})
	w.must(err)
	made.Mergeable = forge.MergeableYes // as no answer to that says
	reads := 0
	w.repo.Forge = countedForge{w.repo.Forge, &reads}
	record := func(ctx context.Context) error {
		pr, err := w.o.PullCache.RecordCreated(ctx, w.repo, made)
		if (pr == nil) != (err != nil) || pr != nil && (pr.Number != made.Number || pr.Head != made.Head || pr.Mergeable == forge.MergeableYes && reads == 0) {
			t.Errorf("it is %+v, %v", pr, err)
		}
		return err
	}
	w.must(record(w.ctx()))
	detail, ok := w.o.PullCache.details.Get(detailKey(w.repo, made.Number))
	if reads != 0 || !ok || !detail.reviews.Read || detail.version == 0 {
		t.Errorf("it was read %d times, and is remembered as %+v", reads, detail)
	}
	known, err := w.o.PullCache.findCachedPull(w.ctx(), w.repo, made.Number)
	w.must(err)
	if known == nil || !known.Read || known.PR.Mergeable != forge.MergeableUnknown {
		t.Errorf("the store has %+v", known)
	}
	w.must(record(w.ctx()))
	if reads != 1 {
		t.Errorf("where it is known it was read %d times", reads)
	}
	w.restart()
	w.failUntilDone("created", nil, record)
}

// countedForge counts how often a single pull request is read.
type countedForge struct {
	forge.Forge
	reads *int
}

func (c countedForge) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	*c.reads++
	return c.Forge.PullRequest(ctx, r, number)
}

// TestOpenPulls lists ours only, of both kinds.
func TestOpenPulls(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o, _, r := newCachedPulls(t, now)
	pull := func(number int, branch string, state forge.State) store.Pull {
		return o.pullRow(r, forge.PullRequest{Number: number, Branch: branch, State: state, UpdatedAt: now}, nil, true)
	}
	list := func() (numbers []int, err error) {
		prs, err := o.OpenPulls(t.Context(), r)
		for i := range prs {
			numbers = append(numbers, prs[i].Number)
		}
		slices.Sort(numbers)
		return numbers, err
	}
	put := func(rows ...store.Pull) {
		t.Helper()
		if err := o.store.Tx(t.Context(), "test", func(tx *store.Tx) error { return tx.PutPulls(t.Context(), rows...) }); err != nil {
			t.Fatal(err)
		}
	}
	put(pull(1, promotion.Branch("shop", "qa", "web"), forge.Open), pull(2, promotion.RevertBranch("shop", "qa", "web", "0123456789ab"), forge.Open),
		pull(3, promotion.Branch("shop", "qa", "api"), forge.Merged), pull(4, promotion.BranchPrefix+"x", forge.Open))
	if got, err := list(); err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("open are %d, %v", got, err)
	}
	broken := pull(5, promotion.Branch("shop", "qa", "job"), forge.Open)
	broken.Data = []byte("[")
	put(broken)
	if got, err := list(); err == nil {
		t.Errorf("with a row that can't be read open are %d", got)
	}
	if pr, err := o.KnownPull(t.Context(), r.ID, 5); err == nil || pr != nil {
		t.Errorf("a row that can't be read is %+v", pr)
	}
	for name, do := range map[string]func() error{
		"read":   func() error { _, err := o.RefreshPullRequest(t.Context(), r, 5); return err },
		"merged": func() error { return o.RecordMerged(t.Context(), r, &forge.PullRequest{Number: 5}, &git.CommitInfo{}) },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: a row that can't be read is no error", name)
		}
	}
}
