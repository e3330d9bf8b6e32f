package facts

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// viewOfQA stores the state of web's last evaluation.
func (sto *story) viewOfQA(states ...promotion.EnvState) {
	sto.t.Helper()
	v := stored.Unit{Unit: sto.unit("web"), At: sto.now}
	v.Decision.Envs = states
	raw, err := json.Marshal(v)
	sto.must(err)
	sto.must(sto.store.Tx(sto.ctx(), "view", func(tx *store.Tx) error {
		return tx.PutUnit(sto.ctx(), store.Unit{Key: "hub:acme/fleet|shop|web", Repo: sto.repo.ID, Pipeline: "shop", Component: "web", UpdatedAt: sto.now, Data: raw})
	}))
}

// TestFindMerge holds by what a merge is on record: of ours by what we judged it, of a person's by how the
// gates stood when anybody looked last.
func TestFindMerge(t *testing.T) {
	gates := func(names ...string) (out []policies.Result) {
		for _, name := range names {
			out = append(out, policies.Result{Gate: policies.GateName(name), Outcome: policies.Wait})
		}
		return out
	}
	seen := []promotion.EnvState{{Environment: "dev", Pull: 3, Gates: gates("dev's")}, {Environment: "qa", Pull: 3, Gates: gates("approvals")}}
	for name, c := range map[string]struct {
		by     string
		judged *promotion.MergeRecord // by us; nil: that isn't kept
		seen   []promotion.EnvState   // nil: it wasn't evaluated
		want   []string               // the gates
		at     bool                   // they are of the look
		via    string
	}{
		"ours":                      {by: storyBot, judged: &promotion.MergeRecord{Kind: promotion.KindPromotion, Head: "head", Gates: gates("checks")}, seen: seen, want: []string{"checks"}, via: promotion.AuditViaServer},
		"ours, of another head":     {by: storyBot, judged: &promotion.MergeRecord{Kind: promotion.KindPromotion, Head: "another", Gates: gates("checks")}, seen: seen, via: promotion.AuditViaServer},
		"ours, which wasn't kept":   {by: storyBot, seen: seen, via: promotion.AuditViaServer},
		"a person's":                {by: "mallory", judged: &promotion.MergeRecord{Kind: promotion.KindPromotion, Head: "head", Gates: gates("checks")}, seen: seen, want: []string{"approvals"}, at: true, via: promotion.AuditViaForge},
		"a person's, nobody looked": {by: "mallory", via: promotion.AuditViaForge},
		"a person's, of another":    {by: "mallory", seen: []promotion.EnvState{{Environment: "qa", Pull: 4, Gates: gates("approvals")}}, via: promotion.AuditViaForge},
		"a person's, of a revert":   {by: "mallory", seen: []promotion.EnvState{{Environment: "qa", Pull: 2, Revert: 3, Gates: gates("approvals"), RevertGates: gates("hold")}}, want: []string{"hold"}, at: true, via: promotion.AuditViaForge},
		"somebody's":                {seen: seen, want: []string{"approvals"}, at: true, via: promotion.AuditViaForge},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
			ev, _ := w.evaluate("web", false)
			comp := ev.Components[0]
			if c.judged != nil {
				w.putRecord(Merging.Key(OfMerge(w.unit("web"), 3)), c.judged)
			}
			if c.seen != nil {
				w.viewOfQA(c.seen...)
			}
			pr := &forge.PullRequest{Number: 3, Head: "head", MergeCommit: "landed", MergedBy: c.by, State: forge.Merged}
			entry, err := w.o.Records.findMerge(w.ctx(), comp, "qa", pr, store.Promotion{Kind: promotion.KindPromotion, Release: "r"})
			w.must(err)
			var record promotion.MergeRecord
			w.must(json.Unmarshal(entry.Data, &record))
			var got []string
			for _, g := range record.Gates {
				got = append(got, string(g.Gate))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the gates (-want +got):\n%s", diff)
			}
			actor := c.by
			if actor == "" {
				actor = "somebody"
			}
			if entry.Actor != actor || entry.Via != c.via || entry.Environment != "qa" || entry.Source != "merge|hub:acme/fleet|shop|web|3" || record.Commit != "landed" || record.Head != "head" || record.JudgedAt.IsZero() == c.at {
				t.Errorf("the entry is %+v, the record %+v", entry, record)
			}
		})
	}
}

// TestFindUngated calls a merge one past its gates only where a person merged a pull request that
// waited at its last evaluation.
func TestFindUngated(t *testing.T) {
	waits := []policies.Result{{Gate: "approvals", Outcome: policies.Wait}, {Gate: "soak", Outcome: policies.Pass}, {Gate: "mergeable", Outcome: policies.Wait}, {Gate: "hold", Outcome: policies.Fail}, {Gate: "approvals", Outcome: policies.Fail}}
	for name, c := range map[string]struct {
		env    string
		number int
		by     string
		gates  []policies.Result
		want   []string
	}{
		"what waited":          {"qa", 3, "mallory", waits, []string{"approvals", "hold"}},
		"nothing waited":       {"qa", 3, "mallory", waits[1:3], nil},
		"it was we":            {"qa", 3, storyBot, waits, nil},
		"nobody knows who":     {"qa", 3, "", waits, nil},
		"another environment":  {"dev", 3, "mallory", waits, nil},
		"another pull request": {"qa", 4, "mallory", waits, nil},
	} {
		w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
		ev, _ := w.evaluate("web", false)
		w.viewOfQA(promotion.EnvState{Environment: "qa", Pull: 3, Gates: c.gates})
		got, err := w.o.Records.findUngated(w.ctx(), ev.Components[0], c.env, &forge.PullRequest{Number: c.number, MergedBy: c.by})
		w.must(err)
		var gates []string
		if got != nil {
			gates = got.Gates
		}
		if diff := cmp.Diff(c.want, gates); diff != "" || got != nil && (got.Pull != 3 || got.By != "mallory") {
			t.Errorf("%s: %+v (-want +got):\n%s", name, got, diff)
		}
	}
}
