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

func (w *gitlabHarness) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *gitlabHarness) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *gitlabHarness) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.t.Error(err)
	}
	w.received = append(w.received, receivedHook{header: r.Header, body: body})
	if w.answer != 0 {
		rw.WriteHeader(w.answer)
	}
}

// hooksSoFar waits for the deliveries under way and gives what was received.
func (w *gitlabHarness) hooksSoFar() []receivedHook {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w.must(w.WaitIdle(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

func (w *gitlabHarness) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

const gitlabTestProject = "/projects/acme%2Fops%2Fapps"

// send makes a call as somebody; a body is sent as JSON.
func (w *gitlabHarness) send(login, method, path string, body map[string]any, header ...string) (*http.Response, []byte) {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		w.must(err)
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, w.URL()+gitlabAPI+path, in)
	w.must(err)
	req.Header.Set("PRIVATE-TOKEN", login+"-token")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	w.must(err)
	raw, err := io.ReadAll(res.Body)
	w.must(err)
	w.must(res.Body.Close())
	return res, raw
}

// call makes a call and wants a status; it gives the answer.
func (w *gitlabHarness) call(login, method, path string, body map[string]any, want int) map[string]any {
	w.t.Helper()
	res, raw := w.send(login, method, path, body)
	if res.StatusCode != want {
		w.t.Fatalf("%s: %s %s answers %d, want %d: %s", login, method, path, res.StatusCode, want, raw)
	}
	var out map[string]any
	var list []map[string]any
	switch {
	case len(raw) == 0:
	case raw[0] == '[':
		w.must(json.Unmarshal(raw, &list))
		out = map[string]any{"list": list}
	default:
		w.must(json.Unmarshal(raw, &out))
	}
	return out
}

func listOf(m map[string]any) []map[string]any { l, _ := m["list"].([]map[string]any); return l }

// branch makes a branch with one change.
func (w *gitlabHarness) branch(name string) string {
	w.t.Helper()
	sha, err := w.CommitAs("acme/ops/apps", "liftlock", name, "change "+name, map[string]string{name + ".yaml": name + "\n"})
	w.must(err)
	return sha
}

// open opens a merge request from a fresh branch and gives its path.
func (w *gitlabHarness) open(branch string, more map[string]any) string {
	w.t.Helper()
	w.branch(branch)
	body := map[string]any{"source_branch": branch, "target_branch": "main", "title": "T " + branch}
	maps.Copy(body, more)
	made := w.call("liftlock", "POST", gitlabTestProject+"/merge_requests", body, 201)
	return fmt.Sprintf("%s/merge_requests/%v", gitlabTestProject, made["iid"])
}

// status is a merge request's detailed_merge_status, once it has been worked out.
func (w *gitlabHarness) status(mr string) string {
	w.t.Helper()
	for range 4 {
		s := w.call("liftlock", "GET", mr, nil, 200)["detailed_merge_status"]
		if s != "checking" && s != "unchecked" && s != "approvals_syncing" {
			return fmt.Sprint(s)
		}
	}
	return "never worked out"
}
