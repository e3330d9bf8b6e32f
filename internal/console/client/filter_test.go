package client_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
)

// filteredPipeline has seven components: six degraded in prod for one cause, of which one is also
// held in qa, and one that is well.
func filteredPipeline() *api.Pipeline {
	p := &api.Pipeline{Name: "shop", Repository: "hub:acme/fleet", Environments: []string{"qa", "prod"},
		Graph: []api.PipelineEnvironment{{Name: "qa"}, {Name: "prod", After: []string{"qa"}}}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		target := api.Target{Name: name + "-prod", ApplicationSet: "shop", Labels: map[string]string{"team": "pay"}}
		qa := api.Environment{Environment: "qa", State: "verified", Name: "2"}
		prod := api.Environment{Environment: "prod", State: "degraded", Name: "1", Targets: []api.Target{target},
			Reason: name + "-prod: Degraded for 30 s: Deployment " + name}
		switch name {
		case "f":
			qa.Incoming = &api.Incoming{State: "held", Name: "3", Pull: &api.Pull{Number: 7}, Gates: []api.Gate{{Gate: "hold",
				Outcome: "wait", Reason: "ada holds it"}}}
		case "g":
			prod.State, prod.Targets[0].Labels = "verified", map[string]string{"team": "web"}
		}
		p.Components = append(p.Components, api.Component{Repository: p.Repository, Pipeline: p.Name, Component: name,
			Environments: []api.Environment{qa, prod}})
	}
	return p
}

// TestFilter holds which components and environments are chosen, and how they are counted.
func TestFilter(t *testing.T) {
	pay, err := labels.Parse("team=pay")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter                   client.Filter
		components, environments string
		counts                   api.Counts
	}{
		"all":                     {client.Filter{}, "abcdefg", "qa prod", api.Counts{}}, // as they came
		"a name":                  {client.Filter{Environment: "qa"}, "abcdefg", "qa", api.Counts{Components: 7, Open: 1, Held: 1, Attention: 1}},
		"a pattern":               {client.Filter{Environment: "pr*"}, "abcdefg", "prod", api.Counts{Components: 7, Open: 6, Broken: 6, Attention: 6}},
		"none":                    {client.Filter{Environment: "dev"}, "", "", api.Counts{}},
		"labels":                  {client.Filter{Labels: pay}, "abcdef", "qa prod", api.Counts{Components: 6, Open: 6, Broken: 6, Attention: 6}},
		"labels elsewhere":        {client.Filter{Labels: pay, Environment: "qa"}, "", "qa", api.Counts{}},
		"a component":             {client.Filter{Component: "g"}, "g", "qa prod", api.Counts{Components: 1}},
		"needs a look":            {client.Filter{NeedsLook: true}, "abcdef", "qa prod", api.Counts{Components: 6, Open: 6, Broken: 6, Attention: 6}},
		"needs a look in one":     {client.Filter{NeedsLook: true, Environment: "qa"}, "f", "qa", api.Counts{Components: 1, Open: 1, Held: 1, Attention: 1}},
		"needs no look":           {client.Filter{NeedsLook: true, Component: "g"}, "", "qa prod", api.Counts{}},
		"a pattern that is wrong": {client.Filter{Environment: "[qa"}, "", "", api.Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := filteredPipeline()
			c.filter.Apply(p)
			var components strings.Builder
			for _, comp := range p.Components {
				components.WriteString(comp.Component)
			}
			if components.String() != c.components || strings.Join(p.Environments, " ") != c.environments || p.Counts != c.counts {
				t.Errorf("%s in %v with %+v", components.String(), p.Environments, p.Counts)
			}
		})
	}
}

// TestProblems holds that what needs a look is grouped by cause, and names a few components of each.
func TestProblems(t *testing.T) {
	const head = "6 components in prod: degraded: Degraded for … s: Deployment …\n    shop, ApplicationSet shop: "
	for name, c := range map[string]struct {
		filter client.Filter
		wide   bool
		want   string
	}{
		"few names": {client.Filter{NeedsLook: true}, false, head + "a, b, c, d, e and 1 more\n" +
			"1 component in qa: held: hold: ada holds it\n    shop: f\n"},
		"all names":       {client.Filter{NeedsLook: true, Environment: "prod"}, true, head + "a, b, c, d, e, f\n"},
		"one environment": {client.Filter{NeedsLook: true, Environment: "qa"}, false, "1 component in qa: held: hold: ada holds it\n    shop: f\n"},
		"none":            {client.Filter{NeedsLook: true, Component: "g"}, false, "nothing needs a look\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := filteredPipeline()
			c.filter.Apply(p)
			var b strings.Builder
			if err := client.PrintProblems(&b, c.filter.Problems([]api.Pipeline{*p}), c.wide); err != nil || b.String() != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.want)
			}
		})
	}
}
