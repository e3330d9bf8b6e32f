package argocd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// newRenderingWatcher makes a Watcher of which only the API is there.
func newRenderingWatcher(t *testing.T, h http.HandlerFunc) *Watcher {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	client, err := api.New(api.Options{URL: s.URL, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return &Watcher{name: "hub", api: client, renderings: newRenderingQueue(), log: zap.NewNop()}
}

// TestManifests renders an Application at several sets of revisions, and leaves Argo CD as
// it was, where that writes them down.
func TestManifests(t *testing.T) {
	here, other := verification.Source{Path: "a", TargetRevision: "main"}, verification.Source{Chart: "x", TargetRevision: "1.2.3"}
	for name, c := range map[string]struct {
		app  verification.App
		sets [][]string
		want []string
	}{
		"one source": {verification.App{Sources: []verification.Source{here}}, [][]string{{"old"}, {"new"}}, []string{"revision=old", "revision=new"}},
		"a list of it": {verification.App{Sources: []verification.Source{here}, SourceList: true}, [][]string{{"old"}, {"new"}},
			[]string{"revisions=old&sourcePositions=1", "revisions=new&sourcePositions=1", "revisions=main&sourcePositions=1"}},
		"several": {verification.App{Sources: []verification.Source{other, here}, SourceList: true}, [][]string{{"", "old"}, {"", "new"}},
			[]string{"revisions=old&sourcePositions=2", "revisions=new&sourcePositions=2", "revisions=1.2.3&revisions=main&sourcePositions=1&sourcePositions=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var queries []string
			w := newRenderingWatcher(t, func(w http.ResponseWriter, r *http.Request) {
				queries = append(queries, strings.TrimPrefix(r.URL.RawQuery, "appNamespace=argocd&"))
				fmt.Fprintf(w, `{"manifests": [%q]}`, r.URL.Query().Get("revision")+r.URL.Query().Get("revisions"))
			})
			c.app.Namespace, c.app.Name = "argocd", "web"
			got, err := w.Manifests(t.Context(), &c.app, c.sets...)
			if err != nil || fmt.Sprint(got) != "[[old] [new]]" || !slices.Equal(queries, c.want) {
				t.Errorf("%q, %v by %q, want %q", got, err, queries, c.want)
			}
		})
	}
	w := newRenderingWatcher(t, func(http.ResponseWriter, *http.Request) { t.Error("it asks") })
	if _, err := w.Manifests(t.Context(), &verification.App{Name: "web", Sources: []verification.Source{here}}, []string{"a", "b"}); err == nil {
		t.Error("sources that it doesn't have")
	}
}

// TestManifestsThatFail gives what there was before, and leaves Argo CD as it was all the same.
func TestManifestsThatFail(t *testing.T) {
	var queries []string
	w := newRenderingWatcher(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Query().Get("revisions"))
		if len(queries) == 2 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"code":2,"message":"error generating manifests: rpc error: code = Unknown desc = Manifest generation error (cached): plugin sidecar failed. error in /tmp/_cmp_server/2f0c1b8e-9a7d-4c33-8e4e-0d2a3b4c5d6e/apps: exit status 1"}`)
			return
		}
		_, _ = io.WriteString(w, `{"manifests": ["x"]}`)
	})
	app := &verification.App{Namespace: "argocd", Name: "web", Sources: []verification.Source{{TargetRevision: "main"}}, SourceList: true}
	got, err := w.Manifests(t.Context(), app, []string{"old"}, []string{"new"})
	if len(got) != 1 || err == nil || ExplainRendering(err) != "plugin sidecar failed. error in apps: exit status 1" || fmt.Sprint(queries) != "[old new main]" {
		t.Errorf("%q, %v by %q", got, ExplainRendering(err), queries)
	}
	if _, err := (&Watcher{name: "hub"}).Manifests(t.Context(), app, []string{"old"}); err == nil || !strings.Contains(err.Error(), "no API") {
		t.Errorf("without an API: %v", err)
	}
}

// TestRenderingsAtOnce holds that no more are under way than may be, and one of an
// Application.
func TestRenderingsAtOnce(t *testing.T) {
	var now, most, same atomic.Int32
	w := newRenderingWatcher(t, func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		if strings.Contains(r.URL.Path, "/one/") && same.Add(1) > 1 {
			t.Error("an Application is rendered twice at the same time")
		}
		time.Sleep(5 * time.Millisecond)
		if strings.Contains(r.URL.Path, "/one/") {
			same.Add(-1)
		}
		now.Add(-1)
		_, _ = io.WriteString(w, `{}`)
	})
	var wg sync.WaitGroup
	for i := range 24 {
		name := "one"
		if i%2 == 0 {
			name = fmt.Sprint("web-", i)
		}
		wg.Go(func() {
			if _, err := w.Manifests(t.Context(), &verification.App{Name: name, Sources: []verification.Source{{}}}, []string{"a"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > maxRenderings || len(w.renderings.apps) != 0 {
		t.Errorf("%d at once; %d are left", most.Load(), len(w.renderings.apps))
	}
	end, err := w.renderings.begin(t.Context(), "/one")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Manifests(ctx, &verification.App{Name: "one", Sources: []verification.Source{{}}}, []string{"a"}); err == nil {
		t.Error("it doesn't wait for its turn")
	}
	end()
	if len(w.renderings.apps) != 0 || len(w.renderings.running) != 0 {
		t.Error("something is left")
	}
}
