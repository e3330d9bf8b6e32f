package prtext

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// screenLines is how many lines a reviewer reads before anything is unfolded.
const screenLines = 60

// screens are pull requests as reviewers mostly meet them.
func screens() map[string]Input {
	one := promotionInput()
	one.Rendered = []Rendered{}
	for _, t := range one.Reached {
		one.Rendered = append(one.Rendered, Rendered{Target: t.Name, Summary: "1 changed", Diff: "@@ apps/v1 Deployment web/web @@\n- spec.template.spec.containers[name=web].image: registry.example/web:1.4.2\n+ spec.template.spec.containers[name=web].image: registry.example/web:1.5.0\n"})
	}

	chart := promotionInput()
	chart.Changes = []Change{{File: "charts/web/values-prod.yaml", Path: "image.tag", Old: "1.4.2", New: "1.5.0", Line: 4}}
	for _, t := range chart.Reached {
		var diff strings.Builder
		for i := range 7 {
			fmt.Fprintf(&diff, "@@ apps/v1 Deployment web/worker-%d @@\n- spec.template.spec.containers[name=worker].image: registry.example/web:1.4.2\n+ spec.template.spec.containers[name=worker].image: registry.example/web:1.5.0\n", i)
		}
		chart.Rendered = append(chart.Rendered, Rendered{Target: t.Name, Summary: "7 changed", Diff: diff.String()})
	}

	chart.Members[0].Commits = append(chart.Members[0].Commits, ReleaseCommits{Repository: "acme/web", From: "v1.4.2", To: "v1.5.0", CompareURL: "https://git.example/acme/web/compare/v1.4.2...v1.5.0", Commits: []ReleaseCommit{
		{SHA: strings.Repeat("b0a710ad", 5), URL: "https://git.example/acme/web/commit/b0a710adb0a7", Subject: "Lift locks, not gates: closes #7", Authors: []string{"Mary Ward"}, At: at(7, 50)},
		{SHA: strings.Repeat("5eafa2e5", 5), URL: "https://git.example/acme/web/commit/5eafa2e55eaf", Subject: "Ask less of the database", Authors: []string{"Ada Lovelace"}, At: at(7, 20)},
	}})

	file := promotionInput()
	file.Name = "config/limits.yaml (3f2a9c1b77de)"
	file.Members[0].Name = file.Name
	file.Changes = []Change{
		{File: "overlays/prod/web/config/limits.yaml", Old: "100644 " + strings.Repeat("0badcafe", 5), New: "100644 " + strings.Repeat("3f2a9c1b", 5)},
		{File: "overlays/prod/web/config/run.sh", Old: "100644 " + strings.Repeat("0badcafe", 5), New: "100755 " + strings.Repeat("0badcafe", 5)},
		{File: "overlays/prod/web/config/new.yaml", New: "100644 " + strings.Repeat("5eed5eed", 5)},
		{File: "overlays/prod/web/config/old.yaml", Old: "100644 " + strings.Repeat("5eed5eed", 5)},
	}
	made := &file.Members[0].Commits[0]
	made.Since, made.CompareURL, made.Skipped = "", "", nil
	file.UnaffectedCounts = map[string]int{"dev": 1}
	file.Rendered = []Rendered{{Target: "web-prod-eu", Summary: "1 changed", Diff: "@@ v1 ConfigMap web/limits @@\n- data.limits.yaml: |\n-   requests: 10\n+ data.limits.yaml: |\n+   requests: 20\n"}, {Target: "web-prod-us", Why: "the chart ingress comes from a Helm repository (https://charts.example)"}}

	revert := revertInput()
	revert.Rendered = []Rendered{{Target: "web-qa-eu", Summary: "1 changed", Diff: "@@ apps/v1 Deployment web/web @@\n- spec.template.spec.containers[name=web].image: registry.example/web:1.5.0\n+ spec.template.spec.containers[name=web].image: registry.example/web:1.4.2\n"}}
	return map[string]Input{"screen-one": one, "screen-batch": batchOfTwelve(), "screen-helm-value": chart, "screen-whole-file": file, "screen-revert": revert}
}

// batchOfTwelve moves twelve components, each with a change of its own.
func batchOfTwelve() Input {
	in := promotionInput()
	in.Batch, in.Changes, in.Reached = true, nil, nil
	web := in.Members[0]
	in.Members = nil
	for i, component := range []string{"accounts", "api", "basket", "billing", "catalogue", "images", "login", "mailer", "orders", "search", "stock", "web"} {
		q := web
		q.Component, q.Name = component, fmt.Sprintf("1.%d.0", i+1)
		q.Commits = []ReleaseCommits{web.Commits[0]}
		in.Members = append(in.Members, q)
		in.Changes = append(in.Changes, Change{Component: component, File: "overlays/prod/" + component + "/kustomization.yaml", Path: "images[name=registry.example/" + component + "].newTag", Old: fmt.Sprintf("1.%d.0", i), New: q.Name, Line: 12})
		in.Reached = append(in.Reached, Target{Name: component + "-prod-eu", Component: component, Environment: "prod", Cluster: "eu-1"})
		in.Rendered = append(in.Rendered, Rendered{Target: component + "-prod-eu", Summary: "1 changed", Diff: fmt.Sprintf("@@ apps/v1 Deployment shop/%s @@\n- image: 1.%d.0\n+ image: 1.%d.0\n", component, i, i+1)})
	}
	in.ConsoleURL, in.BodyMarker = "https://liftlock.example.com/pipelines/shop", "<!-- liftlock:promotion -->"
	return in
}

// shownLines counts the lines of a body that are there before anything is unfolded. The line that a
// fold shows is one of them, and so are empty ones.
func shownLines(body string) int {
	n, depth := 0, 0
	for line := range strings.Lines(body) {
		if depth == 0 {
			n++
		}
		depth += strings.Count(line, "<details>") - strings.Count(line, "</details>")
	}
	return n
}

// TestScreens holds that a reviewer reads the whole of a pull request's body on one screen.
func TestScreens(t *testing.T) {
	for name, in := range screens() {
		t.Run(name, func(t *testing.T) {
			body := Render(in).Body
			golden(t, name, body)
			if n := shownLines(body); n > screenLines {
				t.Errorf("%d lines are shown before anything is unfolded, and %d fit:\n%s", n, screenLines, body)
			}
		})
	}
	if n := shownLines("a\n<details><summary>b</summary>\n\nc\n\n<details><summary>d</summary>\ne\n</details>\n</details>\nf\n"); n != 3 {
		t.Errorf("three lines are shown, and %d are counted", n)
	}
}

// TestManyCommits holds that the newest commits are listed, some of them openly, and what
// isn't listed is counted.
func TestManyCommits(t *testing.T) {
	in := promotionInput()
	made := &in.Members[0].Commits[0]
	made.Commits, made.More = nil, true
	for i := range maxCommits + 7 {
		made.Commits = append(made.Commits, ReleaseCommit{SHA: fmt.Sprintf("%040d", i), Subject: fmt.Sprintf("Commit %d.", i), Authors: []string{fmt.Sprintf("Author %d", i)}, At: at(8, 0).Add(-time.Duration(i) * time.Hour)})
	}
	for i := range namedReleases + 2 {
		made.Skipped = append(made.Skipped, promotion.Release{ID: fmt.Sprint(i), Name: fmt.Sprintf("1.4.%d", 10+i)})
	}
	in.Members[0].Facts.Envs[1].History = append(in.Members[0].Facts.Envs[1].History, promotion.Arrival{Release: "0", DegradedAt: at(6, 0)})
	in.Members[0].Facts.Envs[2].History = append(in.Members[0].Facts.Envs[2].History, promotion.Arrival{Release: "1"})
	body := Render(in).Body
	for _, says := range []string{
		"At least 37 commits in dev since `1.4.2`, by Author 0, Author 1, Author 2, Author 3, Author 4, Author 5 and 31 more as the commits say ([compare](",
		"\n- `000000000000` Commit 4. (Author 4, 2026-03-09)\n\n<details><summary>25 more</summary>\n\n- `000000000000` Commit 5. (", "And 7 older ones that aren't listed here.",
		"Skipped on the way: `1.4.3`, `1.4.10` (degraded in qa), `1.4.11` (was in prod before), `1.4.12`, ", "`1.4.14`, 3 more.",
	} {
		if !strings.Contains(body, says) {
			t.Errorf("it doesn't say %q:\n%s", says, body)
		}
	}
	in.Members[0].Commits = []ReleaseCommits{{Repository: "acme/web", From: "v1", To: "v2", More: true, CompareURL: "https://x"}, {Repository: "acme/web", From: "v2", To: "v1"}}
	if body := Render(in).Body; !strings.Contains(body, "More commits than the forge lists in the application's own repository `acme/web` from `v1` to `v2` ([compare](https://x)).\n\n0 commits in") {
		t.Errorf("too many commits aren't told:\n%s", body)
	}
	in.Members[0].Commits, in.Members[0].CommitsErr = nil, "git: @ada is away"
	if body := Render(in).Body; !strings.Contains(body, "### Who made it\n\nThe commits could not be read: git: @"+zeroWidthSpace+"ada is away\n") {
		t.Errorf("what can't be read isn't told:\n%s", body)
	}
	in.Members[0].CommitsErr = ""
	if body := Render(in).Body; strings.Contains(body, "Who made it") {
		t.Errorf("what isn't known has a heading:\n%s", body)
	}
}
