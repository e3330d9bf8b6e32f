package store

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// newBrowserSession is a session that lasts for an hour.
func (ts *testStore) newBrowserSession(id, subject string) BrowserSession {
	return BrowserSession{ID: id, Token: "token " + id, Attempt: "attempt " + id, Subject: subject, Name: "Ada", Role: "operator", Groups: []string{"sre", "on call"}, Accounts: map[string]string{"hub": "ada-l"}, Client: "10.0.0.7",
		StartedAt: ts.Now(), SeenAt: ts.Now(), ExpiresAt: ts.Now().Add(time.Hour)}
}

func sessionIDs(all []BrowserSession) string {
	ids := make([]string, 0, len(all))
	for _, b := range all {
		ids = append(ids, b.ID)
	}
	return strings.Join(ids, " ")
}

func TestBrowserSessions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		first := w.newBrowserSession("1", "ada")
		if !value(w.AddBrowserSession(ctx, first))(t) {
			t.Fatal("the first is not added")
		}
		assertEqual(t, found(w.BrowserSession(ctx, first.Token))(t), first)
		if _, ok, err := w.BrowserSession(ctx, "token 2"); ok || err != nil {
			t.Fatalf("a token of nobody's: %t, %v", ok, err)
		}
		w.Advance(time.Minute)
		second := w.newBrowserSession("2", "eve")
		second.Groups, second.Accounts = nil, nil
		value(w.AddBrowserSession(ctx, second))(t)
		list := func(subject string, since time.Time) string {
			t.Helper()
			return sessionIDs(value(w.BrowserSessions(ctx, subject, since))(t))
		}
		assertEqual(t, list("", start), "2 1")
		assertEqual(t, list("ada", start), "1")
		assertEqual(t, list("", w.Now()), "2")
		must(t, w.SeeBrowserSession(ctx, "1", w.Now()))
		must(t, w.SeeBrowserSession(ctx, "2", start)) // it was seen later
		assertEqual(t, list("", w.Now()), "2 1")
		w.Advance(59 * time.Minute) // the first's hour
		assertEqual(t, list("", start), "2")
		found(w.BrowserSession(ctx, first.Token))(t)
		assertEqual(t, value(w.Prune(ctx, first.ExpiresAt.Add(time.Second)))(t), 1)
		if _, ok, _ := w.BrowserSession(ctx, first.Token); ok {
			t.Fatal("what expired is there after it was pruned")
		}
	})
}

// One login makes one session, also when its answer is played again after the logout.
func TestLoginMakesOneBrowserSession(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		first := w.newBrowserSession("1", "ada")
		value(w.AddBrowserSession(ctx, first))(t)
		if !value(w.EndBrowserSession(ctx, "1"))(t) || value(w.EndBrowserSession(ctx, "1"))(t) || value(w.EndBrowserSession(ctx, "none"))(t) {
			t.Fatal("a session is ended once")
		}
		for what, change := range map[string]func(*BrowserSession){
			"attempt": func(b *BrowserSession) { b.Attempt = first.Attempt },
			"token":   func(b *BrowserSession) { b.Token = first.Token },
			"ID":      func(b *BrowserSession) { b.ID = first.ID },
		} {
			again := w.newBrowserSession("2", "ada")
			change(&again)
			if value(w.AddBrowserSession(ctx, again))(t) {
				t.Errorf("a second session with its %s is added", what)
			}
		}
		assertEqual(t, sessionIDs(value(w.BrowserSessions(ctx, "", start))(t)), "")
		assertEqual(t, found(w.BrowserSession(ctx, first.Token))(t).EndedAt, w.Now())
	})
}

func TestBrowserSessionIsRotated(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		first := w.newBrowserSession("1", "ada")
		value(w.AddBrowserSession(ctx, first))(t)
		if !value(w.RotateBrowserSession(ctx, "1", first.Token, "next", "viewer"))(t) {
			t.Fatal("it isn't rotated")
		}
		if value(w.RotateBrowserSession(ctx, "1", first.Token, "other", "breakglass"))(t) {
			t.Fatal("it is rotated by a token that it has no longer")
		}
		if _, ok, _ := w.BrowserSession(ctx, first.Token); ok {
			t.Fatal("the old token is good")
		}
		if got := found(w.BrowserSession(ctx, "next"))(t); got.ID != "1" || got.Role != "viewer" {
			t.Fatalf("the new token is of %s with the role %s", got.ID, got.Role)
		}
		value(w.EndBrowserSession(ctx, "1"))(t)
		if value(w.RotateBrowserSession(ctx, "1", "next", "third", "viewer"))(t) {
			t.Fatal("one that is ended is rotated")
		}
		must(t, w.SeeBrowserSession(ctx, "1", w.Now().Add(time.Minute)))
		if got := found(w.BrowserSession(ctx, "next"))(t); !got.SeenAt.Equal(first.SeenAt) {
			t.Fatal("one that is ended was seen")
		}
	})
}

func TestBrowserSessionIsChecked(t *testing.T) {
	w := onMemory(t)
	for what, change := range map[string]func(*BrowserSession){
		"no ID": func(b *BrowserSession) { b.ID = "" }, "no token": func(b *BrowserSession) { b.Token = "" }, "no attempt": func(b *BrowserSession) { b.Attempt = "" },
		"no subject": func(b *BrowserSession) { b.Subject = "" }, "a broken group": func(b *BrowserSession) { b.Groups = []string{"ok", "\xff"} }, "no end": func(b *BrowserSession) { b.ExpiresAt = time.Time{} },
	} {
		b := w.newBrowserSession("1", "ada")
		change(&b)
		if _, err := w.AddBrowserSession(ctx, b); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
