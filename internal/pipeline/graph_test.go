package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// graph is a pipeline with environments such as "qa<dev,ci": qa after dev and ci.
func graph(environments ...string) *Pipeline {
	p := &Pipeline{}
	for _, e := range environments {
		name, after, _ := strings.Cut(e, "<")
		p.Spec.Environments = append(p.Spec.Environments, Environment{
			Name:  name,
			After: slices.DeleteFunc(strings.Split(after, ","), func(a string) bool { return a == "" }),
		})
	}
	return p
}

func TestOrder(t *testing.T) {
	tests := map[string]struct {
		p                    *Pipeline
		topo                 string
		of, upstream, downst string
	}{
		"a line":               {graph("dev", "qa<dev", "prod<qa"), "dev qa prod", "qa", "dev", "prod"},
		"a line backwards":     {graph("prod<qa", "qa<dev", "dev"), "dev qa prod", "prod", "dev qa", ""},
		"a diamond":            {graph("dev", "eu<dev", "us<dev", "all<eu,us"), "dev eu us all", "dev", "", "eu us all"},
		"two sources":          {graph("b", "a", "x<a,b"), "b a x", "x", "b a", ""},
		"apart":                {graph("a", "b", "a2<a", "b2<b"), "a b a2 b2", "a", "", "a2"},
		"the file's order":     {graph("prod-us<qa", "dev", "qa<dev", "prod-eu<qa"), "dev qa prod-us prod-eu", "qa", "dev", "prod-us prod-eu"},
		"no such environment":  {graph("dev"), "dev", "qa", "", ""},
		"a circle has no end":  {graph("dev", "qa<prod", "prod<qa"), "dev", "dev", "", ""},
		"no environment given": {graph(), "", "dev", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var topo []string
			for _, e := range test.p.TopologicalOrder() {
				topo = append(topo, e.Name)
			}
			got := []string{strings.Join(topo, " "), strings.Join(test.p.Upstream(test.of), " "), strings.Join(test.p.Downstream(test.of), " ")}
			if diff := cmp.Diff([]string{test.topo, test.upstream, test.downst}, got); diff != "" {
				t.Errorf("order, upstream and downstream of %s (-want +got):\n%s", test.of, diff)
			}
		})
	}
}

// TestOrderHolds: in any graph without cycles, however it is written down,
// every environment comes after those it needs, and upstream and downstream
// are each other's mirror.
func TestOrderHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var environments []Environment
		for i := range n {
			e := Environment{Name: fmt.Sprintf("e%d", i)}
			for j := range i {
				if rapid.Bool().Draw(t, "after") {
					e.After = append(e.After, fmt.Sprintf("e%d", j))
				}
			}
			environments = append(environments, e)
		}
		p := &Pipeline{Spec: Spec{Environments: rapid.Permutation(environments).Draw(t, "file")}}
		if c := p.Spec.FindCycle(); c != nil {
			t.Fatalf("a cycle where there is none: %v", c)
		}
		var order []string
		for _, e := range p.TopologicalOrder() {
			for _, a := range e.After {
				if !slices.Contains(order, a) {
					t.Fatalf("%s comes before %s", e.Name, a)
				}
			}
			order = append(order, e.Name)
		}
		if len(order) != n {
			t.Fatalf("%d of %d environments are in the order", len(order), n)
		}
		for _, a := range order {
			for _, b := range order {
				if slices.Contains(p.Upstream(b), a) != slices.Contains(p.Downstream(a), b) {
					t.Fatalf("%s and %s don't agree which is upstream", a, b)
				}
			}
			if slices.Contains(p.Upstream(a), a) {
				t.Fatalf("%s is upstream of itself", a)
			}
		}
		// Any edge back makes a cycle, and it is found.
		back := rapid.SampledFrom(order).Draw(t, "back")
		if down := p.Downstream(back); len(down) > 0 {
			e := p.Spec.EnvironmentByName(back)
			e.After = append(slices.Clone(e.After), rapid.SampledFrom(down).Draw(t, "to"))
			c := p.Spec.FindCycle()
			if len(c) < 2 || c[0] != c[len(c)-1] {
				t.Fatalf("the cycle is %v", c)
			}
			for i := range len(c) - 1 {
				if !slices.Contains(p.Spec.EnvironmentByName(c[i]).After, c[i+1]) {
					t.Fatalf("%v is not a cycle", c)
				}
			}
		}
	})
}

// Upstream is the names of all environments that a release must pass before it may come to the
// environment, in the order of Topo. It is nil for a source environment and for a name that the
// pipeline doesn't have.
func (p *Pipeline) Upstream(environment string) []string {
	reached := map[string]bool{}
	var walk func(name string)
	walk = func(name string) {
		e := p.Spec.EnvironmentByName(name)
		if e == nil {
			return
		}
		for _, a := range e.After {
			if !reached[a] {
				reached[a] = true
				walk(a)
			}
		}
	}
	walk(environment)
	var names []string
	for _, e := range p.TopologicalOrder() {
		if reached[e.Name] {
			names = append(names, e.Name)
		}
	}
	return names
}

// Downstream is the names of all environments that the environment is upstream
// of, in the order of Topo.
func (p *Pipeline) Downstream(environment string) []string {
	var names []string
	for _, e := range p.TopologicalOrder() {
		if slices.ContainsFunc(e.After, func(a string) bool { return a == environment || slices.Contains(names, a) }) {
			names = append(names, e.Name)
		}
	}
	return names
}
