package facts

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestStoreWritesComeToTheirEnd has each call of what is written down about pull requests fail, and
// then holds which keys the store has.
func TestStoreWritesComeToTheirEnd(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	const repo = "hub:acme/fleet"
	const event = "event 2"
	later := w.now.Add(time.Minute)
	metric := MetricRecord{about: record.InPull{Pull: record.OfPull(repo, 7), Name: "m"}, sample: policies.MetricSample{At: w.now, Values: []float64{1}}}
	answered := EndpointRecord{state: endpointState{ID: "e", Endpoint: "changes", Unit: "unit:web"}, pull: record.OfPull(repo, 7),
		answer: policies.EndpointAnswer{ID: "e", At: w.now, Outcome: policies.Wait, Reason: "soon"}, nextAt: later}
	sample := metricSamples.Key(metric.about)
	answer, request := endpointStates.Key("e"), endpointRequests.Key(record.InPull{Pull: answered.pull, Name: "e"})
	requested := func(ctx context.Context, tx *store.Tx) error {
		return people.PutReviewRequests(ctx, tx, repo, promotion.RequestReviewers{Pull: 7, Release: "r", Reviewers: policies.Reviewers{Users: []string{"ada", "zed"}}}, []forge.RefusedReviewer{{Name: "zed", Reason: "who?"}})
	}
	count := 3
	read := CommentsRead{Count: &count, Until: w.now, UpdatedAt: w.now}
	for _, step := range []struct {
		name  string
		write func(ctx context.Context, tx *store.Tx) error
		want  []store.RecordKey // that are there then
	}{
		{"a sample", metric.Store, []store.RecordKey{sample}},
		{"an answer", answered.Store, []store.RecordKey{answer, request, sample}},
		{"a request", requested, []store.RecordKey{answer, request, sample, people.ReviewRequestRecords.Key(record.OfPull(repo, 7))}},
		{"the queue", func(ctx context.Context, tx *store.Tx) error {
			return PutJoinedQueue(ctx, tx, promotion.Unit{Repo: repo, Pipeline: "shop"}, 7, "h", false, w.now)
		},
			[]store.RecordKey{answer, request, joinedQueues.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), sample, people.ReviewRequestRecords.Key(record.OfPull(repo, 7))}},
		{"who was refused", func(ctx context.Context, tx *store.Tx) error { return people.ForgetRefusedReviewers(ctx, tx, repo, 7) },
			[]store.RecordKey{answer, request, joinedQueues.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), sample, people.ReviewRequestRecords.Key(record.OfPull(repo, 7))}},
		{"another's gates", func(ctx context.Context, tx *store.Tx) error { return ForgetSettled(ctx, tx, repo, 70) },
			[]store.RecordKey{answer, request, joinedQueues.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), sample, people.ReviewRequestRecords.Key(record.OfPull(repo, 7))}},
		{"its gates", func(ctx context.Context, tx *store.Tx) error { return ForgetSettled(ctx, tx, repo, 7) }, []store.RecordKey{MergesByQueue.Key(record.Repository(repo))}},
		{"comments", func(ctx context.Context, tx *store.Tx) error { return read.Store(ctx, tx, repo, 7) }, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo))}},
		{"a comment of ours", func(ctx context.Context, tx *store.Tx) error { return CountOwnComment(ctx, tx, repo, 7, later, false) }, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo))}},
		{"a comment of somebody's", func(ctx context.Context, tx *store.Tx) error {
			return UnreadComments.Put(ctx, tx, record.OfPull(repo, 7), event)
		}, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), UnreadComments.Key(record.OfPull(repo, 7))}},
		{"read before it", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, "event 1")
		}, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), UnreadComments.Key(record.OfPull(repo, 7))}},
		{"read when none was known", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, "")
		}, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), UnreadComments.Key(record.OfPull(repo, 7))}},
		{"read with it", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, event)
		}, []store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo))}},
		{"what was shown", func(ctx context.Context, tx *store.Tx) error {
			return Shown.Put(ctx, tx, record.OfPull(repo, 7), ShownState{})
		},
			[]store.RecordKey{commentsRead.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo)), Shown.Key(record.OfPull(repo, 7))}},
		{"a person's", func(ctx context.Context, tx *store.Tx) error { return ForgetUserPull(ctx, tx, repo, 7) }, []store.RecordKey{MergesByQueue.Key(record.Repository(repo))}},
		{"out of the queue", func(ctx context.Context, tx *store.Tx) error { return PutLeftQueue(ctx, tx, repo, 7, "h") }, []store.RecordKey{joinedQueues.Key(record.OfPull(repo, 7)), MergesByQueue.Key(record.Repository(repo))}},
	} {
		w.failUntilDone(step.name, nil, w.inTx(step.write))
		all, err := w.store.Records(w.ctx(), store.RecordFilter{})
		w.must(err)
		var got, want []string
		for _, r := range all {
			got = append(got, r.String())
		}
		for _, key := range step.want {
			want = append(want, key.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		switch step.name {
		case "an answer":
			if s, _, err := readEndpointState(w.ctx(), w.store, "e"); err != nil || s.Attempts != 1 || s.Outcome != policies.Wait || s.Unit != "unit:web" || !s.NextAt.Equal(later) {
				t.Errorf("the answer is kept as %+v", s)
			}
		case "who was refused":
			if r, err := people.ReadReviewRequests(w.ctx(), w.store, repo, 7); err != nil || !slices.Equal(r.Names, []string{"ada"}) || len(r.Refused) > 0 {
				t.Errorf("requested is %+v, %v", r, err)
			}
		case "a comment of ours":
			if c, err := ReadCommentsRead(w.ctx(), w.store, repo, 7); err != nil || c.Count == nil || *c.Count != count+1 {
				t.Errorf("counted is %+v, %v", c, err)
			}
		}
	}
}

// TestQueuedIsRecorded notes that a component waits for a place where nothing but the limit keeps it.
func TestQueuedIsRecorded(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	limit := promotion.Reason{Code: "limit"}
	waits := promotion.EnvState{Environment: "qa", Promotion: promotion.Waiting, ReadySince: since, Why: []promotion.Reason{limit}}
	for name, c := range map[string]struct {
		change func(e *promotion.EnvState)
		want   bool
	}{
		"the limit":             {func(*promotion.EnvState) {}, true},
		"it is open":            {func(e *promotion.EnvState) { e.Promotion = promotion.Opened }, false},
		"it isn't ready":        {func(e *promotion.EnvState) { e.ReadySince = time.Time{} }, false},
		"something else":        {func(e *promotion.EnvState) { e.Why = []promotion.Reason{{Code: "hold"}} }, false},
		"something else, too":   {func(e *promotion.EnvState) { e.Why = append(e.Why, promotion.Reason{Code: "hold"}) }, false},
		"nothing keeps it back": {func(e *promotion.EnvState) { e.Why = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			g := &recordGatherer{store: s}
			u := promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}
			evaluation := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: u}}}
			e := waits
			c.change(&e)
			for _, d := range []*promotion.ComponentDecision{{Envs: []promotion.EnvState{waits}}, {Envs: []promotion.EnvState{{Environment: "dev"}, e}}} {
				if err := s.Tx(t.Context(), "test", func(tx *store.Tx) error { return g.RecordQueued(t.Context(), tx, evaluation, d) }); err != nil {
					t.Fatal(err)
				}
			}
			if _, got, err := s.Record(t.Context(), queued.Key(record.Unit(u))); got != c.want || err != nil {
				t.Errorf("it waits: %t, %v", got, err)
			}
		})
	}
}
