package server_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
)

// planCase is a random set of components in environments, and what happens to them.
type planCase struct {
	components   []string
	environments []string // in the order of the pipeline; dev and qa are the first two
	batch        bool     // batch: environment
	branches     bool     // layout: branches
	second       bool     // every component has two overlays in every environment
	events       []planEvent
}

// planEvent is one thing that somebody does to the repository.
type planEvent struct {
	kind        string // release, edit, break, mix or merge
	components  []string
	environment string
	tag         string
}

func (e planEvent) String() string {
	return fmt.Sprintf("%s %v %s %s", e.kind, e.components, e.environment, e.tag)
}

// drawPlanCase draws a case. Every release is healthy where it comes: that is
// what a plan takes for granted, so no other is drawn.
func drawPlanCase(t *rapid.T) planCase {
	c := planCase{
		components:   []string{"web", "api", "db", "jobs"}[:rapid.IntRange(2, 4).Draw(t, "components")],
		environments: rapid.SampledFrom([][]string{{"dev", "qa", "prod"}, {"dev", "qa", "prod-eu", "prod-us"}}).Draw(t, "environments"),
		batch:        rapid.Bool().Draw(t, "batch"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "layout") {
	case 0:
		c.branches = true
	case 1:
		c.second = true
	}
	kinds := []string{"release", "release", "release", "merge", "merge", "edit", "break"}
	if c.second {
		kinds = append(kinds, "mix")
	}
	// The first is a release, without which nothing would ever open.
	for i := range rapid.IntRange(2, 6).Draw(t, "events") {
		e := planEvent{kind: "release", environment: "dev", components: []string{rapid.SampledFrom(c.components).Draw(t, "component")}}
		if i > 0 {
			e.kind = rapid.SampledFrom(kinds).Draw(t, "kind")
		}
		e.tag = fmt.Sprintf("1.%d.0", rapid.IntRange(0, 4).Draw(t, "tag"))
		switch e.kind {
		case "release":
			e.tag = fmt.Sprintf("2.%d.0", i)
			e.components = slices.Compact(slices.Sorted(slices.Values(append(e.components, rapid.SampledFrom(c.components).Draw(t, "other")))))
		case "edit", "break", "mix":
			e.environment = rapid.SampledFrom(c.environments).Draw(t, "environment")
		}
		c.events = append(c.events, e)
	}
	return c
}

// harnessOptions are the world of a case. Everything opens by itself and nothing merges
// by itself. The times are so long that a slow machine fails no verification.
func (c *planCase) harnessOptions() harnessOptions {
	const verify = "verify: {arriveWithin: 10h, timeout: 10h, healthyFor: 50ms, watch: 2m, debounce: 50ms}"
	spec := []string{"limits: {openPerEnvironment: 100}"}
	if c.batch {
		spec = append(spec, "batch: environment")
	}
	var environments []string
	for i, env := range c.environments {
		text := "name: " + env
		if i > 0 {
			text += "\nafter: [" + c.environments[min(i-1, 1)] + "]\nopen: auto\nmerge: manual"
		}
		environments = append(environments, text+"\n"+verify)
	}
	o := harnessOptions{components: c.components, pipeline: pipelineYAML(spec, environments...), clock: newSteppedClock()}
	if c.branches {
		o.branches = map[string]string{}
		for _, env := range c.environments {
			o.branches[env] = "env/" + env
		}
		o.branches[c.environments[len(c.environments)-1]] = "main"
	}
	if c.second {
		o.files = map[string]string{}
		for _, name := range c.components {
			for _, env := range c.environments {
				o.files[secondOverlay(name, env)] = strings.NewReplacer("NAME", name, "TAG", "1.0.0").Replace(kustomizationTemplate)
			}
		}
	}
	return o
}

func secondOverlay(component, env string) string {
	return "apps/" + component + "/second/" + env + "/kustomization.yaml"
}

// startPlanCase makes a case's world and starts a server in it.
func startPlanCase(t *testing.T, c *planCase) *harness {
	s := newHarness(t, c.harnessOptions())
	if c.second {
		s.commitFiles("linus", "main", "Deploy the second overlays", map[string]string{"argocd/shop.yaml": s.appSetYAML(
			"          - path: apps/*/overlays/*", "          - path: apps/*/overlays/*\n          - path: apps/*/second/*",
			"name: '{{ index .path.segments 1 }}-{{ .path.basename }}'", `name: '{{ index .path.segments 1 }}-{{ .path.basename }}{{ if eq (index .path.segments 2) "second" }}-second{{ end }}'`)})
		for _, name := range c.components {
			for _, env := range c.environments {
				s.must("add an Application", s.ArgoCD.AddApplication(emulator.AppSpec{Name: name + "-" + env + "-second", Repo: repoName, Path: filepath.Dir(secondOverlay(name, env)),
					DestinationNamespace: name + "-" + env, Cluster: "https://kubernetes.default.svc", ApplicationSet: "shop"}))
			}
		}
	}
	s.start()
	s.awaitPlanRest()
	return s
}

// perform does what an event says.
func (s *harness) perform(c *planCase, e planEvent) {
	s.t.Helper()
	if e.kind == "merge" {
		s.mergeOldest()
		return
	}
	files := map[string]string{}
	for _, name := range e.components {
		text := strings.NewReplacer("NAME", name, "TAG", e.tag).Replace(kustomizationTemplate)
		if c.branches {
			text = "namePrefix: " + e.environment + "-\n" + strings.ReplaceAll(text, "../../base", "deployment.yaml")
		}
		second := text
		switch e.kind {
		case "break":
			text = "images: [\n"
		case "mix":
			second = strings.ReplaceAll(text, e.tag, "3.0.0")
		}
		files[s.overlayDir(name, e.environment)+"/kustomization.yaml"] = text
		if c.second {
			files[secondOverlay(name, e.environment)] = second
		}
	}
	s.commitFiles("linus", s.branchOf(e.environment), e.String(), files)
}

// mergeOldest has a person merge the oldest open pull request that can be merged, if
// there is one.
func (s *harness) mergeOldest() {
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	for _, p := range all {
		if p.Open {
			if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err == nil {
				return
			}
		}
	}
}

// awaitPlanRest lets time go on until the server has nothing to do and waits for no
// target.
func (s *harness) awaitPlanRest() {
	s.t.Helper()
	const step, quietSteps = 100 * time.Millisecond, 6
	rest := 0
	s.waitFor("the server comes to rest", func() (bool, string) {
		s.opts.clock.Step(step)
		s.must("wait for the webhooks", s.Forge.WaitIdle(s.t.Context()))
		_, page := s.getText("/metrics")
		seen := fmt.Sprintf("due %s, running %s", findMetric(page, `liftlock_queue_keys{state="due"}`), findMetric(page, `liftlock_queue_keys{state="running"}`))
		if seen == "due 0, running 0" {
			for _, name := range s.opts.components {
				seen += s.describeUnrest(name)
			}
		}
		if seen != "due 0, running 0" {
			rest = 0
			return false, seen
		}
		rest++
		return rest > quietSteps, seen
	})
}

// describeUnrest says in which environments the server still waits for a component's
// targets.
func (s *harness) describeUnrest(component string) string {
	environments, err := s.readEnvironments(component)
	if err != nil {
		return err.Error()
	}
	out := ""
	for i := range environments {
		if e := &environments[i]; e.State == promotion.Verifying {
			out += fmt.Sprintf(", %s is verifying in %s: %s", component, e.Environment.Environment, e.Text)
		}
	}
	return out
}

// readEnvironments is what the API says of all environments of a component.
func (s *harness) readEnvironments(component string) ([]api.EnvironmentWhy, error) {
	var why api.Why
	_, err := s.getJSON("/api/v1/why?"+url.Values{"pipeline": {"shop"}, "component": {component}}.Encode(), &why)
	if err == nil && len(why.Environments) != len(s.environmentNames()) {
		err = fmt.Errorf("%d environments of %s", len(why.Environments), component)
	}
	return why.Environments, err
}

// outlook is what is compared: the pull requests by environment and members, and for
// each component and environment without one the codes of the reasons.
type outlook struct {
	Opens   []string
	Reasons map[string]string
}

// normalizeReasons are the codes of why nothing opens, sorted. The server gives no
// code where the reason is the state itself (mixed and unreadable, which a plan
// makes a reason of) or where there is nothing to do (which a plan calls up to date).
func normalizeReasons(state string, codes []string) string {
	switch {
	case len(codes) > 0:
	case state == promotion.Mixed, state == promotion.Unreadable:
		codes = []string{state}
	default:
		codes = []string{plan.UpToDate}
	}
	slices.Sort(codes)
	return strings.Join(slices.Compact(codes), ",")
}

// formatOpens are pull requests for comparison: the members of each, sorted.
func formatOpens[K comparable](members map[K][]string) []string {
	out := []string{}
	for _, list := range members {
		slices.Sort(list)
		out = append(out, strings.Join(list, " + "))
	}
	slices.Sort(out)
	return out
}

// serverOutlook is what the server has open, and why it opens nothing else.
//
// A pull request that was open when a person changed its environment stays open, on
// hold. A plan, which assumes that none is open, gives the reason for which it
// would not open: the state. So does this, for those that are on hold.
func (s *harness) serverOutlook() outlook {
	s.t.Helper()
	out := outlook{Reasons: map[string]string{}}
	members, unseen := map[int][]string{}, map[int]bool{}
	all, err := s.Forge.Pulls(repoName)
	s.must("list the pull requests", err)
	for _, p := range all {
		if p.Open {
			unseen[p.Number] = true
		}
	}
	for _, name := range s.opts.components {
		environments, err := s.readEnvironments(name)
		s.must("read the environments", err)
		for i := range environments {
			e := &environments[i]
			env := e.Environment.Environment
			var pull *api.Pull
			if e.Incoming != nil {
				pull = e.Incoming.Pull
			}
			if pull != nil {
				delete(unseen, pull.Number)
			}
			switch {
			case pull != nil && e.Incoming.State == promotion.Opened:
				members[pull.Number] = append(members[pull.Number], fmt.Sprintf("%s: %s %s", env, name, e.Incoming.Release))
			case env == "dev" && e.State != promotion.Mixed && e.State != promotion.Unreadable:
				// Nothing is ever promoted into the first.
			case pull != nil && e.Incoming.State == promotion.Held && slices.Contains([]string{promotion.Diverged, promotion.Mixed, promotion.Unreadable}, e.State):
				out.Reasons[name+" in "+env] = e.State
			default:
				var codes []string
				for _, r := range e.Why {
					codes = append(codes, r.Code)
				}
				out.Reasons[name+" in "+env] = normalizeReasons(e.State, codes)
			}
		}
	}
	for number := range maps.Keys(unseen) {
		members[number] = []string{fmt.Sprintf("#%d, of which the API says nothing", number)}
	}
	out.Opens = formatOpens(members)
	return out
}

// planOutlook is what `liftlock plan` says over a clone.
func (s *harness) planOutlook() outlook {
	s.t.Helper()
	address := s.Forge.URL() + "/" + repoName + ".git"
	from, err := url.Parse(address)
	s.must("read the forge's address", err)
	from.User = url.UserPassword("linus", "token-of-linus")
	work, err := os.MkdirTemp(s.dir, "clone")
	s.must("make a folder", err)
	if text, err := exec.Command("git", "clone", "--quiet", from.String(), work).CombinedOutput(); err != nil {
		s.t.Fatalf("git clone: %v\n%s", err, text)
	}
	r, err := checkout.Open(s.t.Context(), work, []string{address})
	s.must("open the clone", err)
	defer r.Close() // only read
	p, err := r.Plan(s.t.Context(), checkout.PlanQuery{Now: s.opts.clock.Now()})
	s.must("plan", err)
	if len(p.Problems) > 0 || len(p.Pipelines) != 1 {
		s.t.Fatalf("%d pipelines are planned, with these problems: %+v", len(p.Pipelines), p.Problems)
	}
	out := outlook{Reasons: map[string]string{}}
	members := map[int][]string{}
	for i, open := range p.Pipelines[0].Promotions {
		for _, part := range open.Parts {
			members[i] = append(members[i], fmt.Sprintf("%s: %s %s", open.Environment, part.Component, part.To.ID))
		}
	}
	for _, w := range p.Pipelines[0].Waiting {
		var codes []string
		for _, reason := range w.Why {
			codes = append(codes, reason.Code)
		}
		out.Reasons[w.Component+" in "+w.Environment] = normalizeReasons(w.State, codes)
	}
	out.Opens = formatOpens(members)
	return out
}

// TestPlanIsWhatTheServerOpens holds that `liftlock plan` over a clone names the
// pull requests that a server has open that saw every commit come, and the same
// reasons for the rest.
func TestPlanIsWhatTheServerOpens(t *testing.T) {
	cases := 4 // and the four below, about 10 seconds in all
	switch {
	case *runLong:
		cases = 500
	case raceDetector:
		cases = 2
	}
	generator := rapid.Custom(drawPlanCase)
	for i := range cases {
		c := generator.Example(i)
		t.Run(fmt.Sprint(i), func(t *testing.T) { comparePlan(t, &c) })
	}
}

// TestPlanOfWhatMovedOn holds the same where what an environment carried earlier
// moves on, or has, and a person changed the environment since.
func TestPlanOfWhatMovedOn(t *testing.T) {
	release := planEvent{kind: "release", components: []string{"web"}, environment: "dev", tag: "2.0.0"}
	merge := planEvent{kind: "merge"}
	for _, kind := range []string{"edit", "break"} {
		change := planEvent{kind: kind, components: []string{"web"}, environment: "qa", tag: "1.3.0"}
		for name, events := range map[string][]planEvent{
			"while prod's is open":   {release, merge, change},
			"after prod's is merged": {release, merge, merge, change},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				comparePlan(t, &planCase{components: []string{"web"}, environments: []string{"dev", "qa", "prod"}, events: events})
			})
		}
	}
}

// comparePlan lives through a case and compares.
func comparePlan(t *testing.T, c *planCase) {
	s := startPlanCase(t, c)
	for _, e := range c.events {
		s.perform(c, e)
		s.awaitPlanRest()
	}
	want, got := s.serverOutlook(), s.planOutlook()
	t.Logf("%+v: opens %q, else %v", *c, want.Opens, want.Reasons)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the server (-) and the plan (+) differ:\n%s", diff)
	}
}
