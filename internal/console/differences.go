package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liftlock/liftlock/internal/console/api"
)

const (
	// compareTime bounds one comparison: ten thousand Applications are listed in
	// some tens of seconds.
	compareTime = 2 * time.Minute
	// compareKeep is how long an answer is shown again: a reader who reloads, or
	// a script that asks in a loop, must not list every Application each time.
	compareKeep = 30 * time.Second
	// maxDifferences bounds each list of an answer.
	maxDifferences = 200
)

// comparisons remembers answers for a moment. Requests for the same pipeline
// share one comparison; those for others wait for their turn.
type comparisons struct {
	ask    func(ctx context.Context, repo, pipeline string) (*api.Differences, error) // nil: nothing is compared
	now    func() time.Time
	shared singleflight.Group
	turn   chan struct{}

	mu    sync.Mutex
	known map[string]*api.Differences
}

func newComparisons(ask func(context.Context, string, string) (*api.Differences, error), now func() time.Time) *comparisons {
	return &comparisons{ask: ask, now: now, turn: make(chan struct{}, 1), known: map[string]*api.Differences{}}
}

// get compares, or gives the answer of a moment ago.
func (c *comparisons) get(ctx context.Context, repo, pipeline string) (*api.Differences, error) {
	if c.ask == nil {
		return nil, errorf(http.StatusNotFound, "this server doesn't compare with what runs")
	}
	key := repo + "|" + pipeline
	c.mu.Lock()
	known := c.known[key]
	c.mu.Unlock()
	if known != nil && c.now().Sub(known.At) < compareKeep {
		return known, nil
	}
	ch := c.shared.DoChan(key, func() (any, error) {
		// Others may be waiting for it when the first one leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), compareTime)
		defer cancel()
		return c.compare(ctx, key, repo, pipeline)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("compare with what runs: %w", ctx.Err())
	case res := <-ch:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*api.Differences), nil
	}
}

func (c *comparisons) compare(ctx context.Context, key, repo, pipeline string) (*api.Differences, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("compare with what runs: other comparisons take too long: %w", ctx.Err())
	}
	d, err := c.ask(ctx, repo, pipeline)
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return nil, errorf(http.StatusNotFound, "%s", refused.Reason)
	case errors.Is(err, ErrNotReady):
		return nil, errorf(http.StatusServiceUnavailable, "%s", err)
	case err != nil:
		return nil, fmt.Errorf("compare with what runs: %w", err)
	}
	d.LeftOut = 0
	for _, list := range []*[]api.Difference{&d.Missing, &d.Extra, &d.Different} {
		if over := len(*list) - maxDifferences; over > 0 {
			d.LeftOut += over
			*list = (*list)[:maxDifferences:maxDifferences]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, old := range c.known {
		if c.now().Sub(old.At) >= compareKeep {
			delete(c.known, k)
		}
	}
	c.known[key] = d
	return d, nil
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
