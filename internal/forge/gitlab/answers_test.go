package gitlab

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/world/forgetest"
)

// anyAnswer is a server that gives one answer to everything, but for the look at the project by
// its path.
func anyAnswer(t *testing.T, answer response) *Driver {
	t.Helper()
	r, d := newReplayServer(t)
	r.on("GET projects/7")
	r.otherwise = &answer
	return d
}

// driverCalls are all calls of the driver that GitLab answers, by name.
var driverCalls = map[string]func(*Driver) error{
	"Me": func(d *Driver) error { _, err := d.Me(ctx); return err },
	"RepositoryNumber": func(d *Driver) error {
		_, err := d.RepositoryNumber(ctx, forge.Repo{Owner: "acme", Name: "other"})
		return err
	},
	"PullRequests": func(d *Driver) error { _, err := d.PullRequests(ctx, testRepoName, time.Time{}); return err },
	"PullRequest":  func(d *Driver) error { _, err := d.PullRequest(ctx, testRepoName, 7); return err },
	"PullRequestsByBranch": func(d *Driver) error {
		_, err := d.PullRequestsByBranch(ctx, testRepoName, "liftlock/shop/qa/web")
		return err
	},
	"CreatePullRequest": func(d *Driver) error {
		_, _, err := d.CreatePullRequest(ctx, testRepoName, forge.NewPullRequest{Title: "qa: web", Branch: "liftlock/shop/qa/web", Base: "main"})
		return err
	},
	"UpdatePullRequest": func(d *Driver) error {
		title := "qa: web"
		return d.UpdatePullRequest(ctx, testRepoName, 7, forge.PullRequestUpdate{Title: &title})
	},
	"Merge": func(d *Driver) error {
		_, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "merge"})
		return err
	},
	"LeaveQueue":   func(d *Driver) error { return d.LeaveQueue(ctx, testRepoName, 7) },
	"Rules":        func(d *Driver) error { _, err := d.Rules(ctx, testRepoName, "main"); return err },
	"DeleteBranch": func(d *Driver) error { return d.DeleteBranch(ctx, testRepoName, "liftlock/shop/qa/web") },
	"Reviews":      func(d *Driver) error { _, err := d.Reviews(ctx, testRepoName, 7); return err },
	"RequestReviewers": func(d *Driver) error {
		_, err := d.RequestReviewers(ctx, testRepoName, 7, forge.Reviewers{Users: []string{"ada"}})
		return err
	},
	"Permission": func(d *Driver) error { _, err := d.Permission(ctx, testRepoName, "ada"); return err },
	"IsTeamMember": func(d *Driver) error {
		_, err := d.IsTeamMember(ctx, forge.Team{Organisation: "acme", Name: "sre"}, "ada")
		return err
	},
	"MergedPullRequests": func(d *Driver) error { _, err := d.MergedPullRequests(ctx, testRepoName, head1); return err },
	"PullRequestAuthors": func(d *Driver) error {
		_, err := d.PullRequestAuthors(ctx, testRepoName, &forge.PullRequest{Number: 7})
		return err
	},
	"CommitAuthors": func(d *Driver) error { _, err := d.CommitAuthors(ctx, testRepoName, "", head1); return err },
	"Commits":       func(d *Driver) error { _, err := d.Commits(ctx, testRepoName, head1, head2); return err },
	"Pushes": func(d *Driver) error {
		return d.Pushes(ctx, testRepoName, "main", func(forge.Push) bool { return false })
	},
	"AddLabels":     func(d *Driver) error { return d.AddLabels(ctx, testRepoName, 7, "liftlock") },
	"RemoveLabel":   func(d *Driver) error { return d.RemoveLabel(ctx, testRepoName, 7, "liftlock") },
	"Comments":      func(d *Driver) error { _, err := d.Comments(ctx, testRepoName, 7, time.Time{}); return err },
	"CreateComment": func(d *Driver) error { _, err := d.CreateComment(ctx, testRepoName, 7, "text"); return err },
	"UpdateComment": func(d *Driver) error { return d.UpdateComment(ctx, testRepoName, 7, 9, "text") },
	"React":         func(d *Driver) error { return d.React(ctx, testRepoName, 7, 9, "+1") },
	"HasReacted":    func(d *Driver) error { _, err := d.HasReacted(ctx, testRepoName, 7, 9); return err },
	"SetStatus": func(d *Driver) error {
		return d.SetStatus(ctx, testRepoName, head1, forge.Status{Context: "liftlock", State: forge.StatusPending})
	},
	"Statuses":   func(d *Driver) error { _, err := d.Statuses(ctx, testRepoName, head1); return err },
	"Checks":     func(d *Driver) error { _, err := d.Checks(ctx, testRepoName, head1); return err },
	"EnsureHook": func(d *Driver) error { _, err := d.EnsureHook(ctx, testRepoName, testHook); return err },
	"MissedDeliveries": func(d *Driver) error {
		_, err := d.MissedDeliveries(ctx, testRepoName, forge.DeliveryQuery{URL: testHook.URL})
		return err
	},
	"InspectCredentials": func(d *Driver) error { _, err := d.InspectCredentials(ctx); return err },
	"InspectRepository":  func(d *Driver) error { _, err := d.InspectRepository(ctx, testRepoName); return err },
	"InspectHooks":       func(d *Driver) error { _, err := d.InspectHooks(ctx, testRepoName, testHook); return err },
	"InspectTeam": func(d *Driver) error {
		_, _, err := d.InspectTeam(ctx, forge.Team{Organisation: "acme", Name: "sre"})
		return err
	},
	"InspectGuard": func(d *Driver) error { _, err := d.InspectGuard(ctx, testRepoName, "main"); return err },
	"TokenExpiry":  func(d *Driver) error { _, err := d.TokenExpiry(ctx); return err },
}

var testHook = forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "s3cret"}

// TestAnswersThatAreNotGitLabs holds that no call takes for success what isn't an answer of
// GitLab's, and that the error says what came instead.
func TestAnswersThatAreNotGitLabs(t *testing.T) {
	const loginPage = "<!DOCTYPE html>\n<html><head>\n<title>Sign in &middot; SSO t0ken</title></head><body>" + "password</body></html>"
	html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
	for _, c := range []struct {
		name   string
		answer response
		kind   error
		words  string
	}{
		{"a login page", response{200, html, loginPage}, forge.ErrRetryable, `the web page "Sign in · SSO (the token)" instead of the forge's answer`},
		{"a web page without a title", response{201, html, "<html>"}, forge.ErrRetryable, "a web page instead of the forge's answer"},
		{"a page of a proxy's", response{502, html, "<html>\r\n<head><title>502 Bad Gateway</title></head><body></body></html>"}, forge.ErrRetryable, `(HTTP 502): the web page "502 Bad Gateway"`},
		{"a page that forbids", response{403, html, "<html><head><title>Blocked</title></head></html>"}, forge.ErrForbidden, `the web page "Blocked" instead of the forge's answer`},
		{"a page that knows nothing of it", response{404, html, "<html><head><title>404 Not Found</title></head></html>"}, forge.ErrRetryable, `the web page "404 Not Found" instead of the forge's answer (HTTP 404)`},
		{"nothing, not found", response{404, map[string]string{"Content-Type": ""}, ""}, forge.ErrRetryable, "nothing instead of the forge's answer"},
		{"a login that is missing", response{401, html, "<html>"}, forge.ErrUnauthorized, "a web page instead of the forge's answer"},
		{"words", response{200, map[string]string{"Content-Type": "text/plain"}, "OK"}, forge.ErrRetryable, `the text "OK" instead of the forge's answer`},
		{"an address that is blocked", response{403, map[string]string{"Content-Type": "text/plain"}, "Forbidden\n"}, forge.ErrForbidden, `the text "Forbidden" instead of the forge's answer (HTTP 403)`},
		{"of another type", response{200, map[string]string{"Content-Type": "application/xml"}, "<a/>"}, forge.ErrRetryable, "application/xml instead of the forge's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := anyAnswer(t, c.answer)
			for name, call := range driverCalls {
				err := call(d)
				if !errors.Is(err, c.kind) {
					t.Errorf("%s: got %v, want %v", name, err, c.kind)
					continue
				}
				if !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), "forge's url") && c.answer.status < 500 {
					t.Errorf("%s says %q, want %q and what to do", name, err, c.words)
				}
			}
		})
	}
}

// TestBrokenAnswers holds that an answer that is cut off, of another type or empty is no success of
// a call that reads it. Nothing is made up of missing parts.
func TestBrokenAnswers(t *testing.T) {
	unreadable := regexp.MustCompile("GitLab's answer can't be read|GitLab took it for a command")
	// Whatever is answered with success is the end of these.
	unread := []string{"UpdatePullRequest", "DeleteBranch", "AddLabels", "RemoveLabel", "UpdateComment", "React"}
	for _, c := range []struct {
		body string
		good []string // calls of which it is an answer
	}{
		{"", nil}, {"[{", nil}, {`{"iid":`, nil}, {`"a text"`, nil}, {"7", nil}, {"true", nil}, {"\x00\xff", nil}, {"null", nil},
		{`{"id":"7","iid":7}`, []string{"TokenExpiry", "SetStatus", "CommitAuthors"}}, {`[{"id":"7","iid":"7","status":[],"push_data":7}]`, nil},
		{"{}", []string{"TokenExpiry", "SetStatus"}},
		// An account that isn't the one may do nothing, and what pushed no branch is passed by.
		{"[null]", []string{"Permission", "Pushes"}}, {"[{}]", []string{"Permission", "Pushes"}},
	} {
		t.Run(c.body, func(t *testing.T) {
			d := anyAnswer(t, response{200, nil, c.body})
			for name, call := range driverCalls {
				if slices.Contains(unread, name) {
					continue
				}
				err := call(d)
				if slices.Contains(c.good, name) != (err == nil) || err != nil && !unreadable.MatchString(err.Error()) {
					t.Errorf("%s: got %v", name, err)
				}
			}
		})
	}
}

// TestPagesThroughAProxy reads a list to its end where a proxy takes headers off or writes its own,
// and calls nobody else for it.
func TestPagesThroughAProxy(t *testing.T) {
	page := func(header map[string]string, from, entries int) response {
		list := []jsonObject{}
		for n := range entries {
			list = append(list, mergeRequestJSON(jsonObject{"iid": from + n}))
		}
		answer := okResponse(list)
		answer.header = header
		return answer
	}
	next := func(page string) map[string]string { return map[string]string{"X-Next-Page": page} }
	link := map[string]string{"Link": `</app.css>; preload, <https://elsewhere.example/api/v4/projects/7/merge_requests?page=2>; rel="next"`}
	for _, c := range []struct {
		name  string
		pages []response
		want  int // entries; 0: an error
		calls int
	}{
		{"no header", []response{page(nil, 1, perPage), page(nil, 101, 3)}, 103, 2},
		{"no header, full to the end", []response{page(nil, 1, perPage), page(nil, 101, 0)}, 100, 2},
		{"a link of its own", []response{page(link, 1, perPage), page(link, 101, 3)}, 103, 2},
		{"pages that aren't full", []response{page(next("2"), 1, 3), page(next(""), 4, 3)}, 6, 2},
		{"the same page again", []response{page(next("1"), 1, perPage)}, 0, 1},
		{"a page before", []response{page(next("-3"), 1, perPage)}, 0, 1},
		{"no number", []response{page(next("next"), 1, 3)}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET merge_requests", c.pages...)
			list, err := d.PullRequests(ctx, testRepoName, time.Time{})
			if len(list) != c.want || (err == nil) != (c.want > 0) || err != nil && (!errors.Is(err, forge.ErrRetryable) || !strings.Contains(err.Error(), "can't be read: behind page 1 comes page")) {
				t.Errorf("%d of %d, %v", len(list), c.want, err)
			}
			if calls := r.calls("GET merge_requests?"); len(calls) != c.calls {
				t.Errorf("called %q", calls)
			}
		})
	}
}

// TestRefusedCredentials holds that every call says what is wrong with the token, or its account.
func TestRefusedCredentials(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer response
		kind   error
		words  []string
	}{
		{"a wrong token", errorResponse(401, "401 Unauthorized"), forge.ErrUnauthorized, []string{"give Liftlock a valid token"}},
		{"an expired token", response{401, nil, `{"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}`}, forge.ErrUnauthorized, []string{"Token is expired", "give Liftlock a valid token"}},
		{"a revoked token", response{401, nil, `{"error":"invalid_token","error_description":"Token was revoked. You have to re-authorize from the user."}`}, forge.ErrUnauthorized, []string{"Token was revoked"}},
		{"a scope too small", response{403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`}, forge.ErrForbidden, []string{"the token needs the scope api"}},
		{"a blocked account", errorResponse(403, "403 Forbidden - Your account has been blocked."), forge.ErrForbidden, []string{"Your account has been blocked"}},
		{"terms that nobody accepted", errorResponse(403, "403 Forbidden - You (@liftlock-bot) must accept the Terms of Service in order to perform this action."), forge.ErrForbidden, []string{"must accept the Terms of Service"}},
		{"a role too small", errorResponse(403, "403 Forbidden"), forge.ErrForbidden, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := anyAnswer(t, c.answer)
			for name, call := range driverCalls {
				if name == "TokenExpiry" && c.answer.status == 403 {
					continue // not known, as of other kinds of tokens
				}
				err := call(d)
				if !errors.Is(err, c.kind) {
					t.Errorf("%s: got %v, want %v", name, err, c.kind)
				}
				for _, w := range c.words {
					if err != nil && !strings.Contains(err.Error(), w) {
						t.Errorf("%s says %q, not %q", name, err, w)
					}
				}
			}
		})
	}
}

// TestScopesThatDoNotReach tells of a token by which the account can be read, and not the token.
func TestScopesThatDoNotReach(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("GET user", okResponse(jsonObject{"id": 3, "username": "liftlock-bot"}))
	r.on("GET personal_access_tokens/self", response{403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token."}`})
	if c, err := d.InspectCredentials(ctx); err != nil || len(c.Missing) != 1 || c.Missing[0].Name != "api" {
		t.Errorf("got %+v, %v", c, err)
	}
	r.on("GET personal_access_tokens/self", errorResponse(403, "403 Forbidden"))
	if c, err := d.InspectCredentials(ctx); err != nil || len(c.Missing) != 0 {
		t.Errorf("another kind of token: got %+v, %v", c, err)
	}
}

func TestWebPages(t *testing.T) {
	forgetest.TestWebPages(t, func(t *testing.T, url string) forge.Forge {
		d, err := New(Options{URL: url, Token: "t0ken"}, CallLimits{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
