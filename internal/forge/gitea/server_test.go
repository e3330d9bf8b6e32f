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

var fleet = forge.Repo{Owner: "acme", Name: "fleet"}

const (
	head1 = "1111111111111111111111111111111111111111"
	head2 = "2222222222222222222222222222222222222222"
	base1 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	base2 = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	land1 = "cccccccccccccccccccccccccccccccccccccccc"
)

// replay is a server with prepared answers, and what it was asked. What a real
// Gitea does is the contract's matter; this is for what it does seldom.
type replay struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	answers map[string][]answer // by "METHOD path", without /api/v1/ and the query; the last one repeats
	asked   []string            // "METHOD path?query body"
}

type answer struct {
	status int
	header map[string]string
	body   string
}

func newReplay(t *testing.T) (*replay, *Driver, *time.Time) {
	t.Helper()
	r := &replay{t: t, answers: map[string][]answer{}}
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

func (r *replay) on(call string, answers ...answer) { r.answers[call] = answers }

func (r *replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
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
	r.asked = append(r.asked, call+"?"+req.URL.RawQuery+" "+string(body))
	left := r.answers[call]
	if len(left) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found"}`)
		return
	}
	if len(left) > 1 {
		r.answers[call] = left[1:]
	}
	for k, v := range left[0].header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(left[0].status)
	fmt.Fprint(w, left[0].body)
}

// calls are the requests so far whose line contains the words.
func (r *replay) calls(words string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, a := range r.asked {
		if strings.Contains(a, words) {
			found = append(found, a)
		}
	}
	return found
}

func ok(v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return answer{status: http.StatusOK, body: string(body)}
}

func said(status int, words string) answer {
	return answer{status: status, body: fmt.Sprintf(`{"message":%q}`, words)}
}

type object = map[string]any

// pull is a pull request as Gitea shows it; change sets fields.
func pull(number int, head string, change object) object {
	p := object{
		"number": number, "state": "open", "title": "qa: web", "body": "b", "user": object{"login": "liftlock-bot"},
		"html_url": "https://git.example.com/acme/fleet/pulls/7", "labels": []object{{"id": 1, "name": "liftlock"}},
		"created_at": "2026-03-02T09:00:00Z", "updated_at": "2026-03-02T10:00:00Z", "mergeable": true, "merged": false,
		"head": object{"label": "liftlock/shop/qa/web", "ref": "liftlock/shop/qa/web", "sha": head, "repo_id": 10},
		"base": object{"label": "main", "ref": "main", "sha": base1, "repo_id": 10},
	}
	for k, v := range change {
		p[k] = v
	}
	return p
}

// pullRef is what the server knows under refs/pull/N/head, with a neighbour that
// the prefix matches too.
func pullRef(number int, head string) answer {
	return ok([]object{
		{"ref": fmt.Sprintf("refs/pull/%d/head", number), "object": object{"sha": head}},
		{"ref": fmt.Sprintf("refs/pull/%d/head-other", number), "object": object{"sha": base2}},
	})
}
