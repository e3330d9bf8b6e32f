package emulator_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestDeliveries holds what GitHub shows of a hook's deliveries: those of that hook, newest first,
// by pages that nothing moves. The payload comes only with a single one, and another attempt is
// another delivery with the same identity.
func TestDeliveries(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	r, other := newHookReceiver(t), newHookReceiver(t)
	w.must(w.AddHook(repo, "ada", emulator.Hook{URL: r.URL, Secret: secret, Active: true}))
	w.must(w.AddHook(repo, "ada", emulator.Hook{URL: other.URL, Secret: secret, Active: true}))
	n := w.openPullRequest("topic")
	w.waitIdle()
	r.Close()
	for i := range 4 {
		w.must(w.AddLabel(repo, n, "ada", string(rune('a'+i))))
	}
	w.waitIdle()

	c := w.clientOf("liftlock").Repositories
	hooks, _, err := c.ListHooks(w.ctx, "acme", "fleet", nil)
	w.must(err)
	hook := hooks[slices.IndexFunc(hooks, func(h *github.Hook) bool { return h.Config.GetURL() == r.URL })].GetID()
	var all []*github.HookDelivery
	for o := (&github.ListCursorOptions{PerPage: 2}); ; {
		page, resp, err := c.ListHookDeliveries(w.ctx, "acme", "fleet", hook, o)
		w.must(err)
		if len(page) > 2 {
			t.Fatalf("a page of %d", len(page))
		}
		all = append(all, page...)
		if len(all) == 2 { // what comes meanwhile
			w.must(w.AddLabel(repo, n, "ada", "late"))
			w.waitIdle()
		}
		if o.Cursor = resp.Cursor; o.Cursor == "" {
			break
		}
	}
	var got []string
	for i, d := range all {
		got = append(got, fmt.Sprintf("%s %d", d.GetEvent(), d.GetStatusCode()))
		if d.Request != nil || d.GetGUID() == "" || d.GetRepositoryID() == 0 || i > 0 && all[i-1].GetID() <= d.GetID() {
			t.Errorf("in the list it is %v", d)
		}
	}
	want := []string{"pull_request 0", "pull_request 0", "pull_request 0", "pull_request 0", "pull_request 200", "push 200", "ping 200"}
	if !slices.Equal(got, want) && !slices.Equal(got, want[:6]) {
		t.Errorf("deliveries are %q, want %q", got, want)
	}
	one, _, err := c.GetHookDelivery(w.ctx, "acme", "fleet", hook, all[0].GetID())
	w.must(err)
	payload, err := one.ParseRequestPayload()
	w.must(err)
	if e, ok := payload.(*github.PullRequestEvent); !ok || e.GetNumber() != n || e.GetLabel().GetName() != "d" {
		t.Errorf("the newest is %v", payload)
	}
	if _, resp, err := c.GetHookDelivery(w.ctx, "acme", "fleet", hook, 1<<40); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("one that isn't: %v", err)
	}
	_, resp, err := c.RedeliverHookDelivery(w.ctx, "acme", "fleet", hook, all[0].GetID())
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("another attempt: %v", err)
	}
	w.waitIdle()
	page, _, err := c.ListHookDeliveries(w.ctx, "acme", "fleet", hook, &github.ListCursorOptions{PerPage: 1})
	w.must(err)
	if len(page) != 1 || !page[0].GetRedelivery() || page[0].GetGUID() != all[0].GetGUID() || page[0].GetID() <= all[0].GetID() || all[0].GetRedelivery() {
		t.Errorf("after another attempt the newest is %v", page)
	}
	if _, resp, err := c.ListHookDeliveries(w.ctx, "acme", "fleet", hook, &github.ListCursorOptions{Cursor: "2"}); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a cursor that nobody gave: %v", err)
	}
}
