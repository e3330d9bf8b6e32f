package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
)

const (
	// compareTimeout bounds one comparison: ten thousand Applications are listed in
	// some tens of seconds.
	compareTimeout = 2 * time.Minute
	// compareCacheTime is how long an answer is shown again: a reader who reloads, or
	// a script that asks in a loop, must not list every Application each time.
	compareCacheTime = 30 * time.Second
	// maxDifferences bounds each list of an answer, maxComparisons the answers.
	maxDifferences = 200
	maxComparisons = 100
)

// liveComparer compares with what runs; see resultCache.
type liveComparer struct {
	compare func(ctx context.Context, repo, pipeline string) (*api.Differences, error) // nil: nothing is compared
	cache   *resultCache[*api.Differences]
}

func newLiveComparer(o *Options) *liveComparer {
	return &liveComparer{compare: o.Differences, cache: newResultCache[*api.Differences](o, "compare with what runs", compareTimeout,
		maxComparisons)}
}

// compareWithLive compares, or gives the answer of a moment ago.
func (l *liveComparer) compareWithLive(ctx context.Context, repo, pipeline string) (*api.Differences, error) {
	if l.compare == nil {
		return nil, apiErrorf(http.StatusNotFound, "this server doesn't compare with what runs")
	}
	return l.cache.getOrCompute(ctx, repo+"|"+pipeline, func(ctx context.Context) (*api.Differences, time.Duration, error) {
		d, err := l.compare(ctx, repo, pipeline)
		if err != nil {
			return nil, 0, toAPIError(err)
		}
		d.LeftOut = 0
		for _, list := range []*[]api.Difference{&d.Missing, &d.Extra, &d.Different} {
			if over := len(*list) - maxDifferences; over > 0 {
				d.LeftOut += over
				*list = (*list)[:maxDifferences:maxDifferences]
			}
		}
		return d, compareCacheTime, nil
	})
}

// toAPIError gives an error of what was asked for its answer where it has one.
func toAPIError(err error) error {
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return apiErrorf(http.StatusNotFound, "%s", refused.Reason)
	case errors.Is(err, ErrNotReady):
		return apiErrorf(http.StatusServiceUnavailable, "%s", err)
	}
	return err
}

func (se *server) getDifferences(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository")
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	d, err := se.compareRequested(r, v["repository"])
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, d)
}

// compareRequested compares the pipeline that a request names.
func (se *server) compareRequested(r *http.Request, repo string) (*api.Differences, error) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		return nil, err
	}
	p, err := se.reader.findPipeline(s, repo, r.PathValue("pipeline"))
	if err != nil {
		return nil, err
	}
	return se.comparer.compareWithLive(r.Context(), p.Repository, p.Name)
}

// differencesBody is the body of the page of differences: an answer, or why there is none.
type differencesBody struct {
	Pipeline, Repository string
	*api.Differences
	Err   string
	Lists []differencesSection
}

// differencesSection is one of the three kinds of differences.
type differencesSection struct {
	ID, Title, Tone, Says string
	Differences           []api.Difference
}

func (se *server) differencesPage(w http.ResponseWriter, r *http.Request) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	p, err := se.reader.findPipeline(s, r.URL.Query().Get("repository"), r.PathValue("pipeline"))
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	body, status := differencesBody{Pipeline: p.Name, Repository: p.Repository}, http.StatusOK
	d, err := se.comparer.compareWithLive(r.Context(), p.Repository, p.Name)
	var known *apiError
	switch {
	case r.Context().Err() != nil:
		return // nobody is there any more
	case errors.As(err, &known):
		se.renderError(w, r, err)
		return
	case err != nil:
		body.Err, status = err.Error(), http.StatusServiceUnavailable
	default:
		body.Differences = d
		body.Lists = []differencesSection{
			{"missing", "Missing", "bad", "resolved, but not live", d.Missing},
			{"extra", "Extra", "hand", "live and of one of these ApplicationSets, but not resolved", d.Extra},
			{"different", "Different", "wait", "live, but not as they are resolved", d.Different},
		}
	}
	se.renderPage(w, r, status, "differences", stillPage(s, "What runs of "+p.Name, "pipelines", body))
}
