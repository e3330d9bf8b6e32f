package appset

import (
	"encoding/json"
	"flag"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/world/randomset"
)

var long = flag.Bool("long", false, "run the random tests with 10,000 cases")

const appsetsURL = "https://git.example.com/acme/fleet.git"

// object is a piece of a manifest.
type object = map[string]any

// draws sets how many cases a random test has, unless the command line does.
func draws(t *testing.T, usually, inTheLongMode string) {
	t.Helper()
	checks, given := flag.Lookup("rapid.checks"), false
	flag.Visit(func(f *flag.Flag) { given = given || f == checks })
	if given {
		return
	}
	before := checks.Value.String()
	t.Cleanup(func() { must(t, checks.Value.Set(before)) })
	if *long {
		usually = inTheLongMode
	}
	must(t, checks.Value.Set(usually))
}

// TestRandomSets composes generators, selectors, templates and values at
// random, over fleets of up to 200 targets a generator.
func TestRandomSets(t *testing.T) {
	draws(t, "250", "10000")
	redirectLibraryLogs(zap.NewNop())
	var oracles []*oracle
	for _, size := range [][2]int{{2, 2}, {3, 2}, {2, 3}, {3, 3}, {2, 5}, {40, 5}} {
		for _, globbing := range []string{GlobbingGit, GlobbingDoublestar} {
			oracles = append(oracles, &oracle{
				dir: checkout(t, randomset.Tree(size[0], size[1])), clusters: oracleClusters, projects: []string{"default", "web"}, globbing: globbing, large: size[0] > 9,
			})
		}
	}
	cases, resolved, failed, most := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		o := rapid.SampledFrom(oracles).Draw(rt, "fleet")
		raw, err := json.Marshal(randomset.Draw(rt, appsetsURL, o.large))
		must(rt, err)
		manifest, err := yaml.JSONToYAML(raw)
		must(rt, err)
		n, wrong := o.compare(rt, manifest, appsetsURL)
		cases, most = cases+1, max(most, n)
		if n > 0 {
			resolved++
		}
		if wrong {
			failed++
		}
	})
	t.Logf("%d sets, %d with Applications, %d with errors, at most %d Applications", cases, resolved, failed, most)
	if cases >= 1000 && (resolved < cases/10 || failed == 0 || most < 100) {
		t.Errorf("of %d sets %d gave Applications and %d errors, at most %d: too few to mean much", cases, resolved, failed, most)
	}
}
