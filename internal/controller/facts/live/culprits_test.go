package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// knownTrees are resource trees by Application.
type knownTrees struct {
	lists     map[string][]verification.Resource
	unchecked verification.Unchecked
	running   []verification.RunningImage
	err       error
	calls     int
}

func (k *knownTrees) UnhealthyResources(_ context.Context, app *verification.App) ([]verification.Resource, error) {
	k.calls++
	return k.lists[app.Name], k.err
}

func (k *knownTrees) RememberedUnchecked(app *verification.App) (verification.Unchecked, bool) {
	return k.unchecked, app.Name == "seen"
}

func (k *knownTrees) UncheckedResources(context.Context, *verification.App) (verification.Unchecked, error) {
	k.calls++
	return k.unchecked, k.err
}

func (k *knownTrees) RunningImages(context.Context, *verification.App) ([]verification.RunningImage, error) {
	k.calls++
	return k.running, k.err
}

// degradedTargets makes an environment of so many degraded targets of one Argo CD.
func degradedTargets(count int, trees branch.Trees, culprits ...verification.Resource) (*Gatherer, *branch.ComponentBasis, *promotion.Env, *branch.ResolvedEnv) {
	apps := &knownApps{apps: map[string]*verification.App{}}
	o := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: apps, Trees: trees}}}}
	env, at := &promotion.Env{}, &branch.ResolvedEnv{}
	for i := range count {
		t := appset.Target{Namespace: "argocd", Name: fmt.Sprintf("web-%d", i)}
		app := &verification.App{Name: t.Name, HealthInTree: true}
		apps.apps["argocd/"+t.Name] = app
		v := verification.Verdict{State: verification.Degraded, Culprits: culprits}
		at.Targets = append(at.Targets, t)
		env.Targets = append(env.Targets, promotion.Target{Name: t.Name, Verdict: v, Unhealthy: o.unhealthyAtFirst(&t, app, &v)})
	}
	return o, &branch.ComponentBasis{Basis: &branch.Basis{Now: time.Unix(1000, 0)}}, env, at
}

// TestCulprits asks what is unhealthy of degraded targets only, of a bounded number, and
// keeps apart what is none from what isn't known.
func TestCulprits(t *testing.T) {
	web := verification.Resource{Group: "apps", Kind: "Deployment", Name: "web", Health: "Degraded"}
	hook := verification.Resource{Group: "batch", Kind: "Job", Name: "migrate"}
	for name, c := range map[string]struct {
		trees    *knownTrees
		culprits []verification.Resource
		want     promotion.Known[[]verification.Resource]
		again    bool // it is looked for again
	}{
		"they are said":                    {&knownTrees{lists: map[string][]verification.Resource{"web-0": {web}}}, nil, promotion.Sure([]verification.Resource{web}), false},
		"there are none":                   {&knownTrees{}, nil, promotion.Sure([]verification.Resource(nil)), false},
		"the API fails":                    {&knownTrees{err: errors.New("502")}, nil, promotion.Unsure[[]verification.Resource]("502"), true},
		"nobody says so":                   {&knownTrees{err: argocd.ErrHealthNotKept}, nil, promotion.Unsure[[]verification.Resource](argocd.ErrHealthNotKept.Error()), false},
		"a hook of its own sync failed":    {&knownTrees{err: argocd.ErrHealthNotKept}, []verification.Resource{hook}, promotion.Sure([]verification.Resource{hook}), false},
		"a hook, and the tree says others": {&knownTrees{lists: map[string][]verification.Resource{"web-0": {web}}}, []verification.Resource{hook}, promotion.Sure([]verification.Resource{hook, web}), false},
	} {
		t.Run(name, func(t *testing.T) {
			o, eval, env, at := degradedTargets(1, c.trees, c.culprits...)
			if u := env.Targets[0].Unhealthy; u.OK || u.Err != "" {
				t.Fatalf("before anybody asks: %+v", u)
			}
			if err := o.AnswerCulprits(t.Context(), eval, env, at, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, env.Targets[0].Unhealthy); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if eval.RetryAt.IsZero() == c.again {
				t.Errorf("it is looked for again at %s", eval.RetryAt)
			}
		})
	}
	t.Run("very many", func(t *testing.T) {
		trees := &knownTrees{}
		o, eval, env, at := degradedTargets(maxTreesAtOnce+2, trees)
		env.Targets[0].Verdict.State = verification.Verified
		if err := o.AnswerCulprits(t.Context(), eval, env, at, nil); err != nil {
			t.Fatal(err)
		}
		last := env.Targets[maxTreesAtOnce+1].Unhealthy
		if trees.calls != maxTreesAtOnce || last.OK || !strings.Contains(last.Err, "not all of them are looked into") {
			t.Errorf("%d trees are asked for; the last is %+v", trees.calls, last)
		}
	})
	t.Run("who asked is gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o, eval, env, at := degradedTargets(1, &knownTrees{err: errors.New("x")})
		if err := o.AnswerCulprits(ctx, eval, env, at, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// TestUncheckedResources asks which resources have no health check only where the environment
// wants to know, the Application doesn't say it, and it matters now.
func TestUncheckedResources(t *testing.T) {
	kafka := verification.Unchecked{Total: 1, Kinds: []string{"Kafka"}}
	for name, c := range map[string]struct {
		change func(app *verification.App, e *verification.Expect, v *verification.Verdict)
		err    error
		want   *verification.App // nil: the Application as it is
		calls  int
		again  bool
	}{
		"it is told":      {want: &verification.App{Name: "web-0", Health: "Healthy", HealthInTree: true, Unchecked: kafka, UncheckedKnown: true}, calls: 1},
		"the API fails":   {err: errors.New("502"), want: &verification.App{Name: "web-0", Health: "Healthy", HealthInTree: true, UncheckedError: "502"}, calls: 1, again: true},
		"nobody can tell": {err: argocd.ErrHealthNotKept, calls: 1},
		"nobody wants to know": {change: func(_ *verification.App, e *verification.Expect, _ *verification.Verdict) {
			e.Limits.RequireHealthChecks = false
		}},
		"the Application says it": {change: func(app *verification.App, _ *verification.Expect, _ *verification.Verdict) { app.HealthInTree = false }},
		"it isn't healthy": {change: func(app *verification.App, _ *verification.Expect, _ *verification.Verdict) {
			app.Health = "Progressing"
		}},
		"it has yet to be verified": {change: func(_ *verification.App, _ *verification.Expect, v *verification.Verdict) {
			v.State = verification.Soaking
		}},
		"it was verified in its time": {change: func(_ *verification.App, _ *verification.Expect, v *verification.Verdict) {
			v.State = verification.Verified
		}},
	} {
		t.Run(name, func(t *testing.T) {
			trees := &knownTrees{unchecked: kafka, err: c.err}
			if c.err != nil {
				trees.unchecked = verification.Unchecked{}
			}
			o, eval, _, at := degradedTargets(1, trees)
			l := &targetLook{ctx: t.Context(), c: eval}
			app := &verification.App{Name: "web-0", Health: "Healthy", HealthInTree: true}
			e, v := verification.Expect{Limits: verification.Limits{RequireHealthChecks: true}}, verification.Verdict{State: verification.Failed}
			if c.change != nil {
				c.change(app, &e, &v)
			}
			if diff := cmp.Diff(c.want, o.lookForUnchecked(l, &at.Targets[0], app, &e, &v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if trees.calls != c.calls || l.out.RetryAt.IsZero() == c.again {
				t.Errorf("it is asked %d times, and again at %s", trees.calls, l.out.RetryAt)
			}
		})
	}
}

// TestUnhealthyAtFirst reads an Application's own status, where no tree is needed.
func TestUnhealthyAtFirst(t *testing.T) {
	web := verification.Resource{Kind: "Deployment", Name: "web", Health: "Degraded"}
	o := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {}}}}
	for name, c := range map[string]struct {
		app  *verification.App
		want promotion.Known[[]verification.Resource]
	}{
		"no Application": {nil, promotion.Sure([]verification.Resource(nil))},
		"it says so":     {&verification.App{Unhealthy: []verification.Resource{web}}, promotion.Sure([]verification.Resource{web})},
		"it says so of one, and the rest is kept outside it": {&verification.App{HealthInTree: true}, promotion.Sure([]verification.Resource{web})},
		"it is kept outside it":                              {&verification.App{HealthInTree: true}, promotion.Unsure[[]verification.Resource](argocd.ErrHealthNotKept.Error())},
	} {
		t.Run(name, func(t *testing.T) {
			v := verification.Verdict{State: verification.Degraded}
			if c.app != nil && c.app.HealthInTree && c.want.OK {
				v.Culprits = c.want.Value
			}
			if diff := cmp.Diff(c.want, o.unhealthyAtFirst(&appset.Target{Name: "web"}, c.app, &v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLookForAbsent asks where an Application is out of sync and calls itself Healthy, and
// only then.
func TestLookForAbsent(t *testing.T) {
	gone := verification.Resource{Group: "apps", Kind: "Deployment", Name: "web", Health: "Missing"}
	slow := verification.Resource{Group: "apps", Kind: "Deployment", Name: "api", Health: "Progressing"}
	app := verification.App{Name: "web-0", Health: "Healthy", HealthInTree: true, SyncStatus: "OutOfSync", Differing: 1}
	for name, c := range map[string]struct {
		change func(*verification.App)
		done   bool
		drift  *verification.Drift
		trees  knownTrees
		calls  int
		want   []verification.Resource
	}{
		"one is gone":                        {nil, true, nil, knownTrees{lists: map[string][]verification.Resource{"web-0": {slow, gone}}}, 1, []verification.Resource{gone}},
		"another only differs":               {nil, true, nil, knownTrees{lists: map[string][]verification.Resource{"web-0": {slow}}}, 1, nil},
		"nobody can tell":                    {nil, true, nil, knownTrees{err: errors.New("502")}, 1, nil},
		"it hasn't arrived yet":              {nil, false, nil, knownTrees{}, 0, nil},
		"it drifted before it was looked at": {nil, false, &verification.Drift{}, knownTrees{lists: map[string][]verification.Resource{"web-0": {gone}}}, 1, []verification.Resource{gone}},
		"it is synced":                       {func(a *verification.App) { a.SyncStatus = "Synced" }, true, nil, knownTrees{}, 0, nil},
		"it says so itself":                  {func(a *verification.App) { a.HealthInTree = false }, true, nil, knownTrees{}, 0, nil},
		"it is bad anyway":                   {func(a *verification.App) { a.Health = "Degraded" }, true, nil, knownTrees{}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, eval, _, at := degradedTargets(1, &c.trees)
			l := &targetLook{ctx: t.Context(), c: eval}
			a := app
			if c.change != nil {
				c.change(&a)
			}
			var mem verification.Memory
			if c.done {
				mem.Done = time.Unix(900, 0)
			}
			var got []verification.Resource
			if full := o.lookForAbsent(l, &at.Targets[0], &a, &verification.Verdict{Drift: c.drift}, &mem); full != nil {
				got = full.Unhealthy
			}
			if diff := cmp.Diff(c.want, got); diff != "" || c.trees.calls != c.calls {
				t.Errorf("after %d calls (-want +got):\n%s", c.trees.calls, diff)
			}
			if l.out.RetryAt.IsZero() == (c.trees.err != nil) {
				t.Errorf("it is looked for again at %s", l.out.RetryAt)
			}
		})
	}
}

// TestShowUnchecked says what was read of resources without a health check, and whether nothing
// was, without reading anything for it.
func TestShowUnchecked(t *testing.T) {
	seen := verification.Unchecked{Total: 1, Kinds: []string{"Kafka"}}
	trees := &knownTrees{unchecked: seen}
	unknown := verification.Verdict{UncheckedUnknown: true}
	for name, c := range map[string]struct {
		trees branch.Trees
		of    string
		v     verification.Verdict
		want  verification.Verdict
	}{
		"it was read":             {trees, "seen", unknown, verification.Verdict{Unchecked: seen}},
		"it wasn't":               {trees, "web", unknown, unknown},
		"there are no trees":      {nil, "seen", unknown, unknown},
		"the Application says it": {trees, "seen", verification.Verdict{}, verification.Verdict{}},
	} {
		o := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Trees: c.trees}}}}
		o.showUnchecked(&appset.Target{Name: c.of}, &verification.App{Name: c.of}, &c.v)
		if diff := cmp.Diff(c.want, c.v); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if trees.calls != 0 {
		t.Errorf("%d trees were read", trees.calls)
	}
}

// TestLookForInconclusive reads the tree of what is paused or Unknown, and of nothing else.
func TestLookForInconclusive(t *testing.T) {
	rollout := []verification.Resource{{Group: "argoproj.io", Kind: "Rollout", Name: "web", Health: "Suspended", Descendants: []verification.Descendant{{Kind: "AnalysisRun", Name: "web-1", Health: "Unknown"}}}}
	for name, c := range map[string]struct {
		state  verification.State
		health string
		undone bool
		err    error
		calls  int
		found  bool
	}{
		"paused":             {verification.Suspended, "Suspended", false, nil, 1, true},
		"Unknown":            {verification.Unclear, "Unknown", false, nil, 1, true},
		"paused in its sync": {verification.Suspended, "Suspended", true, nil, 1, true},
		"not synced yet":     {verification.Unclear, "Unknown", true, nil, 0, false},
		"can't be read":      {verification.Suspended, "Suspended", false, errors.New("502"), 1, false},
		"verified before":    {verification.Verified, "Suspended", false, nil, 0, false},
		"out of reach":       {verification.Unclear, "Healthy", false, nil, 0, false},
	} {
		trees := &knownTrees{lists: map[string][]verification.Resource{"web": rollout}, err: c.err}
		o := &Gatherer{Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Trees: trees}}}}
		var mem verification.Memory
		if !c.undone {
			mem.Done = time.Unix(900, 0)
		}
		l := &targetLook{ctx: t.Context(), c: &branch.ComponentBasis{Basis: &branch.Basis{}}}
		got := o.lookForInconclusive(l, &appset.Target{Name: "web"}, &verification.App{Name: "web", Health: c.health}, &verification.Verdict{State: c.state}, &mem)
		if (got != nil) != c.found || trees.calls != c.calls || got != nil && got.Inconclusive != "AnalysisRun web-1 of Rollout web" {
			t.Errorf("%s: %+v after %d calls", name, got, trees.calls)
		}
	}
}

// waitedTrees notes until when each read of a tree may wait, and fails.
type waitedTrees struct {
	knownTrees
	errs  []error
	until []time.Time // zero: it may not wait any more
}

func (w *waitedTrees) UnhealthyResources(ctx context.Context, _ *verification.App) ([]verification.Resource, error) {
	until, _ := ctx.Deadline()
	if ctx.Err() != nil {
		until = time.Time{}
	}
	w.until = append(w.until, until)
	return nil, w.errs[min(len(w.until), len(w.errs))-1]
}

// TestTreesOfALook has all trees of a look wait no longer than one may, and for no turn when
// there are too many for one.
func TestTreesOfALook(t *testing.T) {
	for name, c := range map[string]struct {
		errs []error
		wait []bool
	}{
		"one fails":          {[]error{errors.New("502")}, []bool{true, true, true}},
		"there are too many": {[]error{errors.New("502"), argocd.ErrTreesBusy}, []bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			trees := &waitedTrees{errs: c.errs}
			o, eval, _, at := degradedTargets(len(c.wait), trees)
			l := &targetLook{ctx: t.Context(), c: eval}
			defer l.trees.stop()
			mem := verification.Memory{Done: time.Unix(900, 0)}
			for i := range at.Targets {
				o.lookForInconclusive(l, &at.Targets[i], &verification.App{Health: "Unknown"}, &verification.Verdict{State: verification.Unclear}, &mem)
			}
			for i, wait := range c.wait {
				if got := trees.until[i]; got.IsZero() == wait || wait && !got.Equal(trees.until[0]) {
					t.Errorf("read %d may wait until %s, the first until %s", i, got, trees.until[0])
				}
			}
			if l.out.RetryAt.IsZero() {
				t.Error("it isn't looked for again")
			}
		})
	}
}

// TestRunningImagesOfVerified asks for a target's pods once it is verified, for the record, and only as long as they
// are those that were verified.
func TestRunningImagesOfVerified(t *testing.T) {
	running := []verification.RunningImage{{Image: "web:1.1.0", Pods: 2}}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ofPods, listed := &verification.Runs{OfPods: true}, &verification.Runs{}
	for name, c := range map[string]struct {
		verdict verification.Verdict
		memory  verification.Memory
		images  string
		err     error
		calls   int
		want    []verification.RunningImage
	}{
		"verified now":           {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now, Runs: listed}, calls: 1, want: running},
		"no list of images":      {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now}, calls: 1, want: running},
		"later, still to be had": {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now.Add(-9 * time.Minute), Runs: listed}, calls: 1, want: running},
		"long after":             {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now.Add(-time.Hour), Runs: listed}},
		"on record":              {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now, Runs: ofPods}},
		"not verified yet":       {verdict: verification.Verdict{State: verification.Soaking}},
		"only from before":       {verdict: verification.Verdict{State: verification.Verified, Lapsed: true}, memory: verification.Memory{VerifiedAt: now, Runs: listed}},
		"nobody looks at images": {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now, Runs: listed}, images: pipeline.RunsOff},
		"Argo CD refuses":        {verdict: verification.Verdict{State: verification.Verified}, memory: verification.Memory{VerifiedAt: now, Runs: listed}, err: errors.New("403"), calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			trees := &knownTrees{running: running, err: c.err}
			o, eval, env, at := degradedTargets(1, trees)
			env.Spec.Verify.Runs.Images = c.images
			l := &targetLook{ctx: t.Context(), c: eval, env: env}
			defer l.trees.stop()
			got := o.runningImages(l, &at.Targets[0], &verification.App{Name: "web-0"}, &c.verdict, &c.memory, now)
			if diff := cmp.Diff(c.want, got); diff != "" || trees.calls != c.calls {
				t.Errorf("%d calls, want %d (-want +got):\n%s", trees.calls, c.calls, diff)
			}
		})
	}
}
