package prtext

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// batchInput has web 1.5.0 and api 2.0.0 in one pull request into prod; api waits.
func batchInput() Input {
	web, api := promotionInput(), promotionInput()
	api.Facts.Unit.Component = "api"
	for i := range api.Facts.Envs {
		for k := range api.Facts.Envs[i].History {
			if a := &api.Facts.Envs[i].History[k]; a.Release == newRelease {
				a.Name = "2.0.0"
			}
		}
	}
	apiState := api.Decision.Env("prod")
	apiState.Gates = append(apiState.Gates, policies.Result{Gate: "upstream", Outcome: policies.Wait, Reason: "qa carries the same release and is not well right now: api-qa-eu: Deployment api is progressing"})
	who := []promotion.Member{{Component: "api", Release: newRelease, Name: "2.0.0"}, {Component: "web", Release: newRelease, Name: "1.5.0"}}
	pull := promotion.Pull{Number: 14, Members: who, CreatedAt: at(9, 10)}
	facts := []promotion.ComponentFacts{*api.Facts, *web.Facts}
	for i := range facts {
		own := pull
		own.Release, own.Name = who[i].Release, who[i].Name
		facts[i].Envs[2].Open = &own
	}
	d := promotion.Decision{Components: []promotion.ComponentDecision{*api.Decision, *web.Decision}}
	in := promotionInput()
	in.Facts.Unit.Component, in.Facts.Envs[2].Open = promotion.BatchName, &pull
	in.Facts.Envs[2].History = nil
	in.Decision = &promotion.ComponentDecision{Envs: []promotion.EnvState{d.SharedState(facts, "prod", 14)}}
	in.Release, in.Name = promotion.BatchID(who), "api 2.0.0, web 1.5.0"
	in.Changes[0].Component = "web"
	in.Changes = append(in.Changes, Change{Component: "api", File: "overlays/prod/api/values.yaml", Path: "image.tag", Old: "1.9.0", New: "2.0.0", Line: 3})
	in.Reached = append(in.Reached, Target{Name: "api-prod-eu", Component: "api", Environment: "prod", Cluster: "eu-1"})
	in.Members = []Member{{Member: who[0], Facts: api.Facts, Decision: api.Decision}, {Member: who[1], Facts: web.Facts, Decision: web.Decision}}
	in.ConsoleURL, in.BodyMarker = "https://liftlock.example.com/pipelines/shop", "<!-- liftlock:promotion release="+in.Release+" with=api:"+newRelease+",web:"+newRelease+" -->"
	return in
}

// batchRevertInput is the revert of both in qa after web degraded.
func batchRevertInput() Input {
	in, web := batchInput(), revertInput()
	in.Environment, in.Revert, in.Number, in.RevertedPull, in.Evidence = "qa", true, 15, 12, web.Evidence
	api := in.Members[0]
	api.Facts.Envs[1].Revert = web.Facts.Envs[1].Revert
	api.Decision.Envs[1].Revert = 15
	in.Members[1].Facts, in.Members[1].Decision = web.Facts, web.Decision
	in.Facts.Envs[1].Revert = &promotion.Pull{Number: 15}
	d := promotion.Decision{Components: []promotion.ComponentDecision{*api.Decision, *web.Decision}}
	in.Decision = &promotion.ComponentDecision{Envs: []promotion.EnvState{d.SharedState([]promotion.ComponentFacts{*api.Facts, *web.Facts}, "qa", 15)}}
	in.Changes = []Change{{Component: "api", File: "overlays/qa/api/values.yaml", Path: "image.tag", Old: "2.0.0", New: "1.9.0", Line: 3},
		{Component: "web", File: web.Changes[0].File, Path: web.Changes[0].Path, Old: "1.5.0", New: "1.4.2", Line: 12}, {File: "overlays/qa/common.yaml", Path: "api.tag", Old: "2.0.0", New: "1.9.0"}}
	in.Reached = append(web.Reached, Target{Name: "api-qa-eu", Component: "api", Environment: "qa", Cluster: "eu-1"})
	in.BodyMarker = "<!-- liftlock:revert release=" + in.Release + " of=12 with=api:" + newRelease + ",web:" + newRelease + " -->"
	return in
}

// batchLandedInput is qa after both were merged; web has not got there yet.
func batchLandedInput() Input {
	in := batchInput()
	in.Environment, in.Number = "qa", 12
	api, web := in.Members[0], in.Members[1]
	st := web.Decision.Env("qa")
	st.State, st.Reason, st.VerifiedAt = promotion.Verifying, "web-qa-us: has not taken the commit yet", time.Time{}
	st.Targets["web-qa-us"] = promotion.TargetView{State: "arriving", Reason: "Argo CD has not noticed the commit yet"}
	d := promotion.Decision{Components: []promotion.ComponentDecision{*api.Decision, *web.Decision}}
	in.Decision = &promotion.ComponentDecision{Envs: []promotion.EnvState{d.SharedState([]promotion.ComponentFacts{*api.Facts, *web.Facts}, "qa", 12)}}
	return in
}

func TestBatch(t *testing.T) {
	golden(t, "together", show(Render(batchInput())))
	golden(t, "together-revert", show(Render(batchRevertInput())))
	golden(t, "together-landed", LandedComment(batchLandedInput()))
	back := batchRevertInput()
	golden(t, "together-landed-degraded", func() string { back.Revert, back.Number = false, 12; return LandedComment(back) }())
	manual := batchInput()
	manual.Facts.Envs[2].Spec.Merge = pipeline.Manual
	golden(t, "together-messages", strings.Join([]string{CommitMessage(batchInput()), CommitMessage(batchRevertInput())}, "--------\n"))
	golden(t, "together-diff", DiffText(manual))
	many := batchInput()
	for i := range 12 {
		q := many.Members[1]
		q.Component = fmt.Sprintf("web-%02d", i)
		many.Members = append(many.Members, q)
		many.Changes = append(many.Changes, Change{Component: q.Component, File: "overlays/prod/" + q.Component + "/values.yaml", Path: "image.tag", Old: "1", New: "2", Line: i + 1})
	}
	golden(t, "together-many", show(Render(many)))
}
