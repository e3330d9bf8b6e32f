package prtext

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// Render writes an open promotion's or revert's page. It is total: what the
// input doesn't know is left out.
func Render(in Input) Page {
	p := Page{
		Title:  pageTitle(in),
		Labels: []string{promotion.LabelOurs, EnvironmentLabel(in.Environment)},
		Status: pullStatus(in),
	}
	if in.Revert {
		p.Body = truncateBody(revertBody(in))
	} else {
		p.Body = truncateBody(promotionBody(in))
	}
	p.Comment, p.Notice = openComment(in), openNotice(summarizeGates(in))
	return p
}

// EnvironmentLabel is the label env/<environment>, cut to what a forge takes. It
// informs people only, so that two long names may share one.
func EnvironmentLabel(environment string) string {
	return wording.Clip("env/"+plainLine(environment, maxName), maxLabel)
}

func pageTitle(in Input) string { return formatTitle(in, previousReleaseName(in)) }

// formatTitle is the title, for a revert with the name of what comes back.
func formatTitle(in Input, back string) string {
	var b strings.Builder
	unit, env := plainLine(subjectOf(in), maxName), plainLine(in.Environment, maxName)
	if in.Revert {
		fmt.Fprintf(&b, "Revert %s in %s", unit, env)
		switch from, to := plainLine(releaseNameOf(in), maxName), plainLine(back, maxName); {
		case from != "" && to != "":
			fmt.Fprintf(&b, ": back from %s to %s", from, to)
		case from != "":
			fmt.Fprintf(&b, ": take back %s", from)
		}
	} else {
		fmt.Fprintf(&b, "Promote %s to %s", unit, env)
		if n := plainLine(releaseNameOf(in), maxName); n != "" {
			b.WriteString(": " + n)
		}
	}
	return wording.Clip(b.String(), maxTitle)
}

func componentOf(in Input) string {
	if in.Batch {
		return promotion.BatchName
	}
	return in.component().Unit.Component
}

// releaseNameOf is the release for people.
func releaseNameOf(in Input) string {
	return cmp.Or(in.Name, wording.Short(in.Release))
}

// previousReleaseName is the name of the release that a revert brings back: by the values of its
// fields, else by the environment's release before; empty when neither tells.
func previousReleaseName(in Input) string {
	if to := restoredValue(in); to != "" {
		return to
	}
	e := environmentOf(in)
	if e == nil || in.Release == "" {
		return ""
	}
	found := false
	for i := range e.History {
		a := &e.History[i]
		if found && a.Release != in.Release {
			return promotion.Release{ID: a.Release, Name: a.Name}.String()
		}
		found = found || a.Release == in.Release
	}
	return ""
}

// restoredValue is the one value that all fields are set to; empty when they differ.
func restoredValue(in Input) string {
	to := ""
	for i, c := range in.Changes {
		if i > 0 && c.New != to {
			return ""
		}
		to = c.New
	}
	return to
}

// environmentOf is the facts' entry for the page's environment, of several components the
// first one's; nil without one.
func environmentOf(in Input) *promotion.Env {
	if len(in.Members) == 0 {
		return nil
	}
	return in.Members[0].envIn(in.Environment)
}

// envIn is the facts' entry for an environment; nil without one.
func (m *Member) envIn(name string) *promotion.Env {
	if m.Facts == nil {
		return nil
	}
	i := slices.IndexFunc(m.Facts.Envs, func(e promotion.Env) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Facts.Envs[i]
}

// stateIn is what the decision says of an environment; nil when it says nothing.
func (m *Member) stateIn(name string) *promotion.EnvState {
	if m.Decision == nil {
		return nil
	}
	return m.Decision.Env(name)
}

// pullRef is a pull request of the repository; forges link it both ways.
func pullRef(number int) string {
	if number <= 0 {
		return "the promotion"
	}
	return "#" + strconv.Itoa(number)
}

// linkReason is an outside reason in which the numbers of this component's own pull requests stay
// links. No other number becomes one, none of another repository. None does behind a word by which
// forges close pull requests, as the reason may quote anybody.
func linkReason(in Input, reason string) string {
	s := escapeText(reason, maxReason)
	if !strings.Contains(s, "#"+zeroWidthSpace) {
		return s
	}
	own := ownPullNumbers(in)
	var b strings.Builder
	end := 0
	for _, at := range reference.FindAllStringSubmatchIndex(s, -1) {
		sign, number := s[at[2]:at[3]], s[at[4]:at[5]]
		if !own[number] || closingWord.MatchString(s[:at[2]]) {
			continue
		}
		b.WriteString(s[end:at[2]])
		b.WriteString(strings.TrimSuffix(sign, zeroWidthSpace) + number)
		end = at[5]
	}
	return b.String() + s[end:]
}

var (
	// reference is a number in an escaped text that stands by itself.
	reference = regexp.MustCompile(`(?:^\\?|[\s(])(#` + zeroWidthSpace + `)([0-9]+)\b`)
	// closingWord ends what has a forge close what is named next: GitHub, "Linking a pull request to an issue";
	// GitLab, "Default closing pattern"; Gitea, "Actionable references".
	closingWord = regexp.MustCompile(`(?i)\b(?:clos|fix|resolv|implement|reopen)[a-z]*[:\s(]*$`)
)

// ownPullNumbers are those of the pull requests that Liftlock opened for the component.
func ownPullNumbers(in Input) map[string]bool {
	own := map[string]bool{strconv.Itoa(in.Number): true, strconv.Itoa(in.RevertedPull): true}
	add := func(n int) { own[strconv.Itoa(n)] = true }
	for _, m := range in.Members {
		if m.Facts == nil {
			continue
		}
		for i := range m.Facts.Envs {
			e := &m.Facts.Envs[i]
			for _, p := range []*promotion.Pull{e.Open, e.Revert} {
				if p != nil {
					add(p.Number)
				}
			}
			for j := range e.PastPulls {
				add(e.PastPulls[j].Number)
			}
			add(e.Landed.Value.Pull)
		}
	}
	delete(own, "0")
	return own
}
