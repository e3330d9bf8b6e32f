package gitea

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

var testRepoName = forge.Repo{Owner: "acme", Name: "fleet"}

const (
	head1 = "1111111111111111111111111111111111111111"
	head2 = "2222222222222222222222222222222222222222"
	base1 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	base2 = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	land1 = "cccccccccccccccccccccccccccccccccccccccc"
)

// replayServer is a server with prepared answers, and what it was asked. The contract holds a real
// Gitea's behaviour; this is for its rare answers.
type replayServer struct {
	t         *testing.T
	server    *httptest.Server
	mu        sync.Mutex
	responses map[string][]response // by "METHOD path", without /api/v1/ and the query; the last one repeats
	requests  []string              // "METHOD path?query body"
}

type response struct {
	status int
	header map[string]string
	body   string
}

func newReplayServer(t *testing.T) (*replayServer, *Driver, *time.Time) {
	t.Helper()
	r := &replayServer{t: t, responses: map[string][]response{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	d, err := New(Options{URL: r.server.URL + "/api/v1/", Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	d.now = func() time.Time { return now }
	return r, d, &now
}

func (r *replayServer) on(call string, answers ...response) { r.responses[call] = answers }

func (r *replayServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := req.Header.Get("Authorization"); got != "token t0ken" {
		r.t.Errorf("Authorization %q", got)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	call := req.Method + " " + strings.TrimPrefix(req.URL.EscapedPath(), "/api/v1/")
	r.requests = append(r.requests, call+"?"+req.URL.RawQuery+" "+string(body))
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

// pullJSON is a pull request as Gitea shows it; change sets fields.
func pullJSON(number int, head string, change jsonObject) jsonObject {
	p := jsonObject{
		"number": number, "state": "open", "title": "qa: web", "body": "b", "user": jsonObject{"login": "liftlock-bot"},
		"html_url": "https://git.example.com/acme/fleet/pulls/7", "labels": []jsonObject{{"id": 1, "name": "liftlock"}},
		"created_at": "2026-03-02T09:00:00Z", "updated_at": "2026-03-02T10:00:00Z", "mergeable": true, "merged": false,
		"head": jsonObject{"label": "liftlock/shop/qa/web", "ref": "liftlock/shop/qa/web", "sha": head, "repo_id": 10},
		"base": jsonObject{"label": "main", "ref": "main", "sha": base1, "repo_id": 10},
	}
	for k, v := range change {
		p[k] = v
	}
	return p
}

// refJSON is what the server knows under refs/pull/N/head, with a neighbour that
// the prefix matches too.
func refJSON(number int, head string) response {
	return okResponse([]jsonObject{
		{"ref": fmt.Sprintf("refs/pull/%d/head", number), "object": jsonObject{"sha": head}},
		{"ref": fmt.Sprintf("refs/pull/%d/head-other", number), "object": jsonObject{"sha": base2}},
	})
}
