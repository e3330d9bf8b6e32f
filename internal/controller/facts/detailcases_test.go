package facts

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestUnitsOfAll tells the units that stand for all components from one component of that name.
func TestUnitsOfAll(t *testing.T) {
	t.Parallel()
	named := func(name string, spec pipeline.Spec) *branch.ResolvedPipeline {
		p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{Spec: spec}}
		p.Metadata.Name = name
		return p
	}
	s := &branch.Snapshot{Pipelines: []*branch.ResolvedPipeline{named("alone", pipeline.Spec{}), named("batches", pipeline.Spec{Batch: "environment"})}}
	for u, want := range map[promotion.Unit]bool{
		{Pipeline: "batches", Component: promotion.BatchName}: true,
		{Pipeline: "batches", Component: "web"}:               false,
		{Pipeline: "alone", Component: promotion.BatchName}:   false,
		{Pipeline: "gone", Component: promotion.BatchName}:    false,
	} {
		if got := s.IsBatch(u); got != want {
			t.Errorf("%v: %v", u, got)
		}
	}
}

// TestDetailsAreReadOnce reads of an open pull request what is wanted and isn't known yet, and of one
// that is over nothing.
func TestDetailsAreReadOnce(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	for name, c := range map[string]struct {
		before          pullDetail
		reviews, checks bool
		want            [3]bool // has reviews, has checks, and reviews are wanted
	}{
		"nothing is wanted":         {pullDetail{}, false, false, [3]bool{}},
		"reviews":                   {pullDetail{}, true, false, [3]bool{true, false, true}},
		"checks":                    {pullDetail{}, false, true, [3]bool{false, true, false}},
		"both":                      {pullDetail{}, true, true, [3]bool{true, true, true}},
		"reviews that came along":   {pullDetail{reviews: people.Reviews{Read: true}}, true, false, [3]bool{true, false, true}},
		"reviews that are known":    {pullDetail{wanted: true, reviews: people.Reviews{Read: true}}, true, false, [3]bool{true, false, true}},
		"checks, reviews from then": {pullDetail{wanted: true, reviews: people.Reviews{Read: true}}, false, true, [3]bool{true, true, true}},
	} {
		for state, open := range map[forge.State]bool{forge.Open: true, forge.Closed: false} {
			d := c.before
			d.pr = forge.PullRequest{Number: 7, State: state, Head: w.head("main")}
			w.fails["reviews"], w.fails["checks"] = &forge.Error{Op: "read", Kind: forge.ErrForbidden}, &forge.Error{Op: "read", Kind: forge.ErrForbidden}
			full, err := w.o.PullCache.completeDetail(w.ctx(), w.repo, &d, c.reviews, c.checks)
			w.must(err)
			want := c.want
			if !open {
				want = [3]bool{c.before.reviews.Read, c.before.checks.Read, c.before.wanted}
			}
			if got := [3]bool{full.reviews.Read, full.checks.Read, full.wanted}; got != want {
				t.Errorf("%s, %s: %v", name, state, got)
			}
			if read := [2]bool{full.reviews.Err != "", full.checks.Err != ""}; read != [2]bool{open && c.reviews && !c.before.reviews.Read, open && c.checks && !c.before.checks.Read} {
				t.Errorf("%s, %s: it is said of %v that it can't be read", name, state, read)
			}
		}
	}
	w.fails["reviews"], w.fails["checks"] = nil, &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	if d, err := w.o.PullCache.completeDetail(w.ctx(), w.repo, &pullDetail{pr: forge.PullRequest{Number: 7, State: forge.Open}}, false, true); d != nil || !forge.IsRetryable(err) {
		t.Errorf("what may go well another time is %+v, %v", d, err)
	}
}

// TestAuditOfAMergeThatWasFound puts a merge on record by what we judged it, where it was us and the head
// is that, or else by how it was found.
func TestAuditOfAMergeThatWasFound(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	u := promotion.Unit{Repo: "r", Pipeline: "shop", Component: "web"}
	for name, c := range map[string]struct {
		by     string
		judged *promotion.MergeRecord
		own    bool // by what we judged it
		actor  string
		via    string
	}{
		"ours":                  {"bot", &promotion.MergeRecord{Head: "h", JudgedAt: at}, true, "bot", promotion.AuditViaServer},
		"ours, of another head": {"bot", &promotion.MergeRecord{Head: "g", JudgedAt: at}, false, "bot", promotion.AuditViaServer},
		"ours, never judged":    {"bot", nil, false, "bot", promotion.AuditViaServer},
		"a person's":            {"ada", &promotion.MergeRecord{Head: "h", JudgedAt: at}, false, "ada", promotion.AuditViaForge},
		"nobody's any more":     {"", nil, false, "somebody", promotion.AuditViaForge},
	} {
		s := newTestStore(t)
		if c.judged != nil {
			raw, err := json.Marshal(c.judged)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.PutRecord(t.Context(), Merging.Key(OfMerge(u, 7)), raw); err != nil {
				t.Fatal(err)
			}
		}
		e := componentOf(&Evaluation{Basis: branch.Basis{Snapshot: &branch.Snapshot{Repo: &branch.Repository{ID: "r", BotLogin: "bot"}}}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: u, Now: at}})
		entry, err := (&recordGatherer{store: s}).findMerge(t.Context(), e, "qa", &forge.PullRequest{Number: 7, Head: "h", MergeCommit: "m", MergedBy: c.by}, store.Promotion{Kind: promotion.KindPromotion, Release: "rel"})
		if err != nil {
			t.Fatal(err)
		}
		var record promotion.MergeRecord
		if err := json.Unmarshal(entry.Data, &record); err != nil {
			t.Fatal(err)
		}
		if entry.Actor != c.actor || entry.Via != c.via || entry.Environment != "qa" || entry.Verb != promotion.AuditMerge || record.Commit != "m" || record.Head != "h" || record.JudgedAt.Equal(at) != c.own || (record.Release == "rel") == c.own {
			t.Errorf("%s: %+v, %+v", name, entry, record)
		}
	}
}

// TestReviewsOfUnknownCommits holds that a review counts for the head only where its commit shows the same.
func TestReviewsOfUnknownCommits(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	base := w.head("main")
	first := w.commitTo("ada", "topic", base, "First", map[string]string{"x": "x"})
	docs := w.commit("ada", "Docs", map[string]string{"docs": "x"})
	alike := w.commitTo("ada", "again", docs, "First", map[string]string{"x": "x"})
	other := w.commitTo("ada", "other", docs, "Other", map[string]string{"x": "y"})
	empty := w.commitTo("ada", "empty", base, "Nothing", nil)
	nothing := w.commitTo("ada", "nothing", docs, "Nothing", nil)
	merge := w.mergeCommit(first, first, docs)
	w.must(w.forge.Push(storyRepo, "ada", "merge", merge, true))
	w.fetch()
	var got []string
	for name, c := range map[string][3]string{ // reviewed, head, base
		"the same": {alike, alike, docs}, "alike": {first, alike, docs}, "another": {first, other, docs}, "none": {"", alike, docs}, "without a base": {first, alike, ""},
		"nothing, alike": {empty, nothing, docs}, "a merge": {merge, alike, docs}, "the first of all": {base, alike, docs}, "unknown": {base[1:] + "0", alike, docs},
	} {
		if w.o.Reviews.ShowsSameDiff(w.ctx(), w.repo, c[0], c[1], c[2]) {
			got = append(got, name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"alike", "the same"}) {
		t.Errorf("the same is shown by %q", got)
	}
}
