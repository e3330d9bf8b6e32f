package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestManifests asks for an Application at other revisions, of its only source or of some of
// several. The answer is as argocd-server 2.14 gives it.
func TestManifests(t *testing.T) {
	for name, c := range map[string]struct {
		query ManifestQuery
		want  string
	}{
		"one source": {ManifestQuery{Namespace: "apps", Name: "web", Project: "shop", Revision: "1a2b"},
			"/argo-cd/api/v1/applications/web/manifests?appNamespace=apps&project=shop&revision=1a2b"},
		"several": {ManifestQuery{Name: "web", Revisions: []SourceRevision{{1, "1a2b"}, {3, "3c4d"}}},
			"/argo-cd/api/v1/applications/web/manifests?revisions=1a2b&revisions=3c4d&sourcePositions=1&sourcePositions=3"},
		"a name from outside": {ManifestQuery{Name: "../clusters"}, "/argo-cd/api/v1/applications/..%2Fclusters/manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Method + " " + r.URL.RequestURI(); got != "GET "+c.want {
					t.Errorf("it asks for %s, want %s", got, c.want)
				}
				_, _ = io.WriteString(w, `{"manifests":["{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"web\"}}","{\"apiVersion\":\"v1\",\"data\":{\"password\":\"++++++++\"},\"kind\":\"Secret\",\"metadata\":{\"name\":\"web\"}}"]}`)
			})
			got, err := client.Manifests(t.Context(), c.query)
			if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], `{"apiVersion":"v1","kind":"ConfigMap"`) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for _, body := range []string{`{}`, `{"manifests": []}`, `{"manifests": null}`} {
		client := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if got, err := client.Manifests(t.Context(), ManifestQuery{Name: "web"}); err != nil || len(got) != 0 {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
}

// TestManifestFailures says why there are none, and renders nothing again that will not go
// better.
func TestManifestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		code      int
		body      string
		tries     int
		rendering bool
		want      string
	}{
		"a plugin fails": {500, `{"error":"error generating manifests: rpc error: code = Unknown desc = plugin sidecar failed. exit status 1","code":2,"message":"error generating manifests: rpc error: code = Unknown desc = plugin sidecar failed. exit status 1"}`,
			1, true, "plugin sidecar failed. exit status 1"},
		"not allowed":            {403, `{"error":"permission denied","code":7,"message":"permission denied"}`, 1, false, "allow it to Liftlock's account"},
		"no such Application":    {404, `{"error":"applications.argoproj.io \"web\" not found","code":5}`, 1, false, "not found"},
		"a proxy has no server":  {503, `<html>`, maxTries, false, "503"},
		"the repo server is off": {503, `{"error":"connection refused","code":14,"message":"connection refused"}`, maxTries, false, "connection refused"},
		"another kind":           {200, `<html>`, 1, false, "not what an Argo CD says"},
		"no list":                {200, `{"manifests": {"a": 1}}`, 1, false, "not what an Argo CD says"},
		"no texts":               {200, `{"manifests": [{"kind": "ConfigMap"}]}`, 1, false, "not what an Argo CD says"},
		"an error in it":         {200, `{"error": {"message": "no"}}`, 1, false, "not what an Argo CD says"},
		"too large":              {200, `{"manifests": ["` + strings.Repeat("x", maxManifestBytes), 1, false, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			client := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
				tries++
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := client.Manifests(t.Context(), ManifestQuery{Namespace: "argocd", Name: "web"})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(fmt.Sprintf("%+v", err), secretToken) || IsRendering(err) != c.rendering {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
			if errors.Is(err, ErrTooLarge) != (name == "too large") {
				t.Errorf("%v is too large, or isn't", err)
			}
			if tries != c.tries {
				t.Errorf("it was tried %d times, want %d", tries, c.tries)
			}
		})
	}
}

// TestManifestsOfACallerThatLeaves ends with its caller, however long the answer takes.
func TestManifestsOfACallerThatLeaves(t *testing.T) {
	client := newTestClient(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Manifests(ctx, ManifestQuery{Name: "web"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// FuzzDecodeManifests reads anything that an answer may bring.
func FuzzDecodeManifests(f *testing.F) {
	f.Add([]byte(`{"manifests":["{\"kind\":\"ConfigMap\"}"],"sourceType":"Plugin"}`))
	f.Add([]byte(`{"manifests":null}`))
	f.Add([]byte(`{"error":{},"manifests":["x"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decodeManifests(raw)
		size := 0
		for _, m := range got {
			size += len(m)
		}
		if err != nil && got != nil || size > 3*len(raw) { // a byte that is no UTF-8 becomes three
			t.Errorf("%q, %v of %q", slices.Clip(got), err, raw)
		}
	})
}
