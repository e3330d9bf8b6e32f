package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// approvalTally is who approved, sorted, by whether and why it counts. Each person is
// in at most one list.
type approvalTally struct {
	counted, older, authors, noWrite, notEligible, expired []string

	byUser  map[string]Approval
	expires time.Time // when the first of those who count doesn't any more; zero: none does
}

func (a *Approvals) countApprovals(f Facts) approvalTally {
	// A person may have several standing reviews: it is enough that one is about
	// this diff. If they disagree about the permission, it isn't taken for granted.
	byAccount := map[Account]Approval{}
	for _, v := range f.Approvals {
		key := Account{ID: v.UserID}
		if v.UserID == 0 {
			key.Login = normalizeLogin(v.User)
		}
		if before, ok := byAccount[key]; ok {
			v.Current = v.Current || before.Current
			v.MayWrite = v.MayWrite && before.MayWrite
			v.User = min(v.User, before.User)
			if before.At.After(v.At) { // the newest one's time
				v.At = before.At
			}
		}
		byAccount[key] = v
	}
	t := approvalTally{byUser: map[string]Approval{}}
	for _, v := range byAccount {
		by := Account{ID: v.UserID, Login: v.User}
		switch {
		case v.User == "" || by.Matches(f.Bot):
			// Liftlock's own review says nothing to anybody.
		case slices.ContainsFunc(f.Authors, by.Matches):
			t.authors = append(t.authors, v.User)
		case !a.mayApprove(v, f):
			t.notEligible = append(t.notEligible, v.User)
		case !v.MayWrite:
			t.noWrite = append(t.noWrite, v.User)
		case !v.Current:
			t.older = append(t.older, v.User)
		case a.MaxAge > 0 && !f.Now.Before(v.At.Add(a.MaxAge)):
			t.expired = append(t.expired, v.User)
		default:
			t.counted, t.byUser[v.User] = append(t.counted, v.User), v
			if end := v.At.Add(a.MaxAge); a.MaxAge > 0 && (t.expires.IsZero() || end.Before(t.expires)) {
				t.expires = end
			}
		}
	}
	for _, l := range [][]string{t.counted, t.older, t.authors, t.noWrite, t.notEligible, t.expired} {
		slices.Sort(l)
	}
	return t
}

// IsApproved says whether any approval counts for one of the gates, or, where none of them asks for
// approvals, for anything. It is about this diff, from a person who may write, and not an author's.
func IsApproved(gates []Gate, f Facts) bool {
	isRequired := false
	for _, g := range gates {
		if g.Approvals != nil {
			isRequired = true
			if len(g.Approvals.countApprovals(f).counted) > 0 {
				return true
			}
		}
	}
	return !isRequired && len((&Approvals{}).countApprovals(f).counted) > 0
}

// explainUncounted explain the approvals that were given and don't count.
func (a approvalTally) explainUncounted() []string {
	var notes []string
	if n := len(a.older); n > 0 {
		notes = append(notes, fmt.Sprintf("%s given on an older diff (%s) and must be given again",
			wording.Plural(n, "approval was", "approvals were"), strings.Join(a.older, ", ")))
	}
	if len(a.expired) > 0 {
		notes = append(notes, "older than maxAge, and to be given again: "+strings.Join(a.expired, ", "))
	}
	if len(a.authors) > 0 {
		notes = append(notes, "authors of the release don't count ("+strings.Join(a.authors, ", ")+")")
	}
	if len(a.noWrite) > 0 {
		notes = append(notes, "approvals without write permission don't count ("+strings.Join(a.noWrite, ", ")+")")
	}
	if len(a.notEligible) > 0 {
		notes = append(notes, "approvals by people who aren't asked don't count ("+strings.Join(a.notEligible, ", ")+")")
	}
	return notes
}

// mayApprove says whether the person's approval is wanted.
func (a *Approvals) mayApprove(v Approval, f Facts) bool {
	if a.From.IsEmpty() || a.From.names(v) {
		return true
	}
	if !a.From.Codeowners {
		return false
	}
	isOwned := false
	for _, file := range f.Files {
		isOwned = isOwned || len(file.Owners) > 0
		if file.isOwnedBy(v) {
			return true
		}
	}
	// Any person may approve files without owners, where they needn't be owned.
	return !isOwned && !a.From.Strict && len(a.From.Teams)+len(a.From.Users) == 0
}

// names says whether the users or teams name who gave a review.
func (f *From) names(v Approval) bool {
	return containsLogin(f.Users, v.User) || slices.ContainsFunc(f.Teams, func(team string) bool { return containsLogin(v.Teams, team) })
}

// isOwnedBy says whether who gave a review is an owner, or in a team that is.
func (o *OwnedFile) isOwnedBy(v Approval) bool {
	return containsLogin(o.Owners, v.User) ||
		slices.ContainsFunc(o.Owners, func(owner string) bool { return containsLogin(v.Teams, owner) })
}

// listTeams are the teams that it hangs on who is in them.
func (f *From) listTeams(files []OwnedFile) []string {
	teams := slices.Clone(f.Teams)
	if f.Codeowners {
		for _, file := range files {
			for _, owner := range file.Owners {
				if _, _, err := ParseTeam(owner); err == nil {
					teams = append(teams, owner)
				}
			}
		}
	}
	return teams
}

// ListTeams are the teams of which gates have to know who is in them, without regard to
// case each once; files are those that a promotion changes.
func ListTeams(gates []Gate, files []OwnedFile) []string {
	var teams []string
	for _, g := range gates {
		if g.Approvals == nil {
			continue
		}
		for _, team := range g.Approvals.From.listTeams(files) {
			if !containsLogin(teams, team) {
				teams = append(teams, team)
			}
		}
	}
	return teams
}

// maxNamedFiles bounds how many files a reason names.
const maxNamedFiles = 3

// listUnapproved says which of the changed files wait for an owner.
func (a *Approvals) listUnapproved(f Facts, t approvalTally) []string {
	if !a.From.Codeowners {
		return nil
	}
	var unowned, waiting []string
	for i := range f.Files {
		file := &f.Files[i]
		switch {
		case len(file.Owners) == 0 && a.From.Strict:
			unowned = append(unowned, wording.ClipLine(file.Path, maxName))
		case len(file.Owners) == 0 ||
			slices.ContainsFunc(t.counted, func(user string) bool { v := t.byUser[user]; return a.From.names(v) || file.isOwnedBy(v) }):
		default:
			waiting = append(waiting, fmt.Sprintf("%s (%s)", wording.ClipLine(file.Path, maxName),
				wording.JoinFew(file.Owners, maxNamedFiles)))
		}
	}
	var out []string
	if len(waiting) > 0 {
		out = append(out, "no owner approved "+wording.JoinFew(waiting, maxNamedFiles))
	}
	if len(unowned) > 0 {
		out = append(out, "CODEOWNERS names nobody for "+wording.JoinFew(unowned, maxNamedFiles))
	}
	return out
}

// findVetoes are those who ask for changes and whose approval would count, on whatever
// diff, and authors too: it only restrains.
func (a *Approvals) findVetoes(f Facts) []string {
	if !a.hasVeto() {
		return nil
	}
	var out []string
	for _, v := range f.Rejections {
		if v.MayWrite && v.User != "" && !(Account{ID: v.UserID, Login: v.User}).Matches(f.Bot) && a.mayApprove(v, f) {
			out = append(out, v.User)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// remainingApprovers are the people by name who could still approve; nil when anybody may.
func (a *Approvals) remainingApprovers(counted []string, f Facts) []string {
	var left []string
	for _, u := range a.From.Users {
		if named := (Account{Login: u}); !containsLogin(counted, u) && !slices.ContainsFunc(f.Authors, named.Matches) &&
			!named.Matches(f.Bot) {
			left = append(left, u)
		}
	}
	return left
}

// normalizeLogin is how forges compare accounts: without regard to case.
func normalizeLogin(user string) string { return strings.ToLower(user) }

func sameLogin(a, b string) bool { return a != "" && normalizeLogin(a) == normalizeLogin(b) }

func containsLogin(users []string, user string) bool {
	return slices.ContainsFunc(users, func(u string) bool { return sameLogin(u, user) })
}

func countPersons(n int) string { return wording.Plural(n, "person", "people") }
