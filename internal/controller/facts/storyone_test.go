package facts

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// TestOnePromotion follows a release of one component into QA, where it is merged past its gates
// and reverted. It then finds again all that it can when the store is lost.
func TestOnePromotion(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - name: qa
      after: [dev]
      gates:
        - approvals: {count: 1, from: {users: [grace], teams: [acme/ops]}}
        - checks: {require: ["ci/*"]}
    - {name: prod, after: [qa]}
`, []string{"dev", "qa", "prod"}, "web", "api")
	w.forge.SetTeam(forge.Team{Organisation: "acme", Name: "ops"}, "linus")
	w.lookAtUnit("what was there before")

	w.release("ada", "dev", "1.1.0", "web")
	w.lookAtUnit("a release arrives")
	w.soak("web")
	ev, d := w.lookAtUnit("it is verified, and goes on")
	n := w.openPromotion(ev, d)
	w.wait(time.Second)
	w.lookAtUnit("its pull request is open")

	head := w.refreshPull(n).Head
	w.must(w.forge.As("ada").SetStatus(w.ctx(), storyRepo, head, forge.Status{Context: "ci/lint", State: forge.StatusSuccess}))
	w.must(w.forge.Review(storyRepo, n, "linus", memoryforge.Approve, ""))
	w.must(w.forge.Review(storyRepo, n, "mallory", memoryforge.RequestChanges, ""))
	w.must(w.forge.SetLabels(storyRepo, n, "linus", promotion.LabelOurs, promotion.LabelHold))
	w.putRecord(PullHolds.Key(record.OfPull(w.repo.ID, n)), []promotion.Holding{{Hold: promotion.Hold{By: "linus", Until: w.now.Add(time.Hour)}}})
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "promote", By: "linus", Reason: "it hurries", Source: "comment 1"})
	w.refreshPull(n)
	w.wait(time.Second)
	w.lookAtUnit("people have looked at it")

	landed := w.merge(n, "linus")
	w.wait(time.Second)
	w.lookAtUnit("it was merged past its gates")
	w.soak("web")
	w.lookAtUnit("it is healthy in QA")
	degraded := func(app *verification.App) { app.Health, app.HealthMessage = "Degraded", "crashes" }
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}}
	w.becomes("web-qa", func(app *verification.App) {
		degraded(app)
		app.Operation = &verification.Operation{Phase: "Succeeded", Revisions: []string{landed}, StartedAt: w.now.Add(-time.Minute), FinishedAt: w.now, By: "argocd"}
	})
	w.becomes("api-qa", degraded)
	w.commit("grace", "Change web's base", map[string]string{"base/web/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, template: {spec: {containers: [{name: main, image: registry.example/web}]}}}\n"})
	w.lookAtUnit("it becomes unwell, and its neighbour")
	w.wait(2 * time.Minute)
	ev, d = w.lookAtUnit("it is degraded")
	w.record(ev, d)
	w.command("web", store.PendingCommand{Environment: "qa", Verb: "revert", By: "grace", Source: "comment 2"})
	w.wait(time.Second)
	ev, d = w.lookAtUnit("a person wants it back")
	revert := w.openRevert(ev, d)
	w.wait(time.Second)
	w.lookAtUnit("the revert is open")
	w.becomes("web-qa", nil)
	w.becomes("api-qa", nil)
	w.merge(revert, "grace")
	w.wait(time.Second)
	w.lookAtUnit("it was taken back")

	w.restart()
	w.lookAtUnit("the store is lost")
	w.end()
}
