package promotion

import (
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// watchWindow is for how long what landed in linearFacts is watched.
const watchWindow = 56 * time.Minute

// arrivedFacts is linearFacts after r2 arrived in dev and was verified there.
func arrivedFacts() *ComponentFacts {
	f := linearFacts()
	f.land("dev", "r2", ByPerson, 0)
	return f.verified("dev")
}

// request is a command that waits.
func request(verb, env, release string, at time.Time) func(*ComponentFacts) {
	return func(f *ComponentFacts) {
		if release != "" {
			release = id(release)
		}
		f.PendingCommands = append(f.PendingCommands, PendingCommand{ID: 3, Verb: command.Verb(verb), Environment: env, Release: release, By: "ada", At: at})
	}
}

func runCases(t *testing.T, cases []decisionCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, c.check)
	}
}

// TestDecideCurrent has what is said and written down of what is there, where two rules
// meet and where a time is just over.
func TestDecideCurrent(t *testing.T) {
	// landedInProd is r2 everywhere, in prod for a while.
	landedInProd := func(ago time.Duration) *ComponentFacts {
		f := arrivedFacts()
		f.land("qa", "r2", ByPromotion, 5)
		f.verified("qa").land("prod", "r2", ByPromotion, 6).Landed.Value.At = noon.Add(-ago)
		return f
	}
	refresh := func(f *ComponentFacts) {
		f.env("prod").Targets[0].Verdict = verification.Verdict{State: verification.Soaking, Reason: "not yet", Refresh: true, Sync: true}
	}
	runCases(t, []decisionCase{
		{name: "a target is looked after as long as it is watched", facts: landedInProd(watchWindow).with(refresh), want: []string{"refresh web-prod", "sync web-prod to cccccccccccc"}, env: "prod", state: Verifying},
		{name: "and no longer", facts: landedInProd(watchWindow + time.Second).with(refresh), env: "prod", state: Idle},
		{name: "but for as long after it waited its turn", facts: landedInProd(2 * watchWindow).with(refresh).with(func(f *ComponentFacts) { f.env("prod").Targets[0].Verdict.HeldUpAt = noon.Add(-watchWindow) }), want: []string{"refresh web-prod", "sync web-prod to cccccccccccc"}, env: "prod", state: Verifying},
		{name: "and no longer either", facts: landedInProd(2 * watchWindow).with(refresh).with(func(f *ComponentFacts) {
			f.env("prod").Targets[0].Verdict.HeldUpAt = noon.Add(-watchWindow - time.Second)
		}), env: "prod", state: Idle},
		{name: "but again where somebody wants it to move", facts: landedInProd(2 * watchWindow).with(func(f *ComponentFacts) {
			f.env("qa").Landed.Value.At, f.env("qa").Targets[0].Verdict = noon.Add(-2*watchWindow), verification.Verdict{State: verification.Soaking, Refresh: true}
		}).verified("prod").with(request("promote", "prod", "", noon)), want: []string{"refresh web-qa", "answer 3: there is nothing to promote to prod"}},
		{name: "what was there before is looked after where it is to move by itself", facts: linearFacts().with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Adopt = pipeline.AdoptConverge
			f.env("qa").Release = Sure(rel("r0"))
			f.env("dev").Targets[0].Verdict = verification.Verdict{State: verification.Soaking, Refresh: true}
		}), want: []string{"refresh web-dev"}},
		{name: "what has arrived is looked after for as long as it may go further", facts: landedInProd(time.Minute).with(func(f *ComponentFacts) {
			f.env("qa").Landed.Value.At, f.env("qa").Targets[0].Verdict = noon.Add(-2*watchWindow), verification.Verdict{State: verification.Soaking, Refresh: true}
			f.env("prod").Release = Sure(rel("r1"))
			f.env("prod").Landed.Value.By = ByBaseline
		}).composed("prod", "r2"), want: []string{"refresh web-qa", "open a promotion of r2 into prod"}},
		{name: "and not where it stays", facts: linearFacts().with(func(f *ComponentFacts) {
			f.env("qa").Release = Sure(rel("r0"))
			f.env("dev").Targets[0].Verdict = verification.Verdict{State: verification.Soaking, Refresh: true}
		})},
		{name: "well at last is written down all the same", facts: landedInProd(2 * watchWindow), want: []string{"record 723200000000 verified in prod"}, env: "prod", state: Verified},
		{name: "nobody needs to know how a source is long ago where downstream can't be read", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("dev").Landed.Value.At, f.env("qa").Release = noon.Add(-2*watchWindow), Unsure[Release]("line 3")
		}).verdict("dev", verification.Soaking, "?").with(func(f *ComponentFacts) { f.env("dev").History[0].VerifiedAt = time.Time{} }), env: "dev", state: Idle},
		{name: "what a person put there is neither", facts: landedInProd(time.Minute).with(refresh).with(func(f *ComponentFacts) { f.land("prod", "hotfix", ByPerson, 0) }), env: "prod", state: Diverged},
		{name: "what was there before is degraded too", facts: linearFacts().verdict("prod", verification.Degraded, "bad"), env: "prod", state: Degraded},
		{name: "promote doesn't bring what a revert put back over what came later", facts: linearFacts().with(func(f *ComponentFacts) {
			f.land("prod", "r2", ByBaseline, 0)
			f.land("qa", "r2", ByPromotion, 5)
			f.land("qa", "r1", ByRevert, 6)
		}).verified("qa").composed("prod", "r1").with(request("promote", "prod", "", noon)), want: []string{"answer 3: there is nothing to promote to prod"}},
		{name: "promote brings what a revert put back over what is older", facts: linearFacts().with(func(f *ComponentFacts) {
			f.land("qa", "r2", ByPromotion, 5)
			f.verified("qa").land("qa", "r3", ByPromotion, 6)
			f.land("qa", "r2", ByRevert, 7)
		}).verified("qa").composed("prod", "r2").with(request("promote", "prod", "", noon)), want: []string{"open a promotion of r2 into prod"}},
		{name: "the newer waits behind an approved of which the record has nothing but a revert's arrival", facts: approvedForProd().with(func(f *ComponentFacts) {
			f.env("prod").Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: 3}}}
			qa := f.env("qa")
			qa.History = qa.History[:2]
			qa.History[1].By = ByRevert
		}), env: "prod", why: "r3 is newer and waits its turn"},
		{name: "what was there before is judged where somebody wants it to move", facts: linearFacts().with(request("promote", "prod", "", noon)), want: []string{"record 723100000000 verified in qa", "answer 3: there is nothing to promote to prod"}, env: "qa", state: Verified},
		{name: "it is verified as it is there now, not as it was before", facts: arrivedFacts().with(func(f *ComponentFacts) { f.env("dev").Landed.Value.Commit = "again" }).verdict("dev", verification.Unclear, "?").composed("qa", "r2"), want: []string{"open a promotion of r2 into qa"}, env: "dev", state: Verifying},
		{name: "nor by what else its commit brought", facts: arrivedFacts().with(func(f *ComponentFacts) { f.env("dev").History[0].Release = id("r7") }).verdict("dev", verification.Unclear, "?"), want: []string{"look: compose in qa"}, env: "dev", state: Verifying},
		{name: "where it landed can't be told", facts: linearFacts().with(func(f *ComponentFacts) { f.env("qa").Landed = Unsure[Landed]("the clone is shallow") }), env: "qa", state: Unreadable, why: "the clone is shallow"},
		{name: "nobody looked yet", facts: linearFacts().with(func(f *ComponentFacts) { f.env("qa").Release = Known[Release]{} }), env: "qa", state: Unreadable, why: "not read yet"},
		{name: "there is no target", facts: landedInProd(time.Minute).with(func(f *ComponentFacts) { f.env("prod").Targets = nil }), env: "prod", state: Verifying, why: "no ApplicationSet generates a target"},
		{name: "degraded speaks before failed, and failed before all others", facts: landedInProd(time.Minute).with(func(f *ComponentFacts) {
			f.env("prod").Targets = []Target{{Name: "one", Verdict: verification.Verdict{State: verification.Soaking}}, {Name: "two", Verdict: verification.Verdict{State: verification.Failed, Reason: "never noticed"}}}
		}), env: "prod", state: Failed, why: "two: never noticed"},
		{name: "a word that lapsed counts as verified", facts: landedInProd(time.Minute).verified("prod").with(func(f *ComponentFacts) {
			f.env("prod").Targets[0].Verdict = verification.Verdict{State: verification.Verified, Lapsed: true, Reason: "nothing was heard for long"}
		}), env: "prod", state: Verified, why: "web-prod: nothing was heard for long"},
		{name: "but isn't written down as such", facts: landedInProd(time.Minute).with(func(f *ComponentFacts) {
			f.env("prod").Targets[0].Verdict = verification.Verdict{State: verification.Verified, Lapsed: true}
		}), env: "prod", state: Verified},
		{name: "observing looks after no target, and answers who was told nothing was done", facts: landedInProd(time.Minute).with(refresh).with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Mode = pipeline.ModeDryRun
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "retry", Environment: "prod"}, {ID: 2, Verb: "promote", Environment: "qa", Release: id("r2")}}
		}), want: []string{"answer 2: nothing was done: the pipeline's mode is observe", "answer 1: there is nothing to retry in prod: nothing failed and nothing was closed"}},
		{name: "observing binds no command", facts: arrivedFacts().pull("qa", "r2").with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) { f.Pipeline.Spec.Mode = pipeline.ModeDryRun }),
			want: []string{"answer 3: nothing was done: the pipeline's mode is observe"}, env: "qa", why: "mode is observe; otherwise: merge #7 into qa at head"},
	})
}

// TestDecideCandidate has which release may come, and why none does.
func TestDecideCandidate(t *testing.T) {
	open := []string{"open a promotion of r2 into qa"}
	past := func(pulls ...PastPull) func(*ComponentFacts) {
		return func(f *ComponentFacts) { f.env("qa").PastPulls = pulls }
	}
	ready := func() *ComponentFacts { return arrivedFacts().composed("qa", "r2") }
	runCases(t, []decisionCase{
		{name: "an environment upstream that isn't there", facts: ready().with(func(f *ComponentFacts) { f.env("qa").Spec.After = []string{"dev", "gone"} }).with(request("promote", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to promote to qa: gone can't be read"}},
		{name: "a close at the same time as the promote wins", facts: ready().with(past(PastPull{Number: 4, Release: id("r2"), At: noon})).with(request("promote", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to promote to qa: #4 with r2 was closed by a person; it stays closed until /liftlock retry or a new release"}},
		{name: "what a person brought is promoted to where it is as little", facts: ready().with(func(f *ComponentFacts) { f.land("qa", "r2", ByPerson, 0) }).verdict("qa", verification.Soaking, "not yet").with(request("promote", "qa", "", noon)),
			want: []string{"record 723200000000 put there by hand, as it would have been promoted, in qa", "answer 3: there is nothing to promote to qa"}},
		{name: "what a person brought gives way to what is older", facts: ready().with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.land("qa", "r3", ByPerson, 0)
		}).verdict("dev", verification.Soaking, "not yet").with(request("promote", "qa", "", noon)), want: open},
		{name: "but what a promotion brought doesn't", facts: ready().with(func(f *ComponentFacts) {
			f.land("dev", "r3", ByPerson, 0)
			f.land("qa", "r3", ByPromotion, 5)
		}).verdict("dev", verification.Soaking, "not yet").verified("qa").with(func(f *ComponentFacts) { f.composed("prod", "r3") }).with(request("promote", "qa", "", noon)), want: []string{"answer 3: there is nothing to promote to qa", "open a promotion of r3 into prod"}},
		{name: "a revert's commit of another release", facts: ready().with(func(f *ComponentFacts) { f.env("qa").RevertedReleases = []string{wording.Short(id("r7"))} }), want: open},
		{name: "a revert's commit of it", facts: ready().with(func(f *ComponentFacts) { f.env("qa").RevertedReleases = []string{wording.Short(id("r2"))} }), env: "qa", why: "r2 was reverted from qa by a commit"},
		{name: "a promotion that was closed lifts no revert before it", facts: ready().with(past(PastPull{Number: 6, Release: id("r2"), Superseded: true, At: noon}, PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)})), env: "qa", why: "was reverted from qa by #9"},
		{name: "a revert that a person closed is no veto", facts: ready().with(past(PastPull{Number: 4, Revert: true, Release: id("r2"), At: noon})), want: open},
		{name: "a close of which the release is unknown ends with another's merge", facts: ready().with(past(PastPull{Number: 6, Release: id("r7"), Merged: true, At: noon}, PastPull{Number: 4, At: noon.Add(-time.Hour)})), want: open},
		{name: "a close ends with the merge of the very release", facts: ready().with(past(PastPull{Number: 6, Release: id("r2"), Merged: true, Superseded: true, At: noon}, PastPull{Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)})), want: open},
		{name: "a revert at the time of the merge counts", facts: ready().with(past(PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon}, PastPull{Number: 5, Merged: true, Release: id("r2"), At: noon})), env: "qa", why: "was reverted from qa by #9"},
		{name: "a revert in the second of the merge counts, whose time is more exact", facts: ready().with(past(PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon}, PastPull{Number: 5, Merged: true, Release: id("r2"), At: noon.Add(400 * time.Millisecond)})), env: "qa", why: "was reverted from qa by #9"},
		{name: "a merge in the second of the revert brings it back, whose time is more exact", facts: ready().with(past(PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(400 * time.Millisecond)}, PastPull{Number: 10, Merged: true, Release: id("r2"), At: noon})), want: open},
		{name: "a revert before the last merge doesn't", facts: ready().with(past(PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)}, PastPull{Number: 6, Merged: true, Release: id("r2"), At: noon}, PastPull{Number: 5, Merged: true, Release: id("r2"), At: noon.Add(-2 * time.Hour)})), want: open},
		{name: "another release's merge lifts nothing", facts: ready().with(past(PastPull{Number: 6, Merged: true, Release: id("r7"), At: noon}, PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)})), env: "qa", why: "was reverted from qa by #9"},
		{name: "a revert that was closed took nothing back", facts: ready().with(past(PastPull{Number: 9, Revert: true, Superseded: true, Release: id("r2"), At: noon})), want: open},
		{name: "a revert of something else", facts: ready().with(past(PastPull{Number: 9, Revert: true, Merged: true, Release: id("r7"), At: noon})), want: open},
		{name: "a revert's commit that a later promotion answered", facts: ready().with(past(PastPull{Number: 6, Merged: true, Release: id("r2"), At: noon}, PastPull{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)})).with(func(f *ComponentFacts) { f.env("qa").RevertedReleases = []string{wording.Short(id("r2"))} }), want: open},
		{name: "a revert that was open when the promote was given", facts: ready().openRevert("qa", "r2").with(request("promote", "qa", "", noon)), want: []string{"close #9: qa no longer carries what it takes back"}, env: "qa", why: "the revert #9 is open"},
		{name: "degraded further up after it was verified here", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.land("qa", "r2", ByPromotion, 5)
			f.env("dev").History[0].MarkDegraded(noon)
		}).verdict("dev", verification.Soaking, "well again, not yet for 1m").verified("qa").composed("prod", "r2"), env: "prod", why: "r2: degraded in dev at 2026-03-02T12:00:00Z"},
		{name: "degraded when it was there before, and well now", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("dev").History = append(f.env("dev").History, Arrival{Seq: 1, Release: id("r2"), Name: "r2", Commit: "old", By: ByPerson, DegradedAt: noon.Add(-time.Hour)})
		}).composed("qa", "r2"), want: open},
		{name: "upstream was changed by hand", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }), env: "prod", why: "qa was changed by hand to r9; that is not carried on"},
		{name: "what has just arrived isn't what adopt: converge is about", facts: linearFacts().with(func(f *ComponentFacts) {
			f.Pipeline.Spec.Adopt = pipeline.AdoptConverge
			f.land("dev", "r2", ByPerson, 0)
		}).verdict("dev", verification.Soaking, "not yet"), env: "qa", why: "dev has not verified r2: web-dev: not yet"},
		{name: "upstream went back by a revert", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r0", ByRevert, 9) }), want: []string{"record 723000000000 verified in qa"}, env: "prod", why: "qa is back at r0 after a revert"},
		{name: "upstream can't be read", facts: linearFacts().with(func(f *ComponentFacts) { f.env("dev").Landed = Unsure[Landed]("gone") }), env: "qa", why: "dev can't be read"},
		{name: "a promote waits while upstream is verifying", facts: linearFacts().with(func(f *ComponentFacts) { f.land("dev", "r2", ByPerson, 0) }).verdict("dev", verification.Soaking, "not yet").with(request("promote", "qa", "", noon)), env: "qa", why: "dev has not verified r2"},
		{name: "but not while what is there can't be read", facts: linearFacts().with(func(f *ComponentFacts) { f.env("dev").Release = Unsure[Release]("line 3") }).verdict("dev", verification.Soaking, "not yet").with(request("promote", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to promote to qa: dev can't be read"}},
		{name: "but not for what is there already", facts: linearFacts().verdict("dev", verification.Soaking, "not yet").with(request("promote", "qa", "", noon)), want: []string{"answer 3: there is nothing to promote to qa"}},
		{name: "nor for what no target has", facts: linearFacts().with(func(f *ComponentFacts) { f.land("dev", "r2", ByPerson, 0).Targets = nil }).with(request("promote", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to promote to qa: dev has not verified r2: no ApplicationSet generates a target for this component here"}},
		{name: "nor for what failed", facts: linearFacts().with(func(f *ComponentFacts) { f.land("dev", "r2", ByPerson, 0) }).verdict("dev", verification.Failed, "never noticed").with(request("promote", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to promote to qa: dev has not verified r2: web-dev: never noticed"}},
	})
}

// TestDecideOpening has what keeps a pull request from being opened.
func TestDecideOpening(t *testing.T) {
	ready := func() *ComponentFacts { return arrivedFacts().composed("qa", "r2") }
	open := []string{"open a promotion of r2 into qa"}
	runCases(t, []decisionCase{
		{name: "the last place is taken", facts: ready().with(func(f *ComponentFacts) { f.Limits.OpenByOthers = map[string]int{"qa": 10} }), env: "qa", promo: Waiting, why: "10 of 10 pull requests are open in qa", next: limitRecheckDelay},
		{name: "the last place is free", facts: ready().with(func(f *ComponentFacts) {
			f.Limits.OpenByOthers, f.Limits.QueuedAhead = map[string]int{"qa": 8, "prod": 5}, map[string]int{"qa": 1}
		}), want: open},
		{name: "the forge would merge nothing that isn't signed", facts: ready().with(func(f *ComponentFacts) { f.env("qa").MissingSignatures = "give it a key" }), env: "qa", promo: Waiting, why: "[{signatures give it a key"},
		{name: "a part of it wouldn't come along", facts: ready().with(incomplete("qa", "r2")), env: "qa", promo: Waiting, why: "[{incomplete the ref stays behind; /liftlock promote qa goes on without it"},
		{name: "somebody asked for it all the same", facts: ready().with(incomplete("qa", "r2")).with(request("promote", "qa", "", noon)), want: open},
		{name: "a newer release of which a part stays behind doesn't replace what is open", facts: arrivedFacts().pull("qa", "r2").with(func(f *ComponentFacts) { f.land("dev", "r3", ByPerson, 0) }).verified("dev").composed("qa", "r3").with(incomplete("qa", "r3")),
			want: []string{"merge #7 into qa at head"}, env: "qa", why: "the ref stays behind"},
		{name: "there is no limit", facts: ready().with(func(f *ComponentFacts) {
			f.Limits.OpenByOthers, f.Pipeline.Spec.Limits.OpenPerEnvironment = map[string]int{"qa": 100}, 0
		}), want: open},
		{name: "a place is of no use where something else stands in the way", facts: ready().with(func(f *ComponentFacts) {
			f.Limits.OpenByOthers, f.env("qa").Spec.Open = map[string]int{"qa": 10}, pipeline.Manual
		}), env: "qa", why: "[{manual open: manual; /liftlock promote qa opens it"},
		{name: "a promote into what can't be read is answered", facts: ready().with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) { f.env("qa").Landed = Unsure[Landed]("gone") }), want: []string{"answer 3: qa can't be promoted to: gone"}},
		{name: "a promote into what is mixed is answered", facts: ready().with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) { f.env("qa").Fields, f.env("qa").FieldsReason = FieldsMixed, "a has 1" }), want: []string{"answer 3: qa can't be promoted to: a has 1"}},
		{name: "what is open into it is held", facts: ready().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Fields, f.env("qa").FieldsReason = FieldsMixed, "a has 1" }), env: "qa", promo: Held, why: "a has 1"},
		{name: "a promote with a stranger on the branch is answered", facts: ready().with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) { f.env("qa").MarkUnmanaged("#3 by mallory") }), want: []string{"answer 3: #3 by mallory"}, env: "qa", promo: Idle},
		{name: "what is open on a stranger's branch is held", facts: ready().pull("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").MarkUnmanaged("#3 by mallory") }), env: "qa", promo: Held, why: "#3 by mallory"},
		{name: "nothing is composed on a branch of which the tip isn't known", facts: arrivedFacts().with(func(f *ComponentFacts) { f.env("qa").Tip = "" }), want: []string{"look: compose in qa"}},
		{name: "a refused edit answers the promote", facts: arrivedFacts().with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditRefused, Reason: "shared"}
		}), want: []string{"answer 3: shared"}},
		{name: "an empty edit answers the promote", facts: arrivedFacts().with(request("promote", "qa", "", noon)).with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditEmpty}
		}), want: []string{"answer 3: there is nothing to change"}, env: "qa", promo: Idle},
		{name: "a promote whose pull request is gone is answered", facts: linearFacts().with(request("promote", "qa", "r7", noon)), want: []string{"record 723100000000 verified in dev", "answer 3: its pull request is no longer open"}},
		{name: "a promote from the time of a person's change takes that over", facts: ready().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("promote", "qa", "", noon.Add(-5*time.Minute))), want: open},
		{name: "one from before doesn't", facts: ready().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("promote", "qa", "", noon.Add(-5*time.Minute-time.Second))),
			want: []string{"answer 3: linus changed qa by hand since (qa-r9); /liftlock promote qa again takes that over"}},
		{name: "when the change was seen here counts, not what its commit says", facts: ready().with(func(f *ComponentFacts) {
			f.land("qa", "r9", ByPerson, 0).Landed.Value.At = noon.Add(time.Hour)
		}).with(request("promote", "qa", "", noon)), want: open},
		{name: "an unknown command from before a person's change", facts: ready().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("dance", "qa", "", noon.Add(-time.Hour))), want: []string{"answer 3: there is no command dance"}},
		{name: "a command for an environment that isn't there", facts: linearFacts().with(request("retry", "moon", "", noon)), want: []string{"answer 3: this component has no environment moon"}},
		{name: "a second retry of a source environment waits its turn", facts: linearFacts().with(func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "retry", Environment: "dev"}, {ID: 2, Verb: "retry", Environment: "dev"}}
		}), want: []string{"answer 1: there is nothing to retry in dev: nothing failed and nothing was closed"}},
		{name: "a revert of a source environment", facts: linearFacts().with(request("revert", "dev", "", noon)), want: []string{"answer 3: dev is a source environment: releases arrive there by commits, not by promotions"}},
	})
}

// TestDecideGates says what an open pull request waits for, and when it is decided again.
func TestDecideGates(t *testing.T) {
	open := func() *ComponentFacts { return arrivedFacts().pull("qa", "r2") }
	merge := []string{"merge #7 into qa at head"}
	// landedBefore is what was in qa when the pull request was opened, not yet verified.
	landedBefore := func(by string, ago time.Duration) func(*ComponentFacts) {
		return func(f *ComponentFacts) {
			f.land("qa", "r0", by, 0).Landed.Value.At = noon.Add(-ago)
			f.verdict("qa", verification.Soaking, "not yet")
		}
	}
	runCases(t, []decisionCase{
		{name: "the limit isn't reached", facts: open().with(func(f *ComponentFacts) { f.Limits.MergesLastHour = 19 }), want: merge},
		{name: "the limit is reached", facts: open().with(func(f *ComponentFacts) {
			f.Limits.MergesLastHour, f.Limits.OldestMerge = 20, noon.Add(-30*time.Minute)
		}), env: "qa", why: "20 merges in the last hour (limits.mergesPerHour: 20)", next: 30 * time.Minute},
		{name: "the limit is reached by what is in the forge's merge queue", facts: open().with(func(f *ComponentFacts) {
			f.Limits.MergesLastHour, f.Limits.OldestMerge = 18, noon.Add(-10*time.Minute)
			f.Limits.QueuedMerges = []QueuedMerge{{Pull: 5, At: noon.Add(-time.Minute)}, {Pull: 6, At: noon.Add(-40 * time.Minute)}}
		}), env: "qa", why: "18 merges in the last hour, and 2 on their way (limits.mergesPerHour: 20)", next: 20 * time.Minute},
		{name: "it was in the queue itself", facts: open().with(func(f *ComponentFacts) {
			f.Limits.MergesLastHour, f.Limits.QueuedMerges = 19, []QueuedMerge{{Pull: 7, At: noon.Add(-time.Minute)}}
		}), want: merge},
		{name: "there is no limit", facts: open().with(func(f *ComponentFacts) { f.Pipeline.Spec.Limits.MergesPerHour = 0 }), want: merge},
		{name: "a part of it wouldn't come along", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Incomplete = "the ref stays behind" }), env: "qa", promo: Opened, why: "the ref stays behind; /liftlock promote qa goes on without it"},
		{name: "somebody asked for it all the same", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Incomplete = "the ref stays behind" }).with(request("promote", "qa", "r2", noon)), want: merge},
		{name: "the holds were not read", facts: open().with(func(f *ComponentFacts) { f.Holds = Known[[]Hold]{} }), env: "qa", why: "the holds can't be read: not read yet"},
		{name: "it has the label", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }), env: "qa", promo: Held, why: "the pull request has the label liftlock/hold"},
		{name: "a target can't be resolved", facts: open().with(func(f *ComponentFacts) { f.Problems = []string{"argocd/x.yaml: no such file"} }), env: "qa", why: "argocd/x.yaml: no such file"},
		{name: "it may change another environment", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.MarkReach(ReachCrossEnvironment, "prod reads it") }), env: "qa", why: "{one-environment wait prod reads it"},
		{name: "the forge conflicts", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = MergeDirty }), env: "qa", why: "it conflicts with the tracked branch"},
		{name: "the forge blocks, and says why", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Mergeable, f.env("qa").Open.MergeNote = "blocked", "a check is missing"
		}), env: "qa", why: "the forge blocks the merge: a check is missing"},
		{name: "the forge's answer wasn't read, and nothing else waits", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.MergeUnread = true }), want: []string{FactRequest{What: RequestMergeability, Environment: "qa"}.Describe()}, env: "qa", why: "whether the forge would merge it is read now"},
		{name: "the forge's answer wasn't read, and a gate waits", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.MergeUnread, f.env("qa").Open.Held = true, true }), env: "qa", promo: Held, why: "the pull request has the label liftlock/hold"},
		{name: "others are merged first, and the forge's answer wasn't read", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.MergeUnread, f.env("qa").Open.AwaitsTurn = true, true }), env: "qa", why: "others are merged before it"},
		{name: "others are merged first, and the forge computes anew", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Mergeable, f.env("qa").Open.UncomputedSince, f.env("qa").Open.AwaitsTurn = MergeUnknown, noon.Add(-time.Second), true
		}), env: "qa", why: "others are merged before it"},
		{name: "others are merged first, and the forge would merge it", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.AwaitsTurn = true }), want: merge},
		{name: "the forge was not asked, of an old one", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = MergeUntold }), env: "qa", why: "still computing", next: maxMergeableRecheck},
		{name: "the forge is merging it, or says so for long", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Mergeable, f.env("qa").Open.MergeNote = MergeUnknown, "locked"
		}), env: "qa", why: "still computing whether it can be merged (locked)", next: maxMergeableRecheck},
		{name: "the forge still computes, of a new one", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Mergeable, f.env("qa").Open.UpdatedAt = MergeUnknown, noon.Add(-4*time.Second)
		}), env: "qa", why: "still computing", next: 2 * time.Second},
		{name: "the forge computes anew, of an old one", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Mergeable, f.env("qa").Open.UncomputedSince = MergeUnknown, noon.Add(-time.Second)
		}), env: "qa", why: "still computing", next: 500 * time.Millisecond},
		{name: "upstream's word has lapsed", facts: open().with(func(f *ComponentFacts) {
			f.env("dev").Targets[0].Verdict = verification.Verdict{State: verification.Verified, Lapsed: true, Reason: "nothing was heard"}
		}), env: "qa", why: "dev carries the same release and is not well right now: web-dev: nothing was heard"},
		{name: "upstream has moved on and isn't well", facts: open().with(func(f *ComponentFacts) { f.land("dev", "r3", ByPerson, 0) }).verdict("dev", verification.Soaking, "not yet"), want: merge},
		{name: "upstream was not read", facts: open().with(func(f *ComponentFacts) { f.env("dev").Release = Known[Release]{} }), env: "qa", why: "whether dev is well with the same release can't be told: not read yet"},
		{name: "upstream is mixed", facts: open().with(func(f *ComponentFacts) {
			f.env("dev").Release, f.env("dev").Fields, f.env("dev").FieldsReason = Unsure[Release]("mixed"), FieldsMixed, "a has 1, b has 2"
		}), env: "qa", why: "can't be told: a has 1, b has 2"},
		{name: "nothing is deployed there", facts: open().with(func(f *ComponentFacts) { f.env("qa").Targets = nil }), env: "qa", why: "{targets wait no ApplicationSet generates a target for this component in qa"},
		{name: "nor is a promotion awaited that reaches no target", facts: open().with(landedBefore(ByPromotion, time.Minute)).with(func(f *ComponentFacts) { f.env("qa").Targets = nil }), env: "qa",
			why: "[{targets wait no ApplicationSet generates a target for this component in qa"},
		{name: "so many reverts hold everything until the oldest is over", facts: open().with(func(f *ComponentFacts) {
			f.Limits.RevertsByEnv, f.Limits.OldestRecentRevert = map[string]int{"qa": 3}, noon.Add(-time.Minute)
		}), env: "qa", why: "3 reverts were opened in qa within 10 minutes", next: 9 * time.Minute},
		{name: "fewer don't", facts: open().with(func(f *ComponentFacts) { f.Limits.RevertsByEnv = map[string]int{"qa": 2, "prod": 3} }), want: merge},
		{name: "nor where there is no limit", facts: open().with(func(f *ComponentFacts) {
			f.Limits.RevertsByEnv, f.Pipeline.Spec.Limits.RevertsPer10Minutes = map[string]int{"qa": 3}, 0
		}), want: merge},
		{name: "what a promotion brought before must have come to its end", facts: open().with(landedBefore(ByPromotion, watchWindow-time.Minute)), env: "qa", why: "qa is still verifying r0: web-qa: not yet", next: time.Minute},
		{name: "what a revert put back too", facts: open().with(landedBefore(ByRevert, watchWindow-time.Minute)), env: "qa", why: "qa is still verifying r0", next: time.Minute},
		{name: "until its watch is over", facts: open().with(landedBefore(ByPromotion, watchWindow)), want: merge},
		{name: "what was there before the pipeline needn't", facts: open().with(landedBefore(ByBaseline, time.Minute)), want: merge},
		{name: "a person's change that was taken over is merged over", facts: open().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("promote", "qa", "r2", noon)), want: merge},
		{name: "a person's change that nobody took over isn't", facts: open().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0).Landed.Value.Author = "" }), env: "qa", promo: Held, why: "qa was changed by hand by somebody meanwhile"},
	})
}

// TestDecideOpen has what becomes of an open pull request that is not merged.
func TestDecideOpen(t *testing.T) {
	open := func() *ComponentFacts { return arrivedFacts().pull("qa", "r2") }
	newer := func(f *ComponentFacts) {
		f.land("dev", "r3", ByPerson, 0)
		f.verified("dev").composed("qa", "r3")
	}
	reverted := func(f *ComponentFacts) {
		f.env("qa").PastPulls = []PastPull{{Number: 4, Revert: true, Merged: true, Release: id("r2"), At: noon.Add(-time.Hour)}}
	}
	// wentBack has dev at r1 again, newer than r2.
	wentBack := func(f *ComponentFacts) {
		f.land("dev", "r1", ByPerson, 0)
		f.verified("dev")
	}
	// vetoedBefore has the pull request of r2 closed by a person before r1 was merged into qa.
	vetoedBefore := func() *ComponentFacts {
		f := arrivedFacts().composed("qa", "r2")
		f.env("qa").PastPulls = []PastPull{{Number: 6, Release: id("r1"), Merged: true, At: noon}, {Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)}}
		return f
	}
	unmanaged := func(f *ComponentFacts) { f.env("qa").MarkUnmanaged("#3 by mallory") }
	spoilt := func(f *ComponentFacts) { f.env("qa").Open.MarkModified("it changes base/x") }
	replaced := []string{"compose #7 anew for r3: r3 is newer"}
	runCases(t, []decisionCase{
		{name: "what was reverted here is closed", facts: open().with(reverted), want: []string{"close #7: r2 was reverted from qa by #4"}},
		{name: "unless it was asked for since", facts: open().with(reverted).with(request("promote", "qa", "r2", noon)), want: []string{"merge #7 into qa at head"}},
		{name: "or just now", facts: open().with(reverted).with(request("promote", "qa", "", noon)), want: []string{"bind 3 to 723200000000 in qa", "merge #7 into qa at head"}},
		{name: "upstream went back", facts: open().with(wentBack), want: []string{"close #7: dev went back to r1, which qa carries"}},
		{name: "but it was asked for", facts: open().with(wentBack).with(request("promote", "qa", "r2", noon)), env: "qa", promo: Opened, why: "dev went back to r1, which qa carries; this one stays open: ada asked for it"},
		{name: "or is on hold", facts: open().with(wentBack).with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }), env: "qa", promo: Held, why: "dev went back to r1, which qa carries; this one stays open: it is on hold"},
		{name: "upstream has what qa has, from before", facts: open().with(func(f *ComponentFacts) {
			f.env("dev").History[1].By, f.env("dev").History[1].VerifiedAt = ByPerson, noon
		}), want: []string{"merge #7 into qa at head"}},
		{name: "a promote that is done is answered", facts: arrivedFacts().pull("qa", "r1").with(request("promote", "qa", "r1", noon)), want: []string{"close #7: qa already carries r1", "answer 3: qa already carries it"}},
		{name: "a promote of another release is answered", facts: open().with(request("promote", "qa", "r7", noon)), want: []string{"answer 3: another release took its place", "merge #7 into qa at head"}},
		{name: "what is there is no newer than what is open and isn't verified any more", facts: open().with(func(f *ComponentFacts) {
			f.land("qa", "r2", ByPromotion, 5)
			f.verified("qa").land("dev", "r3", ByPerson, 0)
			f.verdict("dev", verification.Soaking, "not yet").pull("qa", "r3")
		}), want: []string{"look: compose in prod"}, env: "qa", promo: Opened},
		{name: "promotes of other releases take no change by hand over", facts: open().with(func(f *ComponentFacts) {
			f.land("qa", "r9", ByPerson, 0)
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", Release: id("r7"), At: noon}, {ID: 4, Verb: "promote", Environment: "qa", Release: id("r8"), At: noon}}
		}), want: []string{"answer 3: another release took its place"}, env: "qa", why: "qa was changed by hand by linus meanwhile"},
		{name: "a promote of what is there by now is answered", facts: open().with(request("promote", "qa", "r1", noon)), want: []string{"answer 3: qa carries it", "merge #7 into qa at head"}},
		{name: "a promote while it is on hold means the open one", facts: open().with(newer).with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }).with(request("promote", "qa", "", noon)), want: []string{"bind 3 to 723200000000 in qa"}, env: "qa", promo: Held},
		{name: "a promote while the environment is on hold too", facts: open().with(newer).with(func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "environment", Environment: "qa"}}) }).with(request("promote", "qa", "", noon)), want: []string{"bind 3 to 723200000000 in qa"}, env: "qa", promo: Held},
		{name: "a promote of what a revert upstream brought back means the open one", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.land("qa", "r2", ByPromotion, 5)
			f.verified("qa").land("qa", "r3", ByPromotion, 6)
			f.land("qa", "r2", ByRevert, 9)
			f.verified("qa").pull("prod", "r2", "ada", "grace")
		}).with(request("promote", "prod", "", noon)), want: []string{"bind 3 to 723200000000 in prod", "merge #7 into prod at head"}},
		{name: "a newer takes its place, whose files changed too", facts: open().with(newer).with(func(f *ComponentFacts) { f.env("qa").Open.Stale = true }), want: replaced},
		{name: "one that the pipeline doesn't know upstream keeps nothing from being judged", facts: open().with(func(f *ComponentFacts) { f.env("qa").Spec.After = []string{"dev", "gone"} }), want: []string{"merge #7 into qa at head"}},
		{name: "the pipeline is on hold", facts: open().with(func(f *ComponentFacts) {
			f.Holds = Sure([]Hold{{Scope: "pipeline", By: "ada", At: noon, Reason: "the audit"}})
		}), env: "qa", promo: Held, why: "the pipeline is on hold by ada since 2026-03-02T12:00:00Z: the audit"},
		{name: "a person's change that was taken over isn't held", facts: open().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("promote", "qa", "r2", noon)), want: []string{"merge #7 into qa at head"}, env: "qa", promo: Opened},
		{name: "a newer takes its place", facts: open().with(newer), want: replaced},
		{name: "an approval of an older diff keeps nothing", facts: open().with(newer).with(func(f *ComponentFacts) {
			f.env("qa").Open.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true}}
		}), want: replaced},
		{name: "nor does one of who may not write", facts: open().with(newer).with(func(f *ComponentFacts) {
			f.env("qa").Open.Review.Approvals = []policies.Approval{{User: "ada", Current: true}}
		}), want: replaced},
		{name: "a hold of another environment keeps nothing", facts: open().with(newer).with(func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "environment", Environment: "prod"}}) }), want: replaced},
		{name: "the promote that opened it is answered when a newer comes", facts: open().with(newer).with(request("promote", "qa", "r2", noon)), want: []string{"answer 3: a newer release took its place", "compose #7 anew for r3: r3 is newer"}},
		{name: "the promote stays when it is composed anew for the same", facts: open().composed("qa", "r2").with(request("promote", "qa", "r2", noon)).with(func(f *ComponentFacts) { f.env("qa").Open.Stale = true }), want: []string{"compose #7 anew for r2: the files it edits changed on the tracked branch"}},
		{name: "nothing is composed under a broken pipeline file", facts: open().with(newer).with(func(f *ComponentFacts) { f.PipelineErr = "x" }), env: "qa", promo: Opened, why: "the pipeline file on the default branch is broken: x"},
		{name: "nor while targets can't be resolved", facts: open().with(newer).with(func(f *ComponentFacts) { f.Problems = []string{"x"} }), env: "qa", promo: Opened},
		{name: "nor over a person's change", facts: open().with(newer).with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }), env: "qa", promo: Held, state: Diverged},
		{name: "but where that was taken over", facts: open().with(newer).with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("promote", "qa", "r2", noon)), want: []string{"answer 3: a newer release took its place", "compose #7 anew for r3: r3 is newer"}},
		{name: "a newer that is refused keeps the open one", facts: open().with(newer).with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r3")] = Composition{Tip: tip, State: EditRefused, Reason: "shared"}
		}), want: []string{"merge #7 into qa at head"}, env: "qa", why: "shared"},
		{name: "a newer that isn't composed on this tip is composed first", facts: open().with(newer).with(func(f *ComponentFacts) { f.env("qa").Compositions[id("r3")] = Composition{Tip: "old"} }), want: []string{"look: compose in qa"}},
		{name: "a stale one that was not composed", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.Stale = true }), want: []string{"look: compose in qa"}},
		{name: "a stale one that can't be composed waits", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Stale = true
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditRefused, Reason: "shared"}
		}), env: "qa", promo: Opened, why: "it is composed anew"},

		{name: "retry with a stranger on the branch", facts: open().with(spoilt).with(unmanaged).with(request("retry", "qa", "", noon)), want: []string{"answer 3: #3 by mallory"}},
		{name: "retry of what is fine", facts: open().with(request("retry", "qa", "", noon)), want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed", "merge #7 into qa at head"}},
		{name: "retry of what is fine and has changed since", facts: open().with(func(f *ComponentFacts) { f.env("qa").Open.HeadSince = noon }).with(request("retry", "qa", "", noon.Add(-time.Second))), want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed", "merge #7 into qa at head"}},
		{name: "retry of what an endpoint failed", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Review.Endpoints = []policies.EndpointReading{{Outcome: policies.Fail}}
		}).with(request("retry", "qa", "", noon)), want: []string{"have the endpoints of #7 answer anew", "answer 3: the endpoints that #7 waits for are asked again", "merge #7 into qa at head"}},
		{name: "retry that was written before an endpoint failed", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Review.Endpoints = []policies.EndpointReading{{Endpoint: "other", Outcome: policies.Fail, At: noon.Add(-2 * time.Hour)}, {Endpoint: "board", Outcome: policies.Fail, At: noon.Add(-time.Hour)}, {Endpoint: "third", Outcome: policies.Wait, At: noon}}
		}).with(request("retry", "qa", "", noon.Add(-90*time.Minute))), want: []string{"answer 3: board said fail only after this was written; /liftlock retry again has it asked again", "merge #7 into qa at head"}},
		{name: "retry after several endpoints failed", facts: open().with(func(f *ComponentFacts) {
			f.env("qa").Open.Review.Endpoints = []policies.EndpointReading{{Endpoint: "board", Outcome: policies.Fail, At: noon.Add(-time.Hour)}, {Endpoint: "other", Outcome: policies.Fail, At: noon.Add(-2 * time.Hour)}}
		}).with(request("retry", "qa", "", noon.Add(-time.Hour))), want: []string{"have the endpoints of #7 answer anew", "answer 3: the endpoints that #7 waits for are asked again", "merge #7 into qa at head"}},
		{name: "retry that was written before somebody pushed drops nothing", facts: open().with(spoilt).composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.HeadSince = noon }).with(request("retry", "qa", "", noon.Add(-time.Second))),
			want: []string{"answer 3: #7 has had its head head only since about when this was written, so it may be about what was there before; look at it, and write /liftlock retry again to drop it"}},
		{name: "retry that was written once somebody had pushed drops it", facts: open().with(spoilt).composed("qa", "r2").with(func(f *ComponentFacts) { f.env("qa").Open.HeadSince = noon }).with(request("retry", "qa", "", noon)), want: []string{"compose #7 anew for r2: taken over by /liftlock retry", "answer 3: the pull request is composed anew"}},
		{name: "retry that was written before somebody pushed to the revert", facts: degradedInQA().openRevert("qa", "r2").with(func(f *ComponentFacts) {
			f.env("qa").Revert.HeadState, f.env("qa").Revert.HeadSince = HeadModified, noon
		}).with(request("retry", "qa", "", noon.Add(-time.Second))),
			want: []string{"record 723200000000 degraded in qa", "answer 3: #9 has had its head undo only since about when this was written, so it may be about what was there before; look at it, and write /liftlock retry again to drop it"}},
		{name: "retry leaves a revert of ours alone", facts: degradedInQA().openRevert("qa", "r2").with(request("retry", "qa", "", noon)), want: []string{"record 723200000000 degraded in qa", "verify qa again", "answer 3: the verification starts again"}, env: "qa", promo: Reverting},
		{name: "retry under a broken pipeline file", facts: open().with(spoilt).with(func(f *ComponentFacts) { f.PipelineErr = "x" }).with(request("retry", "qa", "", noon)), want: []string{"answer 3: the pipeline file on the default branch is broken: x"}},
		{name: "retry while targets can't be resolved", facts: open().with(spoilt).with(func(f *ComponentFacts) { f.Problems = []string{"x"} }).with(request("retry", "qa", "", noon)), want: []string{"answer 3: x"}},
		{name: "retry composes first", facts: open().with(spoilt).with(request("retry", "qa", "", noon)), want: []string{"look: compose in qa"}},
		{name: "retry composes on this tip", facts: open().with(spoilt).with(request("retry", "qa", "", noon)).with(func(f *ComponentFacts) { f.env("qa").Compositions[id("r2")] = Composition{Tip: "old"} }), want: []string{"look: compose in qa"}},
		{name: "retry of what can't be composed", facts: open().with(spoilt).with(request("retry", "qa", "", noon)).with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditRefused, Reason: "shared"}
		}), want: []string{"close #7: its head can't be composed anew: shared", "answer 3: #7 is closed; its head can't be composed anew: shared"}},
		{name: "retry of what changes nothing", facts: open().with(spoilt).with(request("retry", "qa", "", noon)).with(func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditEmpty}
		}), want: []string{"close #7: its head can't be composed anew: there is nothing to change", "answer 3: #7 is closed; its head can't be composed anew: there is nothing to change"}},
		{name: "retry of a release that nothing verified", facts: open().with(spoilt).with(request("retry", "qa", "", noon)).with(func(f *ComponentFacts) {
			f.env("qa").Open.Release, f.env("qa").Open.DeclaredRelease = id("r9"), Known[string]{}
		}),
			want: []string{"close #7: its head can't be composed anew: which release Liftlock put there can't be told", "answer 3: #7 is closed; its head can't be composed anew: which release Liftlock put there can't be told"}},
		{name: "retry lifts no veto before the last merge that keeps nothing out", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 6, Release: id("r1"), Merged: true, At: noon}, {Number: 4, Release: id("r0"), At: noon.Add(-time.Hour)}}
		}).composed("qa", "r2").with(request("retry", "qa", "", noon)), want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed", "open a promotion of r2 into qa"}},
		{name: "retry lifts a close of what would not come", facts: linearFacts().with(func(f *ComponentFacts) { f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r7")}} }).with(request("retry", "qa", "", noon)),
			want: []string{"forgive the closed #4", "answer 3: the closed #4 no longer counts"}},
		{name: "retry lifts no quarantine by a revert that was merged into another branch", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r2"), Revert: true, OnOtherBranch: true, At: noon}}
		}).composed("qa", "r2").with(request("retry", "qa", "", noon)), want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed"}},
		{name: "retry lifts no close that doesn't count", facts: linearFacts().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 4, Release: id("r7"), Superseded: true}}
		}).with(request("retry", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed"}},
		{name: "retry lifts no close from before the last merge where it can't be told what is there", facts: vetoedBefore().with(func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("line 3") }).with(request("retry", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed"}},
		{name: "nor who brought it", facts: vetoedBefore().with(func(f *ComponentFacts) { f.env("qa").Landed = Unsure[Landed]("the clone is shallow") }).with(request("retry", "qa", "", noon)),
			want: []string{"answer 3: there is nothing to retry in qa: nothing failed and nothing was closed"}},
		{name: "that was written before somebody closed it lifts nothing", facts: vetoedBefore().with(request("retry", "qa", "", noon.Add(-24*time.Hour))), want: []string{"answer 3: #4 was closed only after this was written; /liftlock retry again takes that back"}},
		{name: "but where it can it lifts the close that keeps a release out", facts: vetoedBefore().with(request("retry", "qa", "", noon)), want: []string{"forgive the closed #4", "answer 3: the closed #4 no longer counts", "open a promotion of r2 into qa"}},
		{name: "retry lifts what was closed before a revert, also what would not come", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 9, Revert: true, Merged: true, Release: id("r0"), At: noon}, {Number: 4, Release: id("r7"), At: noon.Add(-time.Hour)}}
		}).with(request("retry", "qa", "", noon)), want: []string{"forgive the closed #4", "answer 3: the closed #4 no longer counts", "look: compose in qa"}},
		{name: "retry lifts what was closed before a revert", facts: arrivedFacts().with(func(f *ComponentFacts) {
			f.env("qa").PastPulls = []PastPull{{Number: 9, Revert: true, Merged: true, Release: id("r0"), At: noon}, {Number: 4, Release: id("r2"), At: noon.Add(-time.Hour)}}
		}).composed("qa", "r2").with(request("retry", "qa", "", noon)), want: []string{"forgive the closed #4", "answer 3: the closed #4 no longer counts", "open a promotion of r2 into qa"}},
	})
}

// TestDecideRequestedRevert has what becomes of a revert that is asked for.
func TestDecideRequestedRevert(t *testing.T) {
	const closedAt = -2 * time.Minute
	closed := func(change func(*PastPull)) *ComponentFacts {
		f := arrivedFacts()
		f.land("qa", "r2", ByPromotion, 5)
		f.verified("qa").env("qa").Restore = Sure(Composition{Tip: tip})
		p := PastPull{Number: 9, Revert: true, Release: id("r2"), At: noon.Add(closedAt)}
		if change != nil {
			change(&p)
		}
		f.env("qa").PastPulls = append([]PastPull{p}, f.env("qa").PastPulls...)
		return f
	}
	opens := []string{"open a revert of #5 in qa"}
	before, after := noon.Add(closedAt-time.Second), noon.Add(closedAt)
	runCases(t, []decisionCase{
		{name: "after a person closed one", facts: closed(nil).with(request("revert", "qa", "", after)), want: opens},
		{name: "and before", facts: closed(nil).with(request("revert", "qa", "", before)), want: []string{"answer 3: the revert #9 was closed by a person since", "look: compose in prod"}},
		{name: "before we closed one", facts: closed(func(p *PastPull) { p.Superseded = true }).with(request("revert", "qa", "", before)), want: opens},
		{name: "before a person closed one of something else", facts: closed(func(p *PastPull) { p.Release = id("r7") }).with(request("revert", "qa", "", before)), want: opens},
		{name: "of the very second in which what is there landed", facts: closed(func(p *PastPull) { p.At = noon.Add(-5 * time.Minute) }).with(request("revert", "qa", "", noon.Add(-5*time.Minute))), want: opens},
		{name: "before what is there landed", facts: closed(func(p *PastPull) { p.At = noon.Add(-5 * time.Minute) }).with(request("revert", "qa", "", noon.Add(-5*time.Minute-time.Second))),
			want: []string{"answer 3: #5 brought r2 to qa only after this was written; /liftlock revert again takes that back", "look: compose in prod"}},
		{name: "before what is there landed, while its revert is open", facts: closed(nil).with(func(f *ComponentFacts) { f.openRevert("qa", "r2") }).with(request("revert", "qa", "", noon.Add(-time.Hour))),
			want: []string{"answer 3: #5 brought r2 to qa only after this was written; /liftlock revert again takes that back"}},
		{name: "before somebody changed it by hand", facts: closed(nil).with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }).with(request("revert", "qa", "", noon.Add(-time.Hour))),
			want: []string{"answer 3: what qa carries was not brought by a promotion, so there is nothing to take back"}, env: "prod", promo: Idle, why: "r2 was taken back from qa"},
		{name: "before a promotion was closed", facts: closed(func(p *PastPull) { p.Revert = false }).with(request("revert", "qa", "", before)), want: opens},
		{name: "where nothing can be read", facts: closed(nil).with(request("revert", "qa", "", after)).with(func(f *ComponentFacts) { f.env("qa").Landed = Unsure[Landed]("gone") }), want: []string{"answer 3: qa can't be read: gone", "look: compose in prod"}},
		{name: "with a stranger on its branch", facts: closed(nil).with(request("revert", "qa", "", after)).with(func(f *ComponentFacts) { f.env("qa").MarkRevertUnmanaged("#3 by mallory") }), want: []string{"answer 3: #3 by mallory", "look: compose in prod"}},
		{name: "that can't be composed", facts: closed(nil).with(request("revert", "qa", "", after)).with(func(f *ComponentFacts) { f.env("qa").Restore = Unsure[Composition]("changed since") }),
			want: []string{"answer 3: the revert can't be composed: changed since", "look: compose in prod"}},
		{name: "that is refused on another tip is composed again", facts: closed(nil).with(request("revert", "qa", "", after)).with(func(f *ComponentFacts) {
			f.env("qa").Restore = Sure(Composition{Tip: "old", State: EditRefused, Reason: "changed since"})
		}), want: []string{"look: restore in qa", "look: compose in prod"}},
	})
}

// TestVerifiedInAll holds what the history proves, and that it proves nothing by itself.
func TestVerifiedInAll(t *testing.T) {
	envs := []Env{
		{Name: "dev", History: []Arrival{{Release: id("r3")}, {Release: id("r2"), VerifiedAt: noon}}},
		{Name: "qa", History: []Arrival{{Release: id("r2"), VerifiedAt: noon, DegradedAt: noon.Add(time.Hour)}}},
		{Name: "prod"},
	}
	for _, c := range []struct {
		name, release string
		after         []string
		want          bool
	}{
		{"verified in all", "r2", []string{"dev", "qa"}, true},
		{"there, and not verified", "r3", []string{"dev"}, false},
		{"verified in one of two", "r2", []string{"dev", "prod"}, false},
		{"another one was", "r1", []string{"dev"}, false},
		{"an environment that isn't there", "r2", []string{"dev", "moon"}, false},
		{"a source environment", "r2", nil, false},
	} {
		if got := VerifiedInAll(envs, c.after, id(c.release)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestArrivalsThatMoveOnward holds whose arrivals carry a release on.
func TestArrivalsThatMoveOnward(t *testing.T) {
	source, middle := linearFacts().env("dev"), linearFacts().env("qa")
	for _, c := range []struct {
		by        string
		env       *Env
		requested bool
		want      bool
	}{
		{ByPromotion, middle, false, true},
		{ByPerson, source, false, true},
		{ByPerson, middle, true, false},
		{ByBaseline, source, false, false},
		{ByBaseline, source, true, true},
		{ByRevert, middle, false, false},
		{ByRevert, middle, true, true},
		{"", source, true, false},
	} {
		if got := (&evaluator{spec: &pipeline.Spec{}}).canMoveOnward(c.env, &Arrival{By: c.by}, c.requested); got != c.want {
			t.Errorf("%q in %s, requested %t: %t, want %t", c.by, c.env.Name, c.requested, got, c.want)
		}
	}
}

// TestReadySinceTheLast holds since when a release could have come where several must have
// verified it, and that it is as new as its newest arrival there.
func TestReadySinceTheLast(t *testing.T) {
	for _, later := range []string{"dev", "qa"} {
		f := linearFacts()
		f.Pipeline.Spec.Environments[1].After, f.Envs[1].Spec.After = nil, nil
		f.Envs[2].Spec.After = []string{"dev", "qa"}
		for _, name := range []string{"dev", "qa"} {
			f.land(name, "r2", ByPerson, 0).History[0].VerifiedAt = noon.Add(-time.Hour)
		}
		f.env(later).History[0].VerifiedAt = noon.Add(-time.Minute)
		d := decideAlone(t, *f)
		st := d.Env("prod")
		if st.Candidate != id("r2") || !st.ReadySince.Equal(noon.Add(-time.Minute)) {
			t.Errorf("verified last in %s: %q could come since %s", later, st.CandidateName, st.ReadySince)
		}
	}
}

// TestUntoldTargets names those of which a person should look why nobody can tell how they are.
func TestUntoldTargets(t *testing.T) {
	st := EnvState{Targets: map[string]TargetView{"web-b": {Untold: true}, "web-c": {}, "web-a": {Untold: true}}}
	if got := st.UntoldTargets(); !slices.Equal(got, []string{"web-a", "web-b"}) {
		t.Errorf("they are %q", got)
	}
}

// TestSameRelease holds that too short an identity matches nothing.
func TestSameRelease(t *testing.T) {
	full := id("r2")
	for short, want := range map[string]bool{full: true, full[:12]: true, full[:11]: false, "": false, id("r3")[:12]: false} {
		if got := SameRelease(full, short); got != want {
			t.Errorf("%q: %t, want %t", short, got, want)
		}
	}
}

// TestUpstreamIsListedOnce holds that an environment that several ways lead from is listed once,
// and that a circle ends.
func TestUpstreamIsListedOnce(t *testing.T) {
	after := func(name string, names ...string) Env {
		return Env{Name: name, Spec: pipeline.Environment{After: names}}
	}
	for name, c := range map[string]struct {
		envs []Env
		want []string
	}{
		"two ways from dev":           {[]Env{after("dev"), after("eu", "dev"), after("us", "dev"), after("prod", "eu", "us")}, []string{"eu", "dev", "us"}},
		"a circle":                    {[]Env{after("eu", "us"), after("us", "eu"), after("prod", "eu")}, []string{"eu", "us"}},
		"one that the pipeline lacks": {[]Env{after("dev"), after("prod", "moon", "dev")}, []string{"dev"}},
		"a source":                    {[]Env{after("prod")}, nil},
	} {
		var got []string
		j := &evaluator{facts: &ComponentFacts{Envs: c.envs}}
		for _, u := range j.listUpstream(j.facts.findEnv("prod")) {
			got = append(got, u.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// incomplete has a part of a release stay behind that is composed into an environment.
func incomplete(env, release string) func(*ComponentFacts) {
	return func(f *ComponentFacts) {
		c := f.env(env).Compositions[id(release)]
		c.Incomplete = "the ref stays behind"
		f.env(env).Compositions[id(release)] = c
	}
}
