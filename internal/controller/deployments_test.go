package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	createDeploymentRoute = "POST /repos/{owner}/{repo}/deployments"
	revertingQA           = "    - {name: qa, after: [dev], merge: auto, onDegraded: revert-and-merge, verify: " + quickly + "}\n"
)

// deployments are those of the forge, each as its environment, task and states.
func (f *fixture) deployments() []string {
	f.t.Helper()
	all, err := f.emulated.Deployments(repoName)
	f.must(err)
	out := []string{}
	for _, d := range all {
		out = append(out, d.Environment+" "+d.Task+": "+strings.Join(d.States, " "))
	}
	return out
}

// shows waits for deployments to be shown so.
func (f *fixture) shows(key, what string, want ...string) {
	f.t.Helper()
	for range 20 {
		if err := f.run(wake.ForUnit(f.unit(key))); err != nil && !isStale(err) {
			f.t.Fatal(err)
		}
		f.must(f.run(wake.ForMerge(f.repo.ID)))
		f.runRepository()
		if slices.Equal(f.deployments(), want) {
			break
		}
	}
	if diff := cmp.Diff(want, f.deployments()); diff != "" {
		f.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
	calls := f.emulated.Calls()[createDeploymentRoute]
	looks := 0
	f.settle(key, "it was looked at", func() bool { looks++; return looks > 2 })
	if diff := cmp.Diff(want, f.deployments()); diff != "" || f.emulated.Calls()[createDeploymentRoute] != calls {
		f.t.Fatalf("%s, looked at again (-want +got):\n%s", what, diff)
	}
}

// TestDeploymentsOfAnEnvironment holds what the forge's page of an environment shows while releases
// come, degrade and go back, for one component and for several together. It shows the same when the
// process dies after a deployment was created, and when the database is lost.
func TestDeploymentsOfAnEnvironment(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newEmulatedFixture(t, c.spec+"  deployments: true\n", revertingQA, c.components...)
			at := "qa liftlock:shop/" + c.key + ": "
			w.openOne(c.key, "2.0.0", c.components...)
			w.shows(c.key, "the first is verified", at+"in_progress success")
			all, err := w.emulated.Deployments(repoName)
			w.must(err)
			first, pulls := all[0], w.pulls()
			if first.Commit != pulls[0].MergeCommit || !strings.Contains(first.Payload, `"pull":"1"`) || !strings.HasPrefix(first.LogURL, "https://liftlock.example/pipelines/shop") || !strings.HasSuffix(first.Description, "(#1)") {
				t.Errorf("it shows %+v of %+v", first, pulls[0])
			}

			w.release("3.0.0", c.components...)
			w.shows(c.key, "the second is verified", at+"in_progress success inactive", at+"in_progress success")

			w.setHealth("Degraded", c.components...)
			w.settle(c.key, "a revert is merged", func() bool { p := w.pulls(); return len(p) == 3 && p[2].Merged })
			w.setHealth("Healthy", c.components...)
			w.shows(c.key, "it is taken back", at+"in_progress success inactive", at+"in_progress success failure", at+"in_progress success")

			// Without the store's word it is found again, and what was before it too.
			w.must(w.opts.Store.DeleteRecord(t.Context(), facts.Deployments.Key(record.Unit(w.unit(c.key)))))
			w.shows(c.key, "nothing is known", at+"in_progress success inactive", at+"in_progress success failure", at+"in_progress success success")
			w.clock.Step(time.Hour) // nobody looks at how it came out any more
			w.must(w.opts.Store.DeleteRecord(t.Context(), facts.Deployments.Key(record.Unit(w.unit(c.key)))))
			w.release("4.0.0", c.components...)
			w.shows(c.key, "the next is verified", at+"in_progress success inactive", at+"in_progress success failure", at+"in_progress success success inactive", at+"in_progress success")
		})
	}
}

// isVerified says that a component is verified in qa, after its promotion was merged.
func (f *fixture) isVerified(component string) bool {
	f.t.Helper()
	_, d := f.evaluate()
	for i := range d.Components {
		if st := d.Components[i].Env("qa"); st.LandedPull > 0 && st.State == promotion.Verified {
			return true
		}
	}
	return false
}

func (f *fixture) setHealth(health string, components ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range components {
		f.health[c+"-qa"] = health
	}
}

// TestADeploymentNeedsNoLook holds that a unit isn't evaluated again because the forge was told of
// its deployment. It is where the forge refused it, takes it again, or turned out to have others.
func TestADeploymentNeedsNoLook(t *testing.T) {
	show := func(w *fixture, state promotion.DeploymentState) bool {
		t.Helper()
		s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
		w.must(err)
		ev, d, err := w.opts.Gatherer.Evaluate(t.Context(), s, w.unit("web"), false)
		w.must(err)
		landed := ev.Components[0].Env("qa").Landed.Value
		needsLook, err := w.opts.Actor.Do(t.Context(), ev, d, promotion.Step{Component: -1, Action: promotion.SetDeployment{Environment: "qa", Commit: landed.Commit, At: landed.At, State: state, Pull: landed.Pull,
			Members: []promotion.Member{{Component: "web"}}}})
		w.must(err)
		return needsLook
	}
	w := newEmulatedFixture(t, "  deployments: true\n", revertingQA, "web")
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it is merged", func() bool { return w.pulls()[0].Merged })
	w.runRepository()
	if show(w, promotion.DeploymentInProgress) || w.emulated.Calls()[createDeploymentRoute] != 1 {
		t.Error("it is news that the first one was made, or it wasn't")
	}
	if show(w, promotion.DeploymentSuccess) {
		t.Error("it is news that it was shown")
	}
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "POST", Path: "/statuses$", Times: 1, Status: 403}))
	if !show(w, promotion.DeploymentFailure) {
		t.Error("it is no news that it was refused")
	}
	if !show(w, promotion.DeploymentFailure) || show(w, promotion.DeploymentSuccess) {
		t.Error("it is no news that it is taken again, or it is every time")
	}
	w.must(w.opts.Store.DeleteRecord(t.Context(), facts.Deployments.Key(record.Unit(w.unit("web")))))
	if show(w, promotion.DeploymentInProgress) {
		t.Error("it is news that it was found again")
	}
	w.release("3.0.0", "web")
	w.settle("web", "the next is verified", func() bool { p := w.pulls(); return len(p) == 2 && p[1].Merged && w.isVerified("web") })
	w.must(w.opts.Store.DeleteRecord(t.Context(), facts.Deployments.Key(record.Unit(w.unit("web")))))
	if !show(w, promotion.DeploymentSuccess) {
		t.Error("it is no news that there is an earlier one to be retired")
	}
}

// TestDeploymentsRefused holds that a forge that refuses deployments, or is down for them, keeps
// nothing from being merged, verified and reverted. It is reported where people look.
func TestDeploymentsRefused(t *testing.T) {
	w := newEmulatedFixture(t, "  deployments: true\n", revertingQA, "web")
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "POST", Path: "/deployments$", Times: -1, Status: 403}))
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it is verified", func() bool { return w.isVerified("web") })
	refusals := w.DeploymentRefusals()
	if r := refusals[w.repo.ID]; len(refusals) != 1 || r.Reason == "" || r.Since.IsZero() {
		t.Errorf("the refusals are %v", refusals)
	}
	if calls := w.emulated.Calls()[createDeploymentRoute]; calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if why := w.reasons("web", "qa"); !slices.ContainsFunc(why, func(r string) bool { return strings.Contains(r, "the forge takes no deployment of it") }) {
		t.Errorf("why: %q", why)
	}
	w.emulated.ClearFaults()
	w.must(w.emulated.InjectFault(emulator.Fault{Method: "POST", Path: "/deployments$", Times: -1, Status: 500}))
	w.release("3.0.0", "web")
	look := func(what string, so func() bool) {
		t.Helper()
		for range 30 {
			if err := w.run(wake.ForUnit(w.unit("web"))); err != nil && !isStale(err) && !strings.Contains(err.Error(), "create a deployment") {
				t.Fatal(err)
			}
			w.must(w.run(wake.ForMerge(w.repo.ID)))
			if w.runRepository(); so() {
				return
			}
		}
		t.Fatalf("it never came to that: %s", what)
	}
	look("it is merged", func() bool { p := w.pulls(); return len(p) == 2 && p[1].Merged })
	w.setHealth("Degraded", "web")
	look("it is taken back", func() bool { p := w.pulls(); return len(p) == 3 && p[2].Merged })
	w.setHealth("Healthy", "web")
	w.emulated.ClearFaults()
	w.shows("web", "the forge is well", "qa liftlock:shop/web: in_progress success")
	if refusals := w.DeploymentRefusals(); len(refusals) != 0 {
		t.Errorf("the refusals are %v", refusals)
	}
}

// noDeployments is a forge that keeps none.
type noDeployments struct{ forge.Forge }

func (noDeployments) HasDeployments() bool { return false }
func (noDeployments) CreateDeployment(context.Context, forge.Repo, forge.Deployment) (int64, error) {
	panic("it has none")
}

// TestForgeWithoutDeployments holds that it is said where the pipeline wants what the forge
// doesn't have.
func TestForgeWithoutDeployments(t *testing.T) {
	w := newEmulatedFixture(t, "  deployments: true\n", autoQA, "web")
	w.repo.Forge = noDeployments{w.repo.Forge}
	w.openOne("web", "2.0.0", "web")
	w.settle("web", "it is verified", func() bool { return w.isVerified("web") })
	if why := w.reasons("web", "qa"); !slices.ContainsFunc(why, func(r string) bool { return strings.Contains(r, "keeps no deployments; only GitHub does") }) {
		t.Errorf("why: %q", why)
	}
}
