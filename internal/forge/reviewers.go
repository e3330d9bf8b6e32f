package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// Reviewers are the accounts and teams from whom a review is requested.
type Reviewers struct {
	Users []string // logins
	Teams []Team
}

// IsEmpty says that there is nobody among them.
func (r Reviewers) IsEmpty() bool { return len(r.Users)+len(r.Teams) == 0 }

// split gives each account and each team by itself, the accounts first.
func (r Reviewers) split() []Reviewers {
	var out []Reviewers
	for _, login := range r.Users {
		out = append(out, Reviewers{Users: []string{login}})
	}
	for _, t := range r.Teams {
		out = append(out, Reviewers{Teams: []Team{t}})
	}
	return out
}

// String names them as people write them.
func (r Reviewers) String() string {
	names := append([]string(nil), r.Users...)
	for _, t := range r.Teams {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// RefusedReviewer is one from whom the forge takes no request.
type RefusedReviewer struct {
	Name   string // a login, or organisation/team
	Reason string // the forge's words, bounded
}

// maxRefusal bounds the words of a RefusedReviewer.
const maxRefusal = 200

// RequestEach is RequestReviewers of a driver whose forge takes all names of a call or, with
// an ErrInvalid, none: where it refuses, each is sent by itself. Teams of another organisation
// than the repository's are refused without a call, as the API of forges names teams without
// their organisation.
func RequestEach(ctx context.Context, r Repo, from Reviewers, send func(context.Context, Reviewers) error) ([]RefusedReviewer, error) {
	var refused []RefusedReviewer
	wanted := Reviewers{Users: from.Users}
	for _, t := range from.Teams {
		if strings.EqualFold(t.Organisation, r.Owner) {
			wanted.Teams = append(wanted.Teams, t)
			continue
		}
		refused = append(refused, RefusedReviewer{Name: t.String(),
			Reason: fmt.Sprintf("it is no team of %s, to whom the repository belongs", r.Owner)})
	}
	if wanted.IsEmpty() {
		return refused, nil
	}
	err := send(ctx, wanted)
	if err == nil || !errors.Is(err, ErrInvalid) {
		return refused, err
	}
	each := wanted.split()
	for _, one := range each {
		if len(each) > 1 {
			if err = send(ctx, one); err == nil {
				continue
			}
		}
		var refusal *Error
		if !errors.Is(err, ErrInvalid) || !errors.As(err, &refusal) {
			return refused, err
		}
		refused = append(refused, RefusedReviewer{Name: one.String(), Reason: wording.ClipLine(refusal.Message, maxRefusal)})
	}
	return refused, nil
}
