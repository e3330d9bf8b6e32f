package console

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
)

// The orders of components.
const (
	sortByNeed    = "need" // those that need a look first, then those where something goes on
	sortByName    = "name"
	sortByChanged = "changed" // the last changed first
)

// What is shown besides one urgency.
const (
	showAll       = "all"
	showOpen      = "open" // any urgency but well
	showAttention = "attention"
)

// shows are what can be chosen, the first where nothing is.
var shows = []string{showAll, showOpen, string(api.UrgencyBroken), string(api.UrgencyHeld), string(api.UrgencyWaiting),
	string(api.UrgencyMoving), showAttention}

// gridQuery is which components are shown, and in which order. A part of an address that makes no
// sense is left out.
type gridQuery struct {
	Query       string // words that must all be found; one may be an environment
	Show        string // showAll, showOpen, showAttention, or a urgency
	State       string // of a release in an environment, or that wants to come in; empty: any
	Environment string // the only one shown; may have * for several; empty: all
	Label       string // a selector of labels that a target's Application has; empty: any
	Sort        string
	Page        int // from 1

	Selector labelSelector // what Label says
}

// gridStates are the states that components can be chosen by.
var gridStates = []string{"verified", "verifying", "open", "waiting", "held", "degraded", "failed", "diverged", "mixed", "unreadable",
	"baseline", "closed"}

func parseGridQuery(q url.Values) gridQuery {
	text := func(name string) string {
		v := strings.TrimSpace(q.Get(name))
		if checkText(v, maxValue) != nil {
			return ""
		}
		return v
	}
	oneOf := func(name string, all ...string) string {
		if v := q.Get(name); slices.Contains(all, v) {
			return v
		}
		return all[0]
	}
	g := gridQuery{Query: text("q"), Show: oneOf("show", shows...),
		State:       oneOf("state", append([]string{""}, gridStates...)...),
		Environment: text("env"), Label: text("label"), Sort: oneOf("sort", sortByNeed, sortByName, sortByChanged), Page: 1}
	g.Selector = parseLabelSelector(g.Label)
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 && n <= 1_000_000 {
		g.Page = n
	}
	return g
}

// values is the query as it is in an address, without what goes without saying.
func (g *gridQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": g.Query, "show": strings.TrimPrefix(g.Show, showAll), "state": g.State,
		"env": g.Environment, "label": g.Label} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if g.Sort != sortByNeed {
		v.Set("sort", g.Sort)
	}
	if g.Page > 1 {
		v.Set("page", strconv.Itoa(g.Page))
	}
	return v
}

// Filtered says that not all components are chosen.
func (g *gridQuery) Filtered() bool {
	return g.Show != showAll || cmp.Or(g.Query, g.State, g.Environment, g.Label) != ""
}

// gridFilter is a query for one pipeline, whose environments its words may name.
type gridFilter struct {
	*gridQuery
	words        []string        // in lower case, without the environments
	environments map[string]bool // those that are shown; nil: all
}

func (g *gridQuery) filterFor(environments []string) gridFilter {
	f := gridFilter{gridQuery: g}
	choose := func(pattern string) bool {
		found := false
		for _, e := range environments {
			if ok, err := path.Match(pattern, e); err == nil && ok {
				if f.environments == nil {
					f.environments = map[string]bool{}
				}
				f.environments[e] = true
				found = true
			}
		}
		return found
	}
	if g.Environment != "" && !choose(g.Environment) {
		f.environments = map[string]bool{} // there is no such environment here
		return f
	}
	for _, word := range strings.Fields(strings.ToLower(g.Query)) {
		if slices.Contains(environments, word) && g.Environment == "" {
			choose(word)
			continue
		}
		f.words = append(f.words, word)
	}
	return f
}

// matches says whether a component is chosen. It has a shown environment, one of these fits the
// query, and every word is found in the component's names or in these environments.
func (g *gridFilter) matches(u *shownUnit) bool {
	isUrgency := !slices.Contains([]string{showAll, showOpen, showAttention}, g.Show)
	if isUrgency && g.environments == nil && string(u.urgency) != g.Show {
		return false // one that is broken elsewhere is no moving one
	}
	found := g.environments == nil && g.Show == showAll && g.State == "" && g.Selector.parsed == nil
	matched := make([]bool, len(g.words))
	for n, word := range g.words {
		matched[n] = strings.Contains(u.names, word)
	}
	for i := range u.component.Environments {
		e := &u.component.Environments[i]
		if g.environments != nil && !g.environments[e.Environment] {
			continue
		}
		found = found || g.matchesEnvironment(e)
		for n, word := range g.words {
			matched[n] = matched[n] || strings.Contains(u.texts[i], word)
		}
	}
	return found && !slices.Contains(matched, false)
}

func (g *gridFilter) matchesEnvironment(e *api.Environment) bool {
	if g.State != "" && e.State != g.State && (e.Incoming == nil || e.Incoming.State != g.State) {
		return false
	}
	if !g.Selector.chooses(e.Targets) {
		return false
	}
	switch g.Show {
	case showAll:
		return true
	case showOpen:
		return e.Urgency() != api.UrgencyWell
	case showAttention:
		return e.Attention()
	}
	return string(e.Urgency()) == g.Show
}

// need is how early a component comes in the order of need.
func (s *shownUnit) need() int {
	return slices.Index(api.Urgencies, s.urgency)
}

// sortUnits puts units, which are sorted by name, in an order.
func sortUnits(units []*shownUnit, by string) {
	switch by {
	case sortByNeed:
		slices.SortStableFunc(units, func(a, b *shownUnit) int { return cmp.Compare(a.need(), b.need()) })
	case sortByChanged:
		slices.SortStableFunc(units, func(a, b *shownUnit) int { return b.at.Compare(a.at) })
	}
}
