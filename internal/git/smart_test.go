package git

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openSmart opens a mirror of a served repository that has been fetched once.
func openSmart(t *testing.T) (*origin, *gitServer, *Mirror) {
	t.Helper()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	s := serveGit(t, o)
	m := open(t, Options{URL: s.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword)})
	mustFetch(t, m)
	s.takeSeen()
	return o, s, m
}

// takeSeen gives the requests since the last call.
func (s *gitServer) takeSeen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	for i := range seen {
		seen[i] = seen[i][:strings.Index(seen[i], " ")] + " " + seen[i][strings.LastIndex(seen[i], "/")+1:]
	}
	return seen
}

// TestRequests counts what each call asks of the remote: a fetch two requests where something
// moved and one otherwise, a push one, where git's programs would make three, two and two.
func TestRequests(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o, s, m := openSmart(t)
	upload, receive := "POST git-upload-pack", "POST git-receive-pack"
	expect := func(what string, want ...string) {
		t.Helper()
		if seen := s.takeSeen(); !slices.Equal(seen, want) {
			t.Errorf("%s: %q, want %q", what, seen, want)
		}
	}
	if changes := mustFetch(t, m); len(changes) > 0 {
		t.Errorf("changes without any: %v", changes)
	}
	expect("nothing moved", upload)
	two := o.commit("main", "Two", map[string]string{"a": "2"})
	aside := o.commit("aside", "Aside", map[string]string{"b": "2"})
	if changes := mustFetch(t, m); len(changes) != 2 || changes[0].New != aside || changes[1].New != two {
		t.Errorf("got %v", changes)
	}
	expect("two branches moved", upload, upload)
	git(t, o.bare, "update-ref", "refs/heads/copy", two)
	git(t, o.bare, "update-ref", "-d", "refs/heads/aside")
	if changes := mustFetch(t, m); len(changes) != 2 || changes[0].New != "" || changes[1].New != two {
		t.Errorf("got %v", changes)
	}
	expect("a branch of what is known, and one that is gone", upload)
	if refs := git(t, m.dir, "for-each-ref", "--format=%(refname)", "refs/heads/"); strings.Fields(refs)[0] != "refs/heads/copy" {
		t.Errorf("the mirror's own branches are %q", refs)
	}
	w := must(m.Write(ctx, CommitSpec{Parents: []string{two}, Base: two, When: when, Message: "Three", Files: []FileWrite{{Path: "a", Content: []byte("3")}}}))
	if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil {
		t.Fatal(err)
	}
	expect("a push", receive)
	if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil {
		t.Errorf("what is there already: %v", err)
	}
	expect("a push of what is there", upload)
	if err := m.Push(ctx, PushSpec{Branch: "x", New: two, Old: two}); !errors.Is(err, ErrLeaseLost) || !strings.Contains(err.Error(), "it is at "+w) {
		t.Errorf("a lost lease: %v", err)
	}
	expect("a lost lease", receive, upload)
	git(t, o.bare, "update-ref", "-d", "refs/heads/x")
	if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil || o.head("x") != w {
		t.Errorf("what was there: %v", err)
	}
	expect("a push of what was there", upload, receive)
	if heads := must(m.RemoteHeads(ctx, "x", "nowhere")); len(heads) != 1 || heads["x"] != w {
		t.Errorf("the remote's branches are %v", heads)
	}
	expect("where branches are", upload)
	if err := m.Push(ctx, PushSpec{Branch: "x", Old: w}); err != nil {
		t.Fatal(err)
	}
	expect("a removal", receive)
	if heads := git(t, o.bare, "for-each-ref", "--format=%(refname)", "refs/heads/x"); heads != "" {
		t.Errorf("it is still there: %q", heads)
	}
}

// TestExpect has what a branch is said to be at sent along; whatever was said, the branch goes to
// where the remote says that it is.
func TestExpect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said     func(m *Mirror, sha string)
		requests int
	}{
		"as it is":            {func(m *Mirror, sha string) { m.Expect("main", sha) }, 2},
		"of another branch":   {func(m *Mirror, sha string) { m.Expect("new", sha) }, 2},
		"what is nowhere":     {func(m *Mirror, _ string) { m.Expect("main", strings.Repeat("1", 40)) }, 3},
		"what can't be meant": {func(m *Mirror, _ string) { m.Expect("main", "HEAD") }, 2},
		"no branch":           {func(m *Mirror, sha string) { m.Expect("-x", sha) }, 2},
		"more than is believed": {func(m *Mirror, sha string) {
			for i := range maxExpected + 1 {
				m.Expect(fmt.Sprint("b", i), strings.Repeat("2", 40))
			}
			m.Expect("main", sha)
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			o, s, m := openSmart(t)
			sha := o.commit("main", "Two", map[string]string{"a": "2"})
			c.said(m, sha)
			if changes := mustFetch(t, m); len(changes) != 1 || changes[0].Branch != "main" || changes[0].New != sha {
				t.Errorf("got %v", changes)
			}
			if seen := s.takeSeen(); len(seen) != c.requests {
				t.Errorf("%d requests: %q", len(seen), seen)
			}
			mustFetch(t, m)
			if seen := s.takeSeen(); len(seen) != 1 {
				t.Errorf("the next time: %q", seen)
			}
		})
	}
}

// TestSmartFetchOfMuch fetches so much that it becomes a pack of its own, over a base that only the
// mirror has whole.
func TestSmartFetchOfMuch(t *testing.T) {
	t.Parallel()
	o, s, m := openSmart(t)
	files := map[string]string{}
	for i := range 2 * unpackLimit {
		files[fmt.Sprintf("d%d/f", i)] = fmt.Sprint(i)
	}
	sha := o.commit("main", "Much", files)
	mustFetch(t, m)
	if data := must(m.Tree(sha).ReadFile("d7/f")); string(data) != "7" {
		t.Errorf("read %q", data)
	}
	if seen := s.takeSeen(); len(seen) != 2 {
		t.Errorf("requests: %q", seen)
	}
	if out := git(t, m.dir, "fsck"); strings.Contains(out, "missing") {
		t.Errorf("the mirror is not whole: %s", out)
	}
}

// TestSmartPushIsRejected tells the hook's own words.
func TestSmartPushIsRejected(t *testing.T) {
	t.Parallel()
	o, s, m := openSmart(t)
	if err := os.WriteFile(filepath.Join(o.bare, "hooks", "pre-receive"), []byte("#!/bin/sh\necho not on a Friday >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	head, _, err := m.Head(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	err = m.Push(t.Context(), PushSpec{Branch: "x", New: head})
	if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "not on a Friday") {
		t.Errorf("got %v", err)
	}
	if seen := s.takeSeen(); !slices.Equal(seen, []string{"POST git-receive-pack", "POST git-upload-pack"}) {
		t.Errorf("requests: %q", seen)
	}
}

// TestLeftToPrograms has git's programs do what a server answers otherwise than expected, and from
// then on everything, if they could.
func TestLeftToPrograms(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"another type": func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		"no lines":     func(w http.ResponseWriter) { answerUpload(w, "hello, I am no pkt-line") },
		"another line": func(w http.ResponseWriter) { answerUpload(w, "0009hello0000") },
		"a bad name":   func(w http.ResponseWriter) { answerUpload(w, pkt(emptyTree+" refs/heads/a\nrefs/heads/b")+"0000") },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("main", "One", map[string]string{"a": "1"})
			s := serveGit(t, o)
			smartCalls := 0
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := new(bytes.Buffer)
				_, _ = body.ReadFrom(r.Body)
				if strings.Contains(body.String(), "git/liftlock") {
					smartCalls++
					answer(w)
					return
				}
				r.Body = http.NoBody
				if body.Len() > 0 {
					r.Body = readCloser{body}
				}
				s.Config.Handler.ServeHTTP(w, r)
			}))
			defer front.Close()
			m := open(t, Options{URL: front.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword)})
			mustFetch(t, m)
			for range 3 {
				sha := o.commit("main", "More", map[string]string{"a": "more"})
				if changes := mustFetch(t, m); len(changes) != 1 || changes[0].New != sha {
					t.Errorf("got %v", changes)
				}
			}
			if smartCalls != 1 {
				t.Errorf("%d smart calls", smartCalls)
			}
		})
	}
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

func answerUpload(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	fmt.Fprint(w, body)
}

// pkt is a line of the protocol.
func pkt(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }
