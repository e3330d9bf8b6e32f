package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

// differencesFixture is an answer with all that there may be in one.
func differencesFixture(repo, pipeline string) *api.Differences {
	at := func(name string) api.Difference {
		return api.Difference{ArgoCD: "hub", Namespace: "argocd", Name: name, ApplicationSet: "shop", File: "argocd/shop.yaml"}
	}
	moved, kept, gone := at("web-prod"), at("cart-qa"), at("old-dev")
	moved.Fields = []api.FieldDifference{
		{Path: "spec.source.targetRevision", Live: "v1.2.0", Resolved: "main"},
		{Path: `metadata.annotations["team.example/<owner>"]`, Live: "", Resolved: "shop"},
		{Path: "spec.source.helm.parameters[0].value", Live: strings.Repeat("a-long-value-", 12) + "…", Resolved: "short"},
	}
	moved.More = 3
	kept.Fields = []api.FieldDifference{{Path: "spec.project", Live: "default", Resolved: "shop"}}
	kept.Expected = "applicationsSync keeps Applications as they were created"
	gone.File = ""
	return &api.Differences{Repository: repo, Pipeline: pipeline, At: before(12 * time.Second), Commit: releaseID("tip")[:40], Equal: 41, Unexpected: 3,
		Missing: []api.Difference{at("search-eu-prod")}, Extra: []api.Difference{gone}, Different: []api.Difference{kept, moved},
		Unsure: []string{"legacy"}, Notes: []string{"argocd/new.yaml: new: unknown field \"spec.tomorrow\"; its 4 live Applications are used as they are"},
		Problems: []string{"argocd/legacy.yaml: legacy: spec.generators[0].git.files[0].exclude: unknown field"}}
}

func TestDifferencesPages(t *testing.T) {
	for name, compared := range map[string]func(repo, pipeline string) (*api.Differences, error){
		"differences.html": func(repo, pipeline string) (*api.Differences, error) { return differencesFixture(repo, pipeline), nil },
		"differences-none.html": func(repo, pipeline string) (*api.Differences, error) {
			return &api.Differences{Repository: repo, Pipeline: pipeline, At: now, Commit: releaseID("tip")[:40], Equal: 44}, nil
		},
		"differences-nothing.html": func(repo, pipeline string) (*api.Differences, error) {
			return &api.Differences{Repository: repo, Pipeline: pipeline, At: now, Commit: releaseID("tip")[:40]}, nil
		},
		"differences-failed.html": func(string, string) (*api.Differences, error) {
			return nil, errors.New("argocd hub (https://10.0.0.1:6443): list applications in namespace argocd: connection refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestConsole(t, nil)
			w.seed()
			w.compared = compared
			status, _, body := w.get("/differences/shop")
			want := http.StatusOK
			if name == "differences-failed.html" {
				want = http.StatusServiceUnavailable
			}
			if status != want {
				t.Fatalf("HTTP %d", status)
			}
			golden(t, name, digests.ReplaceAllString(body, "?v=DIGEST"))
		})
	}
}

func TestDifferencesAPI(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.compared = func(repo, pipeline string) (*api.Differences, error) {
		d := differencesFixture(repo, pipeline)
		for i := range 3*maxDifferences + 5 {
			d.Extra = append(d.Extra, api.Difference{Name: fmt.Sprint("x", i)})
		}
		return d, nil
	}
	status, _, body := w.get("/api/v1/pipelines/shop/differences")
	var got api.Differences
	if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil {
		t.Fatalf("HTTP %d, %v: %s", status, err, body)
	}
	if got.Repository != testRepo || got.Pipeline != "shop" || len(got.Extra) != maxDifferences || got.LeftOut != 2*maxDifferences+6 || len(got.Different[1].Fields) != 3 {
		t.Errorf("%d extra, %d left out: %+v", len(got.Extra), got.LeftOut, got.Different)
	}
	for path, want := range map[string]int{
		"/api/v1/pipelines/none/differences": http.StatusNotFound, "/api/v1/pipelines/shop/differences?x=1": http.StatusBadRequest,
		"/differences/none": http.StatusNotFound, "/differences/": http.StatusNotFound,
	} {
		if status, _, body := w.get(path); status != want {
			t.Errorf("%s: HTTP %d, want %d: %s", path, status, want, body)
		}
	}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"gone meanwhile": {&Refusal{Reason: "no such pipeline"}, http.StatusNotFound}, "not ready": {ErrNotReady, http.StatusServiceUnavailable},
		"it failed": {errors.New("out of reach"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestConsole(t, nil)
			w.seed()
			w.compared = func(string, string) (*api.Differences, error) { return nil, c.err }
			status, _, body := w.get("/api/v1/pipelines/shop/differences")
			if status != c.want || !strings.Contains(body, c.err.Error()) {
				t.Errorf("HTTP %d: %s", status, body)
			}
		})
	}
	t.Run("nothing is compared", func(t *testing.T) {
		w := newTestConsole(t, func(o *Options) { o.Differences = nil })
		w.seed()
		if status, _, _ := w.get("/api/v1/pipelines/shop/differences"); status != http.StatusNotFound {
			t.Errorf("HTTP %d", status)
		}
		if _, _, body := w.get("/"); strings.Contains(body, "/differences/") {
			t.Error("a link leads nowhere")
		}
	})
}

func TestAComparisonIsSharedAndRememberedForAMoment(t *testing.T) {
	clock, calls := now, 0
	var mu sync.Mutex
	began, goOn := make(chan struct{}), make(chan struct{})
	compareOnce := func(_ context.Context, repo, pipeline string) (*api.Differences, error) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			close(began)
			<-goOn
		}
		return &api.Differences{At: clock, Equal: calls}, nil
	}
	c := newLiveComparer(&Options{Differences: compareOnce, Now: func() time.Time { return clock }})
	compare := func(ctx context.Context, pipeline string) (int, error) {
		d, err := c.compareWithLive(ctx, "r", pipeline)
		if err != nil {
			return 0, err
		}
		return d.Equal, nil
	}
	leaving, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { _, err := compare(leaving, "a"); left <- err }()
	<-began
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that left: %v", err)
	}
	close(goOn)
	if n, err := compare(t.Context(), "a"); n != 1 || err != nil {
		t.Errorf("comparison %d, %v; want the one that was begun for somebody else", n, err)
	}
	clock = clock.Add(compareCacheTime - time.Second)
	if n, _ := compare(t.Context(), "a"); n != 1 {
		t.Errorf("comparison %d, want the remembered one", n)
	}
	if n, _ := compare(t.Context(), "b"); n != 2 {
		t.Errorf("comparison %d, want another pipeline's own", n)
	}
	clock = clock.Add(time.Second)
	if n, _ := compare(t.Context(), "a"); n != 3 {
		t.Errorf("comparison %d, want a new one", n)
	}
}
