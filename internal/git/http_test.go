package git

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	testUser     = "x-access-token"
	testPassword = "correct-horse-battery"
)

// certificateOf writes a test server's certificate to a file.
func certificateOf(t *testing.T, s *httptest.Server) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "One", map[string]string{"a": "1"})
	plain := serveGit(t, o)
	s := httptest.NewUnstartedServer(plain.Config.Handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end
	s.StartTLS()
	t.Cleanup(s.Close)
	with := Options{URL: s.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword), CAFile: certificateOf(t, s)}
	m := open(t, with)
	mustFetch(t, m)
	if heads := must(m.Heads(t.Context(), "")); heads["main"] != sha {
		t.Errorf("fetched %v", heads)
	}
	without := with
	without.CAFile = ""
	if _, err := open(t, without).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of nobody's: %v", err)
	}
}

// secretForms are the forms in which the password must not be seen.
var secretForms = []string{testPassword, base64.StdEncoding.EncodeToString([]byte(testUser + ":" + testPassword))}

// gitServer serves a bare repository as /acme/fleet.git over git's own smart
// HTTP, behind Basic authentication.
type gitServer struct {
	*httptest.Server
	mu     sync.Mutex
	leaked []string    // command lines that showed a secret during a request
	seen   []string    // requests
	page   atomic.Bool // answer everything with a web page
}

func serveGit(t *testing.T, o *origin) *gitServer {
	t.Helper()
	gitPath, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "acme")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(o.bare, filepath.Join(root, "fleet.git")); err != nil {
		t.Fatal(err)
	}
	git(t, o.bare, "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path: gitPath, Args: []string{"http-backend"},
		Stderr: io.Discard,
		Env:    []string{"GIT_PROJECT_ROOT=" + filepath.Dir(root), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "REMOTE_USER=ada"},
	}
	s := &gitServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
		s.leaked = append(s.leaked, commandLinesWith(secretForms)...)
		s.mu.Unlock()
		user, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/forbidden"):
			http.Error(w, "no", http.StatusForbidden)
		case strings.HasPrefix(r.URL.Path, "/broken"):
			http.Error(w, "no", http.StatusBadGateway)
		case user != testUser || password != testPassword:
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
		case s.page.Load():
			_, _ = w.Write([]byte("<html>a login page</html>"))
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// commandLinesWith looks at what every user of the machine can see.
func commandLinesWith(secrets []string) []string {
	var found []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		for _, s := range secrets {
			if strings.Contains(string(line), s) {
				found = append(found, string(line))
			}
		}
	}
	return found
}

func filesWith(t *testing.T, dir string, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		for _, s := range secrets {
			if strings.Contains(string(data), s) {
				t.Errorf("%s holds a secret", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func staticCredentials(user, password string) Credentials {
	return func(context.Context) (string, string, error) { return user, password, nil }
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]version{"this git": {}, "git 2.30": {2, 30}} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			o := newOrigin(t)
			sha := o.commit("main", "One", map[string]string{"a": "1"})
			s := serveGit(t, o)
			log, logs := newObservedLogger()
			m := open(t, Options{URL: s.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword), Log: log})
			if v != (version{}) {
				programsOf(m).git = v // how the credentials are handed over depends on it
			}
			mustFetch(t, m)
			w, err := m.Write(ctx, CommitSpec{Parents: []string{sha}, Base: sha, When: when, Message: "Two", Files: []FileWrite{{Path: "a", Content: []byte("2")}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Push(ctx, PushSpec{Branch: "x", New: w}); err != nil {
				t.Fatal(err)
			}
			if o.head("x") != w {
				t.Error("the push did not arrive")
			}
			if err := m.Push(ctx, PushSpec{Branch: "x", New: sha, Old: sha}); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("a lost lease: %v", err)
			}
			if err := m.Push(ctx, PushSpec{Branch: "x", Old: w}); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.seen) < 6 || len(s.leaked) > 0 {
				t.Errorf("%d requests; command lines with a secret: %q", len(s.seen), s.leaked)
			}
			filesWith(t, m.dir, secretForms)
			for _, e := range logs.All() {
				for _, secret := range secretForms {
					if strings.Contains(e.Message, secret) {
						t.Errorf("logged: %s", e.Message)
					}
				}
			}
		})
	}
}

// The test above would not notice a test that can't see command lines.
func TestCommandLinesAreSeen(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("no /proc here")
	}
	if len(commandLinesWith([]string{filepath.Base(os.Args[0])})) == 0 {
		t.Error("our own command line was not found")
	}
}

func TestHTTPFailsByKind(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	s := serveGit(t, o)
	good := staticCredentials(testUser, testPassword)
	for name, tc := range map[string]struct {
		path        string
		credentials Credentials
		kind        error
	}{
		"no credentials":           {"/acme/fleet.git", nil, ErrAuth},
		"empty credentials":        {"/acme/fleet.git", staticCredentials("", ""), ErrAuth},
		"wrong password":           {"/acme/fleet.git", staticCredentials(testUser, "wrong-password"), ErrAuth},
		"a colon in the user name": {"/acme/fleet.git", staticCredentials("a:b", testPassword), ErrAuth},
		"credentials can't be had": {"/acme/fleet.git", func(context.Context) (string, string, error) { return "", "", errors.New("token file is gone") }, ErrAuth},
		"forbidden":                {"/forbidden/fleet.git", good, ErrAuth},
		"no such repository":       {"/acme/other.git", good, ErrNoRepository},
		"a proxy's error":          {"/broken/fleet.git", good, ErrRemote},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, Options{URL: s.URL + tc.path, Credentials: tc.credentials})
			_, err := m.Fetch(t.Context())
			if !errors.Is(err, tc.kind) {
				t.Fatalf("got %v, want %v", err, tc.kind)
			}
			for _, secret := range append(secretForms, "wrong-password") {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells a secret: %v", err)
				}
			}
		})
	}
	t.Run("a web page instead", func(t *testing.T) {
		m := open(t, Options{URL: s.URL + "/acme/fleet.git", Credentials: good})
		mustFetch(t, m)
		before, _, err := m.Head(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		s.page.Store(true)
		defer s.page.Store(false)
		if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrRemote) {
			t.Errorf("got %v", err)
		}
		if sha, _, err := m.Head(t.Context(), "main"); sha != before || err != nil {
			t.Errorf("the branch is at %q now: %v", sha, err)
		}
	})
	t.Run("the server goes away", func(t *testing.T) {
		m := open(t, Options{URL: s.URL + "/acme/fleet.git", Credentials: good})
		mustFetch(t, m)
		s.Close()
		if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrRemote) {
			t.Errorf("got %v", err)
		}
		if _, ok, err := m.Head(t.Context(), "main"); !ok || err != nil {
			t.Errorf("what is there can't be read any more: %v", err)
		}
	})
}

// A redirect, to another host or to another port of this one, takes neither
// git nor the credentials along.
func TestRedirectsDoNotGetTheCredentials(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization"))
		http.Error(w, "thanks", http.StatusNotFound)
	}))
	defer thief.Close()
	for _, code := range []int{301, 302, 307, 308} {
		redirector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)+r.URL.String(), code)
		}))
		m := open(t, Options{URL: redirector.URL + "/acme/fleet.git", Credentials: staticCredentials(testUser, testPassword)})
		_, err := m.Fetch(t.Context())
		if !errors.Is(err, ErrRemote) || !strings.Contains(err.Error(), "redirect") {
			t.Errorf("%d: %v", code, err)
		}
		redirector.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) > 0 {
		t.Errorf("the other host was asked: %q", got)
	}
}

// Credentials are asked for every time, so that they can rotate.
func TestCredentialsRotate(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	s := serveGit(t, o)
	password := "the-old-password"
	m := open(t, Options{URL: s.URL + "/acme/fleet.git", Credentials: func(context.Context) (string, string, error) { return testUser, password, nil }})
	if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrAuth) {
		t.Fatalf("got %v", err)
	}
	password = testPassword
	mustFetch(t, m)
}

// TestRefusedCredentials: where there are others once some are refused, the call is made again with
// those, once.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	s := serveGit(t, o)
	for name, c := range map[string]struct {
		passwords []string // one after the other
		again     bool
		refused   []string
		kind      error
	}{
		"others":            {[]string{"revoked", testPassword}, true, []string{"revoked"}, nil},
		"others that don't": {[]string{"revoked", "revoked too", testPassword}, true, []string{"revoked"}, ErrAuth},
		"no others":         {[]string{"revoked", testPassword}, false, []string{"revoked"}, ErrAuth},
		"good ones":         {[]string{testPassword}, true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			at, refused := -1, []string(nil)
			m := open(t, Options{URL: s.URL + "/acme/fleet.git",
				Credentials: func(context.Context) (string, string, error) { at++; return testUser, c.passwords[at], nil },
				Refused:     func(password string) bool { refused = append(refused, password); return c.again }})
			if _, err := m.Fetch(t.Context()); !errors.Is(err, c.kind) {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(refused, c.refused) {
				t.Errorf("refused were %q", refused)
			}
		})
	}
}
