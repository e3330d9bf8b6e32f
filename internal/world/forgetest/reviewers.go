package forgetest

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

func testReviewRequests(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	reviewer, err := s.Reviewer.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	request := func(what string, from forge.Reviewers, wantRefused ...string) {
		t.Helper()
		refused, err := s.Forge.RequestReviewers(s.ctx, s.Repo, pr.Number, from)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var names []string
		for _, r := range refused {
			names = append(names, r.Name)
			if r.Reason == "" {
				t.Errorf("%s: no reason is said for %s", what, r.Name)
			}
		}
		slices.Sort(names)
		slices.Sort(wantRefused)
		if !slices.Equal(names, wantRefused) {
			t.Errorf("%s: refused are %v, want %v", what, refused, wantRefused)
		}
	}
	requested := func(what string, want ...string) {
		t.Helper()
		got := s.Requested(t, pr.Number)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: requested are %q, want %q", what, got, want)
		}
	}
	request("nobody", forge.Reviewers{})
	requested("at first")
	otherTeam, missing := forge.Team{Organisation: "elsewhere", Name: "sre"}, forge.Team{Organisation: s.Repo.Owner, Name: "no-such-team"}
	bad := []string{s.ownLogin(t), s.Stranger, s.Nobody}
	request("only who can't be requested", forge.Reviewers{Users: bad, Teams: []forge.Team{otherTeam}},
		append([]string{otherTeam.String()}, bad...)...)
	requested("after those were refused")
	request("one who can't be requested", forge.Reviewers{Users: []string{s.Nobody}}, s.Nobody)
	for range 2 { // twice is once
		request("among others", forge.Reviewers{Users: []string{s.Nobody, reviewer.Login}}, s.Nobody)
		requested("among others", reviewer.Login)
	}
	s.Review(t, pr.Number, Reject, pr.Head)
	requested("after the review")
	request("again after the review", forge.Reviewers{Users: []string{reviewer.Login}})
	if s.ReviewedOnce {
		requested("again after the review")
	} else {
		requested("again after the review", reviewer.Login)
	}
	if s.RemoveRequest != nil && !s.ReviewedOnce {
		s.RemoveRequest(t, pr.Number, reviewer.Login)
		requested("after it was taken off")
		request("after it was taken off", forge.Reviewers{Users: []string{reviewer.Login}})
		requested("after it was taken off, again", reviewer.Login)
	}
	if s.Team.Organisation == s.Repo.Owner {
		request("a team", forge.Reviewers{Teams: []forge.Team{s.Team, missing}}, missing.String())
		requested("a team", reviewer.Login, s.Team.String())
		s.Review(t, pr.Number, Approve, pr.Head)
		requested("after a member's review")
	}
	_, err = s.Forge.RequestReviewers(s.ctx, s.Repo, 9999, forge.Reviewers{Users: []string{reviewer.Login}})
	wantKind(t, "requesting reviews of what isn't there", err, forge.ErrNotFound)
}
