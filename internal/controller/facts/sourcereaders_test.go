package facts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestSourceReaders lists who has a source in another repository, in any spelling, or reads a base there.
func TestSourceReaders(t *testing.T) {
	c := newBranchRepo(t, map[string]string{
		"based/kustomization.yaml": "resources: [\"https://git.example/acme/charts//base?ref=main\"]\n",
		"plain/kustomization.yaml": "resources: [d.yaml]\n",
	})
	if _, err := c.Mirror.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit, _ := c.remote.Head("main")
	number := 0
	target := func(component string, sources ...appset.Source) appset.Target {
		number++
		return appset.Target{ArgoCD: "hub", Namespace: "argocd", Name: fmt.Sprint(component, "-", number), Component: component, Sources: sources}
	}
	here := appset.Source{RepoURL: c.URLs[0], Path: "plain", Here: true}
	targets := []appset.Target{
		target("chart", here, appset.Source{RepoURL: "git@git.example:acme/charts.git", Path: "web"}),
		target("chart", appset.Source{RepoURL: "https://git.example/acme/charts", Path: "web"}), // another of its targets
		target("based", appset.Source{RepoURL: c.URLs[0], Path: "based", Here: true}),
		target("plain", here),
		target("other", appset.Source{RepoURL: "https://git.example/acme/charts-of-others", Path: "web"}),
		target("nobody's", appset.Source{RepoURL: "https://git.example/acme/charts", Path: "web"}),
	}
	p := &branch.ResolvedPipeline{TargetSet: &appset.TargetSet{Targets: targets}, Units: map[string]*branch.ResolvedUnit{},
		ReaderIndexes: map[string]*branch.LazyIndex{"main": branch.NewLazyIndex(c.Repository, "main", commit, targets, nil)}}
	for _, name := range []string{"chart", "based", "plain", "other"} {
		p.Units[name] = &branch.ResolvedUnit{Unit: promotion.Unit{Repo: c.ID, Pipeline: "shop", Component: name}}
	}
	o, s := &branch.TargetGatherer{}, &branch.Snapshot{Repo: c.Repository, Pipelines: []*branch.ResolvedPipeline{p}}
	expect := func(onlyKnown bool, want ...string) {
		t.Helper()
		var got []string
		for _, u := range o.SourceReaders(t.Context(), s, []string{"https://git.example/acme/charts"}, onlyKnown) {
			got = append(got, u.Component)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q read it, want %q", got, want)
		}
	}
	expect(true, "chart") // who reads the base isn't known yet
	expect(false, "chart", "based")
	expect(true, "chart", "based")
}

// TestPushedSource reads a source again as soon as a push to it is known, in whichever process that was heard of.
func TestPushedSource(t *testing.T) {
	charts := newTestRepo(t, "charts", map[string]string{"web/Chart.yaml": "version 1"})
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	mirror := git.OpenMemory(charts.remote, git.MemoryOptions{Now: func() time.Time { return now }})
	const address = "https://git.example/acme/charts"
	x := branch.NewExternalFiles([]branch.ReadOnlySource{{URL: address, Mirror: mirror}}, nil, func() time.Time { return now })
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "web")
	x.Pushed = w.store
	at := func(revision string) string {
		t.Helper()
		tree, err := x.Open(t.Context(), render.External{RepoURL: address, Revision: revision})
		if err != nil {
			return err.Error()
		}
		return tree.Revision
	}
	first, _ := charts.remote.Head("main")
	charts.remote.SetRef("refs/tags/v1", first)
	if at("main") != first || at("v1") != first {
		t.Fatalf("it is at %s and %s, want %s", at("main"), at("v1"), first)
	}
	second := charts.commit("main", map[string]string{"web/Chart.yaml": "version 2"})
	charts.remote.SetRef("refs/tags/v1", second)
	if got := at("main"); got != first {
		t.Errorf("before anybody tells it is at %s, want %s", got, first)
	}
	if err := branch.PushedSources.Put(t.Context(), w.store, record.Named(address), "delivery 1"); err != nil {
		t.Fatal(err)
	}
	if at("main") != second || at("v1") != second {
		t.Errorf("after the push it is at %s and %s, want %s", at("main"), at("v1"), second)
	}
}
