package forgetest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/webhooks"
)

func testHook(t *testing.T, s *fixture) {
	if s.AddHook == nil {
		t.Skip("this world has no webhooks over HTTP")
	}
	if s.App {
		t.Skip("the one that it has is no repository's")
	}
	const ours, other = "http://127.0.0.1:9/webhooks/hub", "http://127.0.0.1:9/ci"
	s.AddHook(t, Hook{URL: other, Events: []string{"push"}, Active: true})
	ensure := func(what, url string, want bool) {
		t.Helper()
		changed, err := s.Forge.EnsureHook(s.ctx, s.Repo, forge.Hook{URL: url, Secret: "s3cret"})
		if err != nil || changed != want {
			t.Fatalf("%s: changed %v, %v; want %v", what, changed, err, want)
		}
		byURL := map[string][]Hook{}
		for _, h := range s.Hooks(t) {
			byURL[h.URL] = append(byURL[h.URL], h)
		}
		if found := byURL[url]; len(found) != 1 || !found[0].Active || len(found[0].Events) < 4 {
			t.Errorf("%s: our hooks are %+v", what, found)
		}
		if found := byURL[other]; len(found) != 1 || len(found[0].Events) != 1 || !found[0].Active {
			t.Errorf("%s: the other hooks are %+v", what, found)
		}
	}
	ensure("none is there", ours, true)
	ensure("it is there", ours, false)

	s.AddHook(t, Hook{URL: ours + "2", Events: []string{"push"}, Active: true})
	ensure("events are missing", ours+"2", true)
	ensure("it was repaired", ours+"2", false)

	s.AddHook(t, Hook{URL: ours + "3", Events: []string{"push"}, Active: false})
	ensure("it is switched off", ours+"3", true)
	ensure("it was switched on", ours+"3", false)

	if n := len(s.Hooks(t)); n != 4 {
		t.Errorf("there are %d hooks, want 4", n)
	}
}

// testHookDelivers changes a hook's secret and receives deliveries that are signed
// with it, through the real receiver.
func testHookDelivers(forgeType string) func(t *testing.T, s *fixture) {
	return func(t *testing.T, s *fixture) {
		if s.AddHook == nil {
			t.Skip("this world has no webhooks over HTTP")
		}
		events := make(chan *webhooks.Event, 100)
		receiver, err := webhooks.New(forgeType, [][]byte{[]byte("the new secret")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(webhooks.Handler(receiver, func(_ context.Context, e *webhooks.Event) error {
			select {
			case events <- e:
			default: // more than anybody waits for
			}
			return nil
		}, nil))
		t.Cleanup(server.Close)
		// The hook was made by a process before, with another secret.
		for _, secret := range []string{"the old secret", "the new secret"} {
			if changed, err := s.Forge.EnsureHook(s.ctx, s.Repo, forge.Hook{URL: server.URL + "/webhooks/hub",
				Secret: secret}); err != nil || !changed {
				t.Fatalf("with %s: changed %v, %v", secret, changed, err)
			}
		}
		pr := s.openPull(t, branchA)
		if _, err := s.Reviewer.CreateComment(s.ctx, s.Repo, pr.Number, "/liftlock status"); err != nil {
			t.Fatal(err)
		}
		s.Review(t, pr.Number, Approve, pr.Head)
		if err := s.Forge.SetStatus(s.ctx, s.Repo, pr.Head, forge.Status{Context: "ci", State: forge.StatusSuccess}); err != nil {
			t.Fatal(err)
		}
		missing := map[string]func(*webhooks.Event) bool{
			"the push": func(e *webhooks.Event) bool {
				return e.Kind == webhooks.Push && e.Branch == branchA && e.After == pr.Head
			},
			"the pull request": func(e *webhooks.Event) bool {
				return e.Kind == webhooks.PullRequest && e.Number == pr.Number && e.HeadBranch == branchA && e.Commit == pr.Head
			},
			"the comment": func(e *webhooks.Event) bool { return e.Kind == webhooks.Comment && e.Number == pr.Number },
			"the review":  func(e *webhooks.Event) bool { return e.Kind == webhooks.Review && e.Number == pr.Number },
			"the status": func(e *webhooks.Event) bool {
				return e.Kind == webhooks.Status && e.Commit == pr.Head && e.Context == "ci"
			},
		}
		end := time.NewTimer(s.timeout)
		defer end.Stop()
		for len(missing) > 0 {
			select {
			case e := <-events:
				if e.Repo != s.Repo.String() || e.Delivery == "" || e.Fork {
					t.Errorf("got %+v", e)
				}
				for what, is := range missing {
					if is(e) {
						delete(missing, what)
					}
				}
			case <-end.C:
				for what := range missing {
					t.Errorf("%s was not delivered within %v", what, s.timeout)
				}
				return
			}
		}
	}
}
