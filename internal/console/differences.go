package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

const (
	// compareTime bounds one comparison: ten thousand Applications are listed in
	// some tens of seconds.
	compareTime = 2 * time.Minute
	// compareKeep is how long an answer is shown again: a reader who reloads, or
	// a script that asks in a loop, must not list every Application each time.
	compareKeep = 30 * time.Second
	// maxDifferences bounds each list of an answer, maxCompared the answers.
	maxDifferences = 200
	maxCompared    = 100
)

// comparisons compares with what runs, see costly.
type comparisons struct {
	ask  func(ctx context.Context, repo, pipeline string) (*api.Differences, error) // nil: nothing is compared
	made *costly[*api.Differences]
}

func newComparisons(ask func(context.Context, string, string) (*api.Differences, error), now func() time.Time) *comparisons {
	return &comparisons{ask: ask, made: newCostly[*api.Differences]("compare with what runs", compareTime, maxCompared, now)}
}

// get compares, or gives the answer of a moment ago.
func (c *comparisons) get(ctx context.Context, repo, pipeline string) (*api.Differences, error) {
	if c.ask == nil {
		return nil, errorf(http.StatusNotFound, "this server doesn't compare with what runs")
	}
	return c.made.get(ctx, repo+"|"+pipeline, func(ctx context.Context) (*api.Differences, time.Duration, error) {
		d, err := c.ask(ctx, repo, pipeline)
		if err != nil {
			return nil, 0, asked(err)
		}
		d.LeftOut = 0
		for _, list := range []*[]api.Difference{&d.Missing, &d.Extra, &d.Different} {
			if over := len(*list) - maxDifferences; over > 0 {
				d.LeftOut += over
				*list = (*list)[:maxDifferences:maxDifferences]
			}
		}
		return d, compareKeep, nil
	})
}

// asked gives an error of what was asked for its answer where it has one.
func asked(err error) error {
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return errorf(http.StatusNotFound, "%s", refused.Reason)
	case errors.Is(err, ErrNotReady):
		return errorf(http.StatusServiceUnavailable, "%s", err)
	}
	return err
}

func (c *console) getDifferences(w http.ResponseWriter, r *http.Request) {
	v, err := values(r.URL.RawQuery, "repository")
	if err != nil {
		c.failed(w, r, err)
		return
	}
	d, err := c.differencesOf(r, v["repository"])
	if err != nil {
		c.failed(w, r, err)
		return
	}
	answer(w, http.StatusOK, d)
}

// differencesOf compares the pipeline that a request names.
func (c *console) differencesOf(r *http.Request, repo string) (*api.Differences, error) {
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		return nil, err
	}
	p, err := c.read.pipeline(s, repo, r.PathValue("pipeline"))
	if err != nil {
		return nil, err
	}
	return c.diffs.get(r.Context(), p.Repository, p.Name)
}

// compared is the body of the page of differences: an answer, or why there is none.
type compared struct {
	Pipeline, Repository string
	*api.Differences
	Err   string
	Lists []comparedList
}

// comparedList is one of the three kinds of differences.
type comparedList struct {
	ID, Title, Tone, Says string
	Differences           []api.Difference
}

func (c *console) differencesPage(w http.ResponseWriter, r *http.Request) {
	s, err := c.read.snapshot(r.Context())
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	p, err := c.read.pipeline(s, r.URL.Query().Get("repository"), r.PathValue("pipeline"))
	if err != nil {
		c.sorry(w, r, err)
		return
	}
	body, status := compared{Pipeline: p.Name, Repository: p.Repository}, http.StatusOK
	d, err := c.diffs.get(r.Context(), p.Repository, p.Name)
	var known *apiError
	switch {
	case r.Context().Err() != nil:
		return // nobody is there any more
	case errors.As(err, &known):
		c.sorry(w, r, err)
		return
	case err != nil:
		body.Err, status = err.Error(), http.StatusServiceUnavailable
	default:
		body.Differences = d
		body.Lists = []comparedList{
			{"missing", "Missing", "bad", "resolved, but not live", d.Missing},
			{"extra", "Extra", "hand", "live and of one of these ApplicationSets, but not resolved", d.Extra},
			{"different", "Different", "wait", "live, but not as they are resolved", d.Different},
		}
	}
	c.show(w, r, status, "differences", page{Title: "What runs of " + p.Name, Nav: "pipelines", Troubles: s.troubles, Still: true, Body: body})
}
