package prtext

import (
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	maxSubject    = 100 // characters of a commit's subject
	openCommits   = 5   // of a release, before the rest is folded
	maxCommits    = 30  // that are listed at all: the comparison has the others
	namedAuthors  = 6
	namedReleases = 6
)

// ReleaseCommits are the commits that made a release in one source environment, beyond those that
// the target environment has. With a Repository, they are the new ones in the application's own
// repository from one revision to another.
type ReleaseCommits struct {
	Source     string
	Repository string // owner/name of the application's own repository
	From, To   string // revisions of it; both are empty where there are none
	Image      string // with Err: of which it can't be read what it was built from; then there is no Repository
	Err        string // why its commits can't be read; then there are none
	Since      string // what people call the release that is there; empty: what is there was never in the source, as far as is known
	CompareURL string // the forge's comparison of the two, empty without one
	Commits    []ReleaseCommit
	More       bool                // there may be more than Commits
	Skipped    []promotion.Release // that were in the source between the two
}

// ReleaseCommit is a commit, as Git has it: its maker wrote its subject and authors.
type ReleaseCommit struct {
	SHA, Subject, URL string
	Authors           []string
	At                time.Time
}

// writeReleaseCommits says who made what moves.
func writeReleaseCommits(p *page, in Input) {
	if in.Batch || len(in.Members) == 0 { // a batch has it in one table with where its releases have been
		return
	}
	m := &in.Members[0]
	if len(m.Commits) == 0 && m.CommitsErr == "" {
		return
	}
	p.writeParagraph("### Who made it")
	if m.CommitsErr != "" {
		p.writeParagraph("The commits could not be read: %s", escapeText(m.CommitsErr, maxReason))
	}
	for i := range m.Commits {
		made := &m.Commits[i]
		end := ":"
		if len(made.Commits) == 0 {
			end = "."
		}
		p.writeParagraph("%s%s", describeReleaseCommits(in, made, m.Name), end)
		var rows []string
		for _, c := range made.Commits[:min(len(made.Commits), maxCommits)] {
			rows = append(rows, "- "+describeCommit(c))
		}
		p.writeFoldedAfter(openCommits, "", rows)
		if more := len(made.Commits) - len(rows); more > 0 {
			p.writeParagraph("And %d older ones that aren't listed here.", more)
		}
		if skipped := describeSkipped(in, m, made); skipped != "" {
			p.writeParagraph("%s.", skipped)
		}
	}
}

// describeReleaseCommits says how many commits made a release, since what, and by whom.
func describeReleaseCommits(in Input, made *ReleaseCommits, name string) string {
	source := escapeText(made.Source, maxName)
	s := countCommits(made) + " in " + source
	switch {
	case made.Image != "":
		return "What the image " + codeSpan(made.Image, maxName) + " was built from can't be read: " +
			escapeText(strings.TrimSuffix(made.Err, "."), maxReason)
	case made.Repository != "" && made.Err != "":
		return "The commits of " + codeSpan(made.Repository, maxName) + describeRange(made) + " can't be read: " +
			escapeText(strings.TrimSuffix(made.Err, "."), maxReason)
	case made.Repository != "":
		s = countCommits(made) + " in the application's own repository " + codeSpan(made.Repository, maxName) + describeRange(made)
	case made.Since != "":
		s += " since " + codeSpan(made.Since, maxName)
	default:
		s = "What " + escapeText(in.Environment, maxName) + " has now was never in " + source + ", as far as is known. " + s + " made " +
			codeSpan(name, maxName)
	}
	if by := listAuthors(made); by != "" {
		s += ", by " + by + " as the commits say"
	}
	if made.CompareURL != "" {
		s += " ([compare](" + escapeURL(made.CompareURL) + "))"
	}
	return s
}

// describeRange is from where to where an application's commits are.
func describeRange(made *ReleaseCommits) string {
	if made.From == "" && made.To == "" {
		return ""
	}
	return " from " + codeSpan(made.From, maxName) + " to " + codeSpan(made.To, maxName)
}

func countCommits(made *ReleaseCommits) string {
	if made.More && len(made.Commits) == 0 {
		return "More commits than the forge lists"
	}
	s := wording.Count(len(made.Commits), "commit")
	if made.More {
		s = "At least " + s
	}
	return s
}

// listAuthors are those whom the commits name, who made the newest first.
func listAuthors(made *ReleaseCommits) string {
	var names []string
	for _, c := range made.Commits {
		for _, a := range c.Authors {
			if a = escapeText(a, maxName); !slices.Contains(names, a) {
				names = append(names, a)
			}
		}
	}
	return joinAnd(listSome(names, namedAuthors, func(s string) string { return s }))
}

func describeCommit(c ReleaseCommit) string {
	s := codeSpan(wording.Short(c.SHA), maxName)
	if c.URL != "" {
		s = "[" + s + "](" + escapeURL(c.URL) + ")"
	}
	if c.Subject != "" {
		s += " " + escapeText(c.Subject, maxSubject)
	}
	by := listSome(c.Authors, openRows, func(a string) string { return escapeText(a, maxName) })
	if day := formatDay(c.At); day != "" {
		by = append(by, day)
	}
	if len(by) > 0 {
		s += " (" + strings.Join(by, ", ") + ")"
	}
	return s
}

// describeSkipped names the releases that the environment never gets, and how those fared
// elsewhere; empty where there are none.
func describeSkipped(in Input, m *Member, made *ReleaseCommits) string {
	if len(made.Skipped) == 0 {
		return ""
	}
	return "Skipped on the way: " + strings.Join(listSome(made.Skipped, namedReleases, func(r promotion.Release) string {
		s := codeSpan(r.String(), maxName)
		if fate := describeFate(m, in.Environment, r.ID); fate != "" {
			s += " (" + fate + ")"
		}
		return s
	}), ", ")
}

// describeFate says what speaks against a release that is skipped: that it degraded
// somewhere, or that it has been here already.
func describeFate(m *Member, environment, release string) string {
	if m.Facts == nil {
		return ""
	}
	var out []string
	for i := range m.Facts.Envs {
		e := &m.Facts.Envs[i]
		var here, degraded bool
		for k := range e.History {
			if a := &e.History[k]; a.Release == release {
				here, degraded = true, degraded || !a.DegradedAt.IsZero()
			}
		}
		switch name := escapeText(e.Name, maxName); {
		case degraded:
			out = append(out, "degraded in "+name)
		case here && e.Name == environment:
			out = append(out, "was in "+name+" before")
		}
	}
	return strings.Join(out, ", ")
}
