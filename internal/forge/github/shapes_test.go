package github_test

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
	"github.com/liftlock/liftlock/internal/world/emulator/githubshape"
)

// describeAll reads GitHub's description of every release, the public service's first.
func describeAll(t *testing.T) []*githubshape.Description {
	t.Helper()
	var all []*githubshape.Description
	for _, release := range githubshape.Releases {
		d, err := githubshape.Describe(release)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// checkCalls holds every call that is made against GitHub's description: the request against
// each release's, the answer against the public one's, since the emulator answers as that does.
func checkCalls(t *testing.T) func(emulator.Exchange) {
	t.Helper()
	described := describeAll(t)
	graphQL, err := githubshape.DescribeGraphQL()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	t.Cleanup(func() {
		if whole := !strings.Contains(flag.Lookup("test.run").Value.String(), "/"); whole && len(calls) < 25 {
			t.Errorf("only %d calls of GitHub's were judged", len(calls))
		}
	})
	return func(x emulator.Exchange) {
		if x.Route == "/graphql" {
			if x.Status == http.StatusOK {
				for _, w := range graphQL.Check(x.Body, x.Answer) {
					t.Error(w)
				}
			}
			return
		}
		calls[x.Method+" "+x.Route] = true
		wrong := described[0].Check(apishape.Call(x))
		for _, d := range described[1:] {
			wrong = append(wrong, d.CheckRequest(apishape.Call(x))...)
		}
		for _, w := range wrong {
			t.Error(w)
		}
	}
}

// pruningTransport leaves out of each answer what not every release has, and what GitHub has said
// it will take away.
type pruningTransport struct {
	described []*githubshape.Description
}

// RoundTrip makes a call and prunes its answer.
func (p pruningTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	for _, d := range p.described {
		if answer, err = d.Prune(r.Method, strings.TrimPrefix(r.URL.Path, "/api/v3"), resp.StatusCode, answer); err != nil {
			return nil, err
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// newPrunedDriver is a driver that sees of GitHub's answers only what can be counted on.
func newPrunedDriver(t *testing.T, em *emulator.Forge, token string) forge.Forge {
	t.Helper()
	d, err := github.New(github.Options{URL: em.URL() + "/api/v3", Token: token, HTTPClient: &http.Client{Transport: pruningTransport{describeAll(t)}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
