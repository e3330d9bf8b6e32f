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
	"time"

	"github.com/liftlock/liftlock/internal/cache/lock"
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
func (g *gitServer) takeSeen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.seen
	g.seen = nil
	for i := range seen {
		seen[i] = seen[i][:strings.Index(seen[i], " ")] + " " + seen[i][strings.LastIndex(seen[i], "/")+1:]
	}
	return seen
}

// TestNoRequestPastALease holds that neither a request nor a program pushes for a run whose lease was over
// while the push was prepared.
func TestNoRequestPastALease(t *testing.T) {
	t.Parallel()
	o, s, m := openSmart(t)
	base := o.commit("main", "Two", map[string]string{"a": "2"})
	mustFetch(t, m)
	s.takeSeen()
	now := when
	lease := lock.NewLease(time.Minute, func() time.Time { return now }, now)
	m.beforePush = func(string) { now = now.Add(time.Minute) }
	ctx := lock.WithLease(t.Context(), lease)
	if err := m.Push(ctx, PushSpec{Branch: "late", New: base}); !errors.Is(err, lock.ErrLeaseOver) {
		t.Errorf("it ended with %v", err)
	}
	if seen := s.takeSeen(); slices.Contains(seen, "POST git-receive-pack") || slices.Contains(seen, "GET refs") {
		t.Errorf("asked for %q", seen)
	}
	lease.Renew(now)
	m.beforePush = nil
	if err := m.Push(ctx, PushSpec{Branch: "late", New: base}); err != nil {
		t.Errorf("renewed: %v", err)
	}
}

// TestRequests counts each call's requests to the remote. A fetch makes two where something moved
// and one otherwise, and a push makes one, where git's programs would make three, two and two.
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
	expect("a removal", upload, receive)
	if err := m.Push(ctx, PushSpec{Branch: "main", Old: w}); !errors.Is(err, ErrLeaseLost) || o.head("main") != two {
		t.Errorf("a removal of what is elsewhere: %v", err)
	}
	expect("a removal of what is elsewhere", upload)
	if err := m.Push(ctx, PushSpec{Branch: "x", Old: w}); err != nil {
		t.Errorf("a removal of what is gone: %v", err)
	}
	expect("a removal of what is gone", upload)
	if err := m.Push(ctx, PushSpec{Branch: "main"}); !errors.Is(err, ErrLeaseLost) || o.head("main") != two {
		t.Errorf("a removal of what must not be there: %v", err)
	}
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
	for i := range 300 {
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
		"nothing":      func(w http.ResponseWriter) { answerUpload(w, "") },
		"refused":      func(w http.ResponseWriter) { answerUpload(w, pkt("ERR no such command\n")) },
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

// TestPushOverDroppedCommit pushes a commit on one that the remote has thrown away since the last fetch.
func TestPushOverDroppedCommit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o, _, m := openSmart(t)
	side := o.commit("side", "Aside", map[string]string{"b": "1"})
	mustFetch(t, m)
	git(t, o.bare, "update-ref", "-d", "refs/heads/side")
	git(t, o.bare, "gc", "--quiet", "--prune=now")
	w := must(m.Write(ctx, CommitSpec{Parents: []string{side}, Base: side, When: when, Message: "On it", Files: []FileWrite{{Path: "b", Content: []byte("2")}}}))
	if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil || o.head("x") != w {
		t.Errorf("got %v", err)
	}
}

// TestFetchOfHalfOfIt: that a commit is there, as after a crash, doesn't say that what it is made of
// is too.
func TestFetchOfHalfOfIt(t *testing.T) {
	t.Parallel()
	o, _, m := openSmart(t)
	sha := o.commit("main", "Two", map[string]string{"d/a": "2"})
	raw := filepath.Join(t.TempDir(), "commit")
	if err := os.WriteFile(raw, []byte(git(t, o.bare, "cat-file", "commit", sha)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made := strings.TrimSpace(git(t, m.dir, "hash-object", "-t", "commit", "-w", raw)); made != sha {
		t.Fatalf("made %s", made)
	}
	if changes := mustFetch(t, m); len(changes) != 1 || changes[0].New != sha {
		t.Errorf("got %v", changes)
	}
	if data, err := m.Tree(sha).ReadFile("d/a"); string(data) != "2" {
		t.Errorf("read %q, %v", data, err)
	}
}

// TestPackBreaksOff leaves nothing of a pack that came in half, and git's programs fetch it.
func TestPackBreaksOff(t *testing.T) {
	t.Parallel()
	o, s, _ := openSmart(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(bytes.Buffer)
		_, _ = body.ReadFrom(r.Body)
		if strings.Contains(body.String(), "git/liftlock") && strings.Contains(body.String(), "command=fetch") {
			answerUpload(w, pkt("packfile\n")+pkt("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x03\x97")+"0000")
			return
		}
		r.Body = readCloser{body}
		s.Config.Handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	m := open(t, Options{URL: front.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword)})
	mustFetch(t, m)
	sha := o.commit("main", "Two", map[string]string{"a": "2"})
	m.Expect("main", sha)
	if changes := mustFetch(t, m); len(changes) != 1 || changes[0].New != sha {
		t.Errorf("got %v", changes)
	}
	if left, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "tmp_*")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// TestSecretsThatAHostRepeats: what a hook says of a push shows no credentials.
func TestSecretsThatAHostRepeats(t *testing.T) {
	t.Parallel()
	o, _, m := openSmart(t)
	if err := os.WriteFile(filepath.Join(o.bare, "hooks", "pre-receive"), []byte("#!/bin/sh\necho you came with "+testPassword+" >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	head, _, err := m.Head(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Push(t.Context(), PushSpec{Branch: "x", New: head}); !errors.Is(err, ErrRejected) || strings.Contains(err.Error(), testPassword) || !strings.Contains(err.Error(), "you came with ***") {
		t.Errorf("got %v", err)
	}
}
