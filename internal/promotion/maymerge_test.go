package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// twoPromotedToQA is the line with r2 and then r3 promoted to qa and verified there; prod is at r1 and has
// no gates.
func twoPromotedToQA() *ComponentFacts {
	f := linearFacts()
	f.env("prod").Gates, f.env("prod").Spec.Gates = nil, nil
	f.Pipeline.Spec.Environments[2].Gates = nil
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").land("qa", "r2", ByPromotion, 5)
	f.verified("qa").land("dev", "r3", ByPerson, 0)
	f.verified("dev").land("qa", "r3", ByPromotion, 6)
	return f.verified("qa").composed("prod", "r2").composed("prod", "r3")
}

// pushed says that the release of the open promotion isn't known to be the one that we put there.
func (c *ComponentFacts) pushed(env, put string) *ComponentFacts {
	c.env(env).Open.DeclaredRelease = Known[string]{}
	if put != "" {
		c.env(env).Open.DeclaredRelease = Sure(id(put))
	}
	return c
}

// byHand has a person put a release into an environment.
func byHand(env, release string) func(*ComponentFacts) {
	return func(f *ComponentFacts) { f.land(env, release, ByPerson, 0) }
}

// wentBackUnverified has dev and qa back at r1, which qa verifies.
func wentBackUnverified(f *ComponentFacts) {
	f.land("dev", "r1", ByPerson, 0)
	f.verified("dev").land("qa", "r1", ByPromotion, 8)
	f.verdict("qa", verification.Soaking, "healthy for a moment")
}

// TestWithdrawnUpstream holds that a release that people withdrew from an environment is neither
// opened for the next one nor merged there, until it is there again.
func TestWithdrawnUpstream(t *testing.T) {
	wasWithdrawn := "r3 was taken back from qa at 2026-03-02T11:55:00Z; it goes on once it is there again and verified"
	approve := func(f *ComponentFacts) {
		f.env("prod").Open.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true, Current: true}}
	}
	for _, c := range []decisionCase{
		{name: "by hand to what was there before", facts: twoPromotedToQA().with(byHand("qa", "r2")), want: []string{"open a promotion of r2 into prod"}, env: "prod", why: wasWithdrawn},
		{name: "by hand to what prod has", facts: twoPromotedToQA().with(byHand("qa", "r1")), env: "prod", promo: Idle},
		{name: "by hand to something else", facts: twoPromotedToQA().with(byHand("qa", "hotfix")), want: []string{"open a promotion of r2 into prod"}, env: "prod", why: wasWithdrawn},
		{name: "by hand to what was there before, while it is open", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("qa", "r2")), want: []string{"close #7: " + wasWithdrawn}},
		{name: "by hand to what prod has, while it is open", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("qa", "r1")), want: []string{"close #7: qa went back to r1, which prod carries"}},
		{name: "by hand to something else, while it is open", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("qa", "hotfix")), want: []string{"close #7: " + wasWithdrawn}},
		{name: "by hand, while it is approved", facts: twoPromotedToQA().pull("prod", "r3").with(approve).with(byHand("qa", "hotfix")), env: "prod", promo: Opened, why: "[{upstream wait " + wasWithdrawn},
		{name: "by hand, and nobody knows any more what was there", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("qa", "hotfix")).with(func(f *ComponentFacts) {
			f.env("qa").History = f.env("qa").History[:1]
		}), want: []string{"close #7: qa was changed by hand to hotfix, and whether r3 was taken back there is not known any more"}},
		{name: "dev and qa went back, which qa hasn't verified yet", facts: twoPromotedToQA().pull("prod", "r3").with(wentBackUnverified), want: []string{"close #7: qa went back to r1, which prod carries"}},
		{name: "dev and qa went back, and nothing is open", facts: twoPromotedToQA().with(wentBackUnverified), env: "prod", promo: Idle},
		{name: "dev went back to something in between", facts: twoPromotedToQA().pull("prod", "r3").composed("qa", "r2").with(byHand("dev", "r2")).verdict("dev", verification.Soaking, "a moment"),
			want: []string{"close #7: r3 was taken back from dev at 2026-03-02T11:55:00Z; it goes on once it is there again and verified"}},
		{name: "dev went back, and qa hasn't it yet", facts: linearFacts().with(byHand("dev", "r2")).verified("dev").pull("qa", "r2").with(byHand("dev", "r1")).verdict("dev", verification.Soaking, "a moment"),
			want: []string{"close #7: dev went back to r1, which qa carries"}},
		{name: "and however much arrived since", facts: twoPromotedToQA().pull("prod", "r3").with(approve).with(byHand("dev", "r2")).with(byHand("dev", "r4")).verdict("dev", verification.Soaking, "a moment"),
			env: "prod", promo: Opened, why: "r3 was taken back from dev"},
		{name: "a newer one takes its place though it is approved", facts: twoPromotedToQA().pull("prod", "r3").with(approve).with(byHand("qa", "hotfix")).composed("prod", "r4").with(byHand("dev", "r4")).verified("dev").with(func(f *ComponentFacts) {
			f.land("qa", "r4", ByPromotion, 8)
		}).verified("qa"), want: []string{"compose #7 anew for r4: r4 is newer"}},
		{name: "until it is there again", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("qa", "hotfix")).with(func(f *ComponentFacts) { f.land("qa", "r3", ByPromotion, 8) }).verified("qa"),
			want: []string{"merge #7 into prod at head"}},
		{name: "where it is back again in dev", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("dev", "r2")).with(byHand("dev", "r3")).verified("dev"), want: []string{"merge #7 into prod at head"}},
		{name: "not by a promote", facts: twoPromotedToQA().with(byHand("qa", "r1")).with(request("promote", "prod", "", noon)), want: []string{"answer 3: there is nothing to promote to prod"}, env: "prod", promo: Idle},
		{name: "one that was there before goes on", facts: twoPromotedToQA().pull("prod", "r2").with(approve).with(byHand("qa", "r2")), want: []string{"merge #7 into prod at head"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestOneOfTwoWithdrew holds that one of two environments before that went back keeps what it went back
// from, also where the other hasn't gone back yet.
func TestOneOfTwoWithdrew(t *testing.T) {
	f := linearFacts()
	specs := f.Pipeline.Spec.Environments
	load := specs[1]
	load.Name = "load"
	specs[2].After, specs[2].Gates = []string{"qa", "load"}, nil
	f.Pipeline.Spec.Environments = []pipeline.Environment{specs[0], specs[1], load, specs[2]}
	env, prod := f.Envs[1], f.Envs[2]
	env.Name, env.Spec, env.Compositions = "load", load, map[string]Composition{}
	env.Targets = []Target{{Name: "web-load", Cluster: "one", Verdict: verification.Verdict{State: verification.Verified}}}
	env.History = []Arrival{{Seq: 9, Release: id("r1"), Name: "r1", Commit: "base", By: ByBaseline, At: noon.Add(-24 * time.Hour)}}
	prod.Spec, prod.Gates = specs[2], nil
	f.Envs = []Env{f.Envs[0], f.Envs[1], env, prod}
	f.land("dev", "r2", ByPerson, 0)
	f.verified("dev").land("qa", "r2", ByPromotion, 5)
	f.verified("qa").land("load", "r2", ByPromotion, 6)
	f.verified("load").land("dev", "r1", ByPerson, 0)
	f.verified("dev").land("qa", "r1", ByPromotion, 8)
	f.verified("qa").composed("load", "r1").composed("prod", "r2").pull("prod", "r2")
	decisionCase{facts: f, want: []string{"open a promotion of r1 into load", "close #7: qa, load went back to r1, which prod carries"}}.check(t)
}

// TestPushedOverHead holds that a release that a person pushes over an open promotion is taken for
// that person's work, unless it could be opened now. Even then it is composed anew.
func TestPushedOverHead(t *testing.T) {
	fourth := func() *ComponentFacts {
		f := twoPromotedToQA()
		f.land("prod", "r3", ByPromotion, 9)
		f.verified("prod").land("dev", "r4", ByPerson, 0)
		f.verified("dev").land("qa", "r4", ByPromotion, 10)
		return f.verified("qa").composed("prod", "r4")
	}
	closed := func(f *ComponentFacts) {
		f.env("prod").PastPulls = append([]PastPull{{Number: 3, Release: id("r4"), At: noon.Add(-time.Hour)}}, f.env("prod").PastPulls...)
	}
	manual := func(f *ComponentFacts) { f.env("prod").Spec.Open = pipeline.Manual }
	for _, c := range []decisionCase{
		{name: "older than what is there", facts: fourth().pull("prod", "r2", "mallory").pushed("prod", "r4"), env: "prod", promo: Held,
			why: "#7 carries r2, which isn't known to be what Liftlock put there and wouldn't be opened now: prod carries r3, which came to qa later than r2; nothing is done with it until /liftlock retry"},
		{name: "older, and nobody knows what was there", facts: fourth().pull("prod", "r2", "mallory").pushed("prod", ""), env: "prod", promo: Held, why: "wouldn't be opened now"},
		{name: "closed by a person before", facts: fourth().with(closed).pull("prod", "r4", "mallory").pushed("prod", "r5"), env: "prod", promo: Held, why: "#3 with r4 was closed by a person"},
		{name: "that nothing before has verified", facts: fourth().pull("prod", "r9", "mallory").pushed("prod", "r4"), env: "prod", promo: Held, why: "qa has not verified"},
		{name: "that nobody asked for", facts: fourth().with(manual).pull("prod", "r4", "mallory").pushed("prod", "r3"), env: "prod", promo: Held, why: "open: manual, and nobody asked for it"},
		{name: "that somebody asks for", facts: fourth().with(manual).pull("prod", "r4", "mallory").pushed("prod", "r3").with(request("promote", "prod", "", noon)),
			want: []string{"bind 3 to 723400000000 in prod", "compose #7 anew for r4: its head isn't known to be Liftlock's own"}},
		{name: "the one that would be opened", facts: fourth().pull("prod", "r4", "mallory").pushed("prod", "r3"), want: []string{"compose #7 anew for r4: its head isn't known to be Liftlock's own"}},
		{name: "one that could, before a newer", facts: twoPromotedToQA().pull("prod", "r2", "mallory").pushed("prod", "r3"), want: []string{"compose #7 anew for r3: r3 is newer"}},
		{name: "and it is on hold", facts: fourth().pull("prod", "r4", "mallory").pushed("prod", "r3").with(func(f *ComponentFacts) { f.env("prod").Open.Held = true }), env: "prod", promo: Held,
			why: "its head isn't known to be Liftlock's own"},
		{name: "what prod carries", facts: fourth().pull("prod", "r3", "mallory").pushed("prod", "r4"), want: []string{"close #7: prod already carries r3"}},
		{name: "retry composes what was put there", facts: fourth().pull("prod", "r2", "mallory").pushed("prod", "r4").with(request("retry", "prod", "", noon)),
			want: []string{"compose #7 anew for r4: taken over by /liftlock retry", "answer 3: the pull request is composed anew"}},
		{name: "retry closes it where nobody knows what was put there", facts: fourth().pull("prod", "r2", "mallory").pushed("prod", "").with(request("retry", "prod", "", noon)),
			want: []string{"close #7: its head can't be composed anew: which release Liftlock put there can't be told", "answer 3: #7 is closed; its head can't be composed anew: which release Liftlock put there can't be told"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestVetoOverOpen holds that a promotion waits whose release was closed by a person before, until a
// person with the right says otherwise.
func TestVetoOverOpen(t *testing.T) {
	closed := func(at time.Time) *ComponentFacts {
		return twoPromotedToQA().pull("prod", "r3").with(func(f *ComponentFacts) {
			f.env("prod").PastPulls = []PastPull{{Number: 3, Release: id("r3"), At: at}}
		})
	}
	before := noon.Add(-time.Hour)
	for _, c := range []decisionCase{
		{name: "it waits", facts: closed(before), env: "prod", promo: Opened, why: "[{closed wait #3 with r3 was closed by a person"},
		{name: "asked for since", facts: closed(before).with(request("promote", "prod", "r3", noon)), want: []string{"merge #7 into prod at head"}},
		{name: "asked for before", facts: closed(noon).with(request("promote", "prod", "r3", before)), env: "prod", promo: Opened, why: "#3 with r3 was closed by a person"},
		{name: "retried", facts: closed(before).with(request("retry", "prod", "", noon)), want: []string{"forgive the closed #3", "answer 3: the closed #3 no longer counts", "merge #7 into prod at head"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestPutByHandAsPromoted holds that a person who puts into an environment what would be promoted there
// ends the divergence, and that nothing else does.
func TestPutByHandAsPromoted(t *testing.T) {
	const adopted = "record 723300000000 put there by hand, as it would have been promoted, in prod"
	next := func(f *ComponentFacts) {
		f.land("dev", "r4", ByPerson, 0)
		f.verified("dev").land("qa", "r4", ByPromotion, 10)
		f.verified("qa").composed("prod", "r4")
	}
	adopt := func(f *ComponentFacts) { f.env("prod").History[0].By, f.env("prod").Landed.Value.By = ByHand, ByHand }
	for _, c := range []decisionCase{
		{name: "the newest that is verified", facts: twoPromotedToQA().with(byHand("prod", "r3")), want: []string{adopted, "record 723300000000 verified in prod"}, env: "prod", state: Verified},
		{name: "while it was open", facts: twoPromotedToQA().pull("prod", "r3").with(byHand("prod", "r3")), want: []string{adopted, "record 723300000000 verified in prod", "close #7: prod already carries r3"}},
		{name: "the next one comes", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(adopt).verified("prod").with(next), want: []string{"open a promotion of r4 into prod"}, env: "prod", state: Verified},
		{name: "what is there is to be verified first", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(adopt).verdict("prod", verification.Soaking, "a moment").with(next).pull("prod", "r4"), env: "prod", promo: Opened, why: "prod is still verifying r3"},
		{name: "it can't be taken back by itself", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(adopt).verdict("prod", verification.Degraded, "bad"), want: []string{"record 723300000000 degraded in prod"}, env: "prod", state: Degraded, why: "was not brought by a promotion"},
		{name: "one that was verified once", facts: twoPromotedToQA().with(byHand("prod", "r2")), env: "prod", state: Diverged},
		{name: "a hotfix", facts: twoPromotedToQA().with(byHand("prod", "hotfix")), env: "prod", state: Diverged},
		{name: "that qa hasn't verified", facts: twoPromotedToQA().with(func(f *ComponentFacts) { f.env("qa").History[0].VerifiedAt = time.Time{} }).verdict("qa", verification.Soaking, "a moment").with(byHand("prod", "r3")), env: "prod", state: Diverged},
		{name: "that a person closed", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(func(f *ComponentFacts) {
			f.env("prod").PastPulls = []PastPull{{Number: 3, Release: id("r3"), At: noon.Add(-time.Hour)}}
		}), env: "prod", state: Diverged},
		{name: "that was reverted", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(func(f *ComponentFacts) { f.env("prod").RevertedReleases = []string{id("r3")[:12]} }), env: "prod", state: Diverged},
		{name: "that was taken back upstream", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(byHand("qa", "hotfix")), env: "prod", state: Diverged},
		{name: "with a broken pipeline file", facts: twoPromotedToQA().with(byHand("prod", "r3")).with(func(f *ComponentFacts) { f.PipelineErr = "line 3" }), env: "prod", state: Diverged},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestApprovalThatCountsForNoGate holds that an approval keeps a promotion in its place before a newer one
// only where it counts for a gate.
func TestApprovalThatCountsForNoGate(t *testing.T) {
	approvals := func(gate policies.Approvals, authors ...string) func(*ComponentFacts) {
		return func(f *ComponentFacts) {
			f.env("prod").Gates = []policies.Gate{{Approvals: &gate}}
			for _, login := range authors {
				f.env("prod").Open.Review.Authors = append(f.env("prod").Open.Review.Authors, policies.Account{Login: login})
			}
		}
	}
	replaced := []string{"compose #7 anew for r3: r3 is newer"}
	open := func() *ComponentFacts { return twoPromotedToQA().pull("prod", "r2", "ada") }
	for _, c := range []decisionCase{
		{name: "an approver's", facts: open().with(approvals(policies.Approvals{Count: 2})), env: "prod", promo: Opened, why: "r3 is newer and waits its turn behind this one: it is approved"},
		{name: "the author's", facts: open().with(approvals(policies.Approvals{Count: 2}, "ada")), want: replaced},
		{name: "of somebody who isn't asked", facts: open().with(approvals(policies.Approvals{Count: 2, From: policies.From{Users: []string{"grace"}}})), want: replaced},
		{name: "for the floor", facts: open().with(approvals(policies.Approvals{Count: 2, From: policies.From{Users: []string{"grace"}}})).with(func(f *ComponentFacts) {
			f.env("prod").Open.Review.ReviewRequests.Names = []string{"grace"}
			f.env("prod").Floor = []policies.Gate{{Approvals: &policies.Approvals{Count: 2}}}
		}), env: "prod", promo: Opened, why: "r3 is newer and waits its turn behind this one: it is approved"},
		{name: "where nobody asks for approvals", facts: open().with(func(f *ComponentFacts) { f.env("prod").Gates = []policies.Gate{{Soak: &policies.Soak{For: time.Hour}}} }).with(func(f *ComponentFacts) {
			f.env("qa").History[1].Soak.Longest = time.Minute
			f.env("prod").Gates[0].Soak.Environment = "dev"
		}).with(func(f *ComponentFacts) { f.env("dev").History[1].Soak.Longest = 2 * time.Hour }), want: []string{"merge #7 into prod at head"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// TestAdoptByHand says when a person's own change of an environment counts as the release that
// would have been promoted there. It doesn't where something newer was there, even where that can't
// go on at the moment.
func TestAdoptByHand(t *testing.T) {
	degradedInDev := func(f *ComponentFacts) {
		f.env("dev").History[0].MarkDegraded(noon)
		f.verdict("dev", verification.Degraded, "unwell")
	}
	on := []string{"open a promotion of r2 into prod"} // which is in qa
	for _, c := range []decisionCase{
		{name: "what would be promoted", facts: linearFacts().with(byHand("dev", "r2")).verified("dev").with(byHand("qa", "r2")).verified("qa"),
			want: []string{"record " + wording.Short(id("r2")) + " put there by hand, as it would have been promoted, in qa", "look: compose in prod"}},
		{name: "what was there before", facts: twoPromotedToQA().with(degradedInDev).with(byHand("qa", "r2")), want: on, env: "qa", state: Diverged},
		{name: "what a reset brought back", facts: twoPromotedToQA().with(degradedInDev).with(func(f *ComponentFacts) {
			qa := f.env("qa")
			qa.History[0].WithdrawnAt = noon
			qa.Release, qa.Landed = Sure(Release{ID: id("r2"), Name: "r2"}), Sure(Landed{Commit: qa.History[1].Commit, By: ByPerson, ResetFrom: "r3"})
		}), want: on, env: "qa", state: Diverged},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}
