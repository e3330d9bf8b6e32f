package emulator_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

const secret = "a secret of hooks"

// hookReceiver takes webhooks and keeps those whose signature is right.
type hookReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	events []string // "event action"
	ids    []string
	parsed []any
	bad    int
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil || q.Header.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			r.bad++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		event, err := github.ParseWebHook(github.WebHookType(q), body)
		if err != nil {
			r.bad++
			return
		}
		name := github.WebHookType(q)
		if a, ok := event.(interface{ GetAction() string }); ok && a.GetAction() != "" {
			name += " " + a.GetAction()
		}
		r.events, r.ids, r.parsed = append(r.events, name), append(r.ids, github.DeliveryID(q)), append(r.parsed, event)
	}))
	t.Cleanup(r.Close)
	return r
}

func (h *hookReceiver) takeEvents() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

func (f *forgeHarness) waitIdle() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 20*time.Second)
	defer cancel()
	f.must(f.WaitIdle(ctx))
}

func TestHooks_everyEventArrivesSigned(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	r := newHookReceiver(t)
	hook, _, err := w.clientOf("liftlock").Repositories.CreateHook(w.ctx, "acme", "fleet", &github.Hook{
		Config: &github.HookConfig{URL: &r.URL, ContentType: github.String("json"), Secret: github.String(secret)}, Events: []string{"*"},
	})
	w.must(err)
	if hook.GetConfig().GetSecret() != "********" {
		t.Errorf("the hook shows its secret: %v", hook)
	}
	n := w.openPullRequest("topic")
	w.must(w.AddLabel(repo, n, "ada", "x"))
	w.must(w.RemoveLabel(repo, n, "ada", "x"))
	_, err = w.Comment(repo, n, "ada", "/liftlock help")
	w.must(err)
	w.must(w.Approve(repo, n, "ada"))
	w.must(w.SetStatus(repo, "grace", branchHead(t, w, "topic"), emulator.Status{Context: "ci", State: "success"}))
	w.commitFiles("topic", map[string]string{"more": "1"})
	w.must(w.ClosePull(repo, n, "ada"))
	w.must(w.ReopenPull(repo, n, "ada"))
	_, err = w.MergePull(repo, n, "ada", "merge")
	w.must(err)
	w.must(w.SetBranch(repo, "ada", "topic", ""))
	w.waitIdle()
	want := []string{
		"ping", "push", "pull_request opened", "pull_request labeled", "pull_request unlabeled", "issue_comment created",
		"pull_request_review submitted", "status", "push", "pull_request synchronize", "pull_request closed", "pull_request reopened",
		"pull_request closed", "push", "push",
	}
	got := r.takeEvents()
	for i, e := range got { // a push has an action in go-github's type, none in GitHub's payload
		got[i] = strings.TrimSpace(e)
	}
	if !slices.Equal(got, want) {
		t.Errorf("events:\n got %q\nwant %q", got, want)
	}
	push := r.parsed[1].(*github.PushEvent)
	if push.GetRef() != "refs/heads/topic" || !push.GetCreated() || push.GetBefore() != strings.Repeat("0", 40) ||
		len(push.Commits) != 1 || push.Commits[0].Modified[0] != "web/qa.yaml" || push.GetRepo().GetFullName() != repo || push.GetSender().GetLogin() != "grace" {
		t.Errorf("push: %v", push)
	}
	comment := r.parsed[5].(*github.IssueCommentEvent)
	if !comment.GetIssue().IsPullRequest() || comment.GetIssue().GetNumber() != n || comment.GetComment().GetBody() != "/liftlock help" {
		t.Errorf("comment: %v", comment)
	}
	if last := r.parsed[len(r.parsed)-1].(*github.PushEvent); !last.GetDeleted() {
		t.Errorf("deletion: %v", last)
	}
	if r.bad > 0 {
		t.Errorf("%d deliveries were not signed or not readable", r.bad)
	}
}

func TestHooks_editing(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	r := newHookReceiver(t)
	c := w.clientOf("liftlock").Repositories
	create := func() (*github.Hook, error) {
		h, _, err := c.CreateHook(w.ctx, "acme", "fleet", &github.Hook{
			Config: &github.HookConfig{URL: &r.URL, ContentType: github.String("json"), Secret: github.String(secret)}, Events: []string{"push"}})
		return h, err
	}
	h, err := create()
	w.must(err)
	_, err = create()
	wantRefused(t, err, 422, "Hook already exists on this repository")
	_, _, err = w.clientOf("grace").Repositories.ListHooks(w.ctx, "acme", "fleet", nil)
	wantRefused(t, err, 404, "Not Found")

	// A configuration without the secret takes the secret away.
	edited, _, err := c.EditHook(w.ctx, "acme", "fleet", h.GetID(), &github.Hook{
		Config: &github.HookConfig{URL: &r.URL, ContentType: github.String("json")}, Events: []string{"status", "push"}})
	w.must(err)
	if edited.GetConfig().Secret != nil || len(edited.Events) != 2 {
		t.Errorf("edited: %v", edited)
	}
	_, err = c.PingHook(w.ctx, "acme", "fleet", h.GetID())
	w.must(err)
	w.waitIdle()
	if r.bad != 1 {
		t.Errorf("%d unsigned deliveries, want the one ping", r.bad)
	}
	got, _, err := c.GetHook(w.ctx, "acme", "fleet", h.GetID())
	w.must(err)
	if got.LastResponse["status"] != "misconfigured" {
		t.Errorf("last answer: %v", got.LastResponse)
	}
	_, err = c.DeleteHook(w.ctx, "acme", "fleet", h.GetID())
	w.must(err)
	all, _, err := c.ListHooks(w.ctx, "acme", "fleet", nil)
	w.must(err)
	if len(all) != 0 {
		t.Errorf("hooks: %v", all)
	}
}

func TestHooks_unreliable(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	r := newHookReceiver(t)
	w.must(w.AddHook(repo, "ada", emulator.Hook{URL: r.URL, Secret: secret, Active: true}))
	w.waitIdle()
	r.takeEvents()

	w.SetDeliveryOptions(emulator.DeliveryOptions{Drop: true})
	n := w.openPullRequest("topic")
	w.waitIdle()
	if got := r.takeEvents(); len(got) != 0 {
		t.Errorf("dropped, but arrived: %v", got)
	}
	w.SetDeliveryOptions(emulator.DeliveryOptions{Times: 3, Shuffle: true, Seed: 7})
	for i := range 4 {
		w.must(w.AddLabel(repo, n, "ada", string(rune('a'+i))))
	}
	w.waitIdle()
	counts := map[string]int{}
	for _, id := range r.ids[1:] {
		counts[id]++
	}
	if got := r.takeEvents(); len(got) != 12 || len(counts) != 4 {
		t.Errorf("%d deliveries of %d events, want 12 of 4", len(got), len(counts))
	}
	inOrder := true
	for i := 1; i < 12; i++ {
		inOrder = inOrder && (i%3 == 0 || r.ids[i+1] == r.ids[i])
	}
	if inOrder {
		t.Error("nothing was shuffled")
	}
	w.SetDeliveryOptions(emulator.DeliveryOptions{})
	w.must(w.Redeliver(r.ids[1]))
	w.waitIdle()
	if got := r.takeEvents(); len(got) != 1 || r.ids[len(r.ids)-1] != r.ids[1] {
		t.Errorf("redelivered: %v", got)
	}
	r.Close()
	w.must(w.AddLabel(repo, n, "ada", "late"))
	w.waitIdle()
	all := w.Deliveries()
	if last := all[len(all)-1]; last.Err == "" || last.Status != 0 {
		t.Errorf("to a receiver that is gone: %+v", last)
	}
}
