package appset

import (
	"fmt"
	"math"
	"regexp"

	"github.com/liftlock/liftlock/internal/wording"
)

// How many Applications a group of problems names.
const (
	NameFew = 3           // where people read it among other things
	NameAll = math.MaxInt // where it is part of the answer which Applications there are
)

// quoted are a message's quotations, which may differ where the cause is one.
var quoted = regexp.MustCompile(`"[^"]*"`)

// nameSets is how many ApplicationSets a problem names that several have.
const nameSets = 5

// GroupProblems makes one problem of those that several Applications of an ApplicationSet have for
// one cause. So one typo in a template is one line, however many Applications the set generates.
// The line names at most named of them. A problem of several ApplicationSets, such as unknown
// clusters, is one line too. The others stay as they are. The order is that of each group's first
// problem.
func GroupProblems(list []Problem, named int) []Problem {
	type cause struct{ file, set, message string }
	groups := map[cause][]Problem{}
	var order []cause
	for _, p := range list {
		c := cause{p.File, p.ApplicationSet, p.Message}
		if p.Application != "" {
			c.message = "\x00" + quoted.ReplaceAllString(p.Message, `""`)
		} else if p.ApplicationSet != "" {
			c.file, c.set = "", "" // whichever has it
		}
		if groups[c] == nil {
			order = append(order, c)
		}
		groups[c] = append(groups[c], p)
	}
	out := make([]Problem, 0, len(order))
	for _, c := range order {
		g := groups[c]
		if len(g) == 1 || g[0].Application == "" && g[0].ApplicationSet == "" {
			out = append(out, g...)
			continue
		}
		var names []string
		if g[0].Application == "" {
			for _, p := range g {
				names = append(names, p.setName())
			}
			out = append(out, Problem{Message: fmt.Sprintf("%d ApplicationSets (%s): %s", len(g), wording.JoinFew(names, nameSets),
				g[0].Message)})
			continue
		}
		same := true
		for _, p := range g {
			names = append(names, p.Application)
			same = same && p.Message == g[0].Message
		}
		message := g[0].Message
		if !same {
			message = "of the first: " + message
		}
		out = append(out, Problem{File: c.file, ApplicationSet: c.set, Message: fmt.Sprintf("%d Applications (%s): %s", len(g),
			wording.JoinFew(names, named), message)})
	}
	return out
}

// setName is what the problem's ApplicationSet is called, for a list of several.
func (p Problem) setName() string {
	if p.File == "" {
		return p.ApplicationSet
	}
	return p.ApplicationSet + " in " + p.File
}
