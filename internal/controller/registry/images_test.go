package registry

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const source, revision = "https://forge.example/acme/web", "0123456789abcdef0123456789abcdef01234567"

var said = map[string]string{"org.opencontainers.image.source": source, "org.opencontainers.image.revision": revision}

// testRegistry is a registry in memory, with faults.
type testRegistry struct {
	t     *testing.T
	host  string
	calls atomic.Int64
	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	now   time.Time
}

func newTestRegistry(t *testing.T, options ...memory.Option) *testRegistry {
	t.Helper()
	r := &testRegistry{t: t, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	whole := memory.New(append(options, memory.Logger(log.New(io.Discard, "", 0)))...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.calls.Add(1)
		r.mu.Lock()
		fault := r.fault
		r.mu.Unlock()
		if fault == nil || !fault(w, req) {
			whole.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (t *testRegistry) setFault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = fault
}

func (t *testRegistry) images(username, password string) *Images {
	return New([]Host{{Name: t.host, Username: username, Password: password, PlainHTTP: true}}, func() time.Time { return t.now }, nil)
}

func (t *testRegistry) must(err error) {
	t.t.Helper()
	if err != nil {
		t.t.Fatal(err)
	}
}

// push puts an image or an index there, and gives its name by digest.
func (t *testRegistry) push(tag string, what remote.Taggable) string {
	t.t.Helper()
	ref, err := name.NewTag(t.host + "/acme/web:" + tag)
	t.must(err)
	var digest v1.Hash
	switch x := what.(type) {
	case v1.Image:
		t.must(remote.Write(ref, x))
		digest, err = x.Digest()
	case v1.ImageIndex:
		t.must(remote.WriteIndex(ref, x))
		digest, err = x.Digest()
	}
	t.must(err)
	return ref.Context().Digest(digest.String()).String()
}

func labelled(t *testing.T, labels map[string]string) v1.Image {
	t.Helper()
	config, err := empty.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = labels
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		t.Fatal(err)
	}
	return mutate.MediaType(mutate.ConfigMediaType(image, types.OCIConfigJSON), types.OCIManifestSchema1)
}

func annotated(image v1.Image, annotations map[string]string) v1.Image {
	return mutate.Annotations(image, annotations).(v1.Image)
}

func indexOf(annotations map[string]string, children ...mutate.IndexAddendum) v1.ImageIndex {
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), children...)
	return mutate.Annotations(index, annotations).(v1.ImageIndex)
}

func platformImage(image v1.Image, os, architecture string) mutate.IndexAddendum {
	return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: architecture}}}
}

// TestBuilt finds what images say of their sources, wherever builders write it.
func TestBuilt(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	plain := labelled(t, nil)
	other := map[string]string{"org.opencontainers.image.source": "https://forge.example/acme/arm", "org.opencontainers.image.revision": "a"}
	whole := built{source: source, revision: revision}
	for tag, c := range map[string]struct {
		what remote.Taggable
		want built
	}{
		"labels":      {labelled(t, said), whole},
		"annotations": {annotated(plain, said), whole},
		"both":        {annotated(labelled(t, other), said), whole},
		"only-source": {annotated(labelled(t, said), map[string]string{"org.opencontainers.image.source": "x"}), whole},
		"nothing":     {plain, built{}},
		"half":        {labelled(t, map[string]string{"org.opencontainers.image.source": source}), built{source: source}},
		"too-long":    {labelled(t, map[string]string{"org.opencontainers.image.source": strings.Repeat("x", maxText+1), "org.opencontainers.image.revision": revision}), built{revision: revision}},
		"index":       {indexOf(said, platformImage(plain, "linux", "amd64")), whole},
		"platforms":   {indexOf(nil, platformImage(annotated(plain, other), "unknown", "unknown"), platformImage(labelled(t, other), "linux", "arm64"), platformImage(labelled(t, said), "linux", "amd64")), whole},
		"one-other":   {indexOf(nil, platformImage(annotated(plain, nil), "unknown", "unknown"), platformImage(labelled(t, said), "linux", "riscv64")), whole},
		"attested":    {indexOf(nil, platformImage(annotated(plain, other), "unknown", "unknown")), built{}},
	} {
		digest := r.push(tag, c.what)
		i := r.images("", "")
		for _, image := range []string{r.host + "/acme/web:" + tag, digest} {
			got, err := i.lookInto(t.Context(), image)
			if err != nil || got != c.want {
				t.Errorf("%s: %+v, %v", image, got, err)
			}
			calls := r.calls.Load()
			if again, err := i.lookInto(t.Context(), image); err != nil || again != got || r.calls.Load() != calls {
				t.Errorf("%s, again: %+v, %v after %d calls", image, again, err, r.calls.Load()-calls)
			}
		}
	}
}

// TestBuiltIsForgotten holds for how long what was found is taken for true.
func TestBuiltIsForgotten(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	digest := r.push("1", labelled(t, said))
	i := r.images("", "")
	look := func(image string, after time.Duration, want built, fresh bool) {
		t.Helper()
		r.now = r.now.Add(after)
		calls := r.calls.Load()
		got, err := i.lookInto(t.Context(), image)
		if err != nil || got != want || (r.calls.Load() > calls) != fresh {
			t.Errorf("%s: %+v, %v after %d calls", image, got, err, r.calls.Load()-calls)
		}
	}
	tag := r.host + "/acme/web:1"
	whole := built{source: source, revision: revision}
	look(tag, 0, whole, true)
	look(digest, 0, whole, true)
	r.push("1", labelled(t, nil)) // the tag moves
	look(tag, tagAge-time.Second, whole, false)
	look(tag, time.Second, built{}, true)
	look(digest, digestAge-tagAge-time.Second, whole, false)
	look(digest, time.Second, whole, true)
}

// TestRegistryFails holds what is said of a registry that doesn't answer as it should, and when
// it is asked again.
func TestRegistryFails(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/v2/") {
				return false
			}
			w.WriteHeader(code)
			return true
		}
	}
	write := func(size int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/v2/") {
				return false
			}
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			_, _ = io.WriteString(w, strings.Repeat("x", size))
			return true
		}
	}
	for what, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request) bool
		want  error
		age   time.Duration
	}{
		"no login":    {status(401), ErrRefused, failedAge},
		"forbidden":   {status(403), ErrRefused, failedAge},
		"missing":     {status(404), ErrMissing, failedAge},
		"odd":         {status(418), ErrUnread, failedAge},
		"too many":    {status(429), ErrAway, awayDelay},
		"broken":      {status(500), ErrAway, awayDelay},
		"cut":         {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, ErrAway, awayDelay},
		"no manifest": {write(10), ErrUnread, failedAge},
		"endless":     {write(maxAnswer + 1), ErrUnread, failedAge},
		"a lost child": {func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/blobs/") && status(500)(w, r)
		}, ErrAway, awayDelay},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newTestRegistry(t)
			r.push("1", labelled(t, said))
			i := r.images("", "")
			r.setFault(c.fault)
			look := func(image string, want error, called bool) {
				t.Helper()
				calls := r.calls.Load()
				if _, err := i.lookInto(t.Context(), image); !errors.Is(err, want) || (r.calls.Load() > calls) != called {
					t.Errorf("%s: %v after %d calls", image, err, r.calls.Load()-calls)
				}
			}
			tag := r.host + "/acme/web:1"
			look(tag, c.want, true)
			look(tag, c.want, false)
			if c.want == ErrAway {
				look(r.host+"/acme/web:2", ErrAway, false)
			}
			r.setFault(nil)
			r.now = r.now.Add(c.age - time.Second)
			look(tag, c.want, false)
			r.now = r.now.Add(time.Second)
			look(tag, nil, true)
		})
	}
}

// TestOnlyNamedRegistries holds that only registries of the server's file are reached, each with its own
// credentials, and that a caller who gives up leaves no trace.
func TestOnlyNamedRegistries(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.push("1", labelled(t, said))
	var login atomic.Value
	r.setFault(func(w http.ResponseWriter, req *http.Request) bool {
		user, password, ok := req.BasicAuth()
		login.Store(user + ":" + password)
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(401)
		}
		return !ok
	})
	image := r.host + "/acme/web:1"
	i := r.images("ann", "secret")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.lookInto(ctx, image); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if got, err := i.lookInto(t.Context(), image); err != nil || got.source != source || login.Load() != "ann:secret" {
		t.Errorf("%+v, %v as %v", got, err, login.Load())
	}
	if _, err := r.images("", "").lookInto(t.Context(), image); !errors.Is(err, ErrRefused) {
		t.Errorf("without a login: %v", err)
	}
	hub := New([]Host{{Name: "docker.io"}, {Name: "GHCR.io"}}, time.Now, nil)
	for image, want := range map[string]bool{"nginx:1": true, "docker.io/acme/web:1": true, "ghcr.io/acme/web@sha256:" + strings.Repeat("a", 64): true, image: false, "registry.example/web:1": false, "NO image": false, "": false} {
		if got := hub.CanRead(image); got != want {
			t.Errorf("%s: %v", image, got)
		}
	}
	calls := r.calls.Load()
	if _, err := hub.lookInto(t.Context(), image); !errors.Is(err, ErrRefused) || r.calls.Load() != calls {
		t.Errorf("of another registry: %v", err)
	}
	if _, err := hub.lookInto(t.Context(), "NO image"); !errors.Is(err, ErrMissing) {
		t.Errorf("what is no image: %v", err)
	}
}
