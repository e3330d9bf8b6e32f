package server_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// awaitRest lets time go on until the server has nothing to do and waits for no
// target.
func (pw *planWorld) awaitRest() {
	pw.t.Helper()
	const step, quietSteps = 250 * time.Millisecond, 2
	rest := 0
	pw.waitEvery(50*time.Millisecond, "the server comes to rest", func() (bool, string) {
		pw.opts.clock.Step(step)
		pw.must("wait for the webhooks", pw.Forge.WaitIdle(pw.t.Context()))
		_, page := pw.getText("/metrics")
		seen := fmt.Sprintf("due %s, running %s", findMetric(page, `liftlock_queue_keys{state="due"}`), findMetric(page, `liftlock_queue_keys{state="running"}`))
		if seen == "due 0, running 0" {
			for _, name := range pw.opts.components {
				seen += pw.describeUnrest(name)
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
func (pw *planWorld) describeUnrest(component string) string {
	environments, err := pw.readEnvironments(component)
	if err != nil {
		return err.Error()
	}
	out := ""
	for i := range environments {
		if e := &environments[i]; e.State == promotion.Verifying && len(e.Targets) > 0 {
			out += fmt.Sprintf(", %s is verifying in %s: %s", component, e.Environment.Environment, e.Text)
		}
	}
	return out
}

// readEnvironments is what the API says of all environments of a component.
func (pw *planWorld) readEnvironments(component string) ([]api.EnvironmentWhy, error) {
	var why api.Why
	_, err := pw.getJSON("/api/v1/why?"+url.Values{"pipeline": {"shop"}, "component": {component}}.Encode(), &why)
	if err == nil && len(why.Environments) != len(pw.c.environments) {
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

// normalizeReasons are the codes of why nothing opens, sorted. The server gives no code where the
// reason is the state itself (mixed and unreadable, which a plan makes a reason of). It gives none
// either where there is nothing to do (which a plan calls up to date).
func normalizeReasons(state string, codes []string) string {
	switch {
	case len(codes) > 0:
	case state == promotion.Mixed, state == promotion.Unreadable, state == promotion.NotHere:
		codes = []string{state}
	default:
		codes = []string{string(cause.UpToDate)}
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

// wentBack says that an environment before one is back at its release. The pull request into it
// that is open stays open, and would not be opened.
func (pw *planWorld) wentBack(environments []api.EnvironmentWhy, e *api.EnvironmentWhy) bool {
	i := slices.IndexFunc(pw.c.environments, func(x planEnvironment) bool { return x.name == e.Environment.Environment })
	return slices.ContainsFunc(environments, func(u api.EnvironmentWhy) bool {
		return slices.Contains(pw.c.environments[i].after, u.Environment.Environment) && u.Release != "" && u.Release == e.Release
	})
}

// serverOutlook is what the server has open, and why it opens nothing else. apart are
// the components and environments of which nothing is compared, because a pull
// request that was open or is closed says more than a plan can know.
//
// A pull request that was open when a person changed or held its environment stays
// open, on hold. A plan, which assumes that none is open, gives the reason for which
// it would not open: the state, or the hold. So does this, for those that are on hold.
func (pw *planWorld) serverOutlook() (out outlook, apart map[string]bool) {
	pw.t.Helper()
	out, apart = outlook{Reasons: map[string]string{}}, map[string]bool{}
	members, unseen, labelled := map[int][]string{}, map[int]bool{}, map[int]bool{}
	for _, p := range pw.openPulls("") {
		unseen[p.Number], labelled[p.Number] = true, slices.Contains(p.Labels, promotion.LabelHold)
	}
	for _, name := range pw.opts.components {
		environments, err := pw.readEnvironments(name)
		pw.must("read the environments", err)
		for i := range environments {
			e := &environments[i]
			where := name + " in " + e.Environment.Environment
			var codes []string
			for _, r := range e.Why {
				codes = append(codes, string(r.Code))
			}
			in := e.Incoming
			if in == nil {
				in = &api.Incoming{}
			}
			if in.Pull == nil {
				in.Pull = &api.Pull{}
			}
			delete(unseen, in.Pull.Number)
			stuck := slices.Contains([]string{promotion.Diverged, promotion.Mixed, promotion.Unreadable}, e.State)
			switch {
			case in.Pull.Number == 0 && slices.Contains(codes, "closed"), in.Pull.Number != 0 && pw.wentBack(environments, e):
				apart[where] = true
			case in.Pull.Number != 0 && (in.State == promotion.Opened || labelled[in.Pull.Number] && !stuck):
				members[in.Pull.Number] = append(members[in.Pull.Number], fmt.Sprintf("%s %s", where, in.Release))
			case slices.Contains(pw.c.names(true), e.Environment.Environment) && e.State != promotion.Mixed && e.State != promotion.Unreadable:
				// Nothing is ever promoted into a source.
			case in.Pull.Number != 0 && in.State == promotion.Held && stuck:
				out.Reasons[where] = e.State
			case in.Pull.Number != 0 && in.State == promotion.Held:
				out.Reasons[where] = "hold"
			default:
				out.Reasons[where] = normalizeReasons(e.State, codes)
			}
		}
	}
	for number := range maps.Keys(unseen) {
		members[number] = []string{fmt.Sprintf("#%d, of which the API says nothing", number)}
	}
	out.Opens = formatOpens(members)
	return out, apart
}

// planOutlook is what `liftlock plan` says over a clone, but of what is not compared.
func (pw *planWorld) planOutlook(apart map[string]bool) outlook {
	pw.t.Helper()
	address := pw.Forge.URL() + "/" + repoName + ".git"
	from, err := url.Parse(address)
	pw.must("read the forge's address", err)
	from.User = url.UserPassword("linus", "token-of-linus")
	work, err := os.MkdirTemp(pw.dir, "clone")
	pw.must("make a folder", err)
	if text, err := exec.Command("git", "clone", "--quiet", from.String(), work).CombinedOutput(); err != nil {
		pw.t.Fatalf("git clone: %v\n%s", err, text)
	}
	r, err := checkout.Open(pw.t.Context(), work, []string{address})
	pw.must("open the clone", err)
	defer r.Close() // only read
	p, err := r.Plan(pw.t.Context(), checkout.PlanQuery{Now: pw.opts.clock.Now()})
	pw.must("plan", err)
	if len(p.Problems) > 0 || len(p.Pipelines) != 1 {
		pw.t.Fatalf("%d pipelines are planned, with these problems: %+v", len(p.Pipelines), p.Problems)
	}
	out := outlook{Reasons: map[string]string{}}
	members := map[int][]string{}
	for i, open := range p.Pipelines[0].Promotions {
		for _, part := range open.Parts {
			if where := part.Component + " in " + open.Environment; !apart[where] {
				members[i] = append(members[i], fmt.Sprintf("%s %s", where, part.To.ID))
			}
		}
	}
	for _, waits := range p.Pipelines[0].Waiting {
		var codes []string
		for _, reason := range waits.Why {
			codes = append(codes, string(reason.Code))
		}
		if where := waits.Component + " in " + waits.Environment; !apart[where] {
			out.Reasons[where] = normalizeReasons(waits.State, codes)
		}
	}
	out.Opens = formatOpens(members)
	return out
}

// TestPlanEqualsTheServer holds that `liftlock plan` over a clone names the pull requests that a
// server has open that saw every commit come, and the same reasons for the rest.
//
// A plan can't know what only the forge or the store knows. It says that it takes for granted that
// no pull request is open and none was closed by a person. So these differ by design, and are left
// out:
//   - where a person closed the newest release's pull request, nothing is compared until there is a
//     newer release;
//   - a pull request that is open stays open when an environment before it goes back to this one's
//     release. And a component leaves an environment only while no pull request moves it. Otherwise
//     that would stay open too;
//   - a release that a person changed or held while its pull request was open gets the reason for
//     which it would not be opened. A pull request with the label for holds counts as open, and
//     nothing comes after the label, because it keeps newer releases out;
//   - a revert and a promotion that a person asked for are merged at once. An open revert
//     quarantines, and an open forced promotion is there by a command. For the same reason no
//     promotion is requested while something is held;
//   - where openPerEnvironment is small, no event gives a component a place out of turn: an open
//     pull request keeps its place with a newer release too;
//   - pull requests are merged so that our commits' trailers stay in the history.
func TestPlanEqualsTheServer(t *testing.T) {
	t.Parallel()
	cases := 4 // and those below, some seconds in all
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

// TestPlanAfterEarlierReleases holds the same where what an environment carried earlier
// moves on, or has, and a person changed the environment since.
func TestPlanAfterEarlierReleases(t *testing.T) {
	t.Parallel()
	release := planEvent{kind: planRelease, components: []string{"web"}, environments: []string{"dev"}, tag: "2.0.0"}
	merge := planEvent{kind: planMerge}
	for _, kind := range []string{planEdit, planBreak} {
		change := planEvent{kind: kind, components: []string{"web"}, environments: []string{"qa"}, tag: "1.3.0"}
		for name, events := range map[string][]planEvent{
			"while prod's is open":   {release, merge, change},
			"after prod's is merged": {release, merge, merge, change},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				comparePlan(t, &planCase{components: []string{"web"}, environments: planGraphs["line"], layout: "directories", limit: 100, events: events})
			})
		}
	}
}

// comparePlan lives through a case and compares.
func comparePlan(t *testing.T, c *planCase) {
	w := startPlanCase(t, c)
	for _, e := range c.events {
		w.perform(e)
		w.awaitRest()
	}
	want, apart := w.serverOutlook()
	got := w.planOutlook(apart)
	t.Logf("%+v: opens %q, else %v", *c, want.Opens, want.Reasons)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the server (-) and the plan (+) differ:\n%s", diff)
	}
}
