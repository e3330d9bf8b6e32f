package console

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/graph"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// rowsPerPage is how many components one page shows.
	rowsPerPage = 100
	// rowsPerSection is how many a page shows of each pipeline where there are several; the
	// rest is on the pipeline's own.
	rowsPerSection = 25
	// maxColumns is how many environments have a column of their own; of more, those alike
	// share one.
	maxColumns = 8
	// homeEvents is how many events the first page shows.
	homeEvents = 12
)

// The orders of components.
const (
	sortByNeed    = "need" // those that need a look first, then those where something goes on
	sortByName    = "name"
	sortByChanged = "changed" // the last changed first
)

// gridQuery is which components are shown, and in which order. What makes no sense in an
// address is left out.
type gridQuery struct {
	Query       string // words that must all be found; one may be an environment
	Show        string // all, moving, waiting or attention
	State       string // of a release in an environment, or that wants to come in; empty: any
	Environment string // the only one that is looked at; may have * for several; empty: all
	Sort        string
	Page        int // from 1
}

// gridStates are the states that components can be chosen by.
var gridStates = []string{"verified", "verifying", "open", "waiting", "held", "degraded", "failed", "diverged", "mixed", "unreadable", "baseline", "closed"}

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
	g := gridQuery{Query: text("q"), Show: oneOf("show", "all", "moving", "waiting", "attention"), State: oneOf("state", append([]string{""}, gridStates...)...),
		Environment: text("env"), Sort: oneOf("sort", sortByNeed, sortByName, sortByChanged), Page: 1}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 && n <= 1_000_000 {
		g.Page = n
	}
	return g
}

// values is the query as it is in an address, without what goes without saying.
func (g *gridQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": g.Query, "show": strings.TrimPrefix(g.Show, "all"), "state": g.State, "env": g.Environment} {
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
	return g.Query != "" || g.Show != "all" || g.State != "" || g.Environment != ""
}

// gridFilter is a query for one pipeline, whose environments its words may name.
type gridFilter struct {
	*gridQuery
	words        []string        // in lower case, without the environments
	environments map[string]bool // that are looked at; nil: all
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

// matches says whether a component is chosen: it has an environment that is looked at, one
// of these is as the query says, and every word is found in the component's names or in
// these environments.
func (f *gridFilter) matches(u *shownUnit) bool {
	found := f.environments == nil && f.Show == "all" && f.State == ""
	matched := make([]bool, len(f.words))
	for n, word := range f.words {
		matched[n] = strings.Contains(u.names, word)
	}
	for i := range u.component.Environments {
		e := &u.component.Environments[i]
		if f.environments != nil && !f.environments[e.Environment] {
			continue
		}
		found = found || f.matchesEnvironment(e)
		for n, word := range f.words {
			matched[n] = matched[n] || strings.Contains(u.texts[i], word)
		}
	}
	return found && !slices.Contains(matched, false)
}

func (f *gridFilter) matchesEnvironment(e *api.Environment) bool {
	if f.State != "" && e.State != f.State && (e.Incoming == nil || e.Incoming.State != f.State) {
		return false
	}
	switch f.Show {
	case "moving":
		return e.Moving()
	case "waiting":
		return e.Waiting()
	case "attention":
		return e.Attention()
	}
	return true
}

// need is how early a component comes in the order of need.
func (u *shownUnit) need() int {
	switch {
	case u.attention:
		return 0
	case u.moving || u.waiting:
		return 1
	}
	return 2
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

// gridBody is the body of the first page, and of a pipeline's.
type gridBody struct {
	gridQuery
	Pipeline     string // only this one; empty: all
	Pipelines    []gridSection
	Counts       api.Counts
	Compares     bool // a pipeline can be compared with what runs
	Environments []string
	States       []string
	Filters      []filter
	Problems     []problemGroup
	Graph        *pipelineGraph // of a pipeline's own page; nil: not known
	Events       []api.Event
	Skips        skipCount
}

// gridSection is a pipeline with the components that are shown.
type gridSection struct {
	api.Pipeline
	Columns []graph.Group
	Rows    []*gridRow
	Chosen  int    // how many the filter chooses
	First   int    // the number of the first one that is shown
	All     string // the address of all that are chosen; empty: they are here

	// Addresses of other parts of them; empty: there is none.
	Before, After string
}

// Last is the number of the last one that is shown.
func (s *gridSection) Last() int { return s.First + len(s.Rows) - 1 }

// ListID names the section's rows on the page.
func (s *gridSection) ListID() string { return "rows-" + s.Repository + "-" + s.Name }

// filter is a link that shows a part of the components.
type filter struct {
	Name, Label string
	Count       int
	Link        string
}

func (c *server) homePage(w http.ResponseWriter, r *http.Request) { c.renderGrid(w, r, "") }

func (c *server) pipelinePage(w http.ResponseWriter, r *http.Request) {
	c.renderGrid(w, r, r.PathValue("pipeline"))
}

// renderGrid shows components × environments. A query that makes no sense shows everything.
func (c *server) renderGrid(w http.ResponseWriter, r *http.Request, name string) {
	s, err := c.reader.sharedSnapshot(r.Context())
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	repo := r.URL.Query().Get("repository")
	all := s.groupUnits(repo, name)
	if name != "" && len(all) == 0 {
		c.renderError(w, r, apiErrorf(http.StatusNotFound, "There is no pipeline %q with a component.", name))
		return
	}
	b := &gridBody{gridQuery: parseGridQuery(r.URL.Query()), Pipeline: name, States: gridStates, Compares: c.opts.Differences != nil}
	for i := range all {
		p := &all[i]
		b.Counts.Components += p.Counts.Components
		b.Counts.Moving += p.Counts.Moving
		b.Counts.Waiting += p.Counts.Waiting
		b.Counts.Attention += p.Counts.Attention
		for _, e := range p.Environments {
			if !slices.Contains(b.Environments, e) {
				b.Environments = append(b.Environments, e)
			}
		}
	}
	base := c.linkPrefix + r.URL.Path
	for i := range all {
		section, err := c.buildSection(b, &all[i], base, repo, len(all) == 1)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		if section.Chosen > 0 {
			b.Pipelines = append(b.Pipelines, *section)
		}
	}
	b.Filters, b.Problems = b.filterLinks(base, repo), c.groupProblems(b, all)
	if name != "" && len(all) == 1 {
		b.Graph = c.drawPipeline(&all[0])
	}
	events, err := c.opts.Store.Events(r.Context(), store.EventFilter{Repo: repo, Pipeline: name, Newest: true, Limit: homeEvents})
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	b.Events = c.reader.buildEvents(events)
	if b.Skips, err = c.countSkips(r.Context(), all, name); err != nil {
		c.renderError(w, r, err)
		return
	}
	c.renderPage(w, r, http.StatusOK, "home", newPage(s, cmp.Or(name, "Pipelines"), "pipelines", b))
}

// buildSection chooses and renders the rows of a pipeline; alone, it is shown in pages.
func (c *server) buildSection(b *gridBody, p *pipelineUnits, base, repo string, alone bool) (*gridSection, error) {
	f := b.filterFor(p.Environments)
	var chosen []*shownUnit
	for _, u := range p.units {
		if f.matches(u) {
			chosen = append(chosen, u)
		}
	}
	sortUnits(chosen, b.Sort)
	out := &gridSection{Pipeline: p.Pipeline, Columns: graph.Collapse(graphNodes(&p.Pipeline), maxColumns), Chosen: len(chosen), First: 1}
	link := func(page int) string {
		q := b.gridQuery
		q.Page = page
		return gridURL(base, repo, &q)
	}
	switch {
	case alone:
		first := min((b.Page-1)*rowsPerPage, max(0, (len(chosen)-1)/rowsPerPage*rowsPerPage))
		last := min(first+rowsPerPage, len(chosen))
		out.First = first + 1
		if first > 0 {
			out.Before = link(first / rowsPerPage)
		}
		if last < len(chosen) {
			out.After = link(first/rowsPerPage + 2)
		}
		chosen = chosen[first:last]
	case len(chosen) > rowsPerSection:
		q := b.gridQuery
		q.Page = 1
		owner := ""
		if c.reader.isAmbiguous(p.Name) {
			owner = p.Repository
		}
		out.All = gridURL(c.pages.pageURL("pipelines", p.Name), owner, &q)
		chosen = chosen[:rowsPerSection]
	}
	for _, u := range chosen {
		row, err := c.pages.renderRow(u, out.Columns)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// graphNodes are a pipeline's environments with those right before each; where that isn't
// known, each stands alone.
func graphNodes(p *api.Pipeline) []graph.Node {
	after := map[string][]string{}
	for _, e := range p.Graph {
		after[e.Name] = e.After
	}
	nodes := make([]graph.Node, 0, len(p.Environments))
	for _, e := range p.Environments {
		nodes = append(nodes, graph.Node{ID: e, After: after[e]})
	}
	return nodes
}

// gridURL is the address of a grid with a query.
func gridURL(base, repo string, g *gridQuery) string {
	v := g.values()
	if repo != "" {
		v.Set("repository", repo)
	}
	if len(v) == 0 {
		return base
	}
	return base + "?" + v.Encode()
}

func (b *gridBody) filterLinks(base, repo string) []filter {
	all := []filter{
		{Name: "all", Label: "all", Count: b.Counts.Components},
		{Name: "moving", Label: "moving", Count: b.Counts.Moving},
		{Name: "waiting", Label: "waiting", Count: b.Counts.Waiting},
		{Name: "attention", Label: "need a look", Count: b.Counts.Attention},
	}
	for i := range all {
		q := b.gridQuery
		q.Show, q.Page = all[i].Name, 1
		all[i].Link = gridURL(base, repo, &q)
	}
	return all
}

// gridRow is a component's row as it is on a page, with marks.
type gridRow struct{ html template.HTML }

// HTML is the row.
func (r *gridRow) HTML() template.HTML { return r.html }

// rowCache keeps a unit's rendered row, for as long as the unit stays as it is.
type rowCache struct {
	mu   sync.Mutex
	rows map[string]*gridRow // by the columns
}

// maxRowForms bounds the forms in which one row is kept: pipelines' columns seldom change.
const maxRowForms = 4

// rowData is what a row's template is given.
type rowData struct {
	*api.Component
	ID    string
	Cells []cellData
}

// cellData is a cell: an environment, or what is to be said of several.
type cellData struct {
	Column  string
	Repo    string
	Env     *api.Environment  // nil: there are several, or the component has none here
	Members []api.Environment // of several
	Tally   []stateCount      // how many are how, the worst first
	Names   []nameCount       // how many have what, the most common first
}

type stateCount struct {
	State string
	Count int
}

type nameCount struct {
	Name  string
	Count int
}

// renderRow renders a component's row, or gives the one that was rendered before.
func (p *pages) renderRow(u *shownUnit, columns []graph.Group) (*gridRow, error) {
	var key strings.Builder
	fmt.Fprint(&key, p.isAmbiguous(u.component.Pipeline))
	for i := range columns {
		fmt.Fprintf(&key, " %q%q", columns[i].ID, columns[i].Members)
	}
	u.rows.mu.Lock()
	defer u.rows.mu.Unlock()
	if row := u.rows.rows[key.String()]; row != nil {
		return row, nil
	}
	data := rowData{Component: &u.component, ID: "c-" + u.component.Repository + "-" + u.component.Pipeline + "-" + u.component.Component}
	for i := range columns {
		data.Cells = append(data.Cells, buildCell(&u.component, &columns[i]))
	}
	var b bytes.Buffer
	if err := p.templates["home"].ExecuteTemplate(&b, "row", data); err != nil {
		return nil, fmt.Errorf("render the row of %s: %w", u.component.Component, err)
	}
	row := &gridRow{template.HTML(b.String())}
	if u.rows.rows == nil || len(u.rows.rows) >= maxRowForms {
		u.rows.rows = map[string]*gridRow{}
	}
	u.rows.rows[key.String()] = row
	return row, nil
}

// buildCell makes the cell of a component in a column.
func buildCell(c *api.Component, column *graph.Group) cellData {
	cell := cellData{Column: column.ID, Repo: c.Repository}
	for i := range c.Environments {
		if slices.Contains(column.Members, c.Environments[i].Environment) {
			cell.Members = append(cell.Members, c.Environments[i])
		}
	}
	if len(column.Members) == 1 {
		if len(cell.Members) == 1 {
			cell.Env = &cell.Members[0]
		}
		cell.Members = nil
		return cell
	}
	states, names := map[string]int{}, map[string]int{}
	for i := range cell.Members {
		states[cell.Members[i].State]++
		names[cell.Members[i].Name]++
	}
	for state, n := range states {
		cell.Tally = append(cell.Tally, stateCount{state, n})
	}
	slices.SortFunc(cell.Tally, func(a, b stateCount) int {
		return cmp.Or(cmp.Compare(severity(a.State), severity(b.State)), cmp.Compare(a.State, b.State))
	})
	for name, n := range names {
		cell.Names = append(cell.Names, nameCount{name, n})
	}
	slices.SortFunc(cell.Names, func(a, b nameCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return cell
}

// toneOrder is the order of tones, the worst first.
var toneOrder = []string{"bad", "undo", "hand", "hold", "wait", "busy", "quiet", "ok"}

// severity orders states, the worst first.
func severity(state string) int { return slices.Index(toneOrder, stateTone(state)) }

// Worst is the member of a cell that needs a look most, where one does; else nil.
func (c *cellData) Worst() *api.Environment {
	var worst *api.Environment
	for i := range c.Members {
		if m := &c.Members[i]; m.Attention() && (worst == nil || severity(m.State) < severity(worst.State)) {
			worst = m
		}
	}
	return worst
}

// Incoming counts the releases that want to come into members of a cell.
func (c *cellData) Incoming() int {
	n := 0
	for i := range c.Members {
		if c.Members[i].Incoming != nil {
			n++
		}
	}
	return n
}
