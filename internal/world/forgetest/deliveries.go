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

// failingReceiver is the receiver of a hook, which fails while it is down.
type failingReceiver struct {
	*fixture
	forgeType string
	url       string
	down      atomic.Bool
	events    chan *webhooks.Event
}

func newFailingReceiver(t *testing.T, s *fixture, forgeType string) *failingReceiver {
	t.Helper()
	const secret = "the secret"
	receiver, err := webhooks.New(forgeType, [][]byte{[]byte(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &failingReceiver{fixture: s, forgeType: forgeType, events: make(chan *webhooks.Event, 100)}
	server := httptest.NewServer(webhooks.Handler(receiver, func(_ context.Context, e *webhooks.Event) error {
		if f.down.Load() {
			return errors.New("down")
		}
		select {
		case f.events <- e:
		default: // more than anybody waits for
		}
		return nil
	}, nil))
	t.Cleanup(server.Close)
	f.url = server.URL + "/webhooks/hub"
	if _, err := s.Forge.EnsureHook(s.ctx, s.Repo, forge.Hook{URL: f.url, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	return f
}

// awaitPullEvent waits until an event of a pull request was delivered.
func (f *failingReceiver) awaitPullEvent(t *testing.T) {
	t.Helper()
	f.eventually(t, "the pull request is delivered", func() bool {
		for {
			select {
			case e := <-f.events:
				if e.Kind == webhooks.PullRequest {
					return true
				}
			default:
				return false
			}
		}
	})
}

// list reads what was missed since a cursor.
func (f *failingReceiver) list(t *testing.T, cursor, known string) forge.MissedDeliveries {
	t.Helper()
	out, err := f.Forge.MissedDeliveries(f.ctx, f.Repo, forge.DeliveryQuery{URL: f.url, Cursor: cursor,
		IsKnown: func(id string) bool { return id == known }})
	if err != nil {
		t.Fatalf("from %q: %v", cursor, err)
	}
	if out.Incomplete {
		t.Errorf("from %q it is incomplete: %+v", cursor, out)
	}
	return out
}

// findComment is the identity of the delivery about a comment on a pull request; empty where
// there is none.
func (f *failingReceiver) findComment(missed forge.MissedDeliveries, number int) string {
	for _, d := range missed.Deliveries {
		e, err := webhooks.Parse(f.forgeType, d.ID, d.Event, d.Payload)
		isComment := err == nil && e.Kind == webhooks.Comment
		if isComment && e.Number == number && e.Repo == f.Repo.String() && d.Answer != "" {
			return d.ID
		}
	}
	return ""
}

// testMissedDeliveries has the receiver of a hook fail for a while, and finds the failed deliveries
// in the forge's list. Each is there once, with the identity and the payload that a delivery has.
func testMissedDeliveries(forgeType string) func(t *testing.T, s *fixture) {
	return func(t *testing.T, s *fixture) {
		if s.AddHook == nil {
			t.Skip("this world has no webhooks over HTTP")
		}
		f := newFailingReceiver(t, s, forgeType)
		nobody := func(string) bool { return false }
		if s.NoDeliveries {
			_, err := s.Forge.MissedDeliveries(s.ctx, s.Repo, forge.DeliveryQuery{URL: f.url, IsKnown: nobody})
			wantKind(t, "list them", err, forge.ErrUnsupported)
			return
		}
		if !s.App {
			_, err := s.Forge.MissedDeliveries(s.ctx, s.Repo, forge.DeliveryQuery{URL: f.url + "2", IsKnown: nobody})
			wantKind(t, "of a hook that isn't there", err, forge.ErrNotFound)
		}

		pr := s.openPull(t, branchA)
		f.awaitPullEvent(t)
		before := f.list(t, "", "")
		if len(before.Deliveries) != 0 {
			t.Errorf("nothing failed, and it lists %+v", before.Deliveries)
		}
		f.down.Store(true)
		if _, err := s.Reviewer.CreateComment(s.ctx, s.Repo, pr.Number, "/liftlock status"); err != nil {
			t.Fatal(err)
		}
		var missed forge.MissedDeliveries
		id := ""
		s.eventually(t, "the comment is listed", func() bool {
			missed = f.list(t, before.Cursor, "")
			id = f.findComment(missed, pr.Number)
			return id != ""
		})
		count := func(m forge.MissedDeliveries) (n int) {
			for _, d := range m.Deliveries {
				if d.ID == id {
					n++
				}
			}
			return n
		}
		// A caller that lost the cursor finds it again; one that knows it, never.
		for _, cursor := range []string{before.Cursor, "", "nonsense"} {
			if n := count(f.list(t, cursor, "")); n != 1 {
				t.Errorf("from %q it is listed %d times", cursor, n)
			}
		}
		for _, cursor := range []string{before.Cursor, "", "nonsense", missed.Cursor} {
			if n := count(f.list(t, cursor, id)); n != 0 {
				t.Errorf("known, from %q, it is listed %d times", cursor, n)
			}
		}
	}
}
