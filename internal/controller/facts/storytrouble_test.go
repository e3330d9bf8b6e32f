package facts

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

const twoEnvs = `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
`

// promote has a release of the first component merged into QA, and gives the commit.
func (sto *story) promote(tag string) string {
	sto.t.Helper()
	component := sto.components[0]
	sto.evaluate(component, false)
	sto.release("ada", "dev", tag, component)
	sto.soak(component)
	ev, d := sto.evaluate(component, false)
	sto.record(ev, d)
	ev, d = sto.evaluate(component, false)
	n := sto.openPromotion(ev, d)
	sto.evaluate(component, false)
	return sto.merge(n, "linus")
}

// TestDegradedInIncident follows a degradation while a neighbour on the cluster is unwell:
// what the promotion changed is compared with what is unhealthy.
func TestDegradedInIncident(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web", "api")
	landed := w.promote("1.1.0")
	w.soak("web")
	w.soak("web")
	failed := func(app *verification.App) {
		app.Health, app.HealthMessage = "Degraded", "crashes"
		app.Operation = &verification.Operation{Phase: "Failed", Message: "one or more objects failed", Revisions: []string{landed}, StartedAt: w.now.Add(-time.Minute), FinishedAt: w.now,
			Results: []verification.SyncResult{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Status: "SyncFailed"}}}
		app.Deployed = []verification.Deployment{{Revisions: []string{landed}, At: w.now.Add(-3 * time.Minute)}}
	}
	w.unhealthy["web-qa"] = []verification.Resource{{Group: "batch", Kind: "CronJob", Namespace: "shop", Name: "nightly", Health: "Degraded"}}
	w.becomes("web-qa", failed)
	w.becomes("api-qa", func(app *verification.App) { app.Health = "Degraded" })
	for range 3 {
		w.wait(time.Minute)
		ev, d := w.evaluate("web", false)
		for i, c := range ev.Components {
			w.storeComponent(c, &d.Components[i], nil, nil)
		}
		w.record(ev, d)
	}
	w.lookAtUnit("degraded, with a neighbour")
	w.becomes("api-qa", nil)
	w.wait(time.Second)
	w.lookAtUnit("the neighbour is well again")
	w.apps["web-qa"] = func(app *verification.App) {
		failed(app)
		app.Deployed = nil
		app.Revisions = []string{strings.Repeat("1", 40)}
	}
	w.wait(time.Second)
	w.lookAtUnit("it has a commit that nobody knows")
	w.argocdErr = errors.New("the watch is broken")
	w.wait(time.Second)
	w.lookAtUnit("Argo CD can't be asked")
	w.argocdErr = nil
	w.apps["web-qa"] = func(app *verification.App) {
		info, err := w.repo.Mirror.Commit(w.ctx(), landed)
		w.must(err)
		app.Revisions = info.Parents[:1]
	}
	w.wait(time.Second)
	w.lookAtUnit("it has the commit before")
	w.end()
}

// followed notes which Applications are relied on, and until when.
type followed map[string]time.Time

func (f followed) Follow(namespace, name string, until time.Time) { f[namespace+"/"+name] = until }

// TestTargetsUnderVerificationAreFollowed relies on how a target is while that decides about
// its release, until after the next look, and not once it is verified.
func TestTargetsUnderVerificationAreFollowed(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	follower := followed{}
	argo := w.options.ArgoCDs["hub"]
	argo.Follower = follower
	w.o.ArgoCDs.ByName["hub"] = argo
	w.promote("1.1.0")
	clear(follower)
	ev, _ := w.evaluate("web", false)
	v := ev.Components[0].Env("qa").Targets[0].Verdict
	if until := follower["argocd/web-qa"]; !live.IsBeingVerified(v.State) || until.Before(v.Next.Add(live.FollowedAfter)) || until.Before(w.now) {
		t.Errorf("it is %s, looked at again at %s and followed until %s", v.State, v.Next, until)
	}
	w.soak("web")
	w.soak("web")
	clear(follower)
	ev, _ = w.evaluate("web", false)
	if v := ev.Components[0].Env("qa").Targets[0].Verdict; v.State != verification.Verified || len(follower) > 0 {
		t.Errorf("it is %s, and %v are followed", v.State, follower)
	}
}

// TestUnreadable follows environments whose fields can't be read, are not there, or
// contradict each other, and one without targets.
func TestUnreadable(t *testing.T) {
	w := newStory(t, `  environments:
    - {name: dev}
    - {name: qa, after: [dev]}
    - {name: prod, after: [qa]}
`, []string{"dev", "qa"}, "web")
	w.lookAtUnit("there are no targets in prod")
	w.commit("ada", "Break it", map[string]string{overlayFile("web", "qa"): "images: ["})
	w.lookAtUnit("no YAML")
	w.commit("ada", "Mend it", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.0")})
	w.lookAtUnit("mended: it came when it came")
	w.commit("ada", "Nothing to carry", map[string]string{overlayFile("web", "qa"): "resources: [../../../base/web]\n"})
	w.lookAtUnit("nothing is carried")
	w.commit("ada", "Break the pipeline", map[string]string{overlayFile("web", "qa"): overlayText("web", "1.0.0"), ".liftlock.yaml": "spec: ["})
	w.lookAtUnit("the pipeline file is broken")
	w.commit("ada", "Break the set", map[string]string{".liftlock.yaml": storyPipeline(twoEnvs), "argocd/shop.yaml": "spec: ["})
	w.lookAtUnit("the ApplicationSet is broken, and its last targets stay")
	w.startProcess()
	w.lookAtUnit("another process finds the last targets")
	w.commit("ada", "No sets", map[string]string{"argocd/shop.yaml": ""})
	s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
	w.must(err)
	if _, _, err := w.o.Evaluate(w.ctx(), s, w.unit("nobody"), false); !errors.Is(err, branch.ErrNoUnit) {
		t.Errorf("a component that isn't there: %v", err)
	}
	w.end()
}

// TestBranches follows environments that live on branches of their own, one of which goes
// away.
func TestBranches(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	set := appSetYAML("s", "{list: {elements: ["+listElement("web", "dev", "env/dev")+", "+listElement("web", "qa", "env/qa")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}'}")
	pipe := strings.NewReplacer("    - {name: prod, after: [qa], branch: main}\n", "").Replace(branchPipeline)
	w.commit("ada", "On branches", map[string]string{".liftlock.yaml": pipe, "argocd/shop.yaml": set, "apps/web/kustomization.yaml": overlayText("web", "1.0.0")})
	w.must(w.forge.Push(storyRepo, "ada", "env/dev", w.head("main"), false))
	w.must(w.forge.Push(storyRepo, "ada", "env/qa", w.head("main"), false))
	w.fetch()
	w.lookAtUnit("what was there before")
	w.commitTo("ada", "env/dev", w.head("env/dev"), "Release", map[string]string{"apps/web/kustomization.yaml": overlayText("web", "1.1.0")})
	ev, _ := w.lookAtUnit("a release on dev's branch")
	for env, want := range map[string][]string{"dev": nil, "qa": nil} {
		if moved, err := w.o.MovedBranches(w.ctx(), ev, env); err != nil || !slices.Equal(moved, want) {
			t.Errorf("nothing has moved, and %s says %q, %v", env, moved, err)
		}
	}
	w.commitTo("ada", "env/qa", w.head("env/qa"), "More", map[string]string{"x": "x"})
	if moved, err := w.o.MovedBranches(w.ctx(), ev, "qa"); err != nil || !slices.Equal(moved, []string{"env/qa"}) {
		t.Errorf("qa's branch has moved: %q, %v", moved, err)
	}
	if moved, err := w.o.MovedBranches(w.ctx(), ev, "dev"); err != nil || len(moved) > 0 {
		t.Errorf("qa's branch is no matter of dev's: %q, %v", moved, err)
	}
	w.must(w.forge.Push(storyRepo, "ada", "env/qa", "", true))
	w.fetch()
	w.lookAtUnit("qa's branch is gone")
	w.end()
}

// TestSharedFiles composes what moves together where components share what they are made
// of with somebody who stays.
func TestSharedFiles(t *testing.T) {
	w := newStory(t, "  batch: environment\n"+twoEnvs, []string{"dev", "qa"}, "api", "job", "web")
	w.commit("ada", "Shared", map[string]string{
		overlayFile("web", "qa"):    "resources: [../../../base/web]\ncomponents: [../../../shared]\nimages: [{name: registry.example/web, newTag: \"1.0.0\"}]\n",
		overlayFile("job", "qa"):    "resources: [../../web/qa]\nimages: [{name: registry.example/job, newTag: \"1.0.0\"}]\n",
		"shared/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
	})
	w.evaluate("web", false)
	w.release("ada", "dev", "1.1.0", "web", "api")
	w.soak("web")
	ev, _ := w.lookAtUnit("one of them is read by who stays behind")
	if got := ev.FieldOwner("qa", []promotion.Member{{Component: "api"}, {Component: "web"}}, overlayFile("web", "qa"), "images[registry.example/web].newTag"); got != "web" {
		t.Errorf("the field is %q's", got)
	}
	if got := ev.FieldOwner("qa", []promotion.Member{{Component: "api"}, {Component: "job"}}, overlayFile("job", "qa"), "images[registry.example/job].newTag"); got != "job" {
		t.Errorf("a field that wasn't composed is %q's", got)
	}
	if got := ev.FieldOwner("qa", []promotion.Member{{Component: "api"}, {Component: "gone"}}, "elsewhere", "x"); got != "" {
		t.Errorf("nobody's field is %q's", got)
	}
	var names []string
	for _, e := range ev.Environments() {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"dev", "qa"}) || ev.Environment("prod") != nil {
		t.Errorf("the environments are %q", names)
	}
	reached, unaffected, err := w.o.Effects.Reach(w.ctx(), &ev.Basis, []string{"web"}, "qa", "", []fieldedit.Edit{{File: overlayFile("web", "qa")}, {File: "base/api/deployment.yaml"}})
	w.must(err)
	list := func(targets []string, name string) []string { return append(targets, name) }
	var got [2][]string
	for _, x := range reached {
		got[0] = list(got[0], x.Name)
	}
	for _, x := range unaffected {
		got[1] = list(got[1], x.Name)
	}
	slices.Sort(got[0])
	slices.Sort(got[1])
	if diff := cmp.Diff([2][]string{{"api-dev", "api-qa", "job-qa", "web-qa"}, {"job-dev", "web-dev"}}, got); diff != "" {
		t.Errorf("what the files reach (-want +got):\n%s", diff)
	}
	w.end()
}

// TestQueue has more components ready than there are places.
func TestQueue(t *testing.T) {
	w := newStory(t, "  limits: {openPerEnvironment: 1}\n"+twoEnvs, []string{"dev", "qa"}, "api", "job", "web")
	for _, c := range w.components {
		w.evaluate(c, false)
	}
	w.release("ada", "dev", "1.1.0", "web")
	w.soak("web")
	w.release("ada", "dev", "1.1.0", "job")
	w.soak("job")
	w.release("ada", "dev", "1.1.0", "api")
	w.soak("api")
	ev, d := w.evaluate("web", false)
	w.record(ev, d)
	ev, d = w.evaluate("web", false)
	n := w.openPromotion(ev, d)
	w.wait(time.Second)
	for _, c := range []string{"api", "job", "web", "api"} {
		ev, d = w.lookAt(c, "there is one place, and "+c+" looks")
		w.record(ev, d)
	}
	queued := func(what string, want ...string) {
		t.Helper()
		s, err := w.o.Targets.Snapshot(w.ctx(), w.repo)
		w.must(err)
		next, err := w.o.Records.NextQueued(w.ctx(), s)
		w.must(err)
		var got []string
		for _, u := range next {
			got = append(got, u.Component)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: next comes %q, want %q", what, got, want)
		}
	}
	queued("while it is taken", "job")
	w.must(w.store.Tx(w.ctx(), "drop", func(tx *store.Tx) error { return w.o.Records.DropQueued(w.ctx(), tx, w.unit("job")) }))
	queued("without job", "api")
	pulls, err := w.o.PullCache.OpenPulls(w.ctx(), w.repo)
	w.must(err)
	if len(pulls) != 1 || pulls[0].Number != n {
		t.Errorf("open are %+v", pulls)
	}
	known, err := w.o.PullCache.KnownPull(w.ctx(), w.repo.ID, n)
	w.must(err)
	if known == nil || known.Number != n {
		t.Errorf("#%d is known as %+v", n, known)
	}
	if known, err = w.o.PullCache.KnownPull(w.ctx(), w.repo.ID, 99); known != nil || err != nil {
		t.Errorf("#99 is known as %+v, %v", known, err)
	}
	ev, _ = w.evaluate("web", false)
	w.must(w.o.CheckClosedPulls(w.ctx(), ev))
	w.wait(time.Minute)
	w.must(w.forge.Close(storyRepo, n, "grace"))
	w.must(w.o.CheckClosedPulls(w.ctx(), ev)) // it is known
	ev, _ = w.evaluate("api", false)
	w.commitTo(storyBot, promotion.Branch("shop", "qa", "api"), w.head("main"), "Interrupted", map[string]string{overlayFile("api", "qa"): overlayText("api", "1.1.0")})
	another := w.openPull(promotion.Branch("shop", "qa", "api"), "Promote api", w.head(promotion.Branch("shop", "qa", "api")), branch.Marker{Kind: promotion.KindPromotion})
	w.must(w.o.CheckClosedPulls(w.ctx(), ev)) // it is open
	w.wait(time.Minute)
	w.must(w.forge.Close(storyRepo, another, "grace"))
	if err := w.o.CheckClosedPulls(w.ctx(), ev); !errors.Is(err, forge.ErrConflict) {
		t.Errorf("one that isn't known was closed: %v", err)
	}
	w.lookAt("job", "it was closed")
	w.end()
}
