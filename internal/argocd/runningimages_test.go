package argocd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// podNode writes a pod's node as Argo CD does; at is its time within a minute, empty: it isn't said.
func podNode(name, at string, images ...string) string {
	n := map[string]any{"kind": "Pod", "version": "v1", "namespace": "shop", "name": name, "images": images}
	if at != "" {
		n["createdAt"] = "2026-03-01T12:00:" + at + "Z"
	}
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// livePod writes a live pod with one container; id is what its node says of the image.
func livePod(image, id string) string {
	return fmt.Sprintf(`{"spec": {"containers": [{"name": "main", "image": %q}]}, "status": {"containerStatuses": [{"name": "main", "image": "sha256:0", "imageID": %q}]}}`, image, id)
}

// TestRunningImages reads from a tree which images run, in how many pods and since when, and the
// digest from the newest pod of each. It makes nothing up.
func TestRunningImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	for name, c := range map[string]struct {
		nodes []string
		pods  map[string]string // by name; one that isn't among them is forbidden
		want  []verification.RunningImage
	}{
		"pods of one image": {
			nodes: []string{treeNode("apps", "Deployment", "web", "", "Healthy", "", ""), podNode("web-a", "10", "web:1.1"), podNode("web-b", "05", "web:1.1")},
			pods:  map[string]string{"web-a": livePod("web:1.1", "registry.example/web@"+digest)},
			want:  []verification.RunningImage{{Image: "web:1.1", Digest: digest, Pods: 2, Since: at(5)}},
		},
		"the old beside the new, the newest first": {
			nodes: []string{podNode("web-a", "05", "web:1.0"), podNode("web-b", "10", "web:1.1")},
			pods:  map[string]string{"web-a": livePod("web:1.0", "docker-pullable://web@"+digest), "web-b": livePod("web:1.1", "")},
			want:  []verification.RunningImage{{Image: "web:1.1", Pods: 1, Since: at(10)}, {Image: "web:1.0", Digest: digest, Pods: 1, Since: at(5)}},
		},
		"pods that may not be read": {
			nodes: []string{podNode("web-a", "05", "web:1.1", "proxy:3")},
			want:  []verification.RunningImage{{Image: "proxy:3", Pods: 1, Since: at(5)}, {Image: "web:1.1", Pods: 1, Since: at(5)}},
		},
		"an image pinned by its name": {
			nodes: []string{podNode("web-a", "05", "web@"+digest)},
			want:  []verification.RunningImage{{Image: "web@" + digest, Digest: digest, Pods: 1, Since: at(5)}},
		},
		"an image that was loaded, not pulled": {
			nodes: []string{podNode("web-a", "05", "web:1.1")}, pods: map[string]string{"web-a": livePod("web:1.1", digest)},
			want: []verification.RunningImage{{Image: "web:1.1", Pods: 1, Since: at(5)}},
		},
		"two containers that run different ones": {
			nodes: []string{podNode("web-a", "05", "web:1.1")},
			pods: map[string]string{"web-a": `{"spec": {"initContainers": [{"name": "first", "image": "web:1.1"}], "containers": [{"name": "main", "image": "web:1.1"}]},
				"status": {"initContainerStatuses": [{"name": "first", "imageID": "web@sha256:1"}], "containerStatuses": [{"name": "main", "imageID": "web@sha256:2"}]}}`},
			want: []verification.RunningImage{{Image: "web:1.1", Pods: 1, Since: at(5)}},
		},
		"no time is told":          {nodes: []string{podNode("web-a", "", "web:1.1")}, pods: map[string]string{"web-a": "{"}, want: []verification.RunningImage{{Image: "web:1.1", Pods: 1}}},
		"the time of one":          {nodes: []string{podNode("web-a", "", "web:1.1"), podNode("web-b", "05", "web:1.1")}, want: []verification.RunningImage{{Image: "web:1.1", Pods: 2}}},
		"one image in a pod twice": {nodes: []string{podNode("web-a", "05", "web:1.1", "web:1.1")}, want: []verification.RunningImage{{Image: "web:1.1", Pods: 1, Since: at(5)}}},
		"no pod":                   {nodes: []string{treeNode("apps", "Deployment", "web", "", "Healthy", "", "")}, want: []verification.RunningImage{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				pod, known := c.pods[q.Get("resourceName")]
				switch {
				case r.URL.Path == "/api/v1/applications/web/resource-tree":
					_, _ = io.WriteString(w, `{"nodes": [`+strings.Join(c.nodes, ",")+`]}`)
				case r.URL.Path != "/api/v1/applications/web/resource" || q.Get("namespace") != "shop" || q.Get("kind") != "Pod" || q.Get("version") != "v1" || q.Get("appNamespace") != "argocd":
					t.Errorf("asked for %s", r.URL)
				case !known:
					w.WriteHeader(http.StatusForbidden)
				default:
					_ = json.NewEncoder(w).Encode(map[string]string{"manifest": pod})
				}
			}))
			defer s.Close()
			client, err := api.New(api.Options{URL: s.URL, Wait: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			w := &Watcher{name: "hub", trees: newTreeReader(client, nil, "hub")}
			app := &verification.App{Namespace: "argocd", Name: "web"}
			got, err := w.RunningImages(t.Context(), app)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			w.trees.pods.SetBurst(0)
			if _, err := w.RunningImages(t.Context(), app); !errors.Is(err, ErrTreesBusy) {
				t.Errorf("too many at once: %v", err)
			}
			w.trees = nil
			if got, err := w.RunningImages(t.Context(), app); got != nil || err != nil {
				t.Errorf("without the API: %v, %v", got, err)
			}
		})
	}
}
