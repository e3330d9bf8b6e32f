package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/discover"
)

// tagFront answers for a registry's lists of tags, as distribution does: in pages after a last tag, each with an ETag.
type tagFront struct {
	mu       sync.Mutex
	tags     map[string][]string // by repository
	pageSize int
	noETags  bool
	before   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	lists    atomic.Int64                                      // requests for lists
	full     atomic.Int64                                      // those that were answered in full
}

func (f *tagFront) set(repository string, tags ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tags == nil {
		f.tags = map[string][]string{}
	}
	f.tags[repository] = tags
}

// answerBefore has something answer in its place, if it says that it has; nil: nothing.
func (f *tagFront) answerBefore(before func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *tagFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	f.lists.Add(1)
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	repository := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v2/"), "/tags/list")
	f.mu.Lock()
	all, known := f.tags[repository]
	f.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	all = slices.Clone(all)
	sort.Strings(all)
	if last := r.URL.Query().Get("last"); last != "" {
		all = slices.DeleteFunc(all, func(tag string) bool { return tag <= last })
	}
	size, _ := strconv.Atoi(r.URL.Query().Get("n"))
	if f.pageSize > 0 {
		size = min(size, f.pageSize)
	}
	if len(all) > size {
		all = all[:size]
		w.Header().Set("Link", fmt.Sprintf(`<%s?last=%s&n=%d>; rel="next"`, r.URL.Path, all[size-1], size))
	}
	body, _ := json.Marshal(map[string]any{"name": repository, "tags": all})
	if etag := fmt.Sprintf(`"%x"`, body); !f.noETags {
		w.Header().Set("ETag", etag[:min(len(etag), 4000)])
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	f.full.Add(1)
	_, _ = w.Write(body)
}

// startFront starts a registry that only lists tags, and what reads it.
func startFront(t testing.TB, f *tagFront, hosts ...Host) (*Images, string, *time.Time) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	all := append([]Host{{Name: host, PlainHTTP: true}}, hosts...)
	return New(all, func() time.Time { return now }, nil), host, &now
}

// TestListTags holds that a list has all pages, that what is as it was isn't read again, and that a list counts for as long
// as was asked.
func TestListTags(t *testing.T) {
	t.Parallel()
	f := &tagFront{pageSize: 2}
	i, host, now := startFront(t, f)
	repository := host + "/acme/web"
	f.set("acme/web", "1", "2", "3", "4", "5")
	list := func(maxAge time.Duration, want string, requests, full int64) {
		t.Helper()
		f.lists.Store(0)
		f.full.Store(0)
		got, err := i.ListTags(t.Context(), repository, maxAge)
		if err != nil || strings.Join(got, " ") != want || f.lists.Load() != requests || f.full.Load() != full {
			t.Errorf("%q, %v after %d requests, %d in full", got, err, f.lists.Load(), f.full.Load())
		}
	}
	list(0, "1 2 3 4 5", 3, 3)
	list(time.Minute, "1 2 3 4 5", 0, 0)
	*now = now.Add(time.Minute + time.Second)
	list(time.Minute, "1 2 3 4 5", 3, 0)
	*now = now.Add(time.Hour)
	f.set("acme/web", "1", "2", "3", "4", "5", "6", "7")
	list(time.Minute, "1 2 3 4 5 6 7", 4, 2)
	*now = now.Add(time.Hour)
	f.set("acme/web", "1", "3", "4", "5", "6", "7")
	list(time.Minute, "1 3 4 5 6 7", 3, 3)
	*now = now.Add(time.Hour)
	f.set("acme/web", "1", "3", "4", "5", "6", "7", "8") // behind a page that was full, and says the same of itself
	list(time.Minute, "1 3 4 5 6 7 8", 4, 2)
	f.set("acme/other", "a")
	if got, err := i.ListVersions(t.Context(), host+"/acme/other", 0); err != nil || strings.Join(got, " ") != "a" {
		t.Errorf("%q, %v", got, err)
	}
	f.set("acme/chart", "1.0.0_build.1")
	if got, err := i.ListVersions(t.Context(), host+"/acme/chart", 0); err != nil || strings.Join(got, " ") != "1.0.0+build.1" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFullPage holds that a page of which isn't known whether it is the last one isn't believed for long.
func TestFullPage(t *testing.T) {
	t.Parallel()
	f := &tagFront{pageSize: 10}
	i, host, now := startFront(t, f)
	tags := strings.Fields("a b c d e f g h i j")
	for _, c := range []struct {
		after time.Duration
		tags  []string
		want  int
	}{{0, tags, 10}, {time.Minute, append(tags, "k"), 10}, {boundaryAge, append(tags, "k"), 11}} {
		*now = now.Add(c.after)
		f.set("acme/web", c.tags...)
		if got, err := i.ListTags(t.Context(), host+"/acme/web", 0); err != nil || len(got) != c.want {
			t.Errorf("after %s: %q, %v", c.after, got, err)
		}
	}
}

// TestListFails holds that no part of a list is given, whatever a registry does, and that it is left alone where it can't
// answer.
func TestListFails(t *testing.T) {
	t.Parallel()
	page := func(link, tags string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Link", strings.ReplaceAll(link, "HERE", r.URL.Path))
			_, _ = io.WriteString(w, tags)
			return true
		}
	}
	status := func(code int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			return true
		}
	}
	numbered := func(w http.ResponseWriter, r *http.Request) bool {
		n, _ := strconv.Atoi(r.URL.Query().Get("last"))
		return page(fmt.Sprintf(`<HERE?last=%d>; rel="next"`, n+1), `{"tags":["1","2"]}`)(w, r)
	}
	for name, c := range map[string]struct {
		before func(w http.ResponseWriter, r *http.Request) bool
		want   error
		away   bool
	}{
		"no login":          {status(401), ErrRefused, false},
		"forbidden":         {status(403), ErrRefused, false},
		"missing":           {status(404), ErrMissing, false},
		"too many":          {status(429), ErrAway, true},
		"broken":            {status(502), ErrAway, true},
		"cut":               {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, ErrAway, true},
		"no list":           {page("", "<html>"), ErrUnlisted, false},
		"a circle":          {page(`<HERE?n=1000>; rel="next"`, `{"tags":["1"]}`), ErrUnlisted, false},
		"pages that repeat": {numbered, ErrUnlisted, false},
		"another host":      {page(`<https://evil.example/v2/acme/web/tags/list?last=1>; rel="next"`, `{"tags":["1"]}`), ErrUnlisted, false},
		"another path":      {page(`</v2/acme/secret/tags/list?last=1>; rel="next"`, `{"tags":["1"]}`), ErrUnlisted, false},
		"no link":           {page("next", `{"tags":["1"]}`), ErrUnlisted, false},
		"five gigabytes": {func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.WriteString(w, `{"tags":["`)
			for range 5000 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
					return true
				}
			}
			return true
		}, ErrUnlisted, false},
		"a redirect elsewhere": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/v2/acme/web/tags/list", http.StatusTemporaryRedirect)
			return true
		}, ErrAway, true},
		"one tag after the other": {func(w http.ResponseWriter, r *http.Request) bool {
			n, _ := strconv.Atoi(r.URL.Query().Get("last"))
			return page(fmt.Sprintf(`<HERE?last=%d>; rel="next"`, n+1), fmt.Sprintf(`{"tags":["%d"]}`, n))(w, r)
		}, discover.ErrTooMany, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &tagFront{before: c.before}
			i, host, now := startFront(t, f)
			f.set("acme/web", "1")
			got, err := i.ListTags(t.Context(), host+"/acme/web", 0)
			if got != nil || !errors.Is(err, c.want) {
				t.Fatalf("%q, %v", got, err)
			}
			f.answerBefore(nil)
			requests := f.lists.Load()
			got, err = i.ListTags(t.Context(), host+"/acme/web", 0)
			if c.away != (errors.Is(err, ErrAway) && f.lists.Load() == requests) || !c.away && strings.Join(got, "") != "1" {
				t.Errorf("asked again at once: %q, %v", got, err)
			}
			*now = now.Add(awayDelay)
			if got, err = i.ListTags(t.Context(), host+"/acme/web", 0); err != nil || strings.Join(got, "") != "1" {
				t.Errorf("asked again later: %q, %v", got, err)
			}
		})
	}
}

// TestDeletedMeanwhile holds that nothing is lost where tags are deleted while they are listed, and a page that repeats the
// last one isn't taken twice.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	f := &tagFront{pageSize: 2}
	i, host, _ := startFront(t, f)
	f.set("acme/web", "1", "2", "3", "4", "5")
	deleteOnce := sync.OnceFunc(func() { f.set("acme/web", "1", "4", "5") }) // the page's marker is gone, and its first tag
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Query().Get("last") {
		case "2":
			deleteOnce()
		case "5":
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=x>; rel="next"`, r.URL.Path))
			_, _ = io.WriteString(w, `{"tags":["4","5"]}`)
			return true
		case "x":
			_, _ = io.WriteString(w, `{"tags":["5","6"]}`)
			return true
		}
		return false
	}
	got, err := i.ListTags(t.Context(), host+"/acme/web", -1)
	if err != nil || strings.Join(got, " ") != "1 2 4 5" {
		t.Errorf("%q, %v", got, err)
	}
	f.set("acme/web", "1", "2", "4", "5", "7")
	if got, err = i.ListTags(t.Context(), host+"/acme/web", -1); err != nil || strings.Join(got, " ") != "1 2 4 5 6" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLimitsAreKept holds that a registry is left alone for as long as it says, with a part of its limit left to others, and
// that other registries go on.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		rest    time.Duration // 0: it may be asked at once
	}{
		"nothing":                 {200, nil, 0},
		"much is left":            {200, map[string]string{"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "11;w=21600"}, 0},
		"the rest is for others":  {200, map[string]string{"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "10;w=21600"}, 36 * time.Minute},
		"a reset":                 {200, map[string]string{"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "90"}, 90 * time.Second},
		"a reset that is near":    {200, map[string]string{"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "1"}, awayDelay},
		"no window":               {200, map[string]string{"RateLimit-Limit": "100", "RateLimit-Remaining": "0"}, awayDelay},
		"headers that can't be":   {200, map[string]string{"RateLimit-Limit": "many", "RateLimit-Remaining": "-1"}, 0},
		"refused for seconds":     {429, map[string]string{"Retry-After": "120"}, 2 * time.Minute},
		"refused until a time":    {503, map[string]string{"Retry-After": "Mon, 02 Mar 2026 12:10:00 GMT"}, 10 * time.Minute},
		"refused for too long":    {429, map[string]string{"Retry-After": "99999999999"}, maxRest},
		"refused without a time":  {429, map[string]string{"Retry-After": "soon"}, awayDelay},
		"a wait that isn't asked": {200, map[string]string{"Retry-After": "120"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other := &tagFront{}, &tagFront{}
			server := httptest.NewServer(other)
			defer server.Close()
			otherHost := strings.TrimPrefix(server.URL, "http://")
			other.set("acme/web", "1")
			i, host, now := startFront(t, f, Host{Name: otherHost, PlainHTTP: true})
			f.set("acme/web", "1")
			f.before = func(w http.ResponseWriter, _ *http.Request) bool {
				for key, value := range c.headers {
					w.Header().Set(key, value)
				}
				if c.status != 200 {
					w.WriteHeader(c.status)
				}
				return c.status != 200
			}
			_, _ = i.ListTags(t.Context(), host+"/acme/web", 0)
			f.answerBefore(nil)
			list := func(want error) {
				t.Helper()
				if _, err := i.ListTags(t.Context(), host+"/acme/web", -1); !errors.Is(err, want) {
					t.Errorf("%v", err)
				}
			}
			if c.rest > 0 {
				*now = now.Add(c.rest - time.Second)
				list(ErrAway)
				if _, err := i.ListTags(t.Context(), otherHost+"/acme/web", -1); err != nil {
					t.Errorf("another registry: %v", err)
				}
				*now = now.Add(time.Second)
			}
			list(nil)
		})
	}
}

// TestHangingRegistry holds that a registry that hangs keeps only its own callers, and that a caller who gives up leaves no
// trace.
func TestHangingRegistry(t *testing.T) {
	t.Parallel()
	f, other := &tagFront{}, &tagFront{}
	server := httptest.NewServer(other)
	defer server.Close()
	otherHost := strings.TrimPrefix(server.URL, "http://")
	other.set("acme/web", "1")
	i, host, _ := startFront(t, f, Host{Name: otherHost, PlainHTTP: true})
	hangs, release := make(chan struct{}), make(chan struct{})
	f.set("acme/web", "1")
	f.before = func(http.ResponseWriter, *http.Request) bool {
		close(hangs)
		<-release
		return false
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := i.ListTags(ctx, host+"/acme/web", 0)
		ended <- err
	}()
	<-hangs
	if got, err := i.ListTags(t.Context(), otherHost+"/acme/web", 0); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	f.answerBefore(nil)
	close(release)
	if got, err := i.ListTags(t.Context(), host+"/acme/web", 0); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOneListing holds that many who want one list make one request.
func TestOneListing(t *testing.T) {
	t.Parallel()
	f := &tagFront{}
	i, host, _ := startFront(t, f)
	f.set("acme/web", "1")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got, err := i.ListTags(t.Context(), host+"/acme/web", time.Minute); err != nil || len(got) != 1 {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := f.lists.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestPlainHTTP holds that a registry is spoken to without TLS only where that is wanted, and by its certificate's authority
// else; a registry that isn't listed isn't asked.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	f := &tagFront{}
	plain, secure := httptest.NewServer(f), httptest.NewTLSServer(f)
	defer plain.Close()
	defer secure.Close()
	f.set("acme/web", "1")
	plainHost, secureHost := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://")
	list := func(h Host, repository string) error {
		_, err := New([]Host{h}, time.Now, nil).ListTags(t.Context(), repository, 0)
		return err
	}
	for name, c := range map[string]struct {
		host       Host
		repository string
		want       error
		requests   int64
	}{
		"plain":                    {Host{Name: plainHost}, plainHost + "/acme/web", ErrPlainHTTP, 0},
		"plain as wanted":          {Host{Name: plainHost, PlainHTTP: true}, plainHost + "/acme/web", nil, 1},
		"TLS":                      {Host{Name: secureHost, Transport: secure.Client().Transport}, secureHost + "/acme/web", nil, 1},
		"TLS where plain may be":   {Host{Name: secureHost, PlainHTTP: true, Transport: secure.Client().Transport}, secureHost + "/acme/web", nil, 1},
		"TLS of another authority": {Host{Name: secureHost}, secureHost + "/acme/web", ErrAway, 0},
		"not listed":               {Host{Name: "registry.example"}, plainHost + "/acme/web", ErrRefused, 0},
		"dots":                     {Host{Name: plainHost, PlainHTTP: true}, plainHost + "/acme/../web", ErrMissing, 0},
		"no name":                  {Host{Name: plainHost, PlainHTTP: true}, plainHost + "/ACME", ErrMissing, 0},
	} {
		f.lists.Store(0)
		if err := list(c.host, c.repository); !errors.Is(err, c.want) || f.lists.Load() != c.requests {
			t.Errorf("%s: %v after %d requests", name, err, f.lists.Load())
		}
	}
}

// TestTokens holds that tokens of a registry's own server are used, renewed when they end, and that no credential is in an
// error.
func TestTokens(t *testing.T) {
	t.Parallel()
	f := &tagFront{}
	var server *httptest.Server
	var issued atomic.Int64
	broken := atomic.Bool{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			if user, password, _ := r.BasicAuth(); user != "ann" || password != "hunter2" || broken.Load() {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"details":"hunter2 isn't right"}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"token":"t%d"}`, issued.Add(1))
		case r.Header.Get("Authorization") != fmt.Sprintf("Bearer t%d", issued.Load()) || issued.Load() == 0:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry",scope="repository:acme/web:pull"`, server.URL))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	f.set("acme/web", "1")
	i := New([]Host{{Name: host, PlainHTTP: true, Username: "ann", Password: "hunter2"}}, time.Now, nil)
	for range 2 {
		if got, err := i.ListTags(t.Context(), host+"/acme/web", -1); err != nil || len(got) != 1 {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if issued.Add(1) != 2 { // the first one is no longer taken
		t.Errorf("%d tokens", issued.Load())
	}
	if got, err := i.ListTags(t.Context(), host+"/acme/web", -1); err != nil || len(got) != 1 || issued.Load() != 3 {
		t.Errorf("%q, %v", got, err)
	}
	broken.Store(true)
	issued.Add(1)
	if _, err := i.ListTags(t.Context(), host+"/acme/web", -1); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// heapInUse is what lives on the heap, in bytes.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkNothingNew lists 200 repositories of 500 tags when nothing is new: one conditional request each, none for a
// second component of the same repository, and at most 60 MB more than before.
func BenchmarkNothingNew(b *testing.B) {
	f := &tagFront{}
	i, host, now := startFront(b, f)
	var repositories []string
	for r := range 200 {
		name := fmt.Sprintf("acme/app-%d", r)
		var tags []string
		for n := range 500 {
			tags = append(tags, fmt.Sprintf("1.%d.%d", r, n))
		}
		f.set(name, tags...)
		repositories = append(repositories, host+"/"+name)
	}
	poll := func() {
		*now = now.Add(time.Second)
		for range 50 { // components
			for _, repository := range repositories {
				if tags, err := i.ListTags(b.Context(), repository, 0); err != nil || len(tags) != 500 {
					b.Fatalf("%d tags, %v", len(tags), err)
				}
			}
		}
	}
	idle := heapInUse()
	poll()
	held := (heapInUse() - idle) / 1e6
	f.lists.Store(0)
	f.full.Store(0)
	for b.Loop() {
		poll()
	}
	if perPoll := float64(f.lists.Load()) / float64(b.N); perPoll != 200 || f.full.Load() != 0 {
		b.Errorf("%g requests a poll, %d in full", perPoll, f.full.Load())
	}
	if held > 60 {
		b.Errorf("the lists take %g MB", held)
	}
	b.ReportMetric(float64(f.lists.Load())/float64(b.N), "requests/op")
	b.ReportMetric(held, "MB-held")
}
