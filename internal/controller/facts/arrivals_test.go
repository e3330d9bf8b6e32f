package facts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// TestRecordArrival writes down once what is in an environment, corrects by what it came, and breaks no
// soak where the same release came by another commit.
func TestRecordArrival(t *testing.T) {
	soak := promotion.Soak{Served: time.Hour}
	before := promotion.Arrival{Seq: 1, Release: "r", Commit: "b", By: promotion.ByPerson, Author: "Ada", At: time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC), VerifiedAt: time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC), Soak: soak}
	baseline := promotion.Arrival{Release: "a", Commit: "a", By: promotion.ByBaseline, At: before.At.Add(-time.Hour)}
	for name, c := range map[string]struct {
		landed  promotion.Landed
		release string
		history []promotion.Arrival
		want    promotion.Arrival // the newest, but for its place in the order
		adds    int
	}{
		"something new":              {promotion.Landed{Commit: "c", By: promotion.ByPromotion, Pull: 3}, "s", []promotion.Arrival{before, baseline}, promotion.Arrival{Release: "s", Name: "2.0", Commit: "c", By: promotion.ByPromotion, Pull: 3}, 1},
		"the first":                  {promotion.Landed{Commit: "c", By: promotion.ByBaseline}, "s", nil, promotion.Arrival{Release: "s", Name: "2.0", Commit: "c", By: promotion.ByBaseline}, 1},
		"the same by another commit": {promotion.Landed{Commit: "c", By: promotion.ByPerson, Author: "Bob"}, "r", []promotion.Arrival{before, baseline}, promotion.Arrival{Release: "r", Name: "2.0", Commit: "c", By: promotion.ByPerson, Author: "Bob", Soak: soak}, 1},
		"what is known":              {promotion.Landed{Commit: "b", By: promotion.ByPerson, Author: "Ada"}, "r", []promotion.Arrival{before, baseline}, before, 0},
		"known as another's":         {promotion.Landed{Commit: "b", By: promotion.ByPromotion, Pull: 3}, "r", []promotion.Arrival{before, baseline}, promotion.Arrival{Release: "r", Commit: "b", By: promotion.ByPromotion, Pull: 3, At: before.At, VerifiedAt: before.VerifiedAt, Soak: soak}, 0},
		"another release of it":      {promotion.Landed{Commit: "b", By: promotion.ByPerson, Author: "Ada"}, "s", []promotion.Arrival{before, baseline}, promotion.Arrival{Release: "s", Name: "2.0", Commit: "b", By: promotion.ByPerson, Author: "Ada"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
			comp := newRecordFixture().c
			env := &promotion.Env{Name: "qa", Release: promotion.Sure(promotion.Release{ID: c.release, Name: "2.0"}), Landed: promotion.Sure(c.landed), History: slices.Clone(c.history)}
			w.must(w.o.recordArrival(w.ctx(), comp, env))
			if len(env.History) != len(c.history)+c.adds {
				t.Fatalf("there are %d", len(env.History))
			}
			if c.want.At.IsZero() {
				c.want.At = comp.Facts.Now
			}
			c.want.Seq = env.History[0].Seq
			if diff := cmp.Diff(c.want, env.History[0]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			rows, err := w.store.Arrivals(w.ctx(), "hub:acme/fleet|shop|web")
			w.must(err)
			if written := len(rows) == 1 && rows[0].Release == c.release && rows[0].Commit == c.landed.Commit; written == (name == "what is known") {
				t.Errorf("written are %+v", rows)
			}
		})
	}
}

// TestIsUnexplained has pull requests read again, once for each commit, where what landed is by none of our
// merges and one of ours was open.
func TestIsUnexplained(t *testing.T) {
	pull := func(state forge.State, commit string) *pullRecord {
		return &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{State: state, MergeCommit: commit}}}
	}
	for name, c := range map[string]struct {
		pulls []*pullRecord
		want  bool
	}{
		"one is open":                   {[]*pullRecord{pull(forge.Merged, "b"), pull(forge.Open, "")}, true},
		"one is open, and others after": {[]*pullRecord{pull(forge.Open, ""), pull(forge.Closed, "")}, true},
		"none is":                       {[]*pullRecord{pull(forge.Merged, "b"), pull(forge.Closed, "")}, false},
		"it was merged as that":         {[]*pullRecord{pull(forge.Open, ""), pull(forge.Merged, "c")}, false},
		"an open one names the commit":  {[]*pullRecord{pull(forge.Open, "c")}, true},
		"there are none":                {nil, false},
	} {
		o := &Gatherer{explained: branch.NewCache[string, string](nil, "explained", 10)}
		memo := branch.OriginMemo{}
		memo.Origin.Commit = git.CommitInfo{SHA: "c"}
		for i, want := range []bool{c.want, false} {
			if got := o.isUnexplained("web|qa", memo, c.pulls); got != want {
				t.Errorf("%s, time %d: %t", name, i+1, got)
			}
		}
		if got := o.isUnexplained("web|prod", memo, c.pulls); got != c.want {
			t.Errorf("%s, elsewhere: %t", name, got)
		}
		if memo.Origin.Commit.SHA = "d"; o.isUnexplained("web|qa", memo, []*pullRecord{pull(forge.Open, "")}) != true {
			t.Errorf("%s: another commit needs no look", name)
		}
	}
}

// TestPastRelease finds the subject of a closed pull request of a component, in its commits or else
// in our signed mark. It fetches another account's push, and tries again for a while where a fetch
// may still succeed.
func TestPastRelease(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, branchName, head := openToQA(w)
	ev, _ := w.evaluate("web", false)
	at, is := ev.Components[0].Unit.Envs["qa"], w.o.Releases.ReleaseIDAt(w.repo, head, ev.Pipeline, ev.Components[0].Unit.Envs["qa"])
	signed := w.repo.Marks.Sign(w.repo.ID, branchName, landedHash, branch.Marker{Kind: promotion.KindPromotion, Release: release("a")})
	unsigned := branch.Marker{Kind: promotion.KindRevert, Release: release("a"), Of: n}.String()
	pushed, err := w.remote.Write(w.ctx(), git.CommitSpec{Parents: []string{head}, Base: head, Message: "Mine", When: w.now, Files: []git.FileWrite{{Path: overlayFile("web", "qa"), Content: []byte(overlayText("web", "9.9.9"))}}})
	w.must(err)
	w.remote.SetRef("refs/pull/99/head", pushed)
	there := *w.repo
	there.Mirror = w.openMirror()
	w.must(there.Mirror.FetchRef(w.ctx(), "refs/pull/99/head", pushed))
	isPushed := w.o.Releases.ReleaseIDAt(&there, pushed, ev.Pipeline, at)
	for name, c := range map[string]struct {
		pr     forge.PullRequest
		ref    promotion.BranchRef
		gone   bool          // the environment isn't there any more
		ago    time.Duration // since it was closed
		want   string
		unsure bool
	}{
		"its head is there":                    {pr: forge.PullRequest{Head: head, Body: signed}, want: is},
		"what landed is there":                 {pr: forge.PullRequest{Head: landedHash, MergeCommit: head, Body: signed}, want: is},
		"neither is, and we signed it":         {pr: forge.PullRequest{Head: landedHash, Body: signed}, want: release("a"), unsure: true},
		"neither is, long ago":                 {pr: forge.PullRequest{Head: landedHash, Body: signed}, ago: headComesWithin, want: release("a")},
		"neither is, and anybody says it":      {pr: forge.PullRequest{Head: landedHash, Body: unsigned}, unsure: true},
		"somebody pushed it, and it is gone":   {pr: forge.PullRequest{Head: landedHash, Ref: "refs/pull/98/head", Body: unsigned}, unsure: true},
		"somebody pushed it":                   {pr: forge.PullRequest{Head: pushed, Ref: "refs/pull/99/head", Body: unsigned}, want: isPushed},
		"its environment is gone":              {pr: forge.PullRequest{Head: head, Body: unsigned}, gone: true},
		"a revert, whose body says it in full": {pr: forge.PullRequest{Head: head, Body: unsigned}, ref: promotion.BranchRef{Revert: true, Short: release("a")[:12]}, want: release("a")},
		"a revert, whose body says another":    {pr: forge.PullRequest{Head: head, Body: unsigned}, ref: promotion.BranchRef{Revert: true, Short: release("b")[:12]}, want: release("b")[:12]},
	} {
		p := &pullRecord{Pull: stored.Pull{PR: c.pr}, ref: c.ref, row: store.Pull{ClosedAt: ev.Now.Add(-c.ago)}}
		p.PR.Branch = branchName
		where := at
		if c.gone {
			where = nil
		}
		if got := w.o.pastRelease(w.ctx(), ev, where, p); got != c.want || p.unsure != c.unsure {
			t.Errorf("%s: %q, unsure %t; want %q, %t", name, got, p.unsure, c.want, c.unsure)
		}
	}
}

// TestIncidentsWithoutARecord lists what is unhealthy around a degraded target also where nothing is known
// from before, and nothing where the component's own targets are well.
func TestIncidentsWithoutARecord(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	w.becomes("api-qa", func(app *verification.App) { app.Health = "Degraded" })
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	for name, change := range map[string]func(t *promotion.Target){
		"degraded":              func(t *promotion.Target) { t.Verdict.State = verification.Degraded },
		"not healthy":           func(t *promotion.Target) { t.NotHealthy = true },
		"something below it is": func(t *promotion.Target) { t.Unhealthy = promotion.Sure([]verification.Resource{{Kind: "Pod"}}) },
	} {
		qa := c.Env("qa")
		was := qa.Targets[0]
		change(&qa.Targets[0])
		list, err := w.o.Live.GatherIncidents(w.ctx(), &c.ComponentBasis, nil)
		if err != nil || len(list) != 1 || list[0].Target != "api-qa" {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		qa.Targets[0] = was
	}
	if list, err := w.o.Live.GatherIncidents(w.ctx(), &c.ComponentBasis, nil); err != nil || list != nil {
		t.Errorf("it is well: %+v, %v", list, err)
	}
}

// TestCommitChecksAreRemembered reads the checks on a commit again after an interval, or where news
// came since. It keeps the reason why they can't be read only where that isn't this run's alone.
func TestCommitChecksAreRemembered(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	commit := w.head("main")
	began := w.now
	read := func(ctx context.Context, notBefore time.Time, fresh bool) (people.CommitChecks, error) {
		return w.o.Reviews.ReadCommitChecks(ctx, w.repo, commit, notBefore, time.Minute, fresh)
	}
	over, cancel := context.WithCancel(w.ctx())
	cancel()
	forbidden := &forge.Error{Op: "read", Kind: forge.ErrForbidden, Message: "no"}
	w.fails["checks"] = forbidden
	if _, err := read(over, began, false); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("of a run that is over: %v", err)
	}
	w.fails["checks"] = &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	if _, err := read(w.ctx(), began, false); !forge.IsRetryable(err) {
		t.Errorf("for a reason that passes: %v", err)
	}
	w.fails["checks"] = forbidden
	if got, err := read(w.ctx(), began, false); err != nil || !strings.Contains(got.Why, "no") || !got.At.Equal(began) {
		t.Errorf("where they can't be read: %+v, %v", got, err)
	}
	delete(w.fails, "checks")
	w.now = began.Add(time.Minute - time.Second)
	if got, err := read(w.ctx(), began, false); err != nil || got.Why == "" {
		t.Errorf("within the interval: %+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		notBefore time.Time
		fresh     bool
		after     time.Duration
	}{"something was heard": {began.Add(time.Second), false, time.Minute - time.Second}, "before a merge": {began, true, time.Minute - time.Second}, "after the interval": {began, false, time.Minute}} {
		w.now, w.fails["checks"] = began, forbidden
		_, err := read(w.ctx(), began, true)
		w.must(err)
		delete(w.fails, "checks")
		w.now = began.Add(c.after)
		if got, err := read(w.ctx(), c.notBefore, c.fresh); err != nil || got.Why != "" || !got.At.Equal(w.now) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
