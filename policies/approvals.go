package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// Approvals asks for reviews on the forge. One person counts once, for the diff
// that the review was given on, and only with the permission to write to the
// repository. The release's authors and Liftlock's own account never count; while an
// author can't be told, it waits.
type Approvals struct {
	// How many people must approve.
	Count int `yaml:"count" json:"count" jsonschema:"required,minimum=1"`
	// Whose approval counts; without it, that of anybody who may write to the repository.
	From From `yaml:"from" json:"from"`
}

// From narrows whose approval counts; empty: anybody who may write to the repository.
type From struct {
	// Logins on the forge. They need the permission to write all the same.
	Users []string `yaml:"users" json:"users,omitempty"`
}

// Approval is one standing review that approves.
type Approval struct {
	User     string
	UserID   int64 // of the account; 0: not known
	MayWrite bool
	Current  bool // given on this very diff
}

// maxApprovals bounds how many approvals can be asked for; more is a slip of the
// keyboard that would block an environment for good.
const maxApprovals = 100

// maxDescribedUsers bounds who is named where a gate is described.
const maxDescribedUsers = 10

var _ evaluator = (*Approvals)(nil)

func (*Approvals) kindName() string { return "approvals" }

func (a *Approvals) describe() string {
	from := "anybody who may write to the repository"
	if len(a.From.Users) > 0 {
		from = wording.JoinFew(a.From.Users, maxDescribedUsers)
	}
	return fmt.Sprintf("%s from %s; not from the release's authors", wording.Count(a.Count, "approval"), from)
}

func (a *Approvals) validate() []Problem {
	var problems []Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case a.Count < 1:
		add("approvals.count", "must be at least 1; it is %d", a.Count)
	case a.Count > maxApprovals:
		add("approvals.count", "must be at most %d; it is %d", maxApprovals, a.Count)
	}
	seen := map[string]bool{}
	for i, u := range a.From.Users {
		path := fmt.Sprintf("approvals.from.users[%d]", i)
		switch {
		case u == "" || strings.ContainsAny(u, " \t\r\n@/,"):
			add(path, "%q is not a login; write it without @ and spaces", u)
		case seen[normalizeLogin(u)]:
			add(path, "%q is given twice", u)
		}
		seen[normalizeLogin(u)] = true
	}
	if n := len(seen); n > 0 && n < a.Count {
		add("approvals.count", "%d approvals can't come from %s", a.Count, countPersons(n))
	}
	return problems
}

func (a *Approvals) evaluate(f Facts) Result {
	r := Result{Gate: a.kindName(), Outcome: Wait, Who: a.remainingApprovers(nil, f)}
	if f.ApprovalsErr != "" {
		r.Reason = "the approvals can't be read: " + f.ApprovalsErr
		return r
	}
	if f.AuthorsErr != "" {
		r.Reason = "the release's authors, whose approval would not count, can't be told: " + f.AuthorsErr
		return r
	}
	t := a.countApprovals(f)
	counted := fmt.Sprintf("%d of %s", len(t.counted), wording.Count(a.Count, "approval"))
	if len(t.counted) > a.Count {
		counted = fmt.Sprintf("%d approvals, %d needed", len(t.counted), a.Count)
	}
	if len(t.counted) > 0 {
		counted += " (" + strings.Join(t.counted, ", ") + ")"
	}
	if len(t.counted) >= a.Count {
		r.Outcome, r.Reason, r.Who = Pass, counted, nil
		return r
	}
	more := a.Count - len(t.counted)
	r.Who = a.remainingApprovers(t.counted, f)
	waiting := fmt.Sprintf("waiting for %d more from ", more)
	switch {
	case len(a.From.Users) == 0:
		waiting += "people who may write to the repository"
	case len(r.Who) < more:
		// Only a change of the rules or of the release's authors can help, but a
		// dismissed or newly permitted person's review isn't excluded: it waits.
		waiting = fmt.Sprintf("waiting for %d more, but of those who are asked only %s can still approve: the release's authors and the bot don't count", more, countPersons(len(r.Who)))
	default:
		waiting += strings.Join(r.Who, ", ")
	}
	r.Reason = strings.Join(append([]string{counted, waiting}, t.explainUncounted()...), "; ")
	return r
}

// approvalTally is who approved, sorted, by whether and why it counts. Each person is
// in at most one list.
type approvalTally struct {
	counted, older, authors, noWrite, notEligible []string
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
		}
		byAccount[key] = v
	}
	var t approvalTally
	for _, v := range byAccount {
		by := Account{ID: v.UserID, Login: v.User}
		switch {
		case v.User == "" || by.Matches(f.Bot):
			// Liftlock's own review says nothing to anybody.
		case slices.ContainsFunc(f.Authors, by.Matches):
			t.authors = append(t.authors, v.User)
		case !a.mayApprove(v.User):
			t.notEligible = append(t.notEligible, v.User)
		case !v.MayWrite:
			t.noWrite = append(t.noWrite, v.User)
		case !v.Current:
			t.older = append(t.older, v.User)
		default:
			t.counted = append(t.counted, v.User)
		}
	}
	for _, l := range [][]string{t.counted, t.older, t.authors, t.noWrite, t.notEligible} {
		slices.Sort(l)
	}
	return t
}

// explainUncounted explain the approvals that were given and don't count.
func (t approvalTally) explainUncounted() []string {
	var notes []string
	if n := len(t.older); n > 0 {
		notes = append(notes, fmt.Sprintf("%s given on an older diff (%s) and must be given again",
			wording.Plural(n, "approval was", "approvals were"), strings.Join(t.older, ", ")))
	}
	if len(t.authors) > 0 {
		notes = append(notes, "authors of the release don't count ("+strings.Join(t.authors, ", ")+")")
	}
	if len(t.noWrite) > 0 {
		notes = append(notes, "approvals without write permission don't count ("+strings.Join(t.noWrite, ", ")+")")
	}
	if len(t.notEligible) > 0 {
		notes = append(notes, "approvals by people who aren't asked don't count ("+strings.Join(t.notEligible, ", ")+")")
	}
	return notes
}

// mayApprove says whether the person's approval is wanted.
func (a *Approvals) mayApprove(user string) bool {
	return len(a.From.Users) == 0 || containsLogin(a.From.Users, user)
}

// remainingApprovers are the people by name who could still approve; nil when anybody may.
func (a *Approvals) remainingApprovers(counted []string, f Facts) []string {
	var left []string
	for _, u := range a.From.Users {
		if named := (Account{Login: u}); !containsLogin(counted, u) && !slices.ContainsFunc(f.Authors, named.Matches) && !named.Matches(f.Bot) {
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
