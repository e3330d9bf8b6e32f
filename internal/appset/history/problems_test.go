package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
)

// at makes a target from "file:set:component-environment"; a component "-" is
// one that nobody manages.
func at(texts ...string) []appset.Target {
	var out []appset.Target
	for _, text := range texts {
		p := strings.Split(text, ":")
		t := appset.Target{ApplicationSetFile: p[0], ApplicationSet: p[1], Name: p[2]}
		if component, env, ok := strings.Cut(p[2], "-"); ok {
			t.Component, t.Environment = component, env
		}
		if len(p) > 3 {
			t.DestNS = p[3]
		}
		out = append(out, t)
	}
	return out
}

func written(targets []appset.Target) []string {
	var out []string
	for _, t := range targets {
		text := t.Name
		if t.DestNS != "" {
			text += ":" + t.DestNS
		}
		out = append(out, text)
	}
	return out
}

func TestEffectiveTargets(t *testing.T) {
	before := at("a.yaml:a:web-dev:old", "a.yaml:a:web-qa:old", "b.yaml:b:api-dev:old", "::cart-dev:old", ":live:pay-dev:old")
	for name, c := range map[string]struct {
		now      []appset.Target
		problems []appset.Problem
		want     string
	}{
		"a set that can't be resolved keeps its own": {
			at("b.yaml:b:api-dev:new", "b.yaml:b:api-qa:new"), []appset.Problem{{File: "a.yaml", ApplicationSet: "a"}},
			"api-dev:new api-qa:new web-dev:old web-qa:old"},
		"a file that can't be read keeps that of all its sets": {
			at("b.yaml:b:api-dev:new"), []appset.Problem{{File: "a.yaml"}}, "api-dev:new web-dev:old web-qa:old"},
		"one Application keeps its own; the set's others are as now": {
			at("a.yaml:a:web-dev:new", "b.yaml:b:api-dev:new"), []appset.Problem{{File: "a.yaml", ApplicationSet: "a", Application: "web-qa"}},
			"api-dev:new web-dev:new web-qa:old"},
		"one that was resolved in spite of its problem is as before": {
			at("a.yaml:a:web-dev:new", "a.yaml:a:web-qa:new"), []appset.Problem{{File: "a.yaml", ApplicationSet: "a", Application: "web-qa"}},
			"web-dev:new web-qa:old"},
		"what is about nothing known may be about anything": {
			at("a.yaml:a:web-dev:new"), []appset.Problem{{File: "new.yaml", ApplicationSet: "n"}},
			"api-dev:old cart-dev:old pay-dev:old web-dev:new web-qa:old"},
		"the pipeline's own file is about everything": {
			at("a.yaml:a:web-dev:new"), []appset.Problem{{File: ".liftlock.yaml"}}, "api-dev:old cart-dev:old pay-dev:old web-dev:old web-qa:old"},
		"a live set": {
			at("a.yaml:a:web-dev:new"), []appset.Problem{{ApplicationSet: "live"}}, "pay-dev:old web-dev:new"},
		"plain Applications": {
			at("a.yaml:a:web-dev:new"), []appset.Problem{{Application: "cart-dev"}}, "cart-dev:old web-dev:new"},
	} {
		t.Run(name, func(t *testing.T) {
			now := &appset.TargetSet{Targets: c.now, Problems: c.problems}
			was := slices.Clone(c.now)
			got := EffectiveTargets(now, &appset.TargetSet{Targets: before}, ".liftlock.yaml")
			if text := strings.Join(written(got.Targets), " "); text != c.want {
				t.Errorf("in force: %s\nwant:     %s", text, c.want)
			}
			if diff := cmp.Diff(was, now.Targets); diff != "" {
				t.Errorf("the resolver's fleet is shared and was changed:\n%s", diff)
			}
		})
	}
}

func TestComponentProblems(t *testing.T) {
	force := &appset.TargetSet{Targets: at("a.yaml:a:web-dev", "a.yaml:a:api-dev", "a.yaml:a:stranger", "b.yaml:b:cart-dev", ":live:pay-dev")}
	all := []string{"web", "api", "cart", "pay", "new"}
	for name, c := range map[string]struct {
		problem appset.Problem
		want    []string
	}{
		"a set: those with targets of it":      {appset.Problem{File: "a.yaml", ApplicationSet: "a"}, []string{"web", "api"}},
		"a file":                               {appset.Problem{File: "b.yaml"}, []string{"cart"}},
		"a live set":                           {appset.Problem{ApplicationSet: "live"}, []string{"pay"}},
		"one Application":                      {appset.Problem{File: "a.yaml", ApplicationSet: "a", Application: "web-dev"}, []string{"web"}},
		"an unknown one: anybody's of the set": {appset.Problem{File: "b.yaml", ApplicationSet: "b", Application: "x"}, []string{"cart"}},
		"one that nobody manages: anybody's of the set":        {appset.Problem{File: "a.yaml", ApplicationSet: "a", Application: "stranger"}, []string{"web", "api"}},
		"a set that nobody knows targets of may be anybody's":  {appset.Problem{File: "c.yaml", ApplicationSet: "c"}, all},
		"a file that nobody knows targets of may be anybody's": {appset.Problem{File: "c.yaml"}, all},
		"the same, of one Application":                         {appset.Problem{File: "c.yaml", ApplicationSet: "c", Application: "web-dev"}, all},
		"the pipeline's own file":                              {appset.Problem{File: ".liftlock.yaml"}, all},
		"the same set's name in another file is another set":   {appset.Problem{File: "b.yaml", ApplicationSet: "a"}, all},
		"nothing said": {appset.Problem{Message: "?"}, all},
	} {
		t.Run(name, func(t *testing.T) {
			troubles := NewComponentProblems([]appset.Problem{c.problem}, force, ".liftlock.yaml")
			var got []string
			for _, component := range all {
				if len(troubles.For(component)) > 0 {
					got = append(got, component)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("concerned (-want +got):\n%s", diff)
			}
		})
	}
}
