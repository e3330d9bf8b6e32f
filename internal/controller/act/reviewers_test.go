package act

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// TestRequestReviewersFails holds that reviews are requested again where it isn't known
// whether they were, and that what the forge doesn't do is written down and said.
func TestRequestReviewersFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	request := promotion.RequestReviewers{Environment: "qa", Pull: n, Release: "r2", Reviewers: policies.Reviewers{Users: []string{"ada", "zed"}, Teams: []string{"acme/sre"}}}
	known := func() policies.ReviewRequests {
		t.Helper()
		r, err := people.ReadReviewRequests(w.ctx(), w.store, w.repo.ID, n)
		w.must(err)
		return r
	}
	names := []string{"acme/sre", "ada", "zed"}
	w.failEach(func() (func() error, func()) {
		w.must(w.store.DeleteRecord(w.ctx(), pullKey("review-requests", w.repo.ID, n)))
		w.forge.requested = nil
		return func() error { return w.do(ev, d, request) }, func() {
			w.compare("requested", w.forge.requested, []string{"acme/sre", "ada"})
			w.compare("written down", known(), policies.ReviewRequests{Release: "r2", Names: names, Refused: []policies.RefusedReviewer{{Name: "zed", Reason: "Not a collaborator."}}})
		}
	})
	if all := w.logs.FilterMessageSnippet("takes no request for a review").All(); len(all) == 0 || all[0].ContextMap()["reviewer"] != "zed" {
		t.Errorf("it is logged: %v", all)
	}
	ev, _ = w.evaluate()
	w.compare("as a fact", ev.OpenPulls[n].Review.ReviewRequests, known())

	request.Release = "r3"
	for name, c := range map[string]struct {
		err  error
		want string // what is said of each; empty: the action fails and nothing is written down
	}{
		"no permission":   {&forge.Error{Op: "request", Kind: forge.ErrForbidden, Status: 403, Message: "Resource not accessible", Hint: "the token needs the permission pull_requests=write"}, "Resource not accessible; the token needs the permission pull_requests=write"},
		"no such thing":   {&forge.Error{Op: "request", Kind: forge.ErrNotFound, Status: 404, Message: "Not Found"}, "Not Found"},
		"without a word":  {&forge.Error{Op: "request", Kind: forge.ErrInvalid}, "request: refused by the forge"},
		"away":            {&forge.Error{Op: "request", Kind: forge.ErrRetryable}, ""},
		"too many calls":  {&forge.Error{Op: "request", Kind: forge.ErrRateLimited}, ""},
		"bad credentials": {&forge.Error{Op: "request", Kind: forge.ErrUnauthorized}, ""},
	} {
		w.must(w.store.DeleteRecord(w.ctx(), pullKey("review-requests", w.repo.ID, n)))
		w.forge.refuseRequests = c.err
		err := w.do(ev, d, request)
		if c.want == "" {
			if !errors.Is(err, c.err.(*forge.Error).Kind) || len(known().Names) > 0 {
				t.Errorf("%s: %v, %+v", name, err, known())
			}
			continue
		}
		w.must(err)
		got := known()
		if !slices.Equal(got.Names, names) || len(got.Refused) != len(names) || got.Refused[0].Reason != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.forge.refuseRequests = nil
	w.must(w.do(ev, d, request)) // zed has access by now, says nobody: it is as the forge says
	w.compare("those who aren't refused any more", strings.Join(func() (left []string) {
		for _, r := range known().Refused {
			left = append(left, r.Name)
		}
		return left
	}(), " "), "zed")
}
