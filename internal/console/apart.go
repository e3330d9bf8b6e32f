package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
)

// maxApartRows bounds the components on the page that compares two environments; the API has
// all.
const maxApartRows = 200

// compareComponents compares what two environments carry, over all components of a pipeline:
// what differs, what has waited longest to come over first.
func compareComponents(p *api.Pipeline, from, to string) (*api.EnvironmentComparison, error) {
	out := &api.EnvironmentComparison{Repository: p.Repository, Pipeline: p.Name, From: from, To: to,
		Different: []api.ComponentDifference{}}
	for i := range p.Components {
		c := &p.Components[i]
		a, err := environmentOf(c, from)
		if err != nil {
			return nil, err
		}
		b, err := environmentOf(c, to)
		if err != nil {
			return nil, err
		}
		if a.Release != "" && a.Release == b.Release {
			out.Equal++
			continue
		}
		out.Different = append(out.Different, api.ComponentDifference{Component: c.Component, From: carriedRelease(a),
			To: carriedRelease(b), Incoming: b.Incoming})
	}
	slices.SortStableFunc(out.Different, func(a, b api.ComponentDifference) int {
		return cmp.Or(a.From.Since.Compare(b.From.Since), strings.Compare(a.Component, b.Component))
	})
	return out, nil
}

// carriedRelease is what an environment carries, or why that isn't known.
func carriedRelease(e *api.Environment) api.CarriedRelease {
	r := api.CarriedRelease{Release: e.Release, Name: e.Name, State: e.State, Since: e.Since}
	if e.Release == "" {
		r.Unknown = cmp.Or(e.Reason, "nothing is known of it")
	}
	return r
}

// compareApart compares the two environments that a request's address names: the first
// with the last one unless it says otherwise.
func (se *server) compareApart(r *http.Request, v map[string]string) (*snapshot, *api.Pipeline, *api.EnvironmentComparison, error) {
	s, err := se.reader.sharedSnapshot(r.Context())
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := se.reader.findPipeline(s, v["repository"], r.PathValue("pipeline"))
	if err != nil {
		return nil, nil, nil, err
	}
	if len(p.Environments) == 0 {
		return nil, nil, nil, apiErrorf(http.StatusNotFound, "the pipeline %s has no environments that are known", p.Name)
	}
	out, err := compareComponents(p, cmp.Or(v["from"], p.Environments[0]), cmp.Or(v["to"], p.Environments[len(p.Environments)-1]))
	return s, p, out, err
}

// getEnvironmentComparison takes GET /api/v1/pipelines/{pipeline}/apart.
func (se *server) getEnvironmentComparison(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "from", "to")
	var out *api.EnvironmentComparison
	if err == nil {
		_, _, out, err = se.compareApart(r, v)
	}
	if err != nil {
		se.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// apartBody is the body of the page that compares two environments over all components.
type apartBody struct {
	*api.EnvironmentComparison
	Environments []string
	All          int // components that differ; Different has up to maxApartRows of them
}

func (se *server) apartPage(w http.ResponseWriter, r *http.Request) {
	v, err := parseQuery(r.URL.RawQuery, "repository", "from", "to")
	var s *snapshot
	var p *api.Pipeline
	var out *api.EnvironmentComparison
	if err == nil {
		s, p, out, err = se.compareApart(r, v)
	}
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	b := apartBody{EnvironmentComparison: out, Environments: p.Environments, All: len(out.Different)}
	out.Different = out.Different[:min(len(out.Different), maxApartRows)]
	se.renderPage(w, r, http.StatusOK, "apart", newPage(s, p.Name+": "+out.From+" and "+out.To, "pipelines", b))
}

// apartURL is the address where two environments of a pipeline are compared over all components;
// without them, the first with the last.
func (p *pages) apartURL(repo, pipeline, from, to string) string {
	q := url.Values{}
	for name, value := range map[string]string{"from": from, "to": to} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.isAmbiguous(pipeline) {
		q.Set("repository", repo)
	}
	out := p.pageURL("apart", pipeline)
	if len(q) > 0 {
		out += "?" + q.Encode()
	}
	return out
}
