package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// gitlabHarness is a GitLab with a project, and its people: ada maintains it, grace and the
// bot develop, linus only reads, mallory is nobody here.
type gitlabHarness struct {
	*Forge
	t *testing.T

	mu        sync.Mutex
	now       time.Time
	exchanges []Exchange
	received  []receivedHook
	answer    int // of the receiver; 0: 200
	receiver  *httptest.Server
}

type receivedHook struct {
	header http.Header
	body   []byte
}

func newGitLabHarness(t *testing.T, o RepoOptions, change func(*ForgeOptions)) *gitlabHarness {
	t.Helper()
	w := &gitlabHarness{t: t, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	forge := ForgeOptions{Dir: t.TempDir(), Face: GitLab, WholeSeconds: true, Now: w.clock, Record: func(x Exchange) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exchanges = append(w.exchanges, x)
	}}
	if change != nil {
		change(&forge)
	}
	f, err := NewForge(forge)
	if err != nil {
		t.Fatal(err)
	}
	w.Forge = f
	w.receiver = httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(func() {
		w.receiver.Close()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, login := range []string{"ada", "grace", "linus", "mallory"} {
		w.must(f.AddUser(login, login+"-token", UserOptions{}))
	}
	w.must(f.AddUser("liftlock", "liftlock-token", UserOptions{Bot: true}))
	o.Author, o.Files = "ada", map[string]string{"web/dev.yaml": "tag: 1\n", "web/qa.yaml": "tag: 1\n"}
	o.Access = map[string]Permission{"ada": Admin, "grace": Write, "liftlock": Write, "linus": Read}
	w.must(f.CreateRepo("acme/ops/apps", o))
	return w
}

func (g *gitlabHarness) clock() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

func (g *gitlabHarness) pass(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = g.now.Add(d)
}

func (g *gitlabHarness) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.t.Error(err)
	}
	g.received = append(g.received, receivedHook{header: r.Header, body: body})
	if g.answer != 0 {
		rw.WriteHeader(g.answer)
	}
}

// hooksSoFar waits for the deliveries under way and gives what was received.
func (g *gitlabHarness) hooksSoFar() []receivedHook {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g.must(g.WaitIdle(ctx))
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.received)
}

func (g *gitlabHarness) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

const gitlabTestProject = "/projects/acme%2Fops%2Fapps"

// send makes a call as somebody; a body is sent as JSON.
func (g *gitlabHarness) send(login, method, path string, body map[string]any, header ...string) (*http.Response, []byte) {
	g.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		g.must(err)
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, g.URL()+gitlabAPI+path, in)
	g.must(err)
	req.Header.Set("PRIVATE-TOKEN", login+"-token")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	g.must(err)
	raw, err := io.ReadAll(res.Body)
	g.must(err)
	g.must(res.Body.Close())
	return res, raw
}

// call makes a call and wants a status; it gives the answer.
func (g *gitlabHarness) call(login, method, path string, body map[string]any, want int) map[string]any {
	g.t.Helper()
	res, raw := g.send(login, method, path, body)
	if res.StatusCode != want {
		g.t.Fatalf("%s: %s %s answers %d, want %d: %s", login, method, path, res.StatusCode, want, raw)
	}
	var out map[string]any
	var list []map[string]any
	switch {
	case len(raw) == 0:
	case raw[0] == '[':
		g.must(json.Unmarshal(raw, &list))
		out = map[string]any{"list": list}
	default:
		g.must(json.Unmarshal(raw, &out))
	}
	return out
}

func listOf(m map[string]any) []map[string]any { l, _ := m["list"].([]map[string]any); return l }

// branch makes a branch with one change.
func (g *gitlabHarness) branch(name string) string {
	g.t.Helper()
	sha, err := g.CommitAs("acme/ops/apps", "liftlock", name, "change "+name, map[string]string{name + ".yaml": name + "\n"})
	g.must(err)
	return sha
}

// open opens a merge request from a fresh branch and gives its path.
func (g *gitlabHarness) open(branch string, more map[string]any) string {
	g.t.Helper()
	g.branch(branch)
	body := map[string]any{"source_branch": branch, "target_branch": "main", "title": "T " + branch}
	maps.Copy(body, more)
	made := g.call("liftlock", "POST", gitlabTestProject+"/merge_requests", body, 201)
	return fmt.Sprintf("%s/merge_requests/%v", gitlabTestProject, made["iid"])
}

// status is a merge request's detailed_merge_status, once it has been worked out.
func (g *gitlabHarness) status(mr string) string {
	g.t.Helper()
	for range 4 {
		s := g.call("liftlock", "GET", mr, nil, 200)["detailed_merge_status"]
		if s != "checking" && s != "unchecked" && s != "approvals_syncing" {
			return fmt.Sprint(s)
		}
	}
	return "never worked out"
}
