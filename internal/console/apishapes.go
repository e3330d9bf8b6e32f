package console

import (
	"cmp"
	"fmt"
	"net/http"
	"sort"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// buildComponent makes a unit's API shape.
func (r *reader) buildComponent(v *stored.Unit) api.Component {
	c := api.Component{Repository: v.Unit.Repo, Pipeline: v.Unit.Pipeline, Component: v.Unit.Component, At: v.At, Tip: v.Tip,
		Broken:       v.Broken,
		Environments: make([]api.Environment, 0, len(v.Decision.Envs))}
	for i := range v.Decision.Envs {
		s := &v.Decision.Envs[i]
		c.Environments = append(c.Environments, r.buildEnvironment(v.Unit.Repo, s, v.FindEnvironment(s.Environment)))
	}
	for _, h := range v.Holds {
		c.Holds = append(c.Holds, api.Hold{Scope: h.Scope, Environment: h.Environment, By: h.By, Reason: h.Reason, Reverts: h.Reverts,
			At: h.At, Until: h.Until})
	}
	return c
}

func (r *reader) buildEnvironment(repo string, s *promotion.EnvState, in stored.Environment) api.Environment {
	words := r.wordsOf(repo)
	e := api.Environment{
		Environment: s.Environment, After: in.After, Branch: in.Branch, State: s.State, Reason: words(s.Reason), Release: s.Release,
		Name: s.Name, Since: s.Since,
		VerifiedAt: s.VerifiedAt, Commit: s.Commit, LandedBy: s.LandedBy, LandedIn: r.buildPull(repo, s.LandedPull),
	}
	for name, t := range s.Targets {
		e.Targets = append(e.Targets, r.buildTarget(name, t, in.Targets[name]))
	}
	sort.Slice(e.Targets, func(a, b int) bool { return e.Targets[a].Name < e.Targets[b].Name })
	if s.Candidate != "" || s.Pull != 0 {
		in := &api.Incoming{State: s.Promotion, Release: s.Candidate, Name: s.CandidateName, ReadySince: s.ReadySince,
			Pull: r.buildPull(repo, s.Pull), Headline: words(s.JudgePull(false).String())}
		in.Gates = buildGates(s.Gates, words)
		if in.Name == "" {
			in.Name = wording.Short(in.Release)
		}
		e.Incoming = in
	}
	if s.Revert != 0 {
		h := s.JudgePull(true)
		e.Revert = &api.OpenRevert{Pull: *r.buildPull(repo, s.Revert), State: promotion.Opened, Headline: words(h.String()),
			Gates: buildGates(s.RevertGates, words)}
		if h.Kind == promotion.HeadlineHeld {
			e.Revert.State = promotion.Held
		}
	}
	for _, w := range s.Why {
		e.Why = append(e.Why, api.Reason{Code: w.Code, Text: words(w.Text), Who: w.Who, When: w.When})
	}
	return e
}

func (r *reader) buildTarget(name string, t promotion.TargetView, of stored.Target) api.Target {
	out := api.Target{Name: name, State: t.State, Reason: t.Reason, Since: t.Since, Untold: t.Untold, Drift: buildDrift(t.Drift),
		Runs:    buildRuns(t.Runs),
		Cluster: of.Cluster, ApplicationSet: of.ApplicationSet, Labels: of.Labels}
	if argocd, application, ok := strings.Cut(of.ID, "/"); ok {
		out.ArgoCD, out.Application = argocd, strings.TrimPrefix(application, "/") // one that names no namespace is in Argo CD's own
		out.URL = webAddress(r.applicationURL(out.ArgoCD, out.Application))
	}
	return out
}

// wordsOf words a text as the people of a repository's forge do.
func (r *reader) wordsOf(repo string) func(string) string {
	page := r.pullBaseURL(repo)
	return func(text string) string { return wording.ForPage(page, text) }
}

// buildGates makes the API shape of what gates answered.
func buildGates(all []policies.Result, words func(string) string) []api.Gate {
	var out []api.Gate
	for _, g := range all {
		byPerson := len(g.Who) > 0 || g.Gate == policies.GateApprovals || promotion.PromoteHelps(g.Gate)
		out = append(out, api.Gate{Gate: string(g.Gate), Outcome: string(g.Outcome), Reason: words(g.Reason), Who: g.Who, Until: g.Until,
			Person: g.Outcome == policies.Wait && byPerson, SkippedBy: g.SkippedBy})
	}
	return out
}

// buildDrift makes a target's drift's API shape.
func buildDrift(d *promotion.Drift) *api.Drift {
	if d == nil {
		return nil
	}
	out := &api.Drift{Since: d.Since, Text: d.Describe(), Total: d.Total, SelfHeal: d.SelfHeal, AutoSync: d.AutoSync}
	for _, r := range d.Resources {
		out.Resources = append(out.Resources, api.DriftedResource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			How: string(r.How)})
	}
	return out
}

// groupPipelines groups what is shown by repository and pipeline, with components;
// empty arguments mean all. The components are shared: nothing in them may be changed.
func (r *reader) groupPipelines(s *snapshot, repo, name string) []api.Pipeline {
	grouped := s.groupUnits(repo, name)
	out := make([]api.Pipeline, 0, len(grouped))
	for i := range grouped {
		p := grouped[i].Pipeline
		p.Components = make([]api.Component, 0, len(grouped[i].units))
		for _, u := range grouped[i].units {
			p.Components = append(p.Components, u.component)
		}
		out = append(out, p)
	}
	return out
}

// pipelineUnits is a pipeline, without its components, and its units.
type pipelineUnits struct {
	api.Pipeline
	units []*shownUnit // sorted by component
}

// groupUnits groups units by repository and pipeline; empty arguments mean all.
func (s *snapshot) groupUnits(repo, name string) []pipelineUnits {
	var out []pipelineUnits
	at := map[string]int{}
	for _, u := range s.units {
		v := u.record
		if repo != "" && v.Unit.Repo != repo || name != "" && v.Unit.Pipeline != name {
			continue
		}
		key := v.Unit.Pipeline + "|" + v.Unit.Repo
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, pipelineUnits{Pipeline: api.Pipeline{Name: v.Unit.Pipeline, Repository: v.Unit.Repo}})
		}
		p := &out[i]
		p.units = append(p.units, u)
		p.Counts.Add(u.urgency)
		if p.Broken == "" {
			p.Broken = v.Broken
		}
	}
	for i := range out {
		out[i].addEnvironments()
	}
	sort.SliceStable(out, func(a, b int) bool {
		if out[a].Name != out[b].Name {
			return out[a].Name < out[b].Name
		}
		return out[a].Repository < out[b].Repository
	})
	return out
}

// addEnvironments lists the pipeline's environments as the component says that was judged
// last; those that only others still have come behind.
func (p *pipelineUnits) addEnvironments() {
	var newest *stored.Unit
	for _, u := range p.units {
		if len(u.record.Environments) > 0 && (newest == nil || u.record.At.After(newest.At)) {
			newest = u.record
		}
	}
	if newest != nil {
		for _, e := range newest.Environments {
			p.Graph = append(p.Graph, api.PipelineEnvironment{Name: e.Name, After: append([]string{}, e.After...), Branch: e.Branch})
			p.Environments = append(p.Environments, e.Name)
		}
	}
	known := map[string]bool{}
	for _, e := range p.Environments {
		known[e] = true
	}
	for _, u := range p.units {
		for i := range u.component.Environments {
			if e := u.component.Environments[i].Environment; !known[e] {
				known[e] = true
				p.Environments = append(p.Environments, e)
			}
		}
	}
}

// findPipeline finds exactly one pipeline.
func (r *reader) findPipeline(s *snapshot, repo, name string) (*api.Pipeline, error) {
	all := r.groupPipelines(s, repo, name)
	switch len(all) {
	case 0:
		var names []string
		for _, p := range r.groupPipelines(s, repo, "") {
			names = append(names, p.Name)
		}
		return nil, apiErrorf(http.StatusNotFound, "there is no pipeline %q with a component%s%s", name, formatInRepository(repo),
			cmp.Or(strictyaml.DidYouMean(name, names), "; GET /api/v1/pipelines lists what there is"))
	case 1:
		return &all[0], nil
	}
	repos := make([]string, 0, len(all))
	for _, p := range all {
		repos = append(repos, p.Repository)
	}
	return nil, apiErrorf(http.StatusConflict, "several repositories have a pipeline %q (%s): name one as the repository", name,
		strings.Join(repos, ", "))
}

func formatInRepository(repo string) string {
	if repo == "" {
		return ""
	}
	return fmt.Sprintf(" in %q", repo)
}

// componentOf finds a component of a pipeline.
func componentOf(p *api.Pipeline, name string) (*api.Component, error) {
	for i := range p.Components {
		if p.Components[i].Component == name {
			return &p.Components[i], nil
		}
	}
	names := make([]string, 0, len(p.Components))
	for i := range p.Components {
		names = append(names, p.Components[i].Component)
	}
	return nil, apiErrorf(http.StatusNotFound, "the pipeline %s has no component %q%s", p.Name, name,
		strictyaml.DidYouMean(name, names))
}

// environmentOf finds an environment of a component.
func environmentOf(c *api.Component, name string) (*api.Environment, error) {
	for i := range c.Environments {
		if c.Environments[i].Environment == name {
			return &c.Environments[i], nil
		}
	}
	names := make([]string, 0, len(c.Environments))
	for _, e := range c.Environments {
		names = append(names, e.Environment)
	}
	return nil, apiErrorf(http.StatusNotFound, "the pipeline %s has no environment %q%s", c.Pipeline, name,
		cmp.Or(strictyaml.DidYouMean(name, names), "; there are "+strings.Join(names, ", ")))
}

// buildPromotion makes a promotion's API shape without its detail. While it is open its state and headline are those of its
// environment, so that all pages say the same of it.
func (r *reader) buildPromotion(p store.Promotion) api.Promotion {
	out := api.Promotion{ID: p.ID, Kind: p.Kind, Repository: p.Repo, Pipeline: p.Pipeline, Component: p.Component,
		Environment: p.Environment,
		Release:     p.Release, Name: r.releaseName(p.Release), Pull: r.buildPull(p.Repo, p.Pull), State: p.State, CreatedAt: p.CreatedAt,
		UpdatedAt: p.UpdatedAt}
	if p.State != promotion.Opened || p.Pull == 0 {
		return out
	}
	r.mu.Lock()
	u := r.decoded[p.Unit]
	r.mu.Unlock()
	if u == nil {
		return out
	}
	if e, err := environmentOf(&u.component, p.Environment); err == nil {
		switch {
		case e.Incoming != nil && e.Incoming.Pull != nil && e.Incoming.Pull.Number == p.Pull:
			out.State, out.Headline = e.Incoming.State, e.Incoming.Headline
		case e.Revert != nil && e.Revert.Pull.Number == p.Pull:
			out.State, out.Headline = e.Revert.State, e.Revert.Headline
		}
	}
	return out
}

// buildEvent makes an event's API shape.
func (r *reader) buildEvent(e store.Event) api.Event {
	return api.Event{Seq: e.Seq, At: e.At, Kind: e.Kind, Repository: e.Repo, Pipeline: e.Pipeline, Component: e.Component,
		Environment: e.Environment,
		Pull:        r.buildPull(e.Repo, e.Pull), Message: e.Message, Data: e.Data}
}

func (r *reader) buildEvents(all []store.Event) []api.Event {
	out := make([]api.Event, 0, len(all))
	for _, e := range all {
		out = append(out, r.buildEvent(e))
	}
	return out
}
