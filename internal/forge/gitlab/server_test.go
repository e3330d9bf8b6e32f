package gitlab

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

var testRepoName = forge.Repo{Owner: "acme/platform", Name: "fleet"}

const (
	head1 = "1111111111111111111111111111111111111111"
	head2 = "2222222222222222222222222222222222222222"
	land1 = "cccccccccccccccccccccccccccccccccccccccc"
)

// replayServer is a server with prepared answers, and what it was asked. What GitLab's face of
// the emulator does is the contract's matter; this is for what it does seldom.
type replayServer struct {
	t         *testing.T
	server    *httptest.Server
	mu        sync.Mutex
	responses map[string][]response // by "METHOD path" below the project 7, or below the API; the last one repeats
	otherwise *response             // to what has none; nil: it isn't found
	requests  []string              // "METHOD path?query body"
}

type response struct {
	status int
	header map[string]string
	body   string
}

// replayTime is the driver's time.
var replayTime = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// newReplayServer is below a path, as GitLab may be, and has the project, as its number 7.
func newReplayServer(t *testing.T) (*replayServer, *Driver) {
	t.Helper()
	r := &replayServer{t: t, responses: map[string][]response{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	d, err := New(Options{URL: r.server.URL + "/git/api/v4/", Token: "t0ken", Now: func() time.Time { return replayTime }}, CallLimits{})
	if err != nil {
		t.Fatal(err)
	}
	r.on("GET projects/acme%2Fplatform%2Ffleet", okResponse(jsonObject{"id": 7}))
	r.on("GET projects/7", okResponse(jsonObject{"id": 7, "merge_method": "merge", "squash_option": "default_off"}))
	return r, d
}

func (r *replayServer) on(call string, answers ...response) { r.responses[call] = answers }

func (r *replayServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := req.Header.Get("PRIVATE-TOKEN"); got != "t0ken" {
		r.t.Errorf("PRIVATE-TOKEN %q", got)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	call := req.Method + " " + strings.TrimPrefix(strings.TrimPrefix(req.URL.EscapedPath(), "/git/api/v4/"), "projects/7/")
	r.requests = append(r.requests, call+"?"+req.URL.RawQuery+" "+string(body))
	w.Header().Set("Content-Type", "application/json")
	left := r.responses[call]
	if len(left) == 0 && r.otherwise != nil {
		left = []response{*r.otherwise}
	}
	if len(left) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"404 Not Found"}`)
		return
	}
	if len(left) > 1 {
		r.responses[call] = left[1:]
	}
	for k, v := range left[0].header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(left[0].status)
	fmt.Fprint(w, left[0].body)
}

// calls are the requests so far whose line contains the words.
func (r *replayServer) calls(words string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, a := range r.requests {
		if strings.Contains(a, words) {
			found = append(found, a)
		}
	}
	return found
}

func okResponse(v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return response{status: http.StatusOK, body: string(body)}
}

func errorResponse(status int, words string) response {
	return response{status: status, body: fmt.Sprintf(`{"message":%q}`, words)}
}

type jsonObject = map[string]any

// mergeRequestJSON is a merge request as GitLab shows it; change sets fields.
func mergeRequestJSON(change jsonObject) jsonObject {
	m := jsonObject{
		"id": 1001, "iid": 7, "state": "opened", "title": "qa: web", "description": "b", "author": jsonObject{"id": 3, "username": "liftlock-bot"},
		"web_url": "https://git.example.com/acme/platform/fleet/-/merge_requests/7", "labels": []string{"liftlock"}, "sha": head1,
		"created_at": "2026-03-02T09:00:00.123Z", "updated_at": "2026-03-02T10:00:00.123Z", "detailed_merge_status": "mergeable",
		"source_branch": "liftlock/shop/qa/web", "target_branch": "main", "source_project_id": 7, "target_project_id": 7,
	}
	for k, v := range change {
		m[k] = v
	}
	return m
}
