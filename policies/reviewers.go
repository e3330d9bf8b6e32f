package policies

import (
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// maxRequestedReviewers is how many people and teams are requested of one pull request:
// GitHub takes 15.
const maxRequestedReviewers = 15

// ReviewRequests are what reviews of a pull request were requested so far.
type ReviewRequests struct {
	Release string            `json:"release,omitempty"` // that the last ones were for
	Names   []string          `json:"names,omitempty"`   // logins and teams: everybody from whom one was ever requested, or refused
	Refused []RefusedReviewer `json:"refused,omitempty"` // of those: from whom the forge takes none
}

// RefusedReviewer is a login or a team from whom the forge takes no request for a review.
type RefusedReviewer struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // the forge's words
}

// Reviewers are people and teams from whom a review is to be requested.
type Reviewers struct {
	Users []string // logins
	Teams []string // organisation/name
}

// IsEmpty says that there is nobody among them.
func (r Reviewers) IsEmpty() bool { return len(r.Users)+len(r.Teams) == 0 }

// Names are the teams and the logins.
func (r Reviewers) Names() []string { return slices.Concat(r.Teams, r.Users) }

// WantedReviewers says from whom to request a review of a promotion of a release on the forge: the
// people and teams that the approvals gates name which don't pass. Each is asked once for a pull
// request, so that a reviewer who removed the request isn't asked again. A reviewer of another of
// its releases is asked once for each release. Authors of the release, Liftlock's own account and
// reviewers of this very diff are left out. All are left out while the authors or the reviews
// aren't known. The forge asks code owners. At most 15 are asked, teams before people, in the order
// of the gates.
func WantedReviewers(gates []Gate, f Facts, release string) Reviewers {
	if f.AuthorsErr != "" || f.ApprovalsErr != "" {
		return Reviewers{}
	}
	var wanted Reviewers
	room := maxRequestedReviewers - len(f.ReviewRequests.Names)
	gates = slices.DeleteFunc(slices.Clone(gates), func(g Gate) bool { return g.Approvals == nil || g.Evaluate(f).Outcome == Pass })
	for _, g := range gates {
		for _, team := range g.Approvals.From.Teams {
			if room > 0 && !containsLogin(wanted.Teams, team) && !containsLogin(f.ReviewRequests.Names, team) {
				wanted.Teams, room = append(wanted.Teams, team), room-1
			}
		}
	}
	for _, g := range gates {
		for _, login := range g.Approvals.From.Users {
			if room > 0 && f.mayReview(Account{Login: login}) && !containsLogin(wanted.Users, login) &&
				!containsLogin(f.ReviewRequests.Names, login) {
				wanted.Users, room = append(wanted.Users, login), room-1
			}
		}
		if f.ReviewRequests.Release == "" || f.ReviewRequests.Release == release {
			continue
		}
		for _, v := range slices.Concat(f.Approvals, f.Rejections) {
			isOutdated := v.MayWrite && !v.Current && g.Approvals.From.names(v)
			if !isOutdated || !f.mayReview(Account{ID: v.UserID, Login: v.User}) {
				continue
			}
			if !containsLogin(wanted.Users, v.User) && len(wanted.Names()) < maxRequestedReviewers {
				wanted.Users = append(wanted.Users, v.User)
			}
		}
	}
	return wanted
}

// mayReview says whether somebody's review could count and isn't there yet.
func (f *Facts) mayReview(a Account) bool {
	hasReviewed := func(v Approval) bool { return v.Current && a.Matches(Account{ID: v.UserID, Login: v.User}) }
	return !slices.ContainsFunc(f.Authors, a.Matches) && !a.Matches(f.Bot) &&
		!slices.ContainsFunc(f.Approvals, hasReviewed) && !slices.ContainsFunc(f.Rejections, hasReviewed)
}

// explainRefused says from whom of those whom the gate names the forge takes no request; "" where
// there is nobody.
func (a *Approvals) explainRefused(f Facts) string {
	var who []string
	for _, r := range f.ReviewRequests.Refused {
		if containsLogin(a.From.Teams, r.Name) || containsLogin(a.From.Users, r.Name) {
			who = append(who, r.Name+" ("+strings.TrimSuffix(r.Reason, ".")+")")
		}
	}
	if len(who) == 0 {
		return ""
	}
	return "the forge takes no request for a review from " + wording.JoinFew(who, maxNamedFiles) + "; give them access or change the gate"
}
