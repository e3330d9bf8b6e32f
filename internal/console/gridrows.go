package console

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/graph"
	"github.com/liftlock/liftlock/internal/promotion"
)

// gridRow is a component's row as it is on a page, with marks.
type gridRow struct{ html template.HTML }

// HTML is the row.
func (g *gridRow) HTML() template.HTML { return g.html }

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
	ID      string
	Cells   []cellData
	Compact bool // nothing is open of it: one line is enough
}

// restingStates are those of a release of which nothing more has to be said than that it is there.
var restingStates = []string{promotion.Verified, promotion.Idle, promotion.Baseline, promotion.NotHere}

// isQuiet says that nothing is open of a component, and nothing else is to be said of it.
func isQuiet(u *shownUnit) bool {
	return u.urgency == api.UrgencyWell && !slices.ContainsFunc(u.component.Environments, func(e api.Environment) bool {
		return e.Drifted() > 0 || e.Incoming != nil || len(e.WhyShown()) > 0 || !slices.Contains(restingStates, e.State)
	})
}

// cellData is a cell: an environment, or what is to be said of several.
type cellData struct {
	Column  string
	Repo    string
	Gates   bool              // each gate is listed: never in the table, which has the headline
	Compact bool              // nothing is to be said of it but what is there
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
	data := rowData{Component: &u.component, Compact: isQuiet(u),
		ID: "c-" + u.component.Repository + "-" + u.component.Pipeline + "-" + u.component.Component}
	for i := range columns {
		cell := buildCell(&u.component, &columns[i])
		cell.Compact = data.Compact
		data.Cells = append(data.Cells, cell)
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
