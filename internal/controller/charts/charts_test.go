package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/liftlock/liftlock/internal/manifest/render"
)

// pack packs a chart of a version, with a text that makes it another one.
func pack(t *testing.T, version, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, f := range [][2]string{{"web/Chart.yaml", "apiVersion: v2\nname: web\nversion: " + version + "\n"},
		{"web/templates/c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {chart: '{{ .Chart.Version }}', text: '" + text + "'}\n"}} {
		if err := archive.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// testRepository is a Helm repository.
type testRepository struct {
	*httptest.Server
	index string
	files map[string][]byte
	away  atomic.Bool
	calls atomic.Int32
}

func newTestRepository(t *testing.T) *testRepository {
	r := &testRepository{files: map[string][]byte{}}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.calls.Add(1)
		user, password, _ := req.BasicAuth()
		switch data, is := r.files[req.URL.Path]; {
		case r.away.Load():
			http.Error(w, "away", http.StatusServiceUnavailable)
		case req.URL.Path == "/moved.tgz":
			http.Redirect(w, req, "https://elsewhere.example/web.tgz", http.StatusFound)
		case user != "liftlock" || password != "private":
			http.Error(w, "who is it", http.StatusUnauthorized)
		case req.URL.Path == "/stable/index.yaml":
			fmt.Fprint(w, r.index)
		case is:
			_, _ = w.Write(data)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// add adds a version to the index, at an address.
func (t *testRepository) add(version, address, digest string) {
	if t.index == "" {
		t.index = "apiVersion: v1\nentries:\n  web:\n"
	}
	t.index += fmt.Sprintf("  - {name: web, version: %s, urls: [%q], digest: %q}\n", version, address, digest)
}

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func inProcess(_ context.Context, index []byte, chart, constraint string) (render.ChartVersion, error) {
	return render.FindChart(index, chart, constraint)
}

// renderChart renders a chart's one object.
func renderChart(t *testing.T, f *Fetcher, e render.External) (string, error) {
	t.Helper()
	memo := render.NewMemo(render.MemoOptions{Bytes: 1 << 20, External: f.Open})
	empty := render.NewChartTree(nil, "")
	m, err := memo.Render(t.Context(), empty.FS, empty.ID, render.Input{Application: "a", Sources: []render.Source{{RepoURL: e.RepoURL, Chart: e.Chart, TargetRevision: e.Revision}}})
	if err != nil {
		return "", err
	}
	return string(m.Objects[0].JSON), nil
}

// TestHelmRepository fetches versions and ranges of a Helm repository, and keeps to what is listed.
func TestHelmRepository(t *testing.T) {
	r := newTestRepository(t)
	first, second := pack(t, "1.0.0", "one"), pack(t, "1.1.0", "two")
	r.files["/stable/web-1.0.0.tgz"], r.files["/files/web-1.1.0.tgz"] = first, second
	r.add("1.0.0", "web-1.0.0.tgz", fmt.Sprintf("%x", sha256.Sum256(first)))
	r.add("1.1.0", r.URL+"/files/web-1.1.0.tgz", "")
	r.add("2.0.0", "https://elsewhere.example/web-2.0.0.tgz", "")
	r.add("2.1.0", r.URL+"/moved.tgz", "")
	r.add("2.2.0", "web-1.0.0.tgz", strings.Repeat("0", 64))
	r.add("2.3.0", "http://"+r.Listener.Addr().String()+"/web.tgz", "")
	r.add("2.4.0", "oci://elsewhere.example/web:2.4.0", "")
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	f, err := New(Options{Hosts: []Host{{URL: r.URL + "/stable/", Username: "liftlock", Password: "private", Transport: r.Client().Transport}}, Dir: t.TempDir(), Find: inProcess, Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.0.0": `"text":"one"`, "1.1.0": `"text":"two"`, "~1.0": `"chart":"1.0.0"`, "1.*": `"chart":"1.1.0"`} {
		got, err := renderChart(t, f, render.External{RepoURL: r.URL + "/stable", Chart: "web", Revision: version})
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, %v; want %s", version, got, err, want)
		}
	}
	for version, want := range map[string]string{
		"2.0.0": "it sends to elsewhere.example, which isn't listed", "2.1.0": "it sends to elsewhere.example, which isn't listed",
		"2.2.0": "has the checksum", "2.3.0": "only https is followed", "2.4.0": "leads to oci://elsewhere.example/web, which isn't listed",
		"9.0.0": "the index has no version of web that fits 9.0.0",
	} {
		if _, err := renderChart(t, f, render.External{RepoURL: r.URL + "/stable", Chart: "web", Revision: version}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", version, err, want)
		}
	}
	calls := r.calls.Load()
	if _, err := f.Open(t.Context(), render.External{RepoURL: "https://vault.example/stable", Chart: "web", Revision: "1.0.0"}); !errors.Is(err, errNotListed) || r.calls.Load() != calls {
		t.Errorf("a repository that isn't listed: %v", err)
	}
}

// TestOffline gives what is kept while nobody answers, says what isn't, and refuses a version that
// was pushed again.
func TestOffline(t *testing.T) {
	r := newTestRepository(t)
	r.files["/stable/web.tgz"] = pack(t, "1.0.0", "one")
	r.add("1.0.0", "web.tgz", "")
	r.add("1.1.0", "web.tgz", "")
	dir := t.TempDir()
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	open := func() *Fetcher {
		f, err := New(Options{Hosts: []Host{{URL: r.URL + "/stable", Username: "liftlock", Password: "private", Transport: r.Client().Transport}}, Dir: dir, Find: inProcess, Now: at.now})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	e := render.External{RepoURL: r.URL + "/stable", Chart: "web", Revision: "1.0.0"}
	if _, err := open().Open(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	r.away.Store(true)
	f := open() // another process
	if _, err := f.Open(t.Context(), e); err != nil {
		t.Errorf("what is kept: %v", err)
	}
	other := e
	other.Revision = "1.1.0"
	_, err := f.Open(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(), "web 1.1.0 isn't kept here, and can't be looked for now") || !strings.Contains(err.Error(), "503") {
		t.Errorf("what isn't kept: %v", err)
	}
	calls := r.calls.Load()
	if _, err = f.Open(t.Context(), other); err == nil || r.calls.Load() != calls {
		t.Errorf("asked again at once: %v", err)
	}
	newest := e
	newest.Revision = "~1.0"
	r.away.Store(false)
	at.at = at.at.Add(2 * failedAge)
	if tree, err := f.Open(t.Context(), newest); err != nil || tree.Revision != "1.0.0" {
		t.Errorf("a range: %s, %v", tree.Revision, err)
	}
	r.away.Store(true)
	at.at = at.at.Add(2 * indexAge)
	if tree, err := f.Open(t.Context(), newest); err != nil || tree.Revision != "1.0.0" {
		t.Errorf("a range that was known: %s, %v", tree.Revision, err)
	}
	r.away.Store(false)
	at.at = at.at.Add(2 * failedAge)
	if _, err = f.Open(t.Context(), other); err != nil {
		t.Errorf("when it answers again: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(kept) != 1 { // both versions are the same bytes
		t.Fatalf("kept %v, %v", kept, err)
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	r.files["/stable/web.tgz"] = pack(t, "1.0.0", "pushed again")
	if _, err := open().Open(t.Context(), e); err == nil || !strings.Contains(err.Error(), "is another chart than it was") {
		t.Errorf("a version that was pushed again: %v", err)
	}
}

// TestStoreIsBounded removes what was used longest ago.
func TestStoreIsBounded(t *testing.T) {
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	s, err := openStore(t.TempDir(), 250, at.now)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"a", "b", "c"} {
		at.at = at.at.Add(time.Hour)
		if err := s.write(key, bytes.Repeat([]byte{byte('0' + i)}, 100)); err != nil {
			t.Fatal(err)
		}
		at.at = at.at.Add(time.Hour)
		s.read("a")
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, is := s.read(key); is != want {
			t.Errorf("%s is kept: %v", key, is)
		}
	}
}

// TestRegistry fetches charts of a registry, by their tags and by ranges.
func TestRegistry(t *testing.T) {
	server := httptest.NewServer(memory.New(memory.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	push := func(tag string, layers ...v1.Layer) {
		t.Helper()
		ref, err := name.ParseReference(u.Host + "/charts/web:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
		if err == nil {
			err = remote.Write(ref, image)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	push("1.0.0", static.NewLayer(pack(t, "1.0.0", "one"), chartLayer))
	push("1.1.0_build", static.NewLayer(pack(t, "1.1.0+build", "two"), chartLayer))
	push("9.0.0", static.NewLayer([]byte("an image"), types.OCILayer))
	at := &clock{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	f, err := New(Options{Hosts: []Host{{URL: "oci://" + u.Host + "/charts"}}, Dir: t.TempDir(), Find: inProcess, Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.0.0": `"text":"one"`, "1.1.0+build": `"text":"two"`, "1.x": `"text":"two"`, "9.0.0": "is no chart", "7.0.0": "can't be fetched", "~7": "no version of it fits"} {
		got, err := renderChart(t, f, render.External{RepoURL: u.Host + "/charts", Chart: "web", Revision: version})
		if !strings.Contains(got+fmt.Sprint(err), want) {
			t.Errorf("%s: %s, %v; want %s", version, got, err, want)
		}
	}
	if _, err := f.Open(t.Context(), render.External{RepoURL: u.Host + "/other", Chart: "web", Revision: "1.0.0"}); !errors.Is(err, errNotListed) {
		t.Errorf("another part of the registry: %v", err)
	}
	for _, chart := range []string{"../vault/web", "web/../../vault/web", "./web"} {
		for _, version := range []string{"1.0.0", "~1.0"} {
			_, err := f.Open(t.Context(), render.External{RepoURL: u.Host + "/charts", Chart: chart, Revision: version})
			if err == nil || !strings.Contains(err.Error(), "is no name of a registry's repository") {
				t.Errorf("%s leads out of what is listed: %v", chart, err)
			}
		}
	}
	if _, err := f.Open(t.Context(), render.External{RepoURL: u.Host + "/charts/../vault", Chart: "web", Revision: "1.0.0"}); err == nil || !strings.Contains(err.Error(), "is no name") {
		t.Errorf("an address leads out of what is listed: %v", err)
	}
}

// TestLargeAnswers holds that what is too large isn't read to its end.
func TestLargeAnswers(t *testing.T) {
	r := newTestRepository(t)
	r.files["/stable/web.tgz"] = make([]byte, render.MaxFileBytes+10)
	r.add("1.0.0", "web.tgz", "")
	f, err := New(Options{Hosts: []Host{{URL: r.URL + "/stable", Username: "liftlock", Password: "private", Transport: r.Client().Transport}}, Dir: t.TempDir(), Find: inProcess, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Open(t.Context(), render.External{RepoURL: r.URL + "/stable", Chart: "web", Revision: "1.0.0"})
	if err == nil || !strings.Contains(err.Error(), "answers with more than") {
		t.Errorf("a chart of %d bytes: %v", render.MaxFileBytes+10, err)
	}
	var tree fs.FS = render.NewChartTree([]byte("x"), "1").FS
	if data, err := fs.ReadFile(tree, render.PackedChart); string(data) != "x" || err != nil {
		t.Errorf("a tree of a chart has %q, %v", data, err)
	}
}

// TestListVersions holds that a repository's index is asked for once for all its charts, and by its tag when nothing is new.
func TestListVersions(t *testing.T) {
	t.Parallel()
	index := "entries:\n  web: [{version: 1.0.0, urls: [a]}, {version: 1.1.0, urls: [b]}, {version: 1.1.0, urls: [c]}, {version: 2.0.0}]\n  api: [{version: 3.0.0, urls: [d]}]\n"
	var requests, full atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(index)))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full.Add(1)
		fmt.Fprint(w, index)
	}))
	defer server.Close()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	read := 0
	f, err := New(Options{Hosts: []Host{{URL: server.URL + "/stable"}, {URL: "oci://registry.example/charts"}}, Dir: t.TempDir(), Now: func() time.Time { return now },
		List: func(_ context.Context, index []byte, chart string) ([]string, error) {
			read++
			return render.ListChart(index, chart)
		}})
	if err != nil {
		t.Fatal(err)
	}
	list := func(after time.Duration, chart, want string, wantRequests, wantFull int32, wantRead int) {
		t.Helper()
		now = now.Add(after)
		got, err := f.ListVersions(t.Context(), server.URL+"/stable", chart, time.Minute)
		if err != nil || strings.Join(got, " ") != want || requests.Load() != wantRequests || full.Load() != wantFull || read != wantRead {
			t.Errorf("%q, %v after %d requests, %d in full, %d read", got, err, requests.Load(), full.Load(), read)
		}
	}
	list(0, "web", "1.0.0 1.1.0", 1, 1, 1)
	list(0, "api", "3.0.0", 1, 1, 2)
	list(time.Minute, "web", "1.0.0 1.1.0", 2, 1, 2)
	index = strings.Replace(index, "3.0.0", "3.1.0", 1)
	list(time.Second, "api", "3.0.0", 2, 1, 2)
	list(time.Minute, "api", "3.1.0", 3, 2, 3)
	for _, c := range [][2]string{{server.URL + "/other", "web"}, {"oci://registry.example/charts", "web"}, {server.URL + "/stable", "none"}} {
		if got, err := f.ListVersions(t.Context(), c[0], c[1], time.Minute); err == nil {
			t.Errorf("%s: %q", c, got)
		}
	}
}
