package effects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	baseCommit = "b5a1c3d2e4f60718293a4b5c6d7e8f9012345678"
	headCommit = "1e4d5c6b7a8990a1b2c3d4e5f60718293a4b5c6d"
)

// fakeManifests renders Applications as render says, for each set of revisions.
type fakeManifests struct {
	render func(app *verification.App, revisions []string) ([]string, error)

	mu    sync.Mutex
	calls []string
}

func (f *fakeManifests) Manifests(_ context.Context, app *verification.App, sets ...[]string) (out [][]string, err error) {
	for _, revisions := range sets {
		f.mu.Lock()
		f.calls = append(f.calls, fmt.Sprint(app.Name, revisions))
		f.mu.Unlock()
		manifests, err := f.render(app, revisions)
		if err != nil {
			return out, err
		}
		out = append(out, manifests)
	}
	return out, nil
}

// ConfigMap is a manifest with one value.
func configMap(value string) []string {
	return []string{fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":%q}}`, value)}
}

// renderingWorld makes a renderer for one Argo CD with the Applications of some targets, each of
// one source.
func renderingWorld(source branch.ManifestSource, names ...string) (r *argocdRenderer, apps *knownApps, effects []isolation.Effect, now *time.Time) {
	apps = &knownApps{apps: map[string]*verification.App{}}
	for _, name := range names {
		apps.apps["argocd/"+name] = &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: name, Sources: []verification.Source{{RepoURL: "r", Path: name, TargetRevision: "main"}}}
		effects = append(effects, isolation.Effect{Changes: &render.Changes{Objects: []render.Change{{Kind: "Local"}}},
			Target: appset.Target{Namespace: "argocd", Name: name, Sources: []appset.Source{{RepoURL: "r", Path: name, TargetRevision: "main", Here: true, Type: appset.Kustomize}}}})
	}
	clock := time.Unix(1000, 0)
	argocds := &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: apps, Manifests: source}}}
	return newArgoCDRenderer(argocds, func() time.Time { return clock }, nil), apps, effects, &clock
}

var bothCommits = Commits{Base: baseCommit, Head: headCommit}

// TestArgoCDRenderer replaces what was rendered here, asks once, and says of one target that
// it can't be told without keeping the others.
func TestArgoCDRenderer(t *testing.T) {
	source := &fakeManifests{render: func(app *verification.App, revisions []string) ([]string, error) {
		switch {
		case app.Name == "broken" && revisions[0] == headCommit:
			return nil, errors.New("plugin sidecar failed: password=hunter2 https://me:hunter2@charts.example")
		case app.Name == "garbled":
			return []string{"<html>"}, nil
		case app.Name == "large":
			return nil, fmt.Errorf("render: %w 9 bytes", argocd.ErrTooLarge)
		}
		return configMap("built from " + revisions[0][:7] + " " + app.Name + map[string]string{headCommit: "!"}[revisions[0]]), nil
	}}
	r, _, effects, now := renderingWorld(source, "broken", "garbled", "large", "web")
	want := []string{
		"after the change: Argo CD: plugin sidecar failed: password=(hidden) https://charts.example",
		"Argo CD: a manifest is no object",
		"Argo CD: render: the answer is larger than 9 bytes",
		"",
	}
	for range 2 {
		got, retries := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
		for i := range want {
			if !strings.HasPrefix(got[i].Why, want[i]) || (got[i].Changes == nil) != (want[i] != "") || want[i] == "" && got[i].Why != "" {
				t.Errorf("%s: %q, %+v", got[i].Target.Name, got[i].Why, got[i].Changes)
			}
		}
		text := got[3].Changes.Text(render.TextLimit{Bytes: 1000, Lines: 10, ObjectLines: 10})
		if !strings.Contains(text, "- data.a: built from "+baseCommit[:7]+" web\n+ data.a: built from "+baseCommit[:7]+" web!") {
			t.Errorf("the commit's own name is a change:\n%s", text)
		}
		if len(retries) != 4 || !retries[0].retryAt.Equal(now.Add(FirstRetryDelay)) || retries[0].isPending() || retries[3].tries != 0 {
			t.Errorf("it is looked at again: %+v", retries)
		}
	}
	if effects[0].Changes == nil || effects[0].Why != "" {
		t.Error("what was rendered here has changed")
	}
	slices.Sort(source.calls)
	wantCalls := []string{"broken[" + headCommit + "]", "broken[" + baseCommit + "]", "garbled[" + headCommit + "]", "garbled[" + baseCommit + "]", "large[" + baseCommit + "]", "web[" + headCommit + "]", "web[" + baseCommit + "]"}
	if !slices.Equal(source.calls, wantCalls) {
		t.Errorf("it asks for %q", source.calls)
	}
	// A failure is tried again, later each time. A known rendering isn't, nor one that would fail
	// again: these commits' manifests don't change.
	*now = now.Add(FirstRetryDelay)
	_, retries := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
	if len(source.calls) != len(wantCalls)+2 || retries[1].tries != 0 || retries[2].tries != 0 || !retries[0].retryAt.Equal(now.Add(2*FirstRetryDelay)) {
		t.Errorf("%d calls; again: %+v", len(source.calls), retries[0])
	}
}

// TestArgoCDRendererWaits gives up waiting, not asking: the next look has the answer.
func TestArgoCDRendererWaits(t *testing.T) {
	release := make(chan struct{})
	source := &fakeManifests{render: func(app *verification.App, revisions []string) ([]string, error) {
		if app.Name == "slow" {
			<-release
		}
		return configMap(revisions[0]), nil
	}}
	r, _, effects, now := renderingWorld(source, "slow", "web")
	if got, retries := r.replaceEffects(t.Context(), effects, Commits{Base: baseCommit}, time.Minute); got[0].Why != notPushedYet || !retries[0].isPending() || len(source.calls) != 0 {
		t.Errorf("before the push: %q, %+v, %q", got[0].Why, retries, source.calls)
	}
	r.replaceEffects(t.Context(), effects[1:], bothCommits, time.Minute)
	got, retries := r.replaceEffects(t.Context(), effects, bothCommits, time.Millisecond)
	if got[0].Why != notRenderedYet || !retries[0].isPending() || !retries[0].retryAt.Equal(now.Add(RemoteLook)) {
		t.Errorf("while it is rendered: %q, %+v", got[0].Why, retries[0])
	}
	if got[1].Changes == nil || retries[1].isPending() {
		t.Errorf("the other waits for it: %q", got[1].Why)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.replaceEffects(ctx, effects, bothCommits, time.Minute) // its caller has left
	close(release)
	if got, retries = r.replaceEffects(t.Context(), effects, bothCommits, time.Minute); got[0].Changes == nil || retries[0].tries != 0 {
		t.Errorf("when it is there: %q, %+v", got[0].Why, retries[0])
	}
	if len(source.calls) != 4 {
		t.Errorf("it was asked for more than once: %q", source.calls)
	}
}

// TestRenderedHere says why an Argo CD isn't asked about a target, and leaves to the files what
// they can tell.
func TestRenderedHere(t *testing.T) {
	plugin := func(e *isolation.Effect) { e.Changes, e.Why, e.NeedsMore = nil, "plugin x", true }
	for name, c := range map[string]struct {
		change func(e *isolation.Effect, apps *knownApps, hub *branch.ArgoCD)
		why    string
		calls  int
	}{
		"the Application changes": {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) { e.Spec = true }, "", 0},
		"and has a plugin": {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) { e.Spec = true; plugin(e) },
			"plugin x; its Argo CD isn't asked: the Application itself changes, and Argo CD renders the one that runs", 0},
		"it is hydrated": {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) { e.Target.Hydration = &appset.Hydration{} }, "", 0},
		"it isn't there": {func(_ *isolation.Effect, apps *knownApps, _ *branch.ArgoCD) { clear(apps.apps) }, noApplicationYet, 0},
		"another path":   {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) { e.Target.Sources[0].Path = "other" }, "the Application that runs has other sources than the one in Git", 0},
		"another source": {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) {
			e.Target.Sources = append(e.Target.Sources, appset.Source{})
		}, "the Application that runs has other sources", 0},
		"another version": {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) {
			e.Target.Sources[0].Here, e.Target.Sources[0].TargetRevision = false, "2"
		}, "the Application that runs has other sources", 0},
		"a revision of ours": {func(_ *isolation.Effect, apps *knownApps, _ *branch.ArgoCD) {
			apps.apps["argocd/web"].Sources[0].TargetRevision = headCommit
		}, "", 2},
		"local, with an API": {func(e *isolation.Effect, _ *knownApps, hub *branch.ArgoCD) {
			hub.Manifests, hub.MayRender = nil, true
			plugin(e)
		},
			"plugin x; with render: argocd in the server's file its Argo CD is asked", 0},
		"local, without one": {func(e *isolation.Effect, _ *knownApps, hub *branch.ArgoCD) { hub.Manifests = nil; plugin(e) }, "plugin x", 0},
		"local, no plugin":   {func(e *isolation.Effect, _ *knownApps, hub *branch.ArgoCD) { hub.Manifests, hub.MayRender = nil, true }, "", 0},
		"a plugin":           {func(e *isolation.Effect, _ *knownApps, _ *branch.ArgoCD) { plugin(e) }, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			source := &fakeManifests{render: func(app *verification.App, revisions []string) ([]string, error) {
				if app.Sources[0].TargetRevision != "main" {
					t.Errorf("its own revision is %s", app.Sources[0].TargetRevision)
				}
				return configMap(revisions[0]), nil
			}}
			r, apps, effects, _ := renderingWorld(source, "web")
			hub := r.argocds.ByName["hub"]
			c.change(&effects[0], apps, &hub)
			r.argocds.ByName["hub"] = hub
			got, _ := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
			if !strings.HasPrefix(got[0].Why, c.why) || c.why == "" && got[0].Why != "" || (got[0].Changes == nil) != (c.why != "") || len(source.calls) != c.calls {
				t.Errorf("%q, %+v, %q", got[0].Why, got[0].Changes, source.calls)
			}
		})
	}
}

// TestArgoCDRendererLimits bounds the targets of a change and what changes of one.
func TestArgoCDRendererLimits(t *testing.T) {
	var names []string
	for i := range maxRemoteTargets + 1 {
		names = append(names, fmt.Sprintf("web-%03d", i))
	}
	source := &fakeManifests{render: func(app *verification.App, revisions []string) ([]string, error) {
		side := map[string]string{baseCommit: "old", headCommit: "new"}[revisions[0]]
		var out []string
		for i := range 60 {
			out = append(out, strings.Replace(configMap(side + strings.Repeat("x", 8<<10))[0], `"web"`, fmt.Sprintf(`"web-%03d"`, i), 1))
		}
		return out, nil
	}}
	r, _, effects, _ := renderingWorld(source, names...)
	got, _ := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
	if kept := r.results.Stats(); kept.Entries != maxRemoteTargets || kept.Bytes > maxRemoteChanges/5 {
		t.Errorf("it remembers %+v", kept)
	}
	if got[0].Changes.Summary() != "60 changed" || !strings.Contains(got[0].Changes.Text(render.TextLimit{}), "more objects") {
		t.Errorf("what is clipped says %s", got[0].Changes.Summary())
	}
	if got[0].Why != "" || got[1].Why != "" || got[maxRemoteTargets].Why != "Argo CD is asked about 50 targets of one change at most" {
		t.Errorf("%q, %q, %q", got[0].Why, got[1].Why, got[maxRemoteTargets].Why)
	}
}

// TestArgoCDRendererSettles holds that what can't be remembered is shown when it is there,
// and not rendered again and again.
func TestArgoCDRendererSettles(t *testing.T) {
	source := &fakeManifests{render: func(_ *verification.App, revisions []string) ([]string, error) { return configMap(revisions[0]), nil }}
	r, _, effects, now := renderingWorld(source, "one", "web")
	r.results = cache.New(nil, cache.Options[remoteKey, remoteResult]{Name: "small", Entries: 1})
	look := func() (unknown int, again time.Time) {
		got, retries := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
		for i := range got {
			if retries[i].isPending() {
				t.Errorf("%s is pending: %s", got[i].Target.Name, got[i].Why)
			}
			if got[i].Changes == nil {
				unknown++
				again = retries[i].retryAt
			}
		}
		return unknown, again
	}
	if unknown, _ := look(); unknown != 0 {
		t.Errorf("%d are forgotten before they are shown", unknown)
	}
	var again time.Time
	for range 20 {
		*now = now.Add(RemoteLook)
		_, again = look()
	}
	if len(source.calls) > 2*2*maxRemoteAgain || !again.Equal(time.Unix(1000, 0).Add(remoteAgainTime)) {
		t.Errorf("%d calls; again at %s", len(source.calls), again)
	}
	*now = again
	if unknown, _ := look(); unknown != 0 {
		t.Errorf("an hour later %d are unknown still", unknown)
	}
}

// TestArgoCDRendererHidesValues shows no values of what a plugin may have made, and all of
// what the files alone make.
func TestArgoCDRendererHidesValues(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *isolation.Effect, app *verification.App)
		shown  bool
	}{
		"kustomize": {func(*isolation.Effect, *verification.App) {}, true},
		"Helm with values": {func(e *isolation.Effect, app *verification.App) {
			e.Target.Sources[0].Type = appset.Helm
			e.Target.Sources = append(e.Target.Sources, appset.Source{RepoURL: "v", Ref: "values", TargetRevision: "main"})
			app.Sources = append(app.Sources, verification.Source{RepoURL: "v", Ref: "values", TargetRevision: "main"})
		}, true},
		"a plugin":         {func(e *isolation.Effect, _ *verification.App) { e.Target.Sources[0].Type = appset.Plugin }, false},
		"whoever finds it": {func(e *isolation.Effect, _ *verification.App) { e.Target.Sources[0].Type = appset.Detected }, false},
		"kustomize and ksops": {func(e *isolation.Effect, _ *verification.App) {
			e.Changes, e.Why, e.NeedsMore = nil, "plugin ksops", true
		}, false},
		"a plugin that runs": {func(_ *isolation.Effect, app *verification.App) { app.Sources[0].Options = "1f" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			source := &fakeManifests{render: func(_ *verification.App, revisions []string) ([]string, error) {
				return configMap("hunter" + map[string]string{baseCommit: "1", headCommit: "2"}[revisions[0]]), nil
			}}
			r, apps, effects, _ := renderingWorld(source, "web")
			c.change(&effects[0], apps.apps["argocd/web"])
			got, _ := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
			text := got[0].Changes.Text(render.TextLimit{})
			if strings.Contains(text, "hunter") != c.shown || !strings.Contains(text, "+ data.a: ") {
				t.Errorf("it shows\n%s%s", text, got[0].Why)
			}
		})
	}
}

// TestDescribeOtherSources has an Argo CD render an Application only where that says something of its
// target: its sources are the same, but for the revisions that are ours to change.
func TestDescribeOtherSources(t *testing.T) {
	one := appset.Source{RepoURL: "r", Path: "p", Ref: "f", TargetRevision: "main", Here: true}
	chart := appset.Source{RepoURL: "c", Chart: "web", TargetRevision: "1.0.0"}
	running := func(change func(s []verification.Source)) []verification.Source {
		s := []verification.Source{{RepoURL: "r", Path: "p", Ref: "f", TargetRevision: "main"}, {RepoURL: "c", Chart: "web", TargetRevision: "1.0.0"}}
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		has  []verification.Source
		same bool
	}{
		"the same":           {running(func([]verification.Source) {}), true},
		"a revision of ours": {running(func(s []verification.Source) { s[0].TargetRevision = "x" }), true},
		"a chart's version":  {running(func(s []verification.Source) { s[1].TargetRevision = "2.0.0" }), false},
		"another repository": {running(func(s []verification.Source) { s[0].RepoURL = "x" }), false},
		"another path":       {running(func(s []verification.Source) { s[0].Path = "x" }), false},
		"another chart":      {running(func(s []verification.Source) { s[1].Chart = "x" }), false},
		"another reference":  {running(func(s []verification.Source) { s[0].Ref = "x" }), false},
		"one source less":    {running(func([]verification.Source) {})[:1], false},
	} {
		if why := describeOtherSources([]appset.Source{one, chart}, c.has); (why == "") != c.same {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestArgoCDRendererDisagrees names where an Argo CD renders a change otherwise than it is rendered here, and counts it
// once for two commits.
func TestArgoCDRendererDisagrees(t *testing.T) {
	source := &fakeManifests{render: func(_ *verification.App, revisions []string) ([]string, error) {
		return configMap(map[string]string{baseCommit: "1", headCommit: "2"}[revisions[0]]), nil
	}}
	r, _, effects, _ := renderingWorld(source, "other", "same", "unknown")
	side := func(value string) *render.Manifests {
		m, err := render.FromArgoCD(configMap(value))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	effects[1].Changes = render.Diff(side("1"), side("2"))
	effects[2].Changes, effects[2].NeedsMore = nil, true
	counted := make(chan string, 10)
	r.onDisagree = func(argocd, target, how string) { counted <- argocd + " " + target + ": " + how }
	const how = "only Liftlock's rendering has Local ; only Argo CD's has ConfigMap web changed"
	for range 2 {
		got, _ := r.replaceEffects(t.Context(), effects, bothCommits, time.Minute)
		for i, want := range []string{how, "", ""} {
			if got[i].Changes == nil || got[i].Disagreement != want {
				t.Errorf("%s: %q, %+v", got[i].Target.Name, got[i].Disagreement, got[i].Changes)
			}
		}
	}
	if len(counted) != 1 || <-counted != "hub other: "+how {
		t.Errorf("%d are counted", len(counted))
	}
	o := &Gatherer{remote: r}
	if all := o.Disagreements(t.Context(), &branch.Basis{}, effects, bothCommits); len(all) != 1 || all[0].Target != "other" || all[0].How != how {
		t.Errorf("the gate says %+v", all)
	}
	if all := o.Disagreements(t.Context(), &branch.Basis{}, effects, Commits{Base: baseCommit}); all != nil {
		t.Errorf("without a head it says %+v", all)
	}
}

// TestWithoutChange holds what edits are without one of their changes, and where it can't be taken back alone.
func TestWithoutChange(t *testing.T) {
	const before, after = "image:\n  tag: \"1\"\nreplicas: 1\n", "image:\n  tag: \"2\"\nreplicas: 3\n"
	const kustomized = "images:\n- name: web\n  newTag: v1\n"
	values := fieldedit.Edit{File: "v.yaml", Before: []byte(before), After: []byte(after)}
	images := fieldedit.Edit{File: "kustomization.yaml", Before: []byte(kustomized), After: []byte(strings.Replace(kustomized, "v1", "v2", 1))}
	created := fieldedit.Edit{File: "new.yaml", After: []byte(after), Created: true}
	edits := []fieldedit.Edit{values, images, created}
	for name, c := range map[string]struct {
		change fieldedit.Change
		want   string // the file then; empty: it can't be
		gone   bool   // the file isn't edited any more
	}{
		"a value":             {fieldedit.Change{Kind: fieldedit.KindYAML, File: "v.yaml", Path: "image.tag", Old: "1", New: "2"}, strings.Replace(after, `"2"`, `"1"`, 1), false},
		"an image":            {fieldedit.Change{Kind: fieldedit.KindImage, File: "kustomization.yaml", Path: "images[web].newTag", Old: "v1", New: "v2"}, "", true},
		"one that is new":     {fieldedit.Change{Kind: fieldedit.KindYAML, File: "v.yaml", Path: "image.tag", New: "2", Added: true}, "", false},
		"one of a new file":   {fieldedit.Change{Kind: fieldedit.KindYAML, File: "new.yaml", Path: "image.tag", Old: "1", New: "2"}, "", false},
		"one of another file": {fieldedit.Change{Kind: fieldedit.KindYAML, File: "x.yaml", Path: "image.tag", Old: "1", New: "2"}, "", false},
		"what isn't a path":   {fieldedit.Change{Kind: fieldedit.KindYAML, File: "v.yaml", Path: "a[", Old: "1", New: "2"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, ok := withoutChange(edits, &c.change)
			if ok != (c.want != "" || c.gone) {
				t.Fatalf("it can be taken back: %t", ok)
			}
			if c.gone != (ok && len(out) == len(edits)-1) || ok && !c.gone && string(out[0].After) != c.want {
				t.Errorf("they are %+v", out)
			}
			if string(edits[0].After) != after {
				t.Error("the edits themselves have changed")
			}
		})
	}
}

// TestCommitsAreRenamedByLength gives both commits one name in manifests where they are long enough to
// be told from other words.
func TestCommitsAreRenamedByLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, head, text, want string }{
		"whole":              {"aaaaaaaaaa", "bbbbbbbbbb", "bbbbbbbbbb bbbbbbbb bbbbbbb bbbbbb", "aaaaaaaaaa aaaaaaaa aaaaaaa bbbbbb"},
		"just long enough":   {"aaaaaaaaa", "bbbbbbbbb", "bbbbbbbbb", "aaaaaaaaa"},
		"the base too short": {"aaaaaaaa", "bbbbbbbbb", "bbbbbbbbb", "bbbbbbbbb"},
		"the head too short": {"aaaaaaaaa", "bbbbbbbb", "bbbbbbbb", "bbbbbbbb"},
		"none":               {"", "bbbbbbbbb", "bbbbbbbbb", "bbbbbbbbb"},
	} {
		p := &remoteRendering{at: Commits{Base: c.base, Head: c.head}}
		if got := p.renameCommits([]string{c.text, ""}); !slices.Equal(got, []string{c.want, ""}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
