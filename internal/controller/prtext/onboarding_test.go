package prtext

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/onboard"
)

// onboardingInput is a proposal that can be used as it is.
func onboardingInput() Onboarding {
	return Onboarding{Branch: "main", Marker: "<!-- liftlock:onboarding -->", Proposal: &onboard.Proposal{File: ".liftlock.yaml", Text: "kind: Pipeline\n",
		Components: []string{"api", "web"}, Environments: []string{"dev", "prod-eu", "prod-us", "qa"}, Steps: [][]string{{"dev"}, {"qa"}, {"prod-eu", "prod-us"}},
		OrderWhy: "that of the words by which people call environments", Carry: []string{`kustomizeImages: ["registry.example/*"]`},
		Promotions: []onboard.Promotion{{Component: "web", Environment: "qa", From: "1.0.0", To: "1.1.0", Files: []string{"apps/web/qa/kustomization.yaml"}}},
		Waiting:    []onboard.Waiting{{Component: "api", Environment: "qa", Why: "it has the release of dev"}}, Notes: []string{"In no environment, and so left alone: argocd."}}}
}

func TestOnboarding(t *testing.T) {
	draft, nothing := onboardingInput(), onboardingInput()
	draft.Proposal = &onboard.Proposal{File: ".liftlock.yaml", Text: "kind: Pipeline\n", Components: []string{"web"}, Environments: []string{"blue", "green"},
		Open: &onboard.OpenQuestion{Question: "in which order are the environments?", Options: []string{"--order=blue,green: blue first"}, Seen: []string{"apps/web/blue/values.yaml: image.tag is \"1\""}, Other: "write it as --order"}}
	nothing.Promotions, nothing.Waiting, nothing.Notes, nothing.PlanErr = nil, nil, nil, "this is a shallow clone"
	hostile := onboardingInput()
	hostile.Components, hostile.Notes = []string{"<!-- liftlock:onboarding -->`@all`"}, []string{"closes #1 @all <b>"}
	hostile.Promotions[0].To = "`|@all"
	for name, in := range map[string]Onboarding{"onboarding": onboardingInput(), "onboarding-draft": draft, "onboarding-unplanned": nothing, "onboarding-hostile": hostile} {
		golden(t, name, in.Body())
	}
	golden(t, "onboarding-retired", onboardingInput().RetiredBody())
	body := onboardingInput().Body()
	if once := ModifiedBody(body); once == body || ModifiedBody(once) != once || !strings.HasSuffix(once, body) {
		t.Errorf("a push is mentioned as:\n%s", once)
	}
	if strings.Count(hostile.Body(), hostile.Marker) != 1 {
		t.Errorf("what others wrote is taken for the mark:\n%s", hostile.Body())
	}
}
