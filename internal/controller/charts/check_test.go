package charts

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	memory "github.com/google/go-containerregistry/pkg/registry"
)

// TestCheck asks repositories and registries that answer, refuse, are away, and aren't listed.
func TestCheck(t *testing.T) {
	r := newTestRepository(t)
	r.add("1.0.0", "web.tgz", "")
	open := memory.New(memory.Logger(log.New(io.Discard, "", 0)))
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch user, password, _ := req.BasicAuth(); {
		case r.away.Load():
			http.Error(w, "away", http.StatusServiceUnavailable)
		case user != "liftlock" || password != "private":
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who is it", http.StatusUnauthorized)
		default:
			open.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(registry.Close)
	oci := "oci://" + strings.TrimPrefix(registry.URL, "http://") + "/charts"
	for name, c := range map[string]struct {
		url, password string
		away          bool
		refused       bool
		says          string // part of the error; empty: it is well
	}{
		"a repository":                 {url: r.URL + "/stable", password: "private"},
		"its account":                  {url: r.URL + "/stable", password: "other", refused: true, says: "401"},
		"without an index":             {url: r.URL + "/none", password: "private", refused: true, says: "404"},
		"a repository that is away":    {url: r.URL + "/stable", password: "private", away: true, says: "503"},
		"a registry":                   {url: oci, password: "private"},
		"a registry that is away":      {url: oci, password: "private", away: true, says: "HTTP"},
		"one that isn't listed":        {url: "https://vault.example/stable", says: "isn't listed"},
		"a registry's part that isn't": {url: "oci://vault.example/charts", says: "isn't listed"},
	} {
		t.Run(name, func(t *testing.T) {
			r.away.Store(c.away)
			defer r.away.Store(false)
			var hosts []Host
			if !strings.Contains(c.url, "vault") {
				hosts = append(hosts, Host{URL: c.url, Username: "liftlock", Password: c.password, Transport: r.Client().Transport})
			}
			f, err := New(Options{Hosts: hosts, Dir: t.TempDir(), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			err = f.Check(t.Context(), c.url)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrRefused) != c.refused {
				t.Errorf("%v, want one that says %q", err, c.says)
			}
		})
	}
}
