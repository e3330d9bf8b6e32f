package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var sizingApplications = flag.Int("sizing-applications", 300, "Applications of TestSizingOfArgoCD")

// maxForApplications is what 10,000 Applications may add to the memory of an idle server.
const maxForApplications = 120e6

// TestSizingOfArgoCD has servers of their own process list an Argo CD by its own API, one without
// Applications and one with many of about 17 KB. It prints how much of the machine these take.
// docs/sizing.md has figures.
func TestSizingOfArgoCD(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real servers")
	}
	t.Parallel()
	idle := measureList(t, 0)
	many := measureList(t, *sizingApplications)
	added := many.peak - idle.peak
	t.Logf("idle: %s", idle.text)
	t.Logf("with %d Applications: %s; %s more at most", *sizingApplications, many.text, megabytes(added))
	if added > maxForApplications {
		t.Errorf("%d Applications take %s above an idle server", *sizingApplications, megabytes(added))
	}
}

type measuredList struct {
	text string
	peak int64 // of the resident memory, in bytes
}

// measureList starts a server whose Argo CD has n Applications, and measures it once it has
// listed them.
func measureList(t *testing.T, n int) measuredList {
	t.Helper()
	w := newSizingWorld(t, 1)
	argo := newListingArgoCD(t, n)
	file := filepath.Join(w.dir, "liftlock.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(config), "argocd: ")
	if err := os.WriteFile(file, []byte(before+"argocd: [{name: hub, api: {url: \""+argo.URL+"\", token: any}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := w.startServer(t)
	deadline, tick := time.NewTimer(5*time.Minute), time.NewTicker(200*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		ready, err := readText(t, w.url+"/readyz")
		if err == nil && strings.Contains(ready, "argocd hub: ok") && argo.lists.Load() > 0 {
			break
		}
		select {
		case <-deadline.C:
			t.Fatalf("the server doesn't get ready with %d Applications: %v\n%s", n, err, ready)
		case <-tick.C:
		}
	}
	if lists := argo.lists.Load(); lists != 1 {
		t.Errorf("%d Applications were listed %d times", n, lists)
	}
	return measuredList{server.use(t), server.peak(t)}
}

func readText(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// listingArgoCD answers as Argo CD's own API, with so many Applications that nothing happens to.
type listingArgoCD struct {
	*httptest.Server
	lists atomic.Int64
}

func newListingArgoCD(t *testing.T, n int) *listingArgoCD {
	t.Helper()
	before, after := sizingApplication(t)
	a := &listingArgoCD{}
	mux := http.NewServeMux()
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text) // a client that went away needs no answer
		}
	}
	mux.HandleFunc("GET /api/version", answer(`{"Version": "v3.5.7"}`))
	mux.HandleFunc("GET /api/v1/account/", answer(`{"value": "yes"}`))
	mux.HandleFunc("GET /api/v1/projects", answer(`{"metadata": {}, "items": [{"metadata": {"name": "default", "namespace": "argocd"}, "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}}]}`))
	for _, resource := range []string{"applicationsets", "clusters"} {
		mux.HandleFunc("GET /api/v1/"+resource, answer(`{"metadata": {}, "items": []}`))
	}
	mux.HandleFunc("GET /api/v1/stream/", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /api/v1/applications", func(w http.ResponseWriter, _ *http.Request) {
		a.lists.Add(1)
		_, _ = io.WriteString(w, `{"metadata": {"resourceVersion": "1"}, "items": [`)
		for i := range n {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = fmt.Fprintf(w, `%s"name":"other-%d"%s`, before, i, after)
		}
		_, _ = io.WriteString(w, "]}")
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// sizingApplication is an Application of about 17 KB, before and after its name.
func sizingApplication(t *testing.T) (before, after string) {
	t.Helper()
	raw, err := os.ReadFile("../argocd/testdata/kustomize-synced.json")
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	resource := `{"group":"apps","health":{"status":"Healthy"},"kind":"Deployment","name":"some-deployment-name","namespace":"web-qa","status":"Synced","version":"v1"},`
	big := strings.Replace(compact.String(), `"resources":[{"health"`, `"resources":[`+strings.Repeat(resource, 95)+`{"health"`, 1)
	before, after, ok := strings.Cut(big, `"name":"web-qa"`)
	if !ok || len(big) < 16_000 {
		t.Fatalf("the Application has another name, or %d bytes", len(big))
	}
	return before, after
}
