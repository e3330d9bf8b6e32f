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
	both := []Member{api.Members[0], web.Members[0]}
	both[0].Component, both[0].Name, both[0].Facts.Unit.Component = "api", "2.0.0", "api"
	for _, e := range both[0].Facts.Envs {
		for k := range e.History {
			if a := &e.History[k]; a.Release == newRelease {
				a.Name = "2.0.0"
			}
		}
	}
	apiState := both[0].Decision.Env("prod")
	apiState.Gates = append(apiState.Gates, policies.Result{Gate: "upstream", Outcome: policies.Wait, Reason: "qa carries the same release and is not well right now: api-qa-eu: Deployment api is progressing"})
	who := []promotion.Member{both[0].Member, both[1].Member}
	for i := range both {
		both[i].Facts.Envs[2].Open = &promotion.Pull{Number: 14, Members: who, Batch: true, CreatedAt: at(9, 10), Release: who[i].Release, Name: who[i].Name}
	}
	in := promotionInput()
	in.Members, in.Batch = both, true
	in.Release, in.Name = promotion.BatchID(who), "api 2.0.0, web 1.5.0"
	in.Changes[0].Component = "web"
	in.Changes = append(in.Changes, Change{Component: "api", File: "overlays/prod/api/values.yaml", Path: "image.tag", Old: "1.9.0", New: "2.0.0", Line: 3})
	in.Reached = append(in.Reached, Target{Name: "api-prod-eu", Component: "api", Environment: "prod", Cluster: "eu-1"})
	in.ConsoleURL, in.BodyMarker = "https://liftlock.example.com/pipelines/shop", "<!-- liftlock:promotion release="+in.Release+" with=api:"+newRelease+",web:"+newRelease+" -->"
	return in
}

// batchRevertInput is the revert of both in qa after web degraded.
func batchRevertInput() Input {
	in, web := batchInput(), revertInput()
	in.Environment, in.Revert, in.Number, in.RevertedPull, in.Evidence = "qa", true, 15, 12, web.Evidence
	in.Members[1] = web.Members[0]
	in.Members[0].Facts.Envs[1].Revert = in.Members[1].Facts.Envs[1].Revert
	in.Members[0].Decision.Envs[1].Revert = 15
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
	st := in.Members[1].Decision.Env("qa")
	st.State, st.Reason, st.VerifiedAt = promotion.Verifying, "web-qa-us: has not taken the commit yet", time.Time{}
	st.Targets["web-qa-us"] = promotion.TargetView{State: "arriving", Reason: "Argo CD has not noticed the commit yet"}
	return in
}

func TestBatch(t *testing.T) {
	golden(t, "together", show(Render(batchInput())))
	golden(t, "together-revert", show(Render(batchRevertInput())))
	golden(t, "together-landed", LandedComment(batchLandedInput()))
	back := batchRevertInput()
	golden(t, "together-landed-degraded", func() string { back.Revert, back.Number = false, 12; return LandedComment(back) }())
	manual := batchInput()
	manual.Members[0].Facts.Envs[2].Spec.Merge = pipeline.Manual
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
