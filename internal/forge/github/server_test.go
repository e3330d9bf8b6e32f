package github

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

var testRepoName = forge.Repo{Owner: "acme", Name: "fleet"}

const (
	head1 = "1111111111111111111111111111111111111111"
	head2 = "2222222222222222222222222222222222222222"
	land1 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// replayServer is a server with prepared answers, and what it was asked.
type replayServer struct {
	t         *testing.T
	server    *httptest.Server
	mu        sync.Mutex
	responses map[string][]response // by "METHOD path", without /api/v3/ and the query; the last one repeats
	requests  []string              // "METHOD path?query body"
}

type response struct {
	status int
	header map[string]string
	body   string
}

func newReplayServer(t *testing.T) (*replayServer, *Driver) {
	t.Helper()
	r := &replayServer{t: t, responses: map[string][]response{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	d, err := New(Options{URL: r.server.URL + "/api/v3", Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	return r, d
}

func (r *replayServer) on(call string, answers ...response) { r.responses[call] = answers }

func (r *replayServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := req.Header.Get("Authorization"); got != "Bearer t0ken" {
		r.t.Errorf("Authorization %q", got)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	path := strings.TrimPrefix(req.URL.EscapedPath(), "/api/v3/")
	call := req.Method + " " + path
	full := call
	if req.URL.RawQuery != "" {
		full += "?" + req.URL.RawQuery
	}
	if len(body) > 0 {
		full += " " + strings.TrimSpace(string(body))
	}
	r.requests = append(r.requests, full)
	left := r.responses[call]
	if len(left) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found"}`)
		return
	}
	if len(left) > 1 {
		r.responses[call] = left[1:]
	}
	for k, v := range left[0].header {
		w.Header().Set(k, strings.ReplaceAll(v, "SERVER", r.server.URL))
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

func message422(words string) response {
	return response{status: 422, body: fmt.Sprintf(`{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":%q}]}`, words)}
}

type jsonObject = map[string]any

// pullJSON is a pull request as GitHub shows it; change sets fields.
func pullJSON(number int, head string, change jsonObject) jsonObject {
	repo := jsonObject{"full_name": "acme/fleet"}
	p := jsonObject{
		"number": number, "state": "open", "title": "qa: web", "body": "b", "user": jsonObject{"login": "liftlock-bot"},
		"html_url": "https://github.com/acme/fleet/pull/1", "labels": []jsonObject{{"name": "liftlock"}, {"name": "env/qa"}},
		"created_at": "2026-03-02T09:00:00Z", "updated_at": "2026-03-02T10:00:00Z",
		"head": jsonObject{"ref": "liftlock/shop/qa/web", "sha": head, "repo": repo},
		"base": jsonObject{"ref": "main", "repo": repo},
	}
	for k, v := range change {
		p[k] = v
	}
	return p
}
