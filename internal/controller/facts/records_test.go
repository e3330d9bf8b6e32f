package facts

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

// recordFixture is qa of web, of whose pull requests records are made.
type recordFixture struct {
	c   *ComponentEvaluation
	env *promotion.Env
	now time.Time
}

func newRecordFixture() *recordFixture {
	f := &recordFixture{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	u := promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}
	repo := &branch.Repository{ID: u.Repo, BotLogin: storyBot, BotID: 1}
	f.c = componentOf(&Evaluation{Basis: branch.Basis{Unit: u, Snapshot: &branch.Snapshot{Repo: repo}, Pipeline: &branch.ResolvedPipeline{}}, pulls: pullIndex{"web": {"qa": nil}}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Now: f.now, Unit: u, Envs: []promotion.Env{{Name: "qa"}}}})
	f.env = &f.c.Facts.Envs[0]
	return f
}

// release is the full identity of a release.
func release(digit string) string { return strings.Repeat(digit, 64) }

// TestMergedState holds how what was merged has gone on.
func TestMergedState(t *testing.T) {
	promoted := store.Promotion{Kind: promotion.KindPromotion, Release: release("a")}
	merged := func(number int, id string, revert bool) promotion.PastPull {
		return promotion.PastPull{Number: number, Release: id, Revert: revert, Merged: true}
	}
	landed := func(commit string, pull int) promotion.Known[promotion.Landed] {
		return promotion.Sure(promotion.Landed{Commit: commit, Pull: pull})
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	is := promotion.Sure(promotion.Release{ID: release("a")})
	for name, c := range map[string]struct {
		env  promotion.Env
		now  store.Promotion
		was  string
		want string
	}{
		"nothing else is known":               {promotion.Env{}, promoted, "", recordMerged},
		"another one landed since":            {promotion.Env{Landed: landed("c", 9), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at}}}, promoted, "", recordMerged},
		"what landed can't be read":           {promotion.Env{Landed: promotion.Known[promotion.Landed]{Value: promotion.Landed{Commit: "c", Pull: 3}}, Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at}}}, promoted, "", recordMerged},
		"it was verified, and then replaced":  {promotion.Env{Landed: landed("c", 9)}, promoted, promotion.Verified, promotion.Verified},
		"it was degraded, and then replaced":  {promotion.Env{Landed: landed("c", 9)}, promoted, promotion.Degraded, promotion.Degraded},
		"it was being reverted, and isn't":    {promotion.Env{Landed: landed("c", 9)}, promoted, promotion.Reverting, recordMerged},
		"it is being verified":                {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a")}}}, promoted, promotion.Verified, recordMerged},
		"it is verified":                      {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at}}}, promoted, "", promotion.Verified},
		"it is degraded":                      {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at, DegradedAt: at.Add(time.Second)}}}, promoted, "", promotion.Degraded},
		"it is well again":                    {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at.Add(time.Second), DegradedAt: at}}}, promoted, "", promotion.Verified},
		"another arrival is verified":         {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "b", Release: release("a"), VerifiedAt: at}}}, promoted, "", recordMerged},
		"its commit had another release once": {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("b"), VerifiedAt: at}}}, promoted, "", recordMerged},
		"its revert is open":                  {promotion.Env{Revert: &promotion.Pull{Number: 5, Release: release("a")}, PastPulls: []promotion.PastPull{merged(3, release("a"), false)}}, promoted, promotion.Verified, promotion.Reverting},
		"the revert of another is open":       {promotion.Env{Revert: &promotion.Pull{Number: 5, Release: release("b")}, PastPulls: []promotion.PastPull{merged(3, release("a"), false), merged(4, release("b"), false)}}, promoted, promotion.Verified, promotion.Verified},
		"its revert was merged":               {promotion.Env{PastPulls: []promotion.PastPull{merged(5, release("a")[:12], true), merged(3, release("a"), false)}}, promoted, promotion.Verified, promotion.Reverted},
		"its revert was closed":               {promotion.Env{PastPulls: []promotion.PastPull{{Number: 5, Release: release("a"), Revert: true}, merged(3, release("a"), false)}}, promoted, promotion.Verified, promotion.Verified},
		"the revert of another was merged":    {promotion.Env{PastPulls: []promotion.PastPull{merged(5, release("b"), true), merged(4, release("b"), false), merged(3, release("a"), false)}}, promoted, promotion.Verified, promotion.Verified},
		"a promotion is no revert of itself":  {promotion.Env{PastPulls: []promotion.PastPull{merged(5, release("a"), false), merged(3, release("a"), false)}}, promoted, promotion.Verified, promotion.Verified},
		"its release isn't known":             {promotion.Env{Revert: &promotion.Pull{Number: 5, Release: release("a")}, PastPulls: []promotion.PastPull{merged(3, release("a"), false)}}, store.Promotion{Kind: promotion.KindPromotion}, "", recordMerged},
		"a revert is never taken back":        {promotion.Env{Revert: &promotion.Pull{Number: 5, Release: release("a")}, PastPulls: []promotion.PastPull{merged(3, release("a"), false)}}, store.Promotion{Kind: promotion.KindRevert, Release: release("a")}, "", recordMerged},
		"a revert landed, and is verified":    {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "c", Release: release("a"), VerifiedAt: at}}}, store.Promotion{Kind: promotion.KindRevert, Release: release("b")}, "", promotion.Verified},
		"it is one of several, and not first": {promotion.Env{Landed: landed("c", 3), Release: is, History: []promotion.Arrival{{Commit: "d", Release: release("c"), DegradedAt: at}, {Commit: "c", Release: release("a"), VerifiedAt: at}}}, promoted, "", promotion.Verified},
	} {
		if got := mergedState(&c.env, 3, c.now, c.was); got != c.want {
			t.Errorf("%s: it is %q, want %q", name, got, c.want)
		}
	}
}

// TestFindRevertedPull holds which promotion a revert is of: the last with its release that was
// merged before it.
func TestFindRevertedPull(t *testing.T) {
	past := []promotion.PastPull{
		{Number: 9, Release: release("a"), Merged: true},
		{Number: 7, Release: release("a"), Merged: true},
		{Number: 6, Release: release("a")}, // closed
		{Number: 5, Release: release("b"), Merged: true},
		{Number: 4, Release: release("b"), Revert: true, Merged: true},
		{Number: 3, Release: release("a"), Merged: true},
		{Number: 2, Merged: true}, // its members aren't known
	}
	for name, c := range map[string]struct {
		revert  int
		release string
		want    int
	}{
		"the last before it":              {8, release("a"), 7},
		"by the short form":               {8, release("a")[:12], 7},
		"not itself":                      {7, release("a"), 3},
		"not one that was closed":         {7, release("a"), 3},
		"not a revert":                    {5, release("b"), 0},
		"another release":                 {8, release("b"), 5},
		"all after it":                    {3, release("a"), 0},
		"a release that nobody moved":     {8, release("c"), 0},
		"an unknown release is of no one": {8, "", 0},
	} {
		if got := findRevertedPull(&promotion.Env{PastPulls: past}, c.revert, c.release); got != c.want {
			t.Errorf("%s: it takes back #%d, want #%d", name, got, c.want)
		}
		slices.Reverse(past) // the order says nothing
	}
}

// TestBuildRecord holds what the store is to say of a pull request of ours.
func TestBuildRecord(t *testing.T) {
	const ours, revert = "liftlock/shop/qa/web", "liftlock-revert/shop/qa/web/aaaaaaaaaaaa"
	created, closed := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		pr      forge.PullRequest
		env     promotion.Env
		was     store.Promotion
		kind    string
		state   string
		release string
		atClose bool // it is dated when it was closed, and not now
	}{
		"open":                       {pr: forge.PullRequest{Branch: ours, State: forge.Open}, env: promotion.Env{Open: &promotion.Pull{Number: 3, Release: release("a")}}, kind: promotion.KindPromotion, state: promotion.Opened, release: release("a")},
		"an open revert":             {pr: forge.PullRequest{Branch: revert, State: forge.Open}, env: promotion.Env{Revert: &promotion.Pull{Number: 3, Release: release("a")}}, kind: promotion.KindRevert, state: promotion.Opened, release: release("a")},
		"another one is open":        {pr: forge.PullRequest{Branch: ours, State: forge.Open}, env: promotion.Env{Open: &promotion.Pull{Number: 4, Release: release("a")}}, kind: promotion.KindPromotion, state: promotion.Opened},
		"merged":                     {pr: forge.PullRequest{Branch: ours, State: forge.Merged, ClosedAt: closed}, env: promotion.Env{PastPulls: []promotion.PastPull{{Number: 4, Release: release("b")}, {Number: 3, Release: release("a")}}}, kind: promotion.KindPromotion, state: recordMerged, release: release("a"), atClose: true},
		"merged, which is on record": {pr: forge.PullRequest{Branch: ours, State: forge.Merged, ClosedAt: closed}, was: store.Promotion{State: promotion.Verified}, kind: promotion.KindPromotion, state: promotion.Verified},
		"closed by a person":         {pr: forge.PullRequest{Branch: ours, State: forge.Closed, ClosedAt: closed}, kind: promotion.KindPromotion, state: promotion.Closed, atClose: true},
		"closed by us":               {pr: forge.PullRequest{Branch: ours, State: forge.Closed, ClosedAt: closed, Labels: []string{promotion.LabelSuperseded}}, env: promotion.Env{PastPulls: []promotion.PastPull{{Number: 3, Superseded: true}}}, was: store.Promotion{State: promotion.Opened}, kind: promotion.KindPromotion, state: recordSuperseded},
		"closed by us, as we wrote":  {pr: forge.PullRequest{Branch: ours, State: forge.Closed, ClosedAt: closed}, was: store.Promotion{State: recordSuperseded}, kind: promotion.KindPromotion, state: recordSuperseded},
		"labelled by somebody":       {pr: forge.PullRequest{Branch: ours, State: forge.Closed, ClosedAt: closed, Labels: []string{promotion.LabelSuperseded}}, was: store.Promotion{State: promotion.Opened}, kind: promotion.KindPromotion, state: promotion.Closed},
		"merged into another branch": {pr: forge.PullRequest{Branch: ours, State: forge.Merged, ClosedAt: closed}, env: promotion.Env{PastPulls: []promotion.PastPull{{Number: 3, Release: release("a"), Superseded: true}}}, was: store.Promotion{State: promotion.Opened}, kind: promotion.KindPromotion, state: recordSuperseded, release: release("a")},
		"a revert, merged into another branch": {pr: forge.PullRequest{Branch: revert, State: forge.Merged, ClosedAt: closed}, env: promotion.Env{PastPulls: []promotion.PastPull{{Number: 3, Revert: true, Release: release("a"), OnOtherBranch: true}}}, was: store.Promotion{State: promotion.Opened}, kind: promotion.KindRevert, state: promotion.Closed,
			release: release("a")},
		"its release isn't known any more": {pr: forge.PullRequest{Branch: ours, State: forge.Closed, ClosedAt: closed}, was: store.Promotion{State: promotion.Closed, Release: release("a")}, kind: promotion.KindPromotion, state: promotion.Closed,
			release: release("a")},
		"its release is known only in short": {pr: forge.PullRequest{Branch: ours, State: forge.Open}, env: promotion.Env{Open: &promotion.Pull{Number: 3, Release: release("a")[:12]}}, was: store.Promotion{State: promotion.Opened, Release: release("a")}, kind: promotion.KindPromotion, state: promotion.Opened,
			release: release("a")},
		"another release replaced it": {pr: forge.PullRequest{Branch: ours, State: forge.Open}, env: promotion.Env{Open: &promotion.Pull{Number: 3, Release: release("b")}}, was: store.Promotion{State: promotion.Opened, Release: release("a")}, kind: promotion.KindPromotion, state: promotion.Opened,
			release: release("b")},
	} {
		f := newRecordFixture()
		c.pr.Number, c.pr.CreatedAt, c.env.Name, c.was.Data = 3, created, "qa", []byte("kept")
		want := store.Promotion{Unit: "hub:acme/fleet|shop|web", Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web", Environment: "qa", Kind: c.kind, Pull: 3, Release: c.release, State: c.state,
			CreatedAt: created, UpdatedAt: f.now, Data: []byte("kept")}
		if c.atClose {
			want.UpdatedAt = closed
		}
		if diff := cmp.Diff(want, f.c.buildRecord(&c.env, &c.pr, c.was)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestRecordEvents holds what of a pull request's life is told, and that each has a key by which
// it is told once.
func TestRecordEvents(t *testing.T) {
	f := newRecordFixture()
	u := f.c.Facts.Unit
	at := func(hour int) time.Time { return time.Date(2026, 5, 1, hour, 0, 0, 0, time.UTC) }
	pr := forge.PullRequest{Number: 3, Title: "Promote web", Base: "main", Head: "head", CreatedAt: at(9), MergedAt: at(10), ClosedAt: at(11), MergeCommit: release("c")[:40]}
	type shown struct {
		Kind, Message, Key string
		At                 time.Time
	}
	opened, reverting := shown{"opened", "#3 opened: Promote web", OpenedEventKey(u, 3), at(9)}, shown{"revert-opened", "#3 opened: Promote web", OpenedEventKey(u, 3), at(9)}
	for name, c := range map[string]struct {
		state forge.State
		kind  string
		want  []shown
	}{
		"open":            {forge.Open, promotion.KindPromotion, []shown{opened}},
		"an open revert":  {forge.Open, promotion.KindRevert, []shown{reverting}},
		"merged":          {forge.Merged, promotion.KindPromotion, []shown{opened, {"merged", "#3 merged into main as cccccccccccc", MergedEventKey(u, 3), at(10)}}},
		"closed":          {forge.Closed, promotion.KindPromotion, []shown{opened, {"closed", "#3 closed without a merge", ClosedEventKey(u, 3, "head"), at(11)}}},
		"a closed revert": {forge.Closed, promotion.KindRevert, []shown{reverting, {"closed", "#3 closed without a merge", ClosedEventKey(u, 3, "head"), at(11)}}},
	} {
		pr.State = c.state
		var got []shown
		for _, e := range f.c.recordEvents(f.env, &pr, store.Promotion{Kind: c.kind}) {
			got = append(got, shown{string(e.Kind), e.Message, e.IdempotencyKey, e.At})
			if e.Repo != u.Repo || e.Pipeline != u.Pipeline || e.Component != u.Component || e.Environment != "qa" || e.Pull != 3 {
				t.Errorf("%s: %+v is of another pull request", name, e)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	keys := map[string]bool{}
	for _, key := range []string{OpenedEventKey(u, 3), OpenedEventKey(u, 4), MergedEventKey(u, 3), ClosedEventKey(u, 3, "head"), ClosedEventKey(u, 3, "another")} {
		if keys[key] {
			t.Errorf("two events have the key %s", key)
		}
		keys[key] = true
	}
}

// TestSupersededRecords closes the record of a pull request of several that a component left.
func TestSupersededRecords(t *testing.T) {
	known := map[int]store.Promotion{3: {Pull: 3, Kind: promotion.KindPromotion, State: promotion.Opened}}
	for name, c := range map[string]struct {
		batch *promotion.Pull
		was   store.Promotion
		want  bool
	}{
		"it left":                        {&promotion.Pull{Number: 3}, known[3], true},
		"there is none of several":       {nil, known[3], false},
		"it left another":                {&promotion.Pull{Number: 4}, known[3], false},
		"who is in it can't be told":     {&promotion.Pull{Number: 3, HeadState: promotion.HeadModified}, known[3], false},
		"it was merged":                  {&promotion.Pull{Number: 3}, store.Promotion{Pull: 3, Kind: promotion.KindPromotion, State: recordMerged}, false},
		"a revert is nobody's successor": {&promotion.Pull{Number: 3}, store.Promotion{Pull: 3, Kind: promotion.KindRevert, State: promotion.Opened}, false},
	} {
		f := newRecordFixture()
		f.env.BatchPull = c.batch
		got := f.c.supersededRecords(map[int]store.Promotion{3: c.was})
		if (len(got) == 1) != c.want || c.want && (got[0].State != recordSuperseded || !got[0].UpdatedAt.Equal(f.now) || got[0].Pull != 3) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// knownPromotions is a store that has records of one unit.
type knownPromotions struct {
	recordStore
	rows []store.Promotion
}

func (k knownPromotions) Promotions(_ context.Context, f store.PromotionFilter) ([]store.Promotion, error) {
	return slices.DeleteFunc(slices.Clone(k.rows), func(p store.Promotion) bool { return !slices.Contains(f.Pulls, p.Pull) }), nil
}

// TestRecordsOfTheUnit gives the records that differ from what the store has, and no other, in
// their order.
func TestRecordsOfTheUnit(t *testing.T) {
	f := newRecordFixture()
	pull := func(number int, author string, state forge.State) *pullRecord {
		return &pullRecord{Pull: stored.Pull{PR: forge.PullRequest{Number: number, Author: author, AuthorID: map[string]int64{storyBot: 1}[author], Branch: "liftlock/shop/qa/web", State: state}}}
	}
	// 9 is new, 8 is another account's and 7 is as the store has it. 6 was closed meanwhile, 4 of
	// long ago was reverted by 5, and the store never knew 3.
	f.c.Evaluation.pulls["web"]["qa"] = []*pullRecord{pull(9, storyBot, forge.Open), pull(8, "mallory", forge.Open), pull(7, storyBot, forge.Closed), pull(6, storyBot, forge.Closed)}
	f.env.PastPulls = []promotion.PastPull{{Number: 5, Release: release("a"), Revert: true, Merged: true}, {Number: 4, Release: release("a"), Merged: true}, {Number: 3, Release: release("b"), Merged: true}}
	f.env.BatchPull = &promotion.Pull{Number: 2}
	o := &recordGatherer{store: knownPromotions{rows: []store.Promotion{
		{Pull: 7, Kind: promotion.KindPromotion, State: promotion.Closed}, {Pull: 6, Kind: promotion.KindPromotion, State: promotion.Opened}, {Pull: 5, Kind: promotion.KindRevert, State: recordMerged},
		{Pull: 4, Kind: promotion.KindPromotion, State: promotion.Verified, Release: release("a")}, {Pull: 2, Kind: promotion.KindPromotion, State: promotion.Opened}}}}
	rows, events, err := o.ListChanged(t.Context(), f.c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join([]string{string(rune('0' + r.Pull)), r.State}, " "))
		if !r.UpdatedAt.Equal(f.now) {
			t.Errorf("#%d is as of %s", r.Pull, r.UpdatedAt)
		}
	}
	if want := []string{"2 superseded", "4 reverted", "6 closed", "9 open"}; !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}
	var keys []string
	for _, e := range events {
		keys = append(keys, e.IdempotencyKey)
	}
	u := f.c.Facts.Unit
	if want := []string{OpenedEventKey(u, 9), OpenedEventKey(u, 6), ClosedEventKey(u, 6, "")}; !slices.Equal(keys, want) {
		t.Errorf("the events are %q, want %q", keys, want)
	}
}
