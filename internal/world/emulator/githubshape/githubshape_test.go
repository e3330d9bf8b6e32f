package githubshape

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
)

// known are the announcements that Liftlock has been made ready for: the driver's contract passes
// without these fields. An extract with another one fails here, and must be reviewed first.
var known = map[string]string{
	"assignee":                       "remove_singular_assignee_from_issues_and_pull_requests",
	"has_downloads":                  "remove_has_downloads",
	"master_branch":                  "deprecate_beta_media_type",
	"merge_commit_sha":               "remove_pull_request_merge_commit_sha",
	"use_squash_pr_title_as_default": "remove_use_squash_pr_title_as_default",
}

func TestAnnouncedRemovals(t *testing.T) {
	d := describe(t, Public)
	var seen []string
	for field, a := range d.Announced() {
		name := field[strings.LastIndex(field, ".")+1:]
		seen = append(seen, name)
		if known[name] == "" || a.Changeset != known[name] || a.Version != "2026-03-10" {
			t.Errorf("GitHub takes away %s with %+v: does the driver do without it? Then name it here", field, a)
		}
	}
	for name := range known {
		if !slices.Contains(seen, name) {
			t.Errorf("GitHub no longer says that it takes away %s", name)
		}
	}
	if pruned := prune(t, d, "/repos/acme/fleet/pulls/1", `{"number":1,"merge_commit_sha":"abc","title":"T","head":{"sha":"def"}}`); pruned != `{"head":{"sha":"def"},"number":1,"title":"T"}` {
		t.Errorf("without what goes away: %s", pruned)
	}
}

func TestCheck(t *testing.T) {
	const pulls = "/repos/{o}/{r}/pulls"
	for name, c := range map[string]struct {
		release string
		call    apishape.Call
		want    string // a part of what is wrong; empty: nothing is
	}{
		"as it should be":      {Public, apishape.Call{Method: "GET", Route: pulls, Query: url.Values{"state": {"all"}}, Status: 200, Answer: []byte(`[{"number":1}]`)}, ""},
		"no such call":         {Public, apishape.Call{Method: "PUT", Route: pulls, Status: 200}, "isn't api.github.com's"},
		"no such parameter":    {Public, apishape.Call{Method: "GET", Route: pulls, Query: url.Values{"since": {"x"}}, Status: 200, Answer: []byte(`[]`)}, "no parameter since"},
		"no such status":       {Public, apishape.Call{Method: "GET", Route: pulls, Status: 206}, "never answers 206"},
		"no such field":        {Public, apishape.Call{Method: "GET", Route: pulls, Status: 200, Answer: []byte(`[{"iid":1}]`)}, "[0].iid isn't"},
		"another type":         {Public, apishape.Call{Method: "GET", Route: pulls, Status: 200, Answer: []byte(`[{"number":"1"}]`)}, "number is 1, want integer"},
		"null":                 {Public, apishape.Call{Method: "GET", Route: pulls, Status: 200, Answer: []byte(`[{"number":null}]`)}, "want integer"},
		"may be null":          {Public, apishape.Call{Method: "GET", Route: pulls, Status: 200, Answer: []byte(`[{"body":null,"merged_at":null}]`)}, ""},
		"no time":              {Public, apishape.Call{Method: "GET", Route: pulls, Status: 200, Answer: []byte(`[{"created_at":"yesterday"}]`)}, "want datetime"},
		"sent without base":    {Public, apishape.Call{Method: "POST", Route: pulls, Body: []byte(`{"head":"h","title":"T"}`), Status: 201, Answer: []byte(`{}`)}, "base is missing"},
		"sent with more":       {Public, apishape.Call{Method: "POST", Route: pulls, Body: []byte(`{"head":"h","base":"b","labels":[]}`), Status: 201, Answer: []byte(`{}`)}, "labels isn't"},
		"refused for its body": {Public, apishape.Call{Method: "POST", Route: pulls, Body: []byte(`{}`), Status: 422}, ""},
		"labels by themselves": {Oldest, apishape.Call{Method: "POST", Route: "/repos/{o}/{r}/issues/{n}/labels", Body: []byte(`["a"]`), Status: 200, Answer: []byte(`[]`)}, ""},
		"label with a number":  {Oldest, apishape.Call{Method: "POST", Route: "/repos/{o}/{r}/issues/{n}/labels", Body: []byte(`[1]`), Status: 200, Answer: []byte(`[]`)}, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(describe(t, c.release).Check(c.call), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRoute holds that paths are told from each other as GitHub does.
func TestRoute(t *testing.T) {
	d := describe(t, Oldest)
	for path, want := range map[string]string{
		"/repos/acme/fleet/pulls/1":                        "GET /repos/{}/{}/pulls/{}",
		"/repos/acme/fleet/issues/comments/4":              "GET /repos/{}/{}/issues/comments/{}",
		"/repos/acme/fleet/issues/4/comments":              "GET /repos/{}/{}/issues/{}/comments",
		"/repos/acme/fleet/git/ref/heads/liftlock/shop/qa": "GET /repos/{}/{}/git/ref/{}",
		"/repos/acme/fleet/pulls/1/nothing":                "",
	} {
		if got := d.route("GET", path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestNoSuchRelease(t *testing.T) {
	if _, err := Describe("ghes-2.0"); err == nil || !strings.Contains(err.Error(), Oldest) {
		t.Errorf("%v: it doesn't say which there are", err)
	}
}

func describe(t *testing.T, release string) *Description {
	t.Helper()
	d, err := Describe(release)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func prune(t *testing.T, d *Description, path, answer string) string {
	t.Helper()
	pruned, err := d.Prune("GET", path, 200, []byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	return string(pruned)
}
