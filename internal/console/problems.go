package console

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

const (
	// fewProblems is up to how many components that need a look speak for themselves.
	fewProblems = 5
	// maxProblemGroups bounds the causes that are listed.
	maxProblemGroups = 12
	// maxExamples is how many of each are named.
	maxExamples = 5
	// fewTroubles is up to how many troubles of one cause are listed one by one.
	fewTroubles = 3
)

// problemGroup is what needs a look for the same cause.
type problemGroup struct {
	ID            string // on the page
	Pipeline, Set string // the ApplicationSet's name; empty: several, or not known
	Cause         string
	State         string
	Environments  []string
	Components    []problemExample // the first ones
	Count         int              // how many components
	More          int              // how many that aren't named
	Link          string           // to all of the pipeline that need a look
}

type problemExample struct{ Name, Link string }

// groupProblems groups what needs a look by pipeline, ApplicationSet and cause, the most
// frequent first; nil where it is little enough to be seen without.
func (se *server) groupProblems(b *gridBody, all []pipelineUnits) []problemGroup {
	if b.Counts.Attention <= fewProblems {
		return nil
	}
	type cause struct{ repo, pipeline, set, text string }
	at := map[cause]int{}
	var out []problemGroup
	for i := range all {
		p := &all[i]
		for _, u := range p.units {
			if !u.attention {
				continue
			}
			counted := map[int]bool{}
			for k := range u.component.Environments {
				e := &u.component.Environments[k]
				if !e.Attention() {
					continue
				}
				state, set, text := describeProblem(&u.component, e)
				key := cause{p.Repository, p.Name, set, state + text}
				g, ok := at[key]
				if !ok {
					g = len(out)
					at[key] = g
					q := gridQuery{Show: "attention", Sort: sortByNeed, Page: 1}
					owner := ""
					if se.reader.isAmbiguous(p.Name) {
						owner = p.Repository
					}
					out = append(out, problemGroup{ID: hashID("problem", key.repo, key.pipeline, key.set, key.text), Pipeline: p.Name,
						Set: set, Cause: text, State: state, Link: gridURL(se.pages.pageURL("pipelines", p.Name), owner, &q)})
				}
				out[g].add(se, &u.component, e.Environment, !counted[g])
				counted[g] = true
			}
		}
	}
	slices.SortStableFunc(out, func(a, b problemGroup) int { return cmp.Compare(b.Count, a.Count) })
	return out[:min(len(out), maxProblemGroups)]
}

func (p *problemGroup) add(c *server, comp *api.Component, environment string, first bool) {
	if !slices.Contains(p.Environments, environment) {
		p.Environments = append(p.Environments, environment)
	}
	if !first {
		return
	}
	p.Count++
	if len(p.Components) < maxExamples {
		p.Components = append(p.Components, problemExample{comp.Component, c.pages.componentURL(comp.Repository, comp.Pipeline,
			comp.Component)})
	} else {
		p.More++
	}
}

// describeProblem says why an environment needs a look, without what differs from component
// to component, and which ApplicationSet it is of, where it is one.
func describeProblem(c *api.Component, e *api.Environment) (state, set, text string) {
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
		state, text = "held", strings.Join(e.WaitReasons(), "; ")
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
func failedGate(e *api.Environment) string {
	for _, gates := range [][]api.Gate{incomingGates(e), revertGates(e)} {
		for i := range gates {
			if gates[i].Outcome == "fail" {
				return gates[i].Sentence()
			}
		}
	}
	return ""
}

func incomingGates(e *api.Environment) []api.Gate {
	if e.Incoming == nil {
		return nil
	}
	return e.Incoming.Gates
}

func revertGates(e *api.Environment) []api.Gate {
	if e.Revert == nil {
		return nil
	}
	return e.Revert.Gates
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

// troubleGroup is one trouble, or several of the same cause.
type troubleGroup struct {
	Parts   []string // the first ones
	More    int      // how many that aren't named
	Message string
	Since   time.Time // of the oldest
}

// groupTroubles puts troubles of the same cause into one where there are many.
func groupTroubles(all []api.Trouble) []troubleGroup {
	causes := make([]string, len(all))
	count := map[string]int{}
	for i, t := range all {
		causes[i] = generalize(t.Message, t.Part[strings.LastIndexByte(t.Part, ' ')+1:])
		count[causes[i]]++
	}
	at := map[string]int{}
	var out []troubleGroup
	for i, t := range all {
		if count[causes[i]] <= fewTroubles {
			out = append(out, troubleGroup{Parts: []string{t.Part}, Message: t.Message, Since: t.Since})
			continue
		}
		g, ok := at[causes[i]]
		if !ok {
			g = len(out)
			at[causes[i]] = g
			out = append(out, troubleGroup{Message: causes[i], Since: t.Since})
		}
		if len(out[g].Parts) < maxExamples {
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
