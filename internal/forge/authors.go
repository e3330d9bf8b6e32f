package forge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// MaxCommits of one pull request or push are ErrTooMany: GitHub lists no more of a pull request,
	// and doesn't say that there are more ("List commits on a pull request").
	MaxCommits = 250
	// MaxPushes is how many moves of a branch are looked through for one.
	MaxPushes = 1000
	// maxCoAuthors bounds whom one commit's message can name.
	maxCoAuthors = 50
)

// CommitAuthors is who made a commit, as far as the commit says: anybody can write
// what they like there, so it never tells who didn't.
type CommitAuthors struct {
	Commit       string
	Contributors []Contributor // its author, its committer and its co-authors, each once
	Pusher       User          // of a pull request's: who brought it to its branch; zero: not known
}

// Commit is a commit for people: its author's name and its message are what anybody
// wrote there.
type Commit struct {
	SHA, Author, Message string
	At                   time.Time // when it was committed
}

// Contributor is somebody whom a commit names.
type Contributor struct {
	Name, Email string // as the commit says
	User        User   // the account that the forge connects with the address; zero: none
}

// Push is a move of a branch, by a push or a merge.
type Push struct {
	Before string // the commit that it was at; empty: it was made
	After  string // the commit that it came to; empty: it was deleted
	By     User   // zero: the account is gone
	Merge  bool   // a pull request's merge, as far as the forge tells
}

// AddContributor adds somebody to those who made the commit, once for each address and
// account.
func (c *CommitAuthors) AddContributor(p Contributor) {
	same := func(o Contributor) bool { return o.User == p.User && strings.EqualFold(o.Email, p.Email) }
	if !slices.ContainsFunc(c.Contributors, same) {
		c.Contributors = append(c.Contributors, p)
	}
}

// coAuthorLine is a trailer that names co-authors. Both forges take it in any case,
// Gitea names so the one for whom it commits, and Git lets blanks stand before a
// trailer's colon.
var coAuthorLine = regexp.MustCompile(`(?im)^[ \t]*co-(?:authored|committed)-by[ \t]*:[ \t]*(.*)$`)

// CoAuthors are the people whom a commit's message names as its co-authors, all of a line that
// names several. A line that can't be read is a name without an address. tooMany: there are more
// than are read.
func CoAuthors(message string) (contributors []Contributor, tooMany bool) {
	for _, m := range coAuthorLine.FindAllStringSubmatch(message, maxCoAuthors+1) {
		for p, rest := cutContributor(m[1]); ; p, rest = cutContributor(rest) {
			if len(contributors) == maxCoAuthors {
				return contributors, true
			}
			contributors = append(contributors, p)
			if rest == "" {
				break
			}
		}
	}
	return contributors, false
}

// cutContributor reads the first name and address of a text; rest is what follows them
// but for what stands between people. An address ends also where the next begins: it
// mustn't hide that one.
func cutContributor(text string) (p Contributor, rest string) {
	name, after, _ := strings.Cut(text, "<")
	email := after
	if i := strings.IndexAny(after, "<>"); i >= 0 {
		email, rest = after[:i], after[i:]
	}
	rest = strings.TrimFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(">,;.&", r) })
	return Contributor{Name: strings.TrimSpace(name), Email: strings.TrimSpace(email)}, strings.TrimPrefix(rest, "and ")
}

// noReply is an address that GitHub gives to an account: "Setting your commit email
// address" tells of both forms.
var noReply = regexp.MustCompile(`(?i)^(?:([0-9]{1,18})\+)?([a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\[bot\])?)@users\.noreply\.(.+)$`)

// ParseNoReply reads the account out of an address that GitHub gave to it; host is
// GitHub's own. The older form has no number.
func ParseNoReply(email, host string) (User, bool) {
	m := noReply.FindStringSubmatch(email)
	if m == nil || !strings.EqualFold(m[3], host) {
		return User{}, false
	}
	u := User{Login: m[2], Bot: strings.HasSuffix(m[2], "[bot]")}
	u.ID, _ = strconv.ParseInt(m[1], 10, 64) // nothing but digits, or nothing: 0
	return u, true
}

// RequireFewCommits is an error of the kind ErrTooMany where a call has found MaxCommits
// commits or more; op says which call.
func RequireFewCommits(op string, n int) error {
	if n < MaxCommits {
		return nil
	}
	return &Error{Op: op, Kind: ErrTooMany, Message: fmt.Sprintf("there are %d commits or more", MaxCommits)}
}
