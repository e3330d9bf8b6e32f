package api

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// fewTroubles is up to how many troubles of one cause are listed one by one.
	fewTroubles = 3
	// maxTroubleParts is how many parts of a cause with more are named.
	maxTroubleParts = 5
)

// ProblemGroup is what needs a look for the same cause.
type ProblemGroup struct {
	Repository     string   `json:"repository"`
	Pipeline       string   `json:"pipeline"`
	ApplicationSet string   `json:"applicationSet,omitempty"` // left out: several, or not known
	State          string   `json:"state"`
	Cause          string   `json:"cause"` // … stands for what differs from component to component
	Environments   []string `json:"environments"`
	Components     []string `json:"components"`
}

// GroupProblems groups the environments that need a look by pipeline, ApplicationSet and cause, the
// most frequent first.
func GroupProblems(components []*Component) []ProblemGroup {
	type cause struct{ repo, pipeline, set, text string }
	at := map[cause]int{}
	out := []ProblemGroup{}
	for _, c := range components {
		for k := range c.Environments {
			e := &c.Environments[k]
			if !e.Attention() {
				continue
			}
			state, set, text := describeProblem(c, e)
			key := cause{c.Repository, c.Pipeline, set, state + text}
			i, ok := at[key]
			if !ok {
				i = len(out)
				at[key] = i
				out = append(out, ProblemGroup{Repository: c.Repository, Pipeline: c.Pipeline, ApplicationSet: set, State: state,
					Cause: text})
			}
			g := &out[i]
			if !slices.Contains(g.Environments, e.Environment) {
				g.Environments = append(g.Environments, e.Environment)
			}
			if n := len(g.Components); n == 0 || g.Components[n-1] != c.Component {
				g.Components = append(g.Components, c.Component)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b ProblemGroup) int { return cmp.Compare(len(b.Components), len(a.Components)) })
	return out
}

// describeProblem says why an environment needs a look, without what differs from component
// to component, and which ApplicationSet it is of, where it is one.
func describeProblem(c *Component, e *Environment) (state, set, text string) {
	state, text = e.State, e.Reason
	var names []string
	for i := range e.Targets {
		t := &e.Targets[i]
		names = append(names, t.Name)
		if i > 0 && set != t.ApplicationSet {
			set = ""
		} else {
			set = t.ApplicationSet
		}
	}
	switch failing := failedGate(e); {
	case slices.Contains([]string{"degraded", "failed", "diverged", "mixed", "unreadable"}, e.State):
	case e.Incoming != nil && e.Incoming.State == "held":
		state, text = "held", cmp.Or(e.Incoming.Headline, strings.Join(e.WaitReasons(), "; "))
	case failing != "":
		state, text = "failed", failing
	case e.Stuck() != nil:
		state, text = string(e.Stuck().Code), e.Stuck().Text
	case e.Revert != nil:
		state, text = "reverting", "a revert is open"
	default:
		for i := range e.Targets {
			if e.Targets[i].Untold {
				state, text = "unclear", e.Targets[i].Reason
				break
			}
		}
	}
	return state, set, generalize(text, append(names, c.Component, e.Name, e.Environment)...)
}

// failedGate is what a gate says that fails; empty: none does.
func failedGate(e *Environment) string {
	gates := e.allGates()
	for i := range gates {
		if gates[i].Outcome == "fail" {
			return gates[i].Sentence()
		}
	}
	return ""
}

// particulars are what differs between two sentences of the same cause: digests, times and numbers.
var particulars = regexp.MustCompile(`\b[0-9a-f]{12,64}\b|\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z\b|#?\b[0-9]+(?:\.[0-9]+)*\b`)

// generalize takes out of a sentence what differs between two of the same cause.
func generalize(text string, names ...string) string {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, n := range names {
		if n != "" {
			text = replaceWord(text, n)
		}
	}
	return strings.TrimPrefix(particulars.ReplaceAllString(text, "…"), "…: ")
}

// replaceWord replaces a name where it is no part of a longer word.
func replaceWord(text, name string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, name)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(name)
		b.WriteString(text[:i])
		if i > 0 && isWordByte(text[i-1]) || end < len(text) && isWordByte(text[end]) {
			b.WriteString(name)
		} else {
			b.WriteString("…")
		}
		text = text[end:]
	}
}

func isWordByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return false
}

// TroubleGroup is one trouble, or several of the same cause.
type TroubleGroup struct {
	Parts   []string // the first ones
	More    int      // how many that aren't named
	Message string
	Since   time.Time // of the oldest
}

// GroupTroubles puts troubles of the same cause into one where there are many.
func GroupTroubles(all []Trouble) []TroubleGroup {
	causes := make([]string, len(all))
	count := map[string]int{}
	for i, t := range all {
		causes[i] = generalize(t.Message, t.Part[strings.LastIndexByte(t.Part, ' ')+1:])
		count[causes[i]]++
	}
	at := map[string]int{}
	var out []TroubleGroup
	for i, t := range all {
		if count[causes[i]] <= fewTroubles {
			out = append(out, TroubleGroup{Parts: []string{t.Part}, Message: t.Message, Since: t.Since})
			continue
		}
		g, ok := at[causes[i]]
		if !ok {
			g = len(out)
			at[causes[i]] = g
			out = append(out, TroubleGroup{Message: causes[i], Since: t.Since})
		}
		if len(out[g].Parts) < maxTroubleParts {
			out[g].Parts = append(out[g].Parts, t.Part)
		} else {
			out[g].More++
		}
		if !t.Since.IsZero() && (out[g].Since.IsZero() || t.Since.Before(out[g].Since)) {
			out[g].Since = t.Since
		}
	}
	return out
}
