package forgetest

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/webhooks"
)

// testMissedDeliveries has the receiver of a hook fail for a while, and finds in the forge's list
// what it was that failed: with the identity and the payload that a delivery has, and once.
func testMissedDeliveries(forgeType string) func(t *testing.T, s *fixture) {
	return func(t *testing.T, s *fixture) {
		if s.AddHook == nil {
			t.Skip("this world has no webhooks over HTTP")
		}
		const secret = "the secret"
		receiver, err := webhooks.New(forgeType, [][]byte{[]byte(secret)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var down atomic.Bool
		taken := make(chan *webhooks.Event, 100)
		server := httptest.NewServer(webhooks.Handler(receiver, func(_ context.Context, e *webhooks.Event) error {
			if down.Load() {
				return errors.New("down")
			}
			select {
			case taken <- e:
			default: // more than anybody waits for
			}
			return nil
		}, nil))
		t.Cleanup(server.Close)
		q := forge.DeliveryQuery{URL: server.URL + "/webhooks/hub", IsKnown: func(string) bool { return false }}
		if _, err := s.Forge.EnsureHook(s.ctx, s.Repo, forge.Hook{URL: q.URL, Secret: secret}); err != nil {
			t.Fatal(err)
		}
		if s.NoDeliveries {
			_, err := s.Forge.MissedDeliveries(s.ctx, s.Repo, q)
			wantKind(t, "list them", err, forge.ErrUnsupported)
			return
		}
		_, err = s.Forge.MissedDeliveries(s.ctx, s.Repo, forge.DeliveryQuery{URL: q.URL + "2", IsKnown: q.IsKnown})
		wantKind(t, "of a hook that isn't there", err, forge.ErrNotFound)

		list := func(what string) forge.MissedDeliveries {
			t.Helper()
			out, err := s.Forge.MissedDeliveries(s.ctx, s.Repo, q)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if out.Incomplete {
				t.Errorf("%s: it is incomplete: %+v", what, out)
			}
			return out
		}
		pr := s.openPull(t, branchA)
		s.eventually(t, "the pull request is delivered", func() bool {
			for {
				select {
				case e := <-taken:
					if e.Kind == webhooks.PullRequest {
						return true
					}
				default:
					return false
				}
			}
		})
		if got := list("nothing failed"); len(got.Deliveries) != 0 {
			t.Errorf("nothing failed, and it lists %+v", got.Deliveries)
		} else {
			q.Cursor = got.Cursor
		}
		down.Store(true)
		if _, err := s.Reviewer.CreateComment(s.ctx, s.Repo, pr.Number, "/liftlock status"); err != nil {
			t.Fatal(err)
		}
		var missed forge.MissedDeliveries
		id := ""
		s.eventually(t, "the comment is listed", func() bool {
			missed = list("the comment failed")
			for _, d := range missed.Deliveries {
				e, err := webhooks.Parse(forgeType, d.ID, d.Event, d.Payload)
				if err == nil && e.Kind == webhooks.Comment && e.Number == pr.Number && e.Repo == s.Repo.String() && d.Answer != "" {
					id = d.ID
				}
			}
			return id != ""
		})
		count := func(deliveries []forge.MissedDelivery) (n int) {
			for _, d := range deliveries {
				if d.ID == id {
					n++
				}
			}
			return n
		}
		if n := count(missed.Deliveries); n != 1 {
			t.Errorf("it is listed %d times", n)
		}
		if n := count(list("again").Deliveries); n != 1 {
			t.Errorf("again from where it was, it is listed %d times", n)
		}
		known := q
		known.IsKnown = func(delivery string) bool { return delivery == id }
		for _, cursor := range []string{"", "nonsense", q.Cursor, missed.Cursor} {
			known.Cursor = cursor
			if got, err := s.Forge.MissedDeliveries(s.ctx, s.Repo, known); err != nil || count(got.Deliveries) != 0 {
				t.Errorf("known, from %q: %+v, %v", cursor, got.Deliveries, err)
			}
		}
		q.Cursor = "" // whoever lost it finds it again
		if n := count(list("from the beginning").Deliveries); n != 1 {
			t.Errorf("from the beginning, it is listed %d times", n)
		}
	}
}
