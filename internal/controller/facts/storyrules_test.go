package facts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// inTx does something in a transaction, as failUntilDone wants it.
func (sto *story) inTx(do func(ctx context.Context, tx *store.Tx) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return sto.store.Tx(ctx, "test", func(tx *store.Tx) error { return do(ctx, tx) })
	}
}

// TestUpdateTurn follows whose turn it is to be brought up to date where the forge demands that,
// and what becomes of that.
func TestUpdateTurn(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web", "api")
	w.must(w.forge.Protect(storyRepo, "main", memoryforge.Protection{Strict: true, Approvals: 1, DismissStale: true, Contexts: []string{"ci/lint"}}))
	n, branch, head := openToQA(w)
	w.soak("api")
	ev, d := w.evaluate("api", false)
	other := w.openPromotion(ev, d)
	look := func(step string) *OpenPull {
		t.Helper()
		w.wait(time.Second)
		w.refreshPull(n)
		ev, _ := w.lookAt("web", step)
		return ev.OpenPulls[n]
	}
	w.commit("linus", "Docs", map[string]string{"docs": "x"})
	if p := look("it is behind"); p.Mergeable != promotion.MergeBehind || p.HasTurn || p.UpdatedFirst != 0 || p.SentUpdate != nil || p.UpdatedFrom != "" || len(p.Rules.Unmet) != 1 {
		t.Errorf("it is %+v", p)
	}
	w.failUntilDone("take the turn", nil, func(ctx context.Context) error {
		return w.o.PullCache.TakeUpdateTurn(ctx, w.store, w.repo, "main", n)
	})
	if p := look("its turn"); !p.HasTurn || p.SentUpdate != nil || p.UpdatedFirst != 0 {
		t.Errorf("with its turn it is %+v", p)
	}
	sent := w.now
	w.must(w.o.PullCache.RecordUpdateSent(w.ctx(), w.store, w.repo, "main", n, head))
	want := promotion.SentUpdate{At: sent, Tries: 1}
	if p := look("the forge was sent"); !p.HasTurn || p.SentUpdate == nil || *p.SentUpdate != want || p.UpdatedFrom != "" {
		t.Errorf("when the forge was sent it is %+v", p)
	}
	w.must(w.o.PullCache.TakeUpdateTurn(w.ctx(), w.store, w.repo, "main", n))
	if p := look("it keeps what was sent"); p.SentUpdate == nil || *p.SentUpdate != want {
		t.Errorf("with its turn again it is %+v", p)
	}
	sent = w.now
	w.must(w.o.PullCache.RecordUpdateSent(w.ctx(), w.store, w.repo, "main", n, head))
	want = promotion.SentUpdate{At: sent, Tries: 2}
	if p := look("the forge was sent again"); p.SentUpdate == nil || *p.SentUpdate != want {
		t.Errorf("when the forge was sent again it is %+v", p)
	}
	up := w.bringUpToDate(n, branch, head, nil)
	if p := look("it is up to date"); p.Head != up || !p.HasTurn || p.SentUpdate != nil || p.UpdatedFrom != head {
		t.Errorf("brought up to date it is %+v", p)
	}
	w.must(w.o.PullCache.RecordUpdateSent(w.ctx(), w.store, w.repo, "main", n, up))
	if p := look("its new head"); p.SentUpdate == nil || p.SentUpdate.Tries != 1 || p.UpdatedFrom != "" {
		t.Errorf("when the forge was sent with another head it is %+v", p)
	}

	release := func(number int) {
		t.Helper()
		w.failUntilDone("release the turn", nil, w.inTx(func(ctx context.Context, tx *store.Tx) error {
			return ReleaseUpdateTurn(ctx, tx, w.repo.ID, "main", number)
		}))
	}
	release(other)
	if p := look("another has no turn to give back"); !p.HasTurn {
		t.Errorf("another gave its turn back: %+v", p)
	}
	w.must(w.o.PullCache.TakeUpdateTurn(w.ctx(), w.store, w.repo, "main", other))
	began := w.now
	if p := look("another's turn"); p.HasTurn || p.SentUpdate != nil || p.UpdatedFirst != other {
		t.Errorf("while it is another's turn it is %+v", p)
	}
	w.must(w.o.PullCache.TakeUpdateTurn(w.ctx(), w.store, w.repo, "other", n))
	if p := look("a turn on another branch"); p.HasTurn || p.UpdatedFirst != other {
		t.Errorf("with a turn on another branch it is %+v", p)
	}
	w.now = began.Add(maxUpdateTurn - time.Second) // look waits for one
	if p := look("for an hour"); p.UpdatedFirst != other {
		t.Errorf("just an hour later it is %+v", p)
	}
	if p := look("and no longer"); p.UpdatedFirst != 0 {
		t.Errorf("more than an hour later it is %+v", p)
	}
	w.must(w.o.PullCache.TakeUpdateTurn(w.ctx(), w.store, w.repo, "main", other))
	w.must(w.forge.Close(storyRepo, other, "grace"))
	w.refreshPull(other)
	if p := look("another's turn that was closed"); p.UpdatedFirst != 0 {
		t.Errorf("while it is a closed one's turn it is %+v", p)
	}
	release(other)
	if _, held, err := w.store.Record(w.ctx(), updateTurns.Key(record.OfBranch(w.repo.ID, "main"))); held || err != nil {
		t.Errorf("it is somebody's turn still: %v", err)
	}
	release(other)
	for _, raw := range []string{"[", "{}", ""} {
		w.must(w.store.PutRecord(w.ctx(), updateTurns.Key(record.OfBranch(w.repo.ID, "main")), []byte(raw)))
		if p := look("a turn that can't be understood"); p.HasTurn || p.UpdatedFirst != 0 {
			t.Errorf("with the turn %q it is %+v", raw, p)
		}
	}
	w.end()
}

// TestMissingSignatures says of environments that the forge merges nothing into their branch
// that isn't signed, where Liftlock's commits aren't.
func TestMissingSignatures(t *testing.T) {
	signed := func(change func(*forge.RuleSet)) []forge.RuleSet {
		set := forge.RuleSet{Name: "ruleset \"main\"", Signatures: true}
		change(&set)
		return []forge.RuleSet{{Name: "settings"}, set}
	}
	none := func(*forge.RuleSet) {}
	const missing = `the forge merges only signed commits into main (ruleset "main"), and they aren't signed`
	for name, c := range map[string]struct {
		sets     []forge.RuleSet
		unsigned string
		spec     string
		err      error
		want     string
	}{
		"demanded":                  {sets: signed(none), unsigned: "they aren't signed", want: missing},
		"they are signed":           {sets: signed(none)},
		"not demanded":              {sets: signed(func(s *forge.RuleSet) { s.Signatures = false }), unsigned: "they aren't signed"},
		"bypassed":                  {sets: signed(func(s *forge.RuleSet) { s.Bypassed = true }), unsigned: "they aren't signed"},
		"maybe bypassed":            {sets: signed(func(s *forge.RuleSet) { s.MaybeBypassed = true }), unsigned: "they aren't signed"},
		"nothing is merged":         {sets: signed(none), unsigned: "they aren't signed", spec: "  mode: observe\n"},
		"the rules can't be read":   {sets: signed(none), unsigned: "they aren't signed", err: &forge.Error{Op: "read", Kind: forge.ErrForbidden}},
		"they can't be read by now": {sets: signed(none), unsigned: "they aren't signed", err: &forge.Error{Op: "read", Kind: forge.ErrRetryable}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, c.spec+twoEnvs, []string{"dev", "qa"}, "web", "api")
			w.rules, w.repo.Unsigned = &forge.BranchRules{Sets: c.sets}, c.unsigned
			if c.err != nil {
				w.fails["rules"] = c.err
			}
			ev, _ := w.evaluate("web", false)
			for _, env := range ev.Components[0].Facts.Envs {
				want := c.want
				if env.Name == "dev" { // nothing is promoted into it
					want = ""
				}
				if env.MissingSignatures != want {
					t.Errorf("of %s is said %q, want %q", env.Name, env.MissingSignatures, want)
				}
			}
			if c.want != "" {
				w.failEach("web", name)
			}
		})
	}
}

// TestBranchRulesAreRemembered reads what the forge demands of a branch again after some time, and
// sooner where it couldn't be read.
func TestBranchRulesAreRemembered(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	one, two := &forge.BranchRules{Sets: []forge.RuleSet{{Name: "one"}}}, &forge.BranchRules{Sets: []forge.RuleSet{{Name: "two"}}}
	read := func() *readRules {
		t.Helper()
		known, err := w.o.Rules.branchRules(w.ctx(), w.repo, "main")
		w.must(err)
		return known
	}
	w.rules = one
	w.failUntilDone("read", nil, func(ctx context.Context) error {
		known, err := w.o.Rules.branchRules(ctx, w.repo, "main")
		if err == nil && known.cause != nil { // which is tried again, and is no error
			return known.cause
		}
		return err
	})
	began := w.now
	w.rules = two
	w.now = began.Add(rulesMaxAge - time.Second)
	if known := read(); known.Rules.Sets[0].Name != "one" || !known.At.Equal(began) {
		t.Errorf("within an hour they are %+v", known)
	}
	w.now = began.Add(rulesMaxAge)
	if known := read(); known.Rules.Sets[0].Name != "two" || !known.since.IsZero() {
		t.Errorf("after an hour they are %+v", known)
	}

	forbidden := &forge.Error{Op: "read", Kind: forge.ErrForbidden, Message: "no"}
	w.fails["rules"] = forbidden
	w.wait(rulesMaxAge)
	since := w.now
	if known := read(); known.Rules != nil || !strings.Contains(known.Err, "no") || !known.since.Equal(since) || !known.retry.IsZero() || known.cause != nil {
		t.Errorf("when they can't be read they are %+v", known)
	}
	delete(w.fails, "rules")
	w.now = since.Add(unreadRulesMaxAge - time.Second)
	if known := read(); known.Rules != nil || !known.since.Equal(since) {
		t.Errorf("soon after they are %+v", known)
	}
	w.now = since.Add(unreadRulesMaxAge)
	if known := read(); known.Rules == nil || known.Rules.Sets[0].Name != "two" || !known.since.IsZero() {
		t.Errorf("some minutes after they are %+v", known)
	}

	w.wait(rulesMaxAge)
	since = w.now
	until := since.Add(5 * time.Minute)
	w.fails["rules"] = &forge.Error{Op: "read", Kind: forge.ErrRateLimited, RetryAfter: until}
	if known := read(); known.Rules != nil || !known.retry.Equal(until) || !errors.Is(known.cause, forge.ErrRateLimited) || !known.since.Equal(since) {
		t.Errorf("when it isn't our turn they are %+v", known)
	}
	w.fails["rules"] = &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	w.wait(time.Second)
	if known := read(); known.Rules != nil || !known.retry.Equal(w.now.Add(unreadRulesRetry)) || !known.since.Equal(since) {
		t.Errorf("when they can't be read by now they are %+v", known)
	}
	delete(w.fails, "rules")
	if known := read(); known.Rules == nil {
		t.Errorf("that they couldn't be read is remembered: %+v", known)
	}

	if _, queued, err := w.store.Record(w.ctx(), MergesByQueue.Key(record.Repository(w.repo.ID))); queued || err != nil {
		t.Errorf("merges go through a queue: %v", err)
	}
	w.rules = &forge.BranchRules{Sets: []forge.RuleSet{{Name: "one"}, {Name: "queue", Queue: &forge.QueueRule{}}}}
	p := &OpenPull{PR: &forge.PullRequest{Base: "main"}, judgedBy: &readRules{Rules: two}}
	w.failUntilDone("changed", nil, func(ctx context.Context) error {
		changed, err := w.o.Rules.RulesChanged(ctx, w.repo, p)
		if changed == (err != nil) {
			t.Errorf("other rules are a change: %t, %v", changed, err)
		}
		return err
	})
	if _, queued, err := w.store.Record(w.ctx(), MergesByQueue.Key(record.Repository(w.repo.ID))); !queued || err != nil {
		t.Errorf("merges don't go through a queue: %v", err)
	}
	p.judgedBy = read()
	if changed, err := w.o.Rules.RulesChanged(w.ctx(), w.repo, p); changed || err != nil {
		t.Errorf("the same rules are a change: %v", err)
	}
	if diff := cmp.Diff(w.rules, p.judgedBy.Rules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.judgedBy = nil
	if changed, err := w.o.Rules.RulesChanged(w.ctx(), w.repo, p); !changed || err != nil {
		t.Errorf("rules that nothing was judged by are no change: %v", err)
	}
}
