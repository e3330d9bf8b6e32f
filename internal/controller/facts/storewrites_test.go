package facts

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// TestStoreWritesComeToTheirEnd has each call of what is written down about pull requests fail, and
// then holds which keys the store has.
func TestStoreWritesComeToTheirEnd(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	w.useSQLite()
	const repo = "hub:acme/fleet"
	event := []byte("event 2")
	later := w.now.Add(time.Minute)
	metric := MetricRecord{key: metricPrefix(repo, 7) + "m", sample: policies.MetricSample{At: w.now, Values: []float64{1}}}
	answered := EndpointRecord{state: endpointState{ID: "e", Endpoint: "changes", Unit: "unit:web"}, index: endpointPrefix(repo, 7) + "e",
		answer: policies.EndpointAnswer{ID: "e", At: w.now, Outcome: policies.Wait, Reason: "soon"}, nextAt: later}
	requested := func(ctx context.Context, tx *store.Tx) error {
		return PutReviewRequests(ctx, tx, repo, promotion.RequestReviewers{Pull: 7, Release: "r", Reviewers: policies.Reviewers{Users: []string{"ada", "zed"}}}, []forge.RefusedReviewer{{Name: "zed", Reason: "who?"}})
	}
	count := 3
	read := CommentsRead{Count: &count, Until: w.now, UpdatedAt: w.now}
	for _, step := range []struct {
		name  string
		write func(ctx context.Context, tx *store.Tx) error
		want  []string // the keys that are there then
	}{
		{"a sample", metric.Store, []string{metric.key}},
		{"an answer", answered.Store, []string{"endpoint|e", answered.index, metric.key}},
		{"a request", requested, []string{"endpoint|e", answered.index, metric.key, ReviewRequestsKey(repo, 7)}},
		{"the queue", func(ctx context.Context, tx *store.Tx) error {
			return PutJoinedQueue(ctx, tx, promotion.Unit{Repo: repo, Pipeline: "shop"}, 7, "h", false, w.now)
		},
			[]string{"endpoint|e", answered.index, JoinedQueueKey(repo, 7), MergesByQueueKey(repo), metric.key, ReviewRequestsKey(repo, 7)}},
		{"who was refused", func(ctx context.Context, tx *store.Tx) error { return ForgetRefusedReviewers(ctx, tx, repo, 7) },
			[]string{"endpoint|e", answered.index, JoinedQueueKey(repo, 7), MergesByQueueKey(repo), metric.key, ReviewRequestsKey(repo, 7)}},
		{"another's gates", func(ctx context.Context, tx *store.Tx) error { return ForgetGates(ctx, tx, repo, 70) },
			[]string{"endpoint|e", answered.index, JoinedQueueKey(repo, 7), MergesByQueueKey(repo), metric.key, ReviewRequestsKey(repo, 7)}},
		{"its gates", func(ctx context.Context, tx *store.Tx) error { return ForgetGates(ctx, tx, repo, 7) }, []string{MergesByQueueKey(repo)}},
		{"comments", func(ctx context.Context, tx *store.Tx) error { return read.Store(ctx, tx, repo, 7) }, []string{commentsKey(repo, 7), MergesByQueueKey(repo)}},
		{"a comment of ours", func(ctx context.Context, tx *store.Tx) error { return CountOwnComment(ctx, tx, repo, 7, later, false) }, []string{commentsKey(repo, 7), MergesByQueueKey(repo)}},
		{"a comment of somebody's", func(ctx context.Context, tx *store.Tx) error {
			return tx.PutState(ctx, UnreadCommentsKey(repo, 7), event)
		}, []string{commentsKey(repo, 7), MergesByQueueKey(repo), UnreadCommentsKey(repo, 7)}},
		{"read before it", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, []byte("event 1"))
		}, []string{commentsKey(repo, 7), MergesByQueueKey(repo), UnreadCommentsKey(repo, 7)}},
		{"read when none was known", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, nil)
		}, []string{commentsKey(repo, 7), MergesByQueueKey(repo), UnreadCommentsKey(repo, 7)}},
		{"read with it", func(ctx context.Context, tx *store.Tx) error {
			return ForgetUnreadComments(ctx, tx, repo, 7, event)
		}, []string{commentsKey(repo, 7), MergesByQueueKey(repo)}},
		{"what was shown", func(ctx context.Context, tx *store.Tx) error { return tx.PutState(ctx, ShownKey(repo, 7), event) },
			[]string{commentsKey(repo, 7), MergesByQueueKey(repo), ShownKey(repo, 7)}},
		{"a person's", func(ctx context.Context, tx *store.Tx) error { return ForgetUserPull(ctx, tx, repo, 7) }, []string{MergesByQueueKey(repo)}},
		{"out of the queue", func(ctx context.Context, tx *store.Tx) error { return PutLeftQueue(ctx, tx, repo, 7, "h") }, []string{JoinedQueueKey(repo, 7), MergesByQueueKey(repo)}},
	} {
		w.failUntilDone(step.name, nil, w.inTx(step.write))
		all, err := w.store.StateByPrefix(w.ctx(), "")
		w.must(err)
		got := slices.Sorted(maps.Keys(all))
		slices.Sort(step.want)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		switch step.name {
		case "an answer":
			if s := parseEndpointState(all["endpoint|e"], "e"); s.Attempts != 1 || s.Outcome != policies.Wait || s.Unit != "unit:web" || !s.NextAt.Equal(later) {
				t.Errorf("the answer is kept as %+v", s)
			}
		case "who was refused":
			if r, err := ReadReviewRequests(w.ctx(), w.store, repo, 7); err != nil || !slices.Equal(r.Names, []string{"ada"}) || len(r.Refused) > 0 {
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
			evaluation := &ComponentEvaluation{Facts: promotion.ComponentFacts{Unit: u}}
			e := waits
			c.change(&e)
			for _, d := range []*promotion.ComponentDecision{{Envs: []promotion.EnvState{waits}}, {Envs: []promotion.EnvState{{Environment: "dev"}, e}}} {
				if err := s.Tx(t.Context(), "test", func(tx *store.Tx) error { return g.RecordQueued(t.Context(), tx, evaluation, d) }); err != nil {
					t.Fatal(err)
				}
			}
			if _, got, err := s.State(t.Context(), queueKey(u)); got != c.want || err != nil {
				t.Errorf("it waits: %t, %v", got, err)
			}
		})
	}
}
