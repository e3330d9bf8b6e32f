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
	"github.com/liftlock/liftlock/internal/store"
)

// renderedDiff is an answer with all that there may be in one.
func renderedDiff(landed bool) *api.RenderedDiff {
	image := api.ObjectDiff{Op: "changed", APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Fields: []api.FieldDiff{{Path: "spec.template.spec.containers[name=web].image", Op: "changed",
			Old: json.RawMessage(`"registry.example/web:1.4.2"`), New: json.RawMessage(`"registry.example/web:1.5.0"`)}},
		Text: "@@ apps/v1 Deployment shop/web @@\n- spec.template.spec.containers[name=web].image: registry.example/web:1.4.2\n" +
			"+ spec.template.spec.containers[name=web].image: registry.example/web:1.5.0 " + strings.Repeat("and-long", 25) + "\n"}
	secret := api.ObjectDiff{Op: "changed", APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "web", Fields: []api.FieldDiff{{Path: "data.token", Op: "changed", Hidden: true}},
		Text: "@@ v1 Secret shop/web @@\n- data.token: (hidden)\n+ data.token: (hidden, changed)\n"}
	notes := api.ObjectDiff{Op: "added", APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "notes", Fields: []api.FieldDiff{},
		Text: "@@ v1 ConfigMap shop/notes added @@\n+ data.text:\n  <script>document.title = 'broken in'</script>\n"}
	return &api.RenderedDiff{Before: releaseID("base")[:40], After: releaseID("head")[:40], Landed: landed, Files: []string{"overlays/prod/web/kustomization.yaml", "a\x1b[31mb"},
		Problems: []string{"argocd/legacy.yaml: legacy: unknown field"}, LeftOut: 2,
		Targets: []api.TargetsDiff{
			{Names: []string{"web-prod-ap"}, Why: "the chart ingress comes from a Helm repository (https://charts.example)"},
			{Names: []string{"web-prod-eu", "web-prod-us"}, Spec: true, Summary: "1 added, 2 changed", Objects: []api.ObjectDiff{image, secret, notes}},
			{Names: []string{"web-prod-za"}},
		}}
}

func TestDiffPages(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		status int
		give   func(store.Promotion) (*api.RenderedDiff, error)
	}{
		"diff.html":        {"/promotions/2/diff", http.StatusOK, func(store.Promotion) (*api.RenderedDiff, error) { return renderedDiff(false), nil }},
		"diff-landed.html": {"/promotions/1/diff", http.StatusOK, func(store.Promotion) (*api.RenderedDiff, error) { return renderedDiff(true), nil }},
		"diff-none.html": {"/promotions/4/diff", http.StatusOK, func(store.Promotion) (*api.RenderedDiff, error) {
			return &api.RenderedDiff{Before: releaseID("base")[:40], After: releaseID("head")[:40], Files: []string{"README.md"}}, nil
		}},
		"diff-refused.html": {"/promotions/2/diff", http.StatusNotFound, func(store.Promotion) (*api.RenderedDiff, error) {
			return nil, &Refusal{Reason: "#14 is not what Liftlock composed: a.yaml is changed, but isn't part of the release"}
		}},
		"diff-failed.html": {"/promotions/2/diff", http.StatusServiceUnavailable, func(store.Promotion) (*api.RenderedDiff, error) {
			return nil, errors.New("git cat-file: no space left on device")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestConsole(t, nil)
			w.seed()
			w.rendered = c.give
			status, _, body := w.get(c.path)
			if status != c.status {
				t.Fatalf("HTTP %d, want %d", status, c.status)
			}
			golden(t, name, digests.ReplaceAllString(body, "?v=DIGEST"))
		})
	}
}

func TestDiffAPI(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.rendered = func(p store.Promotion) (*api.RenderedDiff, error) {
		if p.Component != "web" || p.Environment != "prod" || p.Pull != 14 {
			t.Errorf("asked for %+v", p)
		}
		return renderedDiff(false), nil
	}
	status, head, body := w.get("/api/v1/promotions/2/diff")
	var got api.RenderedDiff
	if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil || head.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("HTTP %d, %v: %s", status, err, body)
	}
	if got.ID != 2 || got.Pull == nil || got.Pull.Number != 14 || got.Name != "1.5.0" || len(got.Targets) != 3 || string(got.Targets[1].Objects[0].Fields[0].New) != `"registry.example/web:1.5.0"` {
		t.Errorf("%+v", got)
	}
	_, head, text := w.get("/api/v1/promotions/2/diff?format=text")
	if head.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q", head.Get("Content-Type"))
	}
	golden(t, "diff.txt", text)
	for accept, plain := range map[string]bool{"text/plain": true, "text/plain; charset=utf-8": true, "text/plain;q=0.5, */*": true, "*/*": false, "application/json, text/plain": false, "text/html": false, "": false, ";": false} {
		_, head, _ := w.request(http.MethodGet, "/api/v1/promotions/2/diff", "", map[string]string{"Accept": accept})
		if got := strings.HasPrefix(head.Get("Content-Type"), "text/plain"); got != plain {
			t.Errorf("Accept %q gives plain text: %t", accept, got)
		}
	}
	waiting := w.promotion("mail", "prod", "promotion", "v9", "waiting", 0, time.Hour)
	for path, want := range map[string]int{
		"/api/v1/promotions/99/diff": http.StatusNotFound, "/api/v1/promotions/x/diff": http.StatusNotFound, fmt.Sprintf("/api/v1/promotions/%d/diff", waiting): http.StatusNotFound,
		"/api/v1/promotions/2/diff?format=xml": http.StatusBadRequest, "/api/v1/promotions/2/diff?x=1": http.StatusBadRequest,
		"/promotions/99/diff": http.StatusNotFound, "/promotions/x/diff": http.StatusNotFound, fmt.Sprintf("/promotions/%d/diff", waiting): http.StatusNotFound,
	} {
		if status, _, body := w.get(path); status != want {
			t.Errorf("%s: HTTP %d, want %d: %s", path, status, want, body)
		}
	}
	none := newTestConsole(t, func(o *Options) { o.Diff = nil })
	none.seed()
	if status, _, _ := none.get("/api/v1/promotions/2/diff"); status != http.StatusNotFound {
		t.Errorf("HTTP %d where nothing is rendered", status)
	}
	if _, _, body := none.get("/promotions/2"); strings.Contains(body, "/diff") {
		t.Error("a link leads nowhere")
	}
}

// TestDiffThatIsStillRendered is asked for again soon, also of what landed.
func TestDiffThatIsStillRendered(t *testing.T) {
	clock := now
	w := newTestConsole(t, func(o *Options) { o.Now = func() time.Time { return clock } })
	w.seed()
	calls := 0
	w.rendered = func(store.Promotion) (*api.RenderedDiff, error) {
		calls++
		d := renderedDiff(true)
		d.Pending = calls == 1
		return d, nil
	}
	for i, want := range []int{1, 2, 2} {
		if status, _, body := w.get("/api/v1/promotions/2/diff"); status != http.StatusOK || calls != want || strings.Contains(body, `"pending":true`) != (i == 0) {
			t.Errorf("HTTP %d, %d calls, want %d: %s", status, calls, want, body)
		}
		clock = clock.Add(pendingCacheTime)
	}
}

// TestDiffIsFound follows the link that a pull request's body has.
func TestDiffIsFound(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.rendered = func(p store.Promotion) (*api.RenderedDiff, error) {
		return &api.RenderedDiff{Before: p.Kind, After: fmt.Sprint(p.Pull)}, nil
	}
	of := "/diff?repository=" + pathEscape(testRepo) + "&pipeline=shop&component=cart&environment=qa&release=" + releaseID("2.3.0")
	for path, want := range map[string]string{of + "&kind=promotion": "<code>16</code>", of + "&kind=revert": "<code>17</code>", of: "<code>17</code>"} {
		if status, _, body := w.get(path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: HTTP %d without %s", path, status, want)
		}
	}
	for path, want := range map[string]int{
		strings.Replace(of, "cart", "none", 1): http.StatusNotFound, strings.Replace(of, releaseID("2.3.0"), releaseID("9"), 1): http.StatusNotFound,
		strings.Replace(of, "&environment=qa", "", 1): http.StatusBadRequest, of + "&x=1": http.StatusBadRequest,
	} {
		if status, _, _ := w.get(path); status != want {
			t.Errorf("%s: HTTP %d, want %d", path, status, want)
		}
	}
}

// TestACutDiffSaysSo shows no page that a browser chokes on.
func TestACutDiffSaysSo(t *testing.T) {
	big := api.ObjectDiff{Text: "@@ v1 ConfigMap a @@\n" + strings.Repeat("+ data.a: "+strings.Repeat("x", 90)+"\n", 4000)}
	b := diffBody{RenderedDiff: &api.RenderedDiff{Targets: []api.TargetsDiff{{Names: []string{"a"}, Summary: "1 added", Objects: []api.ObjectDiff{big, big, big, big}}, {Names: []string{"b"}, Objects: []api.ObjectDiff{big}}}}}
	b.fillGroups(maxShownBytes)
	if len(b.Groups) != 2 || len(b.Groups[0].Objects) != 2 || b.Cut != 3 {
		t.Errorf("%d objects shown, %d cut", len(b.Groups[0].Objects), b.Cut)
	}
}

func TestResultCacheIsBounded(t *testing.T) {
	clock := now
	c := newResultCache[int](&Options{Now: func() time.Time { return clock }}, "count", time.Minute, 2)
	calls := 0
	compute := func(key string, keep time.Duration, err error) (int, error) {
		return c.getOrCompute(t.Context(), key, func(context.Context) (int, time.Duration, error) { calls++; return calls, keep, err })
	}
	refused := apiErrorf(http.StatusNotFound, "no")
	if _, err := compute("a", time.Minute, refused); err != refused {
		t.Errorf("%v", err)
	}
	if _, err := compute("a", time.Minute, nil); err != refused || calls != 1 {
		t.Errorf("a refusal is asked for again within its time (%d calls, %v)", calls, err)
	}
	if _, err := compute("b", time.Minute, errors.New("broken")); err == nil || !strings.Contains(err.Error(), "count: broken") {
		t.Errorf("%v", err)
	}
	if n, err := compute("b", 2*time.Minute, nil); n != 3 || err != nil {
		t.Errorf("an error is remembered: %d, %v", n, err)
	}
	compute("c", time.Minute, nil) // one too many: what was asked for least recently goes
	if b, _ := c.results.Get("b"); c.results.Stats().Entries != 2 || b.value != 3 {
		t.Errorf("remembered: %+v, b is %v", c.results.Stats(), b.value)
	}
	clock = clock.Add(2 * time.Minute)
	compute("d", time.Minute, nil)
	if c.results.Stats().Entries != 1 {
		t.Errorf("what has run out is remembered: %+v", c.results.Stats())
	}

	began, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = c.getOrCompute(t.Context(), "slow", func(context.Context) (int, time.Duration, error) { close(began); <-goOn; return 0, 0, nil })
	})
	<-began
	running, refusedNow := make(chan struct{}, 1), make(chan error, 2*maxQueued)
	for i := range 2 * maxQueued {
		wg.Go(func() {
			_, err := c.getOrCompute(t.Context(), fmt.Sprint("q", i), func(context.Context) (int, time.Duration, error) {
				select {
				case running <- struct{}{}:
				default:
					t.Error("two run at once")
				}
				<-running
				return 0, 0, nil
			})
			if err != nil {
				refusedNow <- err
			}
		})
	}
	for range maxQueued + 1 { // all but those that there is room for
		var known *apiError
		if err := <-refusedNow; !errors.As(err, &known) || known.status != http.StatusServiceUnavailable {
			t.Errorf("%v", err)
		}
	}
	close(goOn)
	wg.Wait()
}
