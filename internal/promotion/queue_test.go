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

// queuedInQA has an open promotion into qa, which may be merged, in the forge's queue.
func queuedInQA() *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").pull("qa", "r2")
	f.env("qa").Open.Queued = true
	return f
}

// queuedRevertInQA has an open revert in qa, where its release is degraded, in the forge's queue.
func queuedRevertInQA() *ComponentFacts {
	f := linearFacts()
	f.land("qa", "r2", ByPromotion, 5)
	f.verdict("qa", verification.Degraded, "no replica is ready").openRevert("qa", "r2")
	f.env("qa").Revert.Queued = true
	return f
}

func describeAll(actions []Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.Describe())
	}
	return out
}

// TestQueued keeps in the forge's queue what would be merged, and takes out first what wouldn't.
func TestQueued(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts *ComponentFacts
		want  []string // the actions about pull requests; none: it stays
	}{
		{"stays", queuedInQA(), nil},
		{"whatever the forge says of merging it", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = MergeState("blocked") }), nil},
		{"a person queued it where a person merges", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), nil},
		{"a revert stays", queuedRevertInQA(), nil},
		{"a person queued a revert that a person merges", queuedRevertInQA().with(func(f *ComponentFacts) {
			f.env("qa").Spec.OnDegraded = pipeline.OnDegraded{Action: pipeline.OnDegradedRevert}
		}), nil},
		{"others are in the queue, as many as the limit allows", queuedInQA().with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Limits.MergesPerHour, f.Limits.QueuedMerges = 1, []QueuedMerge{{Pull: 5, At: noon}, {Pull: 7, At: noon}}
		}), nil},
		{"a head that isn't ours", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.MarkModified("somebody pushed to it") }), nil},
		{"a head that isn't ours, and its label holds it", queuedInQA().with(func(f *ComponentFacts) {
			f.env("qa").Open.MarkModified("somebody pushed to it")
			f.env("qa").Open.Held = true
		}), []string{"take #7 out of the merge queue: it is on hold"}},
		{"a head that isn't ours, and its environment is on hold", queuedInQA().with(func(f *ComponentFacts) {
			f.env("qa").Open.MarkModified("somebody pushed to it")
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa"}})
		}), []string{"take #7 out of the merge queue: it is on hold"}},
		{"a head that isn't ours, and another environment is on hold", queuedInQA().with(func(f *ComponentFacts) {
			f.env("qa").Open.MarkModified("somebody pushed to it")
			f.Holds = Sure([]Hold{{Scope: "environment", Environment: "prod"}, {Scope: "pipeline", Until: noon.Add(-time.Hour)}})
		}), nil},
		{"observed only", queuedInQA().with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Mode = pipeline.ModeDryRun
			f.env("qa").Open.Held = true
		}), nil},
		{"its label holds it", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }),
			[]string{"take #7 out of the merge queue: hold: the pull request has the label liftlock/hold"}},
		{"the holds can't be read", queuedInQA().with(func(f *ComponentFacts) { f.Holds = Unsure[[]Hold]("no answer") }),
			[]string{"take #7 out of the merge queue: hold: the holds can't be read"}},
		{"upstream isn't well", queuedInQA().verdict("dev", verification.Progressing, "progressing"),
			[]string{"take #7 out of the merge queue: upstream: dev carries"}},
		{"the pipeline file is broken", queuedInQA().with(func(f *ComponentFacts) { f.PipelineErr = "x.yaml:1: no" }),
			[]string{"take #7 out of the merge queue: pipeline-file: "}},
		{"it is composed anew", queuedInQA().composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.Stale = true }),
			[]string{"take #7 out of the merge queue: it is changed or closed", "compose #7 anew"}},
		{"its release is there already", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Release = Sure(rel("r2")) }),
			[]string{"take #7 out of the merge queue: it is changed or closed", "close #7"}},
		{"a revert that nothing needs any more", queuedRevertInQA().verdict("qa", verification.Verified, ""),
			[]string{"take #9 out of the merge queue: degraded: qa is not degraded right now"}},
		{"a revert that is composed anew", queuedRevertInQA().with(func(f *ComponentFacts) { f.env("qa").Revert.Stale = true }),
			[]string{"take #9 out of the merge queue: it is changed or closed", "compose revert #9 anew"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(Facts{Components: []ComponentFacts{*c.facts}})
			got := describeAll(d.Actions)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(c.want) > 0 {
				if len(d.Queued) > 0 {
					t.Errorf("it keeps %d in the queue", d.Queued)
				}
				return
			}
			i := slices.IndexFunc(d.Components[0].Env("qa").Why, func(w Reason) bool { return w.Code == "queued" })
			if stays := c.facts.Pipeline.Spec.Mode != pipeline.ModeDryRun && (c.facts.env("qa").Open == nil || c.facts.env("qa").Open.HeadState != HeadModified); (i >= 0) != stays {
				t.Errorf("it says %+v", d.Components[0].Env("qa").Why)
			} else if kept := d.KeepsInQueue(7) || d.KeepsInQueue(9); kept != stays {
				t.Errorf("it keeps %d in the queue", d.Queued)
			} else if stays && (d.Next.IsZero() || d.Next.After(noon.Add(time.Minute))) {
				t.Errorf("looked at again at %s", d.Next)
			}
		})
	}
}

// TestQueuedBesideOthers keeps a pull request in the queue whatever is done with others.
func TestQueuedBesideOthers(t *testing.T) {
	other := arrivedFacts().composed("qa", "r2")
	other.Unit.Component = "api"
	d := Decide(Facts{Components: []ComponentFacts{*other, *queuedInQA()}})
	if got := describeAll(d.Actions); !slices.Equal(got, []string{"open a promotion of r2 into qa"}) || !d.KeepsInQueue(7) {
		t.Errorf("got %q, and %d stay in the queue", got, d.Queued)
	}
}

// TestDroppedFromQueue has what the forge dropped from its queue wait for a person: joining again
// by itself could go on for ever.
func TestDroppedFromQueue(t *testing.T) {
	joined := noon.Add(-time.Minute)
	dropped := func(f *ComponentFacts) {
		for _, p := range []*Pull{f.env("qa").Open, f.env("qa").Revert} {
			if p != nil {
				p.Queued, p.JoinedQueueAt = false, joined
			}
		}
	}
	blocked := func(f *ComponentFacts) { p := f.env("qa").Open; p.Mergeable, p.Rules.Read = MergeBlocked, true }
	for _, c := range []struct {
		name  string
		facts *ComponentFacts
		want  []string // the actions
		waits bool     // its gate says what to do
	}{
		{"a promotion waits", queuedInQA().with(dropped), nil, true},
		{"a revert waits", queuedRevertInQA().with(dropped), []string{"record"}, true},
		{"one of which the forge says that it blocks it waits", queuedInQA().with(dropped).with(blocked), nil, true},
		{"one that it blocks, and didn't drop, is tried", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.Queued = false }).with(blocked), []string{"try to merge #7"}, false},
		{"it didn't join by our doing", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.Queued = false }), []string{"merge #7"}, false},
		{"it is in the queue", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.JoinedQueueAt = joined }), nil, false},
		{"retry", queuedInQA().with(dropped).with(request("retry", "qa", "", noon)),
			[]string{"let #7 join the merge queue again", "answer 3: #7 joins the forge's merge queue again"}, true},
		{"retry of a revert", queuedRevertInQA().with(dropped).with(request("retry", "qa", "", noon)),
			[]string{"record", "let #9 join the merge queue again", "answer 3: #9 joins the forge's merge queue again"}, true},
		{"retry that was written before it joined", queuedInQA().with(dropped).with(request("retry", "qa", "", joined.Add(-time.Second))),
			[]string{"answer 3: #7 joined the forge's merge queue only after this was written"}, true},
		{"retry while it is in the queue", queuedInQA().with(func(f *ComponentFacts) { f.env("qa").Open.JoinedQueueAt = joined }).with(request("retry", "qa", "", noon)),
			[]string{"answer 3: there is nothing to retry in qa"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(Facts{Components: []ComponentFacts{*c.facts}})
			got := describeAll(slices.Concat(d.Components[0].Actions, d.Actions))
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			st := d.Components[0].Env("qa")
			waits := slices.ContainsFunc(slices.Concat(st.Gates, st.RevertGates), func(g policies.Result) bool {
				return g.Gate == "mergeable" && g.Outcome == policies.Wait && strings.Contains(g.Reason, "/liftlock retry has it join again")
			})
			if waits != c.waits {
				t.Errorf("its gates are %v and %v", st.Gates, st.RevertGates)
			}
		})
	}
}

// TestQueuedBatch leaves the queue once one member may not be merged, and says which.
func TestQueuedBatch(t *testing.T) {
	members := makeMembers("api r2", "web r2")
	queued := func() batchFixture {
		return newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").openBatchPull("qa", members, func(p *Pull) { p.Queued = true })
	}
	if _, d := queued().facts(nil); len(d.Actions) != 0 {
		t.Errorf("it doesn't stay: %q", describeAll(d.Actions))
	}
	y := queued()
	y["web"].verdict("dev", verification.Progressing, "progressing")
	_, d := y.facts(nil)
	got := describeAll(d.Actions)
	if len(got) != 1 || !strings.HasPrefix(got[0], "take #7 out of the merge queue: ") || !strings.Contains(got[0], "dev carries the same release and is not well") && !strings.Contains(got[0], "web") {
		t.Fatalf("got %q", got)
	}
	if _, moved := d.Actions[0].(PullAction).Subject(); len(moved) != 2 {
		t.Errorf("it moves %v", moved)
	}
}
