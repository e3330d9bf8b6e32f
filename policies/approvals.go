package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// Approvals asks for reviews on the forge. The release's authors, Liftlock's account and people
// without write permission never count.
type Approvals struct {
	// How many people must approve.
	Count int `yaml:"count" json:"count" jsonschema:"required,minimum=1"`
	// Whose approval counts. Not set: anybody who may write.
	From From `yaml:"from" json:"from"`
	// A request for changes, by somebody whose approval would count, blocks until it is dismissed
	// or that person approves.
	Veto *bool `yaml:"veto" json:"veto,omitempty" jsonschema:"default=true"`
	// How long an approval counts: 72h. Not set: as long as it stands.
	MaxAge time.Duration `yaml:"maxAge" json:"maxAge,omitempty"`
	// Nobody counts in two approvals gates of the environment.
	Distinct bool `yaml:"distinct" json:"distinct,omitempty"`
}

// From narrows whose approval counts. It is anybody whom one of its keys names; without keys,
// anybody who may write to the repository.
type From struct {
	// Teams on the forge, as organisation/team, with nested teams.
	Teams []string `yaml:"teams" json:"teams,omitempty"`
	// Logins on the forge.
	Users []string `yaml:"users" json:"users,omitempty"`
	// Each changed file needs an approval by one of its owners in the base branch's CODEOWNERS, or
	// by one of teams or users.
	Codeowners bool `yaml:"codeowners" json:"codeowners,omitempty"`
	// With codeowners: a changed file without an owner blocks.
	Strict bool `yaml:"strict" json:"strict,omitempty"`
}

// IsEmpty says that anybody who may write to the repository is meant.
func (f *From) IsEmpty() bool { return len(f.Teams)+len(f.Users) == 0 && !f.Codeowners }

func (f From) String() string {
	if f.IsEmpty() {
		return "anybody who may write to the repository"
	}
	return wording.JoinFew(f.list(), maxDescribedUsers)
}

// brief is whom it names, for a headline.
func (f From) brief() string { return wording.JoinFew(f.list(), maxHeadlined) }

// list is whom it names.
func (f From) list() []string {
	var who []string
	if f.Codeowners {
		who = append(who, "the owners of the changed files")
	}
	return slices.Concat(who, f.Teams, f.Users)
}

// Approval is one standing review: one that approves, or, among the rejections, one that
// asks for changes.
type Approval struct {
	User     string
	UserID   int64 // of the account; 0: not known
	MayWrite bool
	Current  bool      // given on this very diff
	At       time.Time `json:",omitzero"`  // when it was given; zero: not known
	Teams    []string  `json:",omitempty"` // those of the teams that the gates ask for, which the account is in
}

// OwnedFile is a changed file with whom the base branch's CODEOWNERS names for it: logins
// and teams. None: nobody owns it.
type OwnedFile struct {
	Path   string
	Owners []string `json:",omitempty"`
}

// maxApprovals bounds how many approvals can be asked for; more is a slip of the
// keyboard that would block an environment for good.
const maxApprovals = 100

// maxDescribedUsers bounds who is named where a gate is described.
const maxDescribedUsers = 10

var _ evaluator = (*Approvals)(nil)

func (*Approvals) kindName() GateName { return GateApprovals }

func (a *Approvals) describe() string {
	return fmt.Sprintf("%s from %s; not from the release's authors", wording.Count(a.Count, "approval"), a.From)
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
	a.From.findProblems(add)
	if n := len(a.From.Users); n > 0 && n < a.Count && len(a.From.Teams) == 0 && !a.From.Codeowners {
		add("approvals.count", "%d approvals can't come from %s", a.Count, countPersons(n))
	}
	if a.MaxAge < 0 {
		add("approvals.maxAge", "must not be shorter than 0; it is %s", a.MaxAge)
	}
	return problems
}

// maxFromEntries bounds the teams, and the users, that one gate names: a team may be a call
// of the forge for each who reviews.
const maxFromEntries = 100

func (f *From) findProblems(add func(path, format string, args ...any)) {
	seen := map[string]bool{}
	check := func(list string, names []string, problem func(string) error) {
		if len(names) > maxFromEntries {
			add("approvals.from."+list, "%d are too many; at most %d", len(names), maxFromEntries)
			return
		}
		for i, name := range names {
			path := fmt.Sprintf("approvals.from.%s[%d]", list, i)
			if err := problem(name); err != nil {
				add(path, "%s", err)
			} else if seen[normalizeLogin(name)] {
				add(path, "%q is given twice", name)
			}
			seen[normalizeLogin(name)] = true
		}
	}
	check("users", f.Users, CheckLogin)
	check("teams", f.Teams, func(name string) error { _, _, err := ParseTeam(name); return err })
	if f.Strict && !f.Codeowners {
		add("approvals.from.strict", "is about codeowners; set that, or remove it")
	}
}

func (a *Approvals) evaluate(f Facts) Result {
	r := Result{Gate: a.kindName(), Outcome: Wait, Who: a.remainingApprovers(nil, f)}
	if r.Reason = a.findDoubt(f); r.Reason != "" {
		return r
	}
	t := a.countApprovals(f)
	r.Until = t.expires
	counted := fmt.Sprintf("%d of %s", len(t.counted), wording.Count(a.Count, "approval"))
	if len(t.counted) > a.Count {
		counted = fmt.Sprintf("%d approvals, %d needed", len(t.counted), a.Count)
	}
	if len(t.counted) > 0 {
		counted += " (" + strings.Join(t.counted, ", ") + ")"
	}
	var waits []string
	if more := a.Count - len(t.counted); more > 0 {
		r.Who = a.remainingApprovers(t.counted, f)
		waits = append(waits, a.explainMissing(more, r.Who))
	}
	waits = append(waits, a.listUnapproved(f, t)...)
	if len(waits) == 0 && a.Distinct {
		waits = append(waits, findShared(f)...)
	}
	r.Brief = a.describeMissing(len(t.counted), r.Who)
	if vetoes := a.findVetoes(f); len(vetoes) > 0 {
		r.Brief = wording.JoinFew(vetoes, maxHeadlined) + ", who asked for changes"
		waits = append(waits, fmt.Sprintf("changes are asked for by %s, until that review is dismissed", strings.Join(vetoes, ", ")))
		r.Who = vetoes
	}
	if len(waits) == 0 {
		r.Outcome, r.Reason, r.Brief, r.Who = Pass, counted, "", nil
		return r
	}
	waits = append(waits, t.explainUncounted()...)
	if why := a.explainRefused(f); why != "" {
		waits = append(waits, why)
	}
	r.Reason = strings.Join(append([]string{counted}, waits...), "; ")
	return r
}

// maxHeadlined bounds who is named in a headline.
const maxHeadlined = 3

// describeMissing says in a headline's few words who is waited for, and how many have approved.
func (a *Approvals) describeMissing(counted int, remaining []string) string {
	who := wording.Count(max(1, a.Count-counted), "approval")
	switch {
	case a.From.IsEmpty():
	case len(a.From.Teams) == 0 && !a.From.Codeowners && len(remaining) > 0:
		who = wording.JoinFew(remaining, maxHeadlined)
	default:
		who = a.From.brief()
	}
	return fmt.Sprintf("%s (%d of %d)", who, counted, a.Count)
}

// findDoubt says what the gate hangs on and isn't known; empty: nothing.
func (a *Approvals) findDoubt(f Facts) string {
	switch {
	case f.ApprovalsErr != "":
		return "the approvals can't be read: " + f.ApprovalsErr
	case f.AuthorsErr != "":
		return "the release's authors, whose approval would not count, can't be told: " + f.AuthorsErr
	case a.MaxAge > 0 && f.Now.IsZero():
		return "what time it is isn't known"
	case !a.From.Codeowners:
	case f.FilesErr != "":
		return "who owns the changed files can't be told: " + f.FilesErr
	case !f.FilesRead:
		return "who owns the changed files isn't read yet"
	}
	for _, team := range a.From.listTeams(f.Files) {
		if why := f.TeamsErr[normalizeLogin(team)]; why != "" {
			return "who is in the team " + team + " can't be read: " + why
		}
	}
	return ""
}

// explainMissing says who is waited for.
func (a *Approvals) explainMissing(more int, remaining []string) string {
	switch {
	case a.From.IsEmpty():
		return fmt.Sprintf("waiting for %d more from people who may write to the repository", more)
	case len(a.From.Teams) > 0 || a.From.Codeowners:
		return fmt.Sprintf("waiting for %d more from %s", more, a.From)
	case len(remaining) < more:
		// Only a change of the rules or of the release's authors can help, but a
		// dismissed or newly permitted person's review isn't excluded: it waits.
		return fmt.Sprintf("waiting for %d more, but of those who are asked only %s can still approve: the release's authors and the bot "+
			"don't count", more, countPersons(len(remaining)))
	}
	return fmt.Sprintf("waiting for %d more from %s", more, strings.Join(remaining, ", "))
}
