package prtext

import (
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// The releases of the small world that the goldens are about.
var (
	oldRelease = strings.Repeat("0f", 32)
	newRelease = strings.Repeat("a1", 32)
	commit     = strings.Repeat("c0ffee12", 5)
)

// at is a time of the world's day.
func at(hour, minute int) time.Time { return time.Date(2026, 3, 9, hour, minute, 30, 0, time.UTC) }

// promotionInput has three environments; 1.5.0 was verified in dev and qa and waits for prod.
func promotionInput() Input {
	minutes := func(n int) pipeline.Duration { return pipeline.Duration(time.Duration(n) * time.Minute) }
	verify := pipeline.Verify{ArriveWithin: minutes(15), Timeout: minutes(10), HealthyFor: minutes(1), Watch: minutes(30), IgnoreMissingHealth: true}
	arrival := func(seq int64, release, name, by string, h, m int) promotion.Arrival {
		return promotion.Arrival{Seq: seq, Release: release, Name: name, By: by, Commit: commit, At: at(h, m), VerifiedAt: at(h, m+5)}
	}
	approvals := policies.Gate{Approvals: &policies.Approvals{Count: 2, From: policies.From{Users: []string{"ada", "grace"}}}}
	newer := strings.Repeat("b2", 32)
	envs := []promotion.Env{
		{
			Name: "dev", Spec: pipeline.Environment{Name: "dev", Verify: verify},
			Release: promotion.Sure(promotion.Release{ID: newer, Name: "1.6.0"}),
			Landed:  promotion.Sure(promotion.Landed{Commit: commit, At: at(11, 0), By: promotion.ByPerson}),
			History: []promotion.Arrival{
				{Seq: 5, Release: newer, Name: "1.6.0", By: promotion.ByPerson, Commit: commit, At: at(11, 0)},
				arrival(3, newRelease, "1.5.0", promotion.ByPerson, 8, 0),
				arrival(1, oldRelease, "1.4.2", promotion.ByPerson, 6, 0),
			},
		},
		{
			Name: "qa", Spec: pipeline.Environment{Name: "qa", After: []string{"dev"}, Merge: "auto", OnDegraded: pipeline.OnDegraded{Action: "revert"}, Verify: verify},
			Release: promotion.Sure(promotion.Release{ID: newRelease, Name: "1.5.0"}),
			Landed:  promotion.Sure(promotion.Landed{Commit: commit, At: at(9, 0), By: promotion.ByPromotion, Pull: 12}),
			History: []promotion.Arrival{arrival(4, newRelease, "1.5.0", promotion.ByPromotion, 9, 0), arrival(2, oldRelease, "1.4.2", promotion.ByPromotion, 7, 0)},
		},
		{
			Name: "prod", Spec: pipeline.Environment{Name: "prod", After: []string{"qa"}, Merge: "auto", OnDegraded: pipeline.OnDegraded{Action: "revert"}, Gates: []policies.Gate{approvals}, Verify: verify},
			Gates:   []policies.Gate{approvals},
			Release: promotion.Sure(promotion.Release{ID: oldRelease, Name: "1.4.2"}),
			Landed:  promotion.Sure(promotion.Landed{Commit: commit, At: at(7, 30), By: promotion.ByPromotion, Pull: 8}),
			History: []promotion.Arrival{arrival(2, oldRelease, "1.4.2", promotion.ByPromotion, 7, 30)},
			Open:    &promotion.Pull{Number: 14, Release: newRelease, Name: "1.5.0", CreatedAt: at(9, 10)},
		},
	}
	waits := policies.Result{Gate: "approvals", Outcome: policies.Wait, Reason: "1 of 2 approvals (ada); waiting for 1 more from grace", Brief: "grace (1 of 2)", Who: []string{"grace"}}
	view := func(state, reason string, h, m int) promotion.TargetView {
		return promotion.TargetView{State: state, Reason: reason, Since: at(h, m)}
	}
	one := Member{
		Member: promotion.Member{Component: "web", Release: newRelease, Name: "1.5.0"},
		Facts: &promotion.ComponentFacts{
			Unit:     promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"},
			Pipeline: &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}, Spec: pipeline.Spec{Mode: pipeline.ModeAct}},
			Envs:     envs,
		},
		Decision: &promotion.ComponentDecision{Envs: []promotion.EnvState{
			{
				Environment: "dev", State: promotion.Verifying, Promotion: promotion.Idle, Release: newer, Name: "1.6.0", Since: at(11, 0),
				Reason:  "web-dev-eu: synced; waiting for it to be healthy",
				Targets: map[string]promotion.TargetView{"web-dev-eu": view("progressing", "1 of 3 replicas are available", 11, 1)},
			},
			{
				Environment: "qa", State: promotion.Verified, Promotion: promotion.Idle, Release: newRelease, Name: "1.5.0", Since: at(9, 0), VerifiedAt: at(9, 5),
				Reason: "synced and healthy on 2 targets", LandedPull: 12, LandedBy: promotion.ByPromotion, Commit: commit,
				Targets: map[string]promotion.TargetView{"web-qa-eu": view("verified", "healthy", 9, 5), "web-qa-us": view("verified", "healthy", 9, 4)},
				Why:     []promotion.Reason{{Code: "unverified", Text: "dev has not verified 1.6.0: web-dev-eu: synced; waiting for it to be healthy"}},
			},
			{
				Environment: "prod", State: promotion.Verified, Promotion: promotion.Opened, Release: oldRelease, Name: "1.4.2", Since: at(7, 30), VerifiedAt: at(7, 35),
				Reason: "synced and healthy on 2 targets", LandedPull: 8, LandedBy: promotion.ByPromotion, Commit: commit,
				Candidate: newRelease, CandidateName: "1.5.0", Pull: 14, Gates: []policies.Result{waits},
			},
		}},
		Commits: []ReleaseCommits{{Source: "dev", Since: "1.4.2", CompareURL: "https://git.example/acme/fleet/compare/0f0f0f0f0f0f...c0ffee12c0ff",
			Commits: []ReleaseCommit{
				{SHA: commit, URL: "https://git.example/acme/fleet/commit/c0ffee12c0ff", Subject: "Release web 1.5.0 (#11)", Authors: []string{"Ada Lovelace"}, At: at(8, 0)},
				{SHA: strings.Repeat("decade12", 5), Subject: "Release web 1.4.3, asked for by @grace", Authors: []string{"Grace Hopper", "Ada Lovelace"}, At: at(6, 30)},
			},
			Skipped: []promotion.Release{{ID: strings.Repeat("c3", 32), Name: "1.4.3"}}}},
	}
	return Input{
		Members:     []Member{one},
		Environment: "prod", Number: 14, Release: newRelease, Name: "1.5.0",
		Changes: []Change{
			{File: "overlays/prod/web/kustomization.yaml", Path: "images[name=registry.example/web].newTag", Old: "1.4.2", New: "1.5.0", Line: 12},
		},
		Reached: []Target{
			{Name: "web-prod-eu", Component: "web", Environment: "prod", Cluster: "eu-1"},
			{Name: "web-prod-us", Component: "web", Environment: "prod", Cluster: "us-1"},
		},
		UnaffectedCounts: map[string]int{"dev": 12, "qa": 12, "prod": 22},
		ConsoleURL:       "https://liftlock.example.com/pipelines/shop/web",
		DiffURL:          "https://liftlock.example.com/diff?component=web&environment=prod&kind=promotion&pipeline=shop&release=9c0f4e0d9f9f&repository=hub%3Aacme%2Ffleet",
		BodyMarker:       "<!-- liftlock:promotion release=" + newRelease + " -->",
		Now:              at(12, 0),
	}
}

// revertInput is the world in which 1.5.0 degraded in qa and its revert is open.
func revertInput() Input {
	in := promotionInput()
	e, st := &in.Members[0].Facts.Envs[1], &in.Members[0].Decision.Envs[1]
	e.History[0].DegradedAt = at(9, 20)
	e.Revert = &promotion.Pull{Number: 15, Release: newRelease, Name: "1.5.0", CreatedAt: at(9, 21)}
	st.State, st.Promotion, st.Reason, st.Revert = promotion.Degraded, promotion.Reverting, "web-qa-eu: Deployment web is degraded", 15
	st.Why = []promotion.Reason{{Code: "manual", Text: "the revert #15 waits for a person to merge it (onDegraded: revert)"}}
	st.Targets["web-qa-eu"] = promotion.TargetView{State: "degraded", Reason: "Deployment web is degraded", Since: at(9, 20)}
	in.Environment, in.Revert, in.Number, in.RevertedPull = "qa", true, 15, 12
	in.BodyMarker = "<!-- liftlock:revert release=" + newRelease + " of=12 -->"
	in.Changes = []Change{{File: "overlays/qa/web/kustomization.yaml", Path: "images[name=registry.example/web].newTag", Old: "1.5.0", New: "1.4.2", Line: 12}}
	in.Reached = []Target{{Name: "web-qa-eu", Component: "web", Environment: "qa", Cluster: "eu-1"}, {Name: "web-qa-us", Component: "web", Environment: "qa", Cluster: "us-1"}}
	in.UnaffectedCounts = map[string]int{"dev": 12, "qa": 10, "prod": 24}
	changed := true
	in.Evidence = []promotion.Evidence{{
		Component: "web", Environment: "qa", Pull: 12, Commit: commit, Release: newRelease, Name: "1.5.0", AllTargets: 2, Confidence: promotion.Guilty,
		Targets: []promotion.TargetEvidence{{Target: "web-qa-eu", ArgoCD: "hub", Cluster: "eu-1", Reason: "Deployment web is degraded", Since: at(9, 20),
			Resources: []promotion.ResourceEvidence{{Group: "apps", Kind: "Deployment", Name: "web", Health: "Degraded", ChangedByPromotion: &changed,
				Message:  "ProgressDeadlineExceeded: ReplicaSet \"web-6d5f\" has timed out <progressing>",
				Children: []verification.Descendant{{Kind: "Pod", Name: "web-6d5f-x2x9p", Health: "Degraded", Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container web"}}}},
			Timeline: []verification.StateChange{
				{At: at(9, 5), State: verification.Verified, Note: "healthy"},
				{At: at(9, 19), State: verification.Progressing, Note: "1 of 3 replicas are available"},
				{At: at(9, 20), State: verification.Degraded, Note: "Deployment web is degraded"},
			}}},
		RuledOut: []promotion.RuledOut{
			{Check: promotion.CheckUnhealthyBefore, Answer: "every degraded target was well just before #12 was merged, and until its sync began"},
			{Check: promotion.CheckOtherCommit, Answer: "no other commit has changed what the degraded targets read since"},
			{Check: promotion.CheckIncident, Answer: "api-qa-eu, which #12 didn't touch, became unwell too, but what is degraded in web-qa-eu (Deployment web) is what #12 changed"},
		},
	}}
	return in
}
