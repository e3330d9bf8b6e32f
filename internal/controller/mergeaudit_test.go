package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// mergeEntries are what the audit trail has of merges of a component, newest first.
func (f *fixture) mergeEntries(component string) (entries []store.Audit, records []promotion.MergeRecord) {
	f.t.Helper()
	entries, err := f.opts.Store.AuditTrail(f.t.Context(), store.AuditFilter{Verb: promotion.AuditMerge, SubjectPrefixes: []string{wake.UnitName(f.unit(component)) + " #"}}, 0)
	f.must(err)
	for i := range entries {
		var r promotion.MergeRecord
		f.must(json.Unmarshal(entries[i].Data, &r))
		records = append(records, r)
	}
	return entries, records
}

// TestMergesAreAudited holds that every merge is on record in the audit trail, once for each
// component that it moves, with each gate's answer for the merged head. For our merges these are
// the judged ones, also where the process died before it reported the merge. For a person's merge
// they are the last seen ones.
func TestMergesAreAudited(t *testing.T) {
	t.Parallel()
	const after = "    - {name: qa, after: [dev], merge: "
	for name, c := range map[string]struct {
		env     string
		by, via string
		before  func(w *fixture, p int)
		reason  string
		judged  bool // by us: the inputs are known
	}{
		"by us": {env: after + "auto, gates: [{expression: 'size(release.fields) > 0'}], verify: " + quickly + "}\n", by: bot, via: promotion.AuditViaServer,
			reason: "expression pass", judged: true},
		"by us, without gates": {env: autoQA, by: bot, via: promotion.AuditViaServer, reason: "it has no gates", judged: true},
		"by a person, past a gate": {env: after + "manual, gates: [{soak: {for: 720h}}, {expression: 'true'}], verify: " + quickly + "}\n", by: "grace", via: promotion.AuditViaForge,
			before: func(w *fixture, p int) { w.mergeAs("grace", p) }, reason: "soak wait, expression pass"},
		"by us, who died then": {env: after + "manual, gates: [{expression: 'true'}], verify: " + quickly + "}\n", by: bot, via: promotion.AuditViaServer,
			before: func(w *fixture, p int) { w.dieAfterMerge(p) }, reason: "expression pass", judged: true},
	} {
		for kind, k := range listKindsOfUnit() {
			t.Run(name+", "+kind, func(t *testing.T) {
				w := newFixture(t, k.spec, c.env, k.components...)
				p := w.openOne(k.key, "2.0.0", k.components...)
				if c.before != nil {
					w.must(w.run(wake.ForUnit(w.unit(k.key))))
					c.before(w, p.Number)
				}
				w.settle(k.key, "it is on record", func() bool {
					w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
					entries, _ := w.mergeEntries(k.components[0])
					return len(entries) > 0
				})
				w.must(w.run(wake.ForUnit(w.unit(k.key))))
				for _, component := range k.components {
					entries, records := w.mergeEntries(component)
					if len(entries) != 1 {
						t.Fatalf("of %s are %d entries", component, len(entries))
					}
					e, r, now := entries[0], records[0], w.pulls()[0]
					if e.Actor != c.by || e.Via != c.via || e.Reason != c.reason || e.Environment != "qa" || !strings.HasPrefix(e.Outcome, "merged as "+now.MergeCommit[:12]) {
						t.Errorf("of %s is on record %+v", component, e)
					}
					if r.Head != p.Head || r.Commit != now.MergeCommit || r.Kind != promotion.KindPromotion || r.Release == "" || r.JudgedAt.IsZero() || (len(r.Inputs) == 64) != c.judged {
						t.Errorf("%s was judged by %+v", component, r)
					}
					if raw, left, err := w.opts.Store.Record(t.Context(), facts.Merging.Key(facts.OfMerge(w.unit(component), p.Number))); err != nil || left {
						t.Errorf("of %s is left %s %v", component, raw, err)
					}
				}
			})
		}
	}
}

func (f *fixture) mergeAs(who string, pull int) {
	f.t.Helper()
	_, err := f.forge.MergePull(repoName, pull, who, "merge")
	f.must(err)
}

// dieAfterMerge merges a pull request as we do, and says no more of it than what is written
// down before the merge.
func (f *fixture) dieAfterMerge(pull int) {
	f.t.Helper()
	rows, err := f.opts.Store.Promotions(f.t.Context(), store.PromotionFilter{Pulls: []int{pull}})
	f.must(err)
	for _, row := range rows {
		raw, err := json.Marshal(promotion.MergeRecord{Kind: row.Kind, Release: row.Release, Head: f.pulls()[pull-1].Head, JudgedAt: f.clock.Now(), Inputs: strings.Repeat("0", 64),
			Gates: []policies.Result{{Gate: "expression", Outcome: policies.Pass}}})
		f.must(err)
		f.must(f.opts.Store.PutRecord(f.t.Context(), facts.Merging.Key(facts.OfMerge(f.unit(row.Component), pull)), raw))
	}
	f.mergeAs(bot, pull)
}
