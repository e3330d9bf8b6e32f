package console

import (
	"cmp"
	"net/http"
	"slices"

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
	// manyComponents is from how many on the first page shows, unless it is searched, only what asks most: a reader has
	// one screen. firstRows is how many components it shows then, and leastRows of each pipeline.
	manyComponents = 60
	firstRows      = 5
	leastRows      = 2
	// openProblems is how many causes are listed openly.
	openProblems = 3
	// maxColumns is how many environments have a column of their own; of more, those alike
	// share one.
	maxColumns = 8
	// homeEvents is how many events the first page shows.
	homeEvents = 12
)

// gridBody is the body of the first page, and of a pipeline's.
type gridBody struct {
	gridQuery
	Pipeline     string // only this one; empty: all
	Pipelines    []gridSection
	Counts       api.Counts
	Compares     bool // a pipeline can be compared with what runs
	Environments []string
	States       []string
	Labels       []string // that the filter offers
	Filters      []filter
	Problems     []problemGroup // the most frequent causes
	MoreProblems []problemGroup // the others, which are folded
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
func (g *gridSection) Last() int { return g.First + len(g.Rows) - 1 }

// ListID names the section's rows on the page.
func (g *gridSection) ListID() string { return "rows-" + g.Repository + "-" + g.Name }

// filter is a link that shows a part of the components.
type filter struct {
	Name, Label string
	Count       int
	Link        string
}

func (se *server) homePage(w http.ResponseWriter, r *http.Request) { se.renderGrid(w, r, "") }

func (se *server) pipelinePage(w http.ResponseWriter, r *http.Request) {
	se.renderGrid(w, r, r.PathValue("pipeline"))
}

// renderGrid shows components × environments. A query that makes no sense shows everything.
func (se *server) renderGrid(w http.ResponseWriter, r *http.Request, name string) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	repo := r.URL.Query().Get("repository")
	all := s.groupUnits(repo, name)
	if name != "" && len(all) == 0 {
		se.renderError(w, r, apiErrorf(http.StatusNotFound, "There is no pipeline %q with a component.", name))
		return
	}
	b := &gridBody{gridQuery: parseGridQuery(r.URL.Query()), Pipeline: name, States: gridStates, Compares: se.opts.Differences != nil}
	for i := range all {
		p := &all[i]
		b.Counts.Sum(p.Counts)
		for _, e := range p.Environments {
			if !slices.Contains(b.Environments, e) {
				b.Environments = append(b.Environments, e)
			}
		}
	}
	base := se.linkPrefix + r.URL.Path
	most := rowsPerSection
	isFirst := name == "" && b.Sort == sortByNeed && b.Page == 1
	switch {
	case isFirst && !b.Filtered() && b.Counts.Components > manyComponents:
		most = max(leastRows, firstRows/len(all))
	case len(all) == 1:
		most = 0
	}
	for i := range all {
		section, err := se.buildSection(b, &all[i], base, repo, most)
		if err != nil {
			se.renderError(w, r, err)
			return
		}
		if section.Chosen > 0 {
			b.Pipelines = append(b.Pipelines, *section)
		}
	}
	b.Labels = listLabelHints(all)
	b.Filters, b.Problems = b.filterLinks(base, repo), se.groupProblems(b, all)
	if len(b.Problems) > openProblems {
		b.Problems, b.MoreProblems = b.Problems[:openProblems], b.Problems[openProblems:]
	}
	if name != "" && len(all) == 1 {
		b.Graph = se.drawPipeline(&all[0])
	}
	events, _, _, err := se.records.Events(r.Context(), store.EventFilter{Repo: repo, Pipeline: name, Newest: true, Limit: homeEvents})
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	b.Events = se.reader.buildEvents(events)
	if b.Skips, err = se.countSkips(r.Context(), all, name); err != nil {
		se.renderError(w, r, err)
		return
	}
	se.renderPage(w, r, http.StatusOK, "home", newPage(s, cmp.Or(name, "Pipelines"), "pipelines", b))
}

// buildSection chooses and renders the rows of a pipeline, at most so many; 0: it is shown in pages.
func (se *server) buildSection(b *gridBody, p *pipelineUnits, base, repo string, most int) (*gridSection, error) {
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
	case most == 0:
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
	case len(chosen) > most:
		q := b.gridQuery
		q.Page = 1
		owner := ""
		if se.reader.isAmbiguous(p.Name) {
			owner = p.Repository
		}
		out.All = gridURL(se.pages.pageURL("pipelines", p.Name), owner, &q)
		chosen = chosen[:most]
	}
	for _, u := range chosen {
		row, err := se.pages.renderRow(u, out.Columns)
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

func (g *gridBody) filterLinks(base, repo string) []filter {
	all := []filter{
		{Name: showAll, Label: "all", Count: g.Counts.Components},
		{Name: showOpen, Label: "open", Count: g.Counts.Open},
		{Name: string(api.UrgencyBroken), Label: "broken", Count: g.Counts.Broken},
		{Name: string(api.UrgencyHeld), Label: "held", Count: g.Counts.Held},
		{Name: string(api.UrgencyWaiting), Label: "wait for you", Count: g.Counts.Waiting},
		{Name: string(api.UrgencyMoving), Label: "moving", Count: g.Counts.Moving},
	}
	for i := range all {
		q := g.gridQuery
		q.Show, q.Page = all[i].Name, 1
		all[i].Link = gridURL(base, repo, &q)
	}
	return all
}
