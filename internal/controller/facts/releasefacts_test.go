package facts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestListChangedKinds lists the kinds of what a component's targets gain, lose and have otherwise,
// each once, and of no other component's.
func TestListChangedKinds(t *testing.T) {
	change := func(op render.Op, kind string) render.Change { return render.Change{Op: op, Kind: kind} }
	effect := func(component, why string, changes ...render.Change) isolation.Effect {
		e := isolation.Effect{Target: appset.Target{Name: component + "-qa", Component: component}, Why: why}
		if why == "" {
			e.Changes = &render.Changes{Objects: changes}
		}
		return e
	}
	specOnly := isolation.Effect{Target: appset.Target{Component: "web"}, Spec: true}
	got, err := listChangedKinds("web", []isolation.Effect{
		effect("web", "", change(render.Added, "Service"), change(render.Removed, "Job"), change(render.Changed, "Secret"), change(render.Added, "Ingress")),
		effect("api", "", change(render.Added, "CronJob")), effect("api", "it can't be rendered"), specOnly,
		effect("web", "", change(render.Added, "Ingress"), change(render.Changed, "ConfigMap")),
	})
	want := &policies.Diff{Added: []string{"Ingress", "Service"}, Changed: []string{"ConfigMap", "Secret"}, Removed: []string{"Job"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err = listChangedKinds("api", []isolation.Effect{effect("api", "no chart")}); got != nil || err == nil || !strings.HasSuffix(err.Error(), "api-qa: no chart") {
		t.Errorf("what can't be rendered is %+v, %v", got, err)
	}
}

// TestUnknownReleases says of a release of unknown content that it can't be composed, and composes
// nothing.
func TestUnknownReleases(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	ev, _ := w.evaluate("web", false)
	known := ev.Components[0].Env("dev").Release.Value.ID
	other, _ := w.evaluate("api", false)
	unknown := strings.Repeat("0", 64)
	edits, refused := w.o.Effects.ComposeMembers(w.ctx(), &ev.Basis, "qa", w.head("main"), []promotion.Member{{Component: "web", Release: known}, {Component: "gone", Release: known}, {Component: "api", Release: unknown}})
	want := map[string]string{"gone": branch.ErrNoUnit.Error(), "api": "what the release 000000000000 consists of is not known any more"}
	if diff := cmp.Diff(want, refused); diff != "" || len(edits) != 0 {
		t.Errorf("%d edits (-want +got):\n%s", len(edits), diff)
	}
	if name := ev.ReleaseName(known); name != "1.0.0" {
		t.Errorf("it is called %q", name)
	}
	if got := ev.RestoredEdits("qa", 7, []promotion.Member{{Component: "web"}, {Component: "gone"}}); got != nil {
		t.Errorf("what wasn't composed is restored: %+v", got)
	}
	broken := w.commitTo("ada", "broken", w.head("main"), "Broken", map[string]string{overlayFile("web", "qa"): "images: ["})
	if edits, refused = w.o.Effects.ComposeMembers(w.ctx(), &ev.Basis, "qa", broken, []promotion.Member{{Component: "web", Release: known}}); len(edits) > 0 || !strings.Contains(refused["web"], overlayFile("web", "qa")) {
		t.Errorf("onto what can't be read: %+v, %v", edits, refused)
	}
	first := w.head("main")
	for {
		info, err := w.repo.Mirror.Commit(w.ctx(), first)
		w.must(err)
		if len(info.Parents) == 0 {
			break
		}
		first = info.Parents[0]
	}
	if _, err := w.o.Effects.ComposeRevert(w.ctx(), &ev.Basis, "qa", []promotion.Member{{Component: "web"}}, first, w.head("main")); err == nil || !strings.Contains(err.Error(), "has no parent to go back to") {
		t.Errorf("the first commit is taken back: %v", err)
	}
	err := w.o.answerBatchRequest(w.ctx(), other, promotion.FactRequest{Environment: "gone"})
	if err == nil || !strings.Contains(err.Error(), "look at gone") {
		t.Errorf("an environment that isn't there: %v", err)
	}
}

// TestAddDeclaredMembers adds those whom a body names, and knows what the head says better.
func TestAddDeclaredMembers(t *testing.T) {
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	body := branch.Marker{Kind: promotion.KindPromotion, Release: one, Members: []promotion.Member{{Component: "api", Release: one}, {Component: "web", Release: two}}}.String()
	members := []promotion.Member{{Component: "web", Release: one, Name: "1.0.0"}}
	want := []promotion.Member{{Component: "web", Release: one, Name: "1.0.0"}, {Component: "api", Release: one}}
	if diff := cmp.Diff(want, addDeclaredMembers(members, body)); diff != "" || len(members) != 1 {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := addDeclaredMembers(members, "words"); !slices.Equal(got, members) {
		t.Errorf("without a mark they are %+v", got)
	}
}

// TestReadMarker takes no member for one whose release isn't a whole identity.
func TestReadMarker(t *testing.T) {
	id := strings.Repeat("a", 64)
	whole := branch.Marker{Kind: promotion.KindPromotion, Release: id, Of: 7, Members: []promotion.Member{{Component: "api", Release: id}, {Component: "web", Release: id}}}
	for name, c := range map[string]struct {
		body string
		want []promotion.Member
	}{
		"whole":             {whole.String(), whole.Members},
		"a short release":   {strings.Replace(whole.String(), "api:"+id, "api:"+id[1:], 1), whole.Members[1:]},
		"a component alone": {strings.Replace(whole.String(), "api:"+id, id, 1), whole.Members[1:]},
	} {
		got, ok := branch.ReadMarker("Words. " + c.body)
		if diff := cmp.Diff(c.want, got.Members); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
	if got, ok := branch.ReadMarker(whole.String()); !ok || got.Of != 7 || got.Release != id {
		t.Errorf("it is read as %+v, %t", got, ok)
	}
}

// TestHealthBeforeTheMerge says whether degraded targets were well before what landed, as far as
// that was recorded.
func TestHealthBeforeTheMerge(t *testing.T) {
	const lost, late = "how it was before the merge was not recorded, or the record is lost", "it came into the pull request just before the merge, and how it was before was not recorded"
	healthy := &live.HealthBeforeMerge{Healthy: map[string]bool{"hub/argocd/web-qa": true}, Components: map[string]bool{"web": true}}
	notHealthy := &live.HealthBeforeMerge{Healthy: map[string]bool{"hub/argocd/web-qa": false}, Components: map[string]bool{"web": true}}
	others := &live.HealthBeforeMerge{Healthy: map[string]bool{"hub/argocd/api-qa": true}, Components: map[string]bool{"api": true}}
	merged := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	unknown := func(healthy map[string]bool, since time.Time) *live.HealthBeforeMerge {
		return &live.HealthBeforeMerge{Healthy: healthy, Unknown: map[string]time.Time{"hub/argocd/web-qa": since}, Components: map[string]bool{"web": true}}
	}
	batch := []promotion.Member{{Component: "web"}, {Component: "api"}}
	for name, c := range map[string]struct {
		state   verification.State
		by      string
		members []promotion.Member
		record  *live.HealthBeforeMerge
		want    promotion.Known[bool]
	}{
		"well":                        {verification.Degraded, promotion.ByPromotion, nil, healthy, promotion.Sure(true)},
		"not well":                    {verification.Degraded, promotion.ByPromotion, nil, notHealthy, promotion.Sure(false)},
		"it isn't degraded":           {verification.Verified, promotion.ByPromotion, nil, healthy, promotion.Known[bool]{}},
		"a person's change":           {verification.Degraded, promotion.ByPerson, nil, healthy, promotion.Known[bool]{}},
		"no record":                   {verification.Degraded, promotion.ByPromotion, nil, nil, promotion.Unsure[bool](lost)},
		"it did not exist":            {verification.Degraded, promotion.ByPromotion, nil, others, promotion.Sure(true)},
		"it came late into a batch":   {verification.Degraded, promotion.ByPromotion, batch, others, promotion.Unsure[bool](late)},
		"well two minutes before":     {verification.Degraded, promotion.ByPromotion, nil, unknown(healthy.Healthy, merged.Add(-2*time.Minute)), promotion.Sure(true)},
		"not well two minutes before": {verification.Degraded, promotion.ByPromotion, nil, unknown(notHealthy.Healthy, merged.Add(-2*time.Minute)), promotion.Sure(false)},
		"well longer before":          {verification.Degraded, promotion.ByPromotion, nil, unknown(healthy.Healthy, merged.Add(-2*time.Minute-1)), promotion.Unsure[bool]("how it was could not be told from 2026-05-01T11:57:59Z on, before the merge")},
		"never known":                 {verification.Degraded, promotion.ByPromotion, nil, unknown(nil, merged.Add(-time.Second)), promotion.Unsure[bool]("how it was could not be told from 2026-05-01T11:59:59Z on, before the merge")},
		"seen too late":               {verification.Degraded, promotion.ByPromotion, nil, unknown(nil, time.Time{}), promotion.Unsure[bool]("it had the release already when it was looked at for the first time")},
		"it is new in a batch":        {verification.Degraded, promotion.ByPromotion, batch, &live.HealthBeforeMerge{Components: map[string]bool{"web": true}}, promotion.Sure(true)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
			o := &live.Gatherer{Store: w.store}
			if c.record != nil {
				w.putRecord(live.HealthBefore.Key(record.OfPull(w.repo.ID, 7)), c.record)
			}
			ev := componentOf(&Evaluation{Basis: branch.Basis{Snapshot: &branch.Snapshot{Repo: w.repo}}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Unit: w.unit("web")}})
			env := &promotion.Env{Name: "qa", Landed: promotion.Sure(promotion.Landed{By: c.by, At: merged, Pull: 7, Members: c.members}),
				Targets: []promotion.Target{{ID: "hub/argocd/web-qa", Verdict: verification.Verdict{State: c.state}}}}
			w.must(o.FillHealthBefore(w.ctx(), &ev.ComponentBasis, env, nil))
			if diff := cmp.Diff(c.want, env.Targets[0].HealthyBefore); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCarriesRelease finds a release's fields in what generates an Application: in a generator's file
// or in the ApplicationSet itself.
func TestCarriesRelease(t *testing.T) {
	at := &branch.ResolvedEnv{Name: "qa", Component: "web", Files: []string{"config/qa.json", "config/prod.json"}, Roots: []string{"envs/qa"}, Shared: []string{"shared"}}
	for name, c := range map[string]struct {
		target appset.Target
		file   string
		want   bool
	}{
		"a generator's file":            {appset.Target{GeneratorFiles: []string{"envs/qa/config.json"}}, "config.json", true},
		"one of the environment's":      {appset.Target{GeneratorFiles: []string{"config/qa.json"}}, "{{environment}}.json", true},
		"another environment's":         {appset.Target{GeneratorFiles: []string{"config/prod.json"}}, "{{environment}}.json", false},
		"a shared one":                  {appset.Target{GeneratorFiles: []string{"shared/config.json"}}, "config.json", true},
		"the set itself":                {appset.Target{ApplicationSetFile: "envs/qa/set.yaml"}, "set.yaml", true},
		"another set":                   {appset.Target{ApplicationSetFile: "envs/prod/set.yaml"}, "set.yaml", false},
		"a file that only sources read": {appset.Target{GeneratorFiles: []string{"envs/qa/config.json"}, ApplicationSetFile: "envs/qa/set.yaml"}, "values.yaml", false},
	} {
		if got := live.CarriesRelease(at, &c.target, fieldedit.Release{Fields: []fieldedit.Field{{File: c.file}}}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestIncidentsThatGoOn takes of two lists of one incident what is earlier and worse, and what is
// over for what it was.
func TestIncidentsThatGoOn(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	incident := func(since, until int, unsettled bool) promotion.ClusterIncident {
		i := promotion.ClusterIncident{ID: "hub/argocd/db", Cluster: "one", Target: "db", Since: at(since), Unsettled: unsettled}
		if until != 0 {
			i.Until = at(until)
		}
		return i
	}
	for name, c := range map[string]struct{ now, before, want []promotion.ClusterIncident }{
		"as old as it was":          {[]promotion.ClusterIncident{incident(-1, 0, false)}, []promotion.ClusterIncident{incident(-4, 0, false)}, []promotion.ClusterIncident{incident(-4, 0, false)}},
		"older than was known":      {[]promotion.ClusterIncident{incident(-4, 0, false)}, []promotion.ClusterIncident{incident(-1, 0, false)}, []promotion.ClusterIncident{incident(-4, 0, false)}},
		"worse now":                 {[]promotion.ClusterIncident{incident(-1, 0, false)}, []promotion.ClusterIncident{incident(-1, 0, true)}, []promotion.ClusterIncident{incident(-1, 0, false)}},
		"unsettled still":           {[]promotion.ClusterIncident{incident(-1, 0, true)}, []promotion.ClusterIncident{incident(-4, 0, true)}, []promotion.ClusterIncident{incident(-4, 0, true)}},
		"over by now":               {[]promotion.ClusterIncident{incident(-1, -1, false)}, []promotion.ClusterIncident{incident(-4, 0, false)}, []promotion.ClusterIncident{incident(-1, -1, false)}},
		"another that was over":     {[]promotion.ClusterIncident{incident(-1, 0, false)}, []promotion.ClusterIncident{incident(-9, -4, false)}, []promotion.ClusterIncident{incident(-1, 0, false)}},
		"over just not too long":    {nil, []promotion.ClusterIncident{incident(-40, int(-live.RecoveredFor/time.Minute), false)}, []promotion.ClusterIncident{incident(-40, int(-live.RecoveredFor/time.Minute), false)}},
		"over for too long":         {nil, []promotion.ClusterIncident{incident(-40, int(-live.RecoveredFor/time.Minute)-1, false)}, nil},
		"it went on until just now": {nil, []promotion.ClusterIncident{incident(-4, 0, false)}, []promotion.ClusterIncident{{ID: "hub/argocd/db", Cluster: "one", Target: "db", Since: at(-4), Until: now}}},
	} {
		if diff := cmp.Diff(c.want, live.WithEarlier(c.now, c.before, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPullsHaveAKeyOfTheirOwn: what merges into another repository or of another pull request is
// written under another key.
func TestPullsHaveAKeyOfTheirOwn(t *testing.T) {
	seen := map[store.RecordKey]string{}
	for _, repo := range []string{"hub:acme/fleet", "hub:acme/other"} {
		keys := map[string]store.RecordKey{"turn": updateTurns.Key(record.OfBranch(repo, "main")), "turn on another branch": updateTurns.Key(record.OfBranch(repo, "qa")), "rules": branchRules.Key(record.OfBranch(repo, "main")), "queue": MergesByQueue.Key(record.Repository(repo))}
		for _, n := range []int{1, 11} {
			for name, key := range map[string]store.RecordKey{"hold": PullHolds.Key(record.OfPull(repo, n)), "shown": Shown.Key(record.OfPull(repo, n)), "comments": commentsRead.Key(record.OfPull(repo, n)), "unread": UnreadComments.Key(record.OfPull(repo, n)), "requesters": people.RequesterRecords.Key(record.OfPull(repo, n)),
				"skips": people.Skips.Key(record.OfPull(repo, n)), "reviewers": people.ReviewRequestRecords.Key(record.OfPull(repo, n)), "joined": joinedQueues.Key(record.OfPull(repo, n)), "ungated": UngatedMerges.Key(record.OfPull(repo, n)), "merging": Merging.Key(OfMerge(promotion.Unit{Repo: repo}, n))} {
				keys[fmt.Sprint(name, n)] = key
			}
		}
		for name, key := range keys {
			if other, known := seen[key]; known || key.Kind == "" {
				t.Errorf("%s is for %s of %s and for %s", key, name, repo, other)
			}
			seen[key] = name + " of " + repo
		}
	}
}

// TestWhichGatesTakeARelease describes what a pull request moves where a gate is about that.
func TestWhichGatesTakeARelease(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	known := c.Env("dev").Release.Value.ID
	for name, tc := range map[string]struct {
		gate    policies.Gate
		release string
		want    bool
	}{
		"an expression":        {policies.Gate{Expression: new(policies.Expression("true"))}, known, true},
		"a metric":             {policies.Gate{Metric: &policies.Metric{}}, known, true},
		"an endpoint":          {policies.Gate{HTTP: &policies.HTTP{}}, known, true},
		"an unknown release":   {policies.Gate{HTTP: &policies.HTTP{}}, "gone", true},
		"approvals are enough": {policies.Gate{Approvals: &policies.Approvals{}}, known, false},
	} {
		p := &promotion.Pull{Number: 7, Release: tc.release, Name: "1.0.0"}
		env := *c.Env("qa")
		env.Gates = []policies.Gate{tc.gate}
		w.must(w.o.releaseFacts(w.ctx(), c, &env, &OpenPull{PR: &forge.PullRequest{Labels: []string{"x"}, Draft: true}}, p))
		got := p.Review.Promotion
		if (got != nil) != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got == nil {
			continue
		}
		if got.Pull.Number != 7 || !got.Pull.Draft || got.Component != "web" || got.Environment != "qa" || (got.Release == nil) != (got.ReleaseErr != "") || (got.Release == nil) != (tc.release != known) {
			t.Errorf("%s: %+v", name, got)
		}
		if r := got.Release; r != nil && (r.Name != "1.0.0" || len(r.Images) != 1 || r.Images[0].Tag != "1.0.0" || len(r.Fields) != 1 || r.Fields[0].New != "1.0.0" || r.Fields[0].Old != "1.0.0") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
