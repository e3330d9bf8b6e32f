package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/policies"
)

// TestExpressionKnowsThePromotion holds that what expressions can ask for of a promotion is
// gathered, from the forge, Git and the rendered manifests, for one component and several.
func TestExpressionKnowsThePromotion(t *testing.T) {
	t.Parallel()
	expressions := []string{
		`release.authors == ["linus"]`,
		`release.commit.sha.size() == 40 && release.commit.message == "Release 2.0.0\n\nTicket: CHG-7\n" && release.commit.trailers == {"Ticket": "CHG-7"} && release.commit.time <= now`,
		`diff.changed == ["Deployment"] && diff.added == [] && diff.removed == []`,
		`!pull.draft && targets.size() == 1 && targets[0].namespace == "shop"`,
		`upstream.all(u, u.verified && u.healthyFor >= duration("3m"))`,
	}
	var gates strings.Builder
	for _, e := range expressions {
		gates.WriteString("        - expression: '" + e + "'\n")
	}
	qa := "    - name: qa\n      after: [dev]\n      merge: auto\n      verify: " + quickly + "\n      gates:\n" + gates.String()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, qa, c.components...)
			files := map[string]string{}
			for _, component := range c.components {
				for _, env := range []string{"dev", "qa"} {
					files[kustomizationOf(component, env)] = "resources: [deployment.yaml]\n" + kustomization(component, "1.0.0")
					files["apps/"+component+"/"+env+"/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + component + "}\nspec: {template: {spec: {containers: [{name: c, image: registry.example/" + component + "}]}}}\n"
				}
			}
			_, err := w.forge.CommitAs(repoName, "linus", "main", "Deployments", files)
			w.must(err)
			w.runRepository()
			w.must(w.run(wake.ForUnit(w.unit(c.key)))) // the baseline is written down
			released := map[string]string{}
			for _, component := range c.components {
				released[kustomizationOf(component, "dev")] = "resources: [deployment.yaml]\n" + kustomization(component, "2.0.0")
			}
			_, err = w.forge.CommitAs(repoName, "linus", "main", "Release 2.0.0\n\nTicket: CHG-7", released)
			w.must(err)
			w.runRepository()
			w.settle(c.key, "a pull request is open", func() bool { return len(w.pulls()) == 1 })
			results := w.gateResults(c.key)
			for i, e := range expressions[:4] {
				if g := results[i]; g.Gate != "expression" || g.Outcome != policies.Pass {
					t.Errorf("%s: %+v", e, g)
				}
			}
			if g := results[4]; g.Outcome != policies.Wait || g.Reason != "the expression is false" {
				t.Errorf("before it was healthy for long enough: %+v", g)
			}
			for range 6 {
				w.lookAfter(c.key, time.Minute)
			}
			if !w.pulls()[0].Merged {
				t.Errorf("it is not merged: %+v", w.gateResults(c.key))
			}
		})
	}
}

// TestExpressionWaitsForUnknownFacts holds that manifests that can't be rendered keep an
// expression about them waiting, with the target's name.
func TestExpressionWaitsForUnknownFacts(t *testing.T) {
	w := newFixture(t, "", "    - {name: qa, after: [dev], merge: auto, gates: [{expression: 'diff.removed == []'}], verify: "+quickly+"}\n", "web")
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Break the overlay", map[string]string{kustomizationOf("web", "qa"): "resources: [missing.yaml]\n" + kustomization("web", "1.0.0")})
	w.must(err)
	w.runRepository()
	w.openOne("web", "2.0.0", "web")
	w.gateWaits("web", "expression", policies.Wait, "the expression can't be evaluated: what the rendered manifests gain and lose isn't known: web-qa: ")
}

// TestExpressionGathersNothingMore holds that what no expression asks for isn't gathered:
// who made the release, the commit that brought it, and rendered manifests.
func TestExpressionGathersNothingMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expression            string
		authors, commit, diff bool
	}{
		"of the release":    {expression: `release.name != ""`},
		"of its authors":    {expression: `release.authors.size() > 0`, authors: true},
		"of its commit":     {expression: `release.commit.sha != ""`, commit: true},
		"of the difference": {expression: `diff.removed.size() == 0`, diff: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", "    - {name: qa, after: [dev], merge: manual, gates: [{expression: '"+c.expression+"'}], verify: "+quickly+"}\n", "web")
			w.openOne("web", "2.0.0", "web")
			if g := w.gateResult("web", "expression"); g.Outcome != policies.Pass {
				t.Errorf("it says %+v", g)
			}
			ev, _ := w.evaluate()
			got := ev.Components[0].Env("qa").Open.Review
			if (len(got.Authors) > 0) != c.authors || (got.Promotion.Commit != nil) != c.commit || (got.Promotion.Diff != nil) != c.diff {
				t.Errorf("authors %v, commit %v, difference %v", got.Authors, got.Promotion.Commit, got.Promotion.Diff)
			}
		})
	}
}
