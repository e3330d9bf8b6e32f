package promotion

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// stoppedInQA has an open promotion into qa that only the forge keeps from being merged.
func stoppedInQA(as MergeState, change func(p *Pull)) *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").pull("qa", "r2")
	p := f.env("qa").Open
	p.Mergeable, p.MergeNote = as, string(as)
	change(p)
	return f
}

// stoppedRevertInQA has an open revert in qa that only the forge keeps from being merged.
func stoppedRevertInQA(as MergeState) *ComponentFacts {
	f := linearFacts()
	f.land("qa", "r2", ByPromotion, 5)
	f.verdict("qa", verification.Degraded, "no replica is ready").openRevert("qa", "r2")
	f.env("qa").Revert.Mergeable, f.env("qa").Revert.Rules.Read = as, true
	return f
}

// TestStoppedByTheForge holds what is done with what the forge's own rules stop, and what is said.
func TestStoppedByTheForge(t *testing.T) {
	const update, attempt = "bring #7 up to date with", "try to merge #7 into qa at"
	nothing := func(*Pull) {}
	unexplained := func(p *Pull) { p.Rules.Read = true }
	refused := func(ago time.Duration, notified bool) func(p *Pull) {
		return func(p *Pull) {
			unexplained(p)
			p.Refusal = &MergeRefusal{Why: "not you", At: noon.Add(-ago), NotifiedSince: notified}
		}
	}
	for _, c := range []struct {
		name  string
		facts *ComponentFacts
		want  []string // the actions
		says  string   // its gate
	}{
		{"behind", stoppedInQA(MergeBehind, nothing), []string{update}, "its turn has come"},
		{"behind, and another's turn", stoppedInQA(MergeBehind, func(p *Pull) { p.UpdatedFirst = 3 }), nil, "#3 is brought up to date and merged first"},
		{"behind, and held", stoppedInQA(MergeBehind, func(p *Pull) { p.Held = true }), nil, "up to date"},
		{"behind, where a person merges", stoppedInQA(MergeBehind, nothing).with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), nil, "bring it up to date there before you merge it"},
		{"behind, where a person merges the reverts", stoppedInQA(MergeBehind, nothing).with(func(f *ComponentFacts) { f.env("qa").Spec.OnDegraded.Action = pipeline.OnDegradedRevert }), []string{update}, "its turn has come"},
		{"behind, and not approved", stoppedInQA(MergeBehind, func(p *Pull) { p.Rules = RuleReport{Read: true, Unmet: []string{"s: needs 1 approval"}} }), nil, "once the forge's other rules are met: s: needs 1 approval"},
		{"behind, and its checks run", stoppedInQA(MergeBehind, func(p *Pull) {
			p.Rules = RuleReport{Read: true, Unmet: []string{"s: check x is pending"}, OnlyRunning: true}
		}), []string{update}, "its turn has come"},
		{"a revert that is behind", stoppedRevertInQA(MergeBehind), []string{"bring #9 up to date with"}, "up to date"},
		{"a revert that is behind, where a person merges those", stoppedRevertInQA(MergeBehind).with(func(f *ComponentFacts) { f.env("qa").Spec.OnDegraded.Action = pipeline.OnDegradedRevert }), nil, "bring it up to date there before you merge it"},
		{"a revert that is behind, where a person merges the promotions", stoppedRevertInQA(MergeBehind).with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), []string{"bring #9 up to date with"}, "its turn has come"},
		{"a revert that is behind, and a promotion's turn", stoppedRevertInQA(MergeBehind).with(func(f *ComponentFacts) { f.env("qa").Revert.UpdatedFirst = 3 }), []string{"bring #9 up to date with"}, "its turn has come"},
		{"behind, and the forge was sent to update it just now", stoppedInQA(MergeBehind, func(p *Pull) { p.SentUpdate = &SentUpdate{At: noon.Add(-30 * time.Second), Tries: 1} }), nil, "does it in a moment"},
		{"behind, and the forge was sent to update it a while ago", stoppedInQA(MergeBehind, func(p *Pull) { p.SentUpdate = &SentUpdate{At: noon.Add(-time.Minute), Tries: 1} }), []string{update}, "its turn has come"},
		{"still being computed, with rules that are met", stoppedInQA(MergeUnknown, unexplained), nil, "still computing"},
		{"blocked by nothing that is known", stoppedInQA(MergeBlocked, unexplained), []string{attempt}, "the forge blocks the merge: blocked"},
		{"the same, a revert", stoppedRevertInQA(MergeBlocked), []string{"try to merge #9 into qa at"}, "the forge blocks the merge: blocked"},
		{"blocked, and the rules can't be read", stoppedInQA(MergeBlocked, func(p *Pull) { p.Rules.Err = "no" }), nil, "its rules can't be read: no"},
		{"blocked by a rule", stoppedInQA(MergeBlocked, func(p *Pull) { unexplained(p); p.Rules.Unmet = []string{"ruleset \"x\": needs 1 approval"} }), nil, `by ruleset "x": needs 1 approval`},
		{"blocked by a rule with a word of the forge's", stoppedInQA(MergeBlocked, func(p *Pull) {
			unexplained(p)
			p.MergeNote, p.Rules.Unmet = "not_approved", []string{"s: needs 1 approval"}
		}), nil, "(not_approved) by s: needs 1 approval"},
		{"blocked for others than us", stoppedInQA(MergeBlocked, func(p *Pull) { unexplained(p); p.Rules.Bypassed = true }), nil, "the forge blocks the merge: blocked"},
		{"blocked, and held", stoppedInQA(MergeBlocked, func(p *Pull) { unexplained(p); p.Held = true }), nil, "the forge blocks the merge"},
		{"blocked, where a person merges", stoppedInQA(MergeBlocked, unexplained).with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), nil, "the forge blocks the merge"},
		{"blocked by what isn't seen", stoppedInQA(MergeBlocked, func(p *Pull) { unexplained(p); p.Rules.Hidden = "the rest" }), nil, "Liftlock doesn't see the rest"},
		{"a draft", stoppedInQA(MergeBlocked, func(p *Pull) { unexplained(p); p.Draft = true }), nil, "it is a draft"},
		{"refused just now", stoppedInQA(MergeBlocked, refused(time.Minute, true)), nil, "the forge blocks the merge: not you"},
		{"refused long ago, and nothing heard", stoppedInQA(MergeBlocked, refused(time.Hour, false)), nil, "not you"},
		{"refused long ago, and something heard", stoppedInQA(MergeBlocked, refused(10*time.Minute, true)), []string{attempt}, "not you"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(Facts{Components: []ComponentFacts{*c.facts}})
			if got := describeAll(d.Actions); !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			st := d.Components[0].Env("qa")
			if slices.ContainsFunc(st.Why, func(r Reason) bool { return r.Code == "manual" }) {
				t.Errorf("it waits for a person to merge what the forge wouldn't: %+v", st.Why)
			}
			gates := slices.Concat(st.Gates, st.RevertGates)
			i := slices.IndexFunc(gates, func(g policies.Result) bool { return g.Gate == "mergeable" })
			if i < 0 || gates[i].Outcome != policies.Wait || !strings.Contains(gates[i].Reason, c.says) {
				t.Errorf("its gates are %+v, want one that says %q", gates, c.says)
			}
		})
	}
}

// TestRefusedMergeIsRetried holds that a merge that the forge refused is tried again once
// it is time, where anything was heard of it since, and otherwise when something is.
func TestRefusedMergeIsRetried(t *testing.T) {
	for notified, want := range map[bool]time.Time{true: noon.Add(mergeAttemptInterval - time.Minute), false: {}} {
		f := stoppedInQA(MergeBlocked, func(p *Pull) {
			p.Rules.Read = true
			p.Refusal = &MergeRefusal{Why: "not you", At: noon.Add(-time.Minute), NotifiedSince: notified}
		})
		if d := decideAlone(t, *f); !d.Next.Equal(want) {
			t.Errorf("notified since: %t; looked at again at %s, want %s", notified, d.Next, want)
		}
	}
}

// TestBringingUpToDateKeepsApprovals holds that it is the forge's to do only where it would drop
// approvals that there are.
func TestBringingUpToDateKeepsApprovals(t *testing.T) {
	for name, c := range map[string]struct {
		drops, approved, want bool
	}{"approved": {true, true, true}, "not approved": {true, false, false}, "keeps them anyway": {false, true, false}} {
		f := stoppedInQA(MergeBehind, func(p *Pull) {
			p.Rules.DropsApprovals = c.drops
			if c.approved {
				p.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true, Current: true}}
			}
		})
		decide := func(f *ComponentFacts) Merge {
			t.Helper()
			d := Decide(Facts{Components: []ComponentFacts{*f}})
			m, ok := d.Actions[0].(Merge)
			if !ok || !m.Behind {
				t.Fatalf("%s: %+v", name, d.Actions)
			}
			return m
		}
		if m := decide(f); m.KeepApprovals != c.want {
			t.Errorf("%s: %+v", name, m)
		}
		revert := stoppedRevertInQA(MergeBehind)
		revert.env("qa").Revert.Rules, revert.env("qa").Revert.Review = f.env("qa").Open.Rules, f.env("qa").Open.Review
		if m := decide(revert); m.KeepApprovals != c.want {
			t.Errorf("%s, a revert: %+v", name, m)
		}
		f.env("qa").Open.SentUpdate = &SentUpdate{At: noon.Add(-time.Hour), Tries: maxUpdateTries - 1}
		if m := decide(f); m.KeepApprovals != c.want {
			t.Errorf("%s, and the forge is sent to once more: %+v", name, m)
		}
		f.env("qa").Open.SentUpdate.Tries = maxUpdateTries
		if m := decide(f); m.KeepApprovals {
			t.Errorf("%s, and the forge didn't do it: %+v", name, m)
		}
	}
}
