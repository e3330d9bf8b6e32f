package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// ReleasedVersion is a version that somebody brings into an environment.
type ReleasedVersion = discovery.ReleasedVersion

// ReleaseQuery says what is brought where.
type ReleaseQuery struct {
	Component, Environment string
	Versions               []ReleasedVersion
	By                     git.Ident // author and committer
	Message                string    // of the commit; empty: one that says what it brings
	CoAuthors              []string  // NAME <EMAIL> each, who are authors too
}

// Release is what a release would change, and the commit that does.
type Release struct {
	Component   string             `json:"component"`
	Environment string             `json:"environment"`
	Branch      string             `json:"branch"`           // that the environment lives on
	Base        string             `json:"base"`             // where that is
	Commit      string             `json:"commit,omitempty"` // on it; empty: there is nothing to do
	Name        string             `json:"release,omitempty"`
	Changes     []fieldedit.Change `json:"changes"` // never nil
}

// A RefusedError says why a release isn't made. The message is whole, for people.
type RefusedError struct{ Why string }

// Error is the message.
func (re *RefusedError) Error() string { return re.Why }

// ComposeRelease composes the commit that brings versions into a component's source environment, in the mirror's
// objects. A [RefusedError] says what is wrong with the query or the repository. The edits are proven to change no other
// environment.
func ComposeRelease(ctx context.Context, in Input, q *ReleaseQuery) (*Release, error) {
	pl, err := openSnapshot(ctx, in)
	if err != nil {
		return nil, err
	}
	u, err := pl.findUnit(in.OnlyPipeline, q)
	if err != nil {
		return nil, err
	}
	ev, err := pl.gatherer.Gather(ctx, pl.snapshot, *u, false)
	if err != nil {
		return nil, err
	}
	found, err := pl.composeReleased(ctx, ev, q)
	if err != nil {
		return nil, err
	}
	if found.Refused != "" {
		return nil, refusef("%s in %s: %s", q.Component, q.Environment, found.Refused)
	}
	out := &Release{Component: q.Component, Environment: q.Environment, Branch: found.Branch, Base: found.Tip,
		Changes: []fieldedit.Change{}}
	if len(found.Edits) == 0 {
		return out, nil
	}
	for i := range found.Edits {
		out.Changes = append(out.Changes, found.Edits[i].Changes...)
	}
	out.Name = found.Release.String()
	message := q.Message
	if message == "" {
		message = releaseMessage(q, out)
	}
	for i, who := range q.CoAuthors {
		if i == 0 {
			message = strings.TrimRight(message, "\n") + "\n\n"
		}
		message += "Co-authored-by: " + who + "\n"
	}
	spec := effects.EditsSpec(found.Tip, found.Edits, message)
	spec.When, spec.Author, spec.Committer = in.Now, &q.By, &q.By
	out.Commit, err = in.Mirror.Write(ctx, spec)
	return out, err
}

// composeReleased composes the edits. Without them the environment has the versions already, or they are refused.
func (pl *planner) composeReleased(ctx context.Context, ev *facts.Evaluation, q *ReleaseQuery) (*discovery.Found, error) {
	c, _ := ev.Component(q.Component)
	if c == nil || c.Unit.Envs[q.Environment] == nil {
		return nil, refusef("%s has no targets in %s", q.Component, q.Environment)
	}
	env := c.Env(q.Environment)
	out := &discovery.Found{Component: q.Component, Environment: env.Name, Branch: env.Branch, Tip: env.Tip, Refused: env.Release.Err}
	if !env.Release.OK {
		return out, nil
	}
	out.SetReleased(&discovery.Query{Pipeline: ev.Pipeline.Pipeline, At: c.Unit.Envs[env.Name], Tree: pl.input.Mirror.Tree(env.Tip),
		Current: c.Contents[env.Release.Value.ID]}, q.Versions)
	if out.Refused != "" || out.Want.ID() == env.Release.Value.ID {
		return out, ctx.Err()
	}
	out.Release = c.RememberRelease(out.Want)
	var err error
	out.Edits, out.Refused, err = pl.gatherer.Effects.ComposeProven(ctx, c.Basis, q.Component, env.Name, env.Tip, out.Release.ID)
	return out, err
}

// releaseMessage says in a commit's message what it brings.
func releaseMessage(q *ReleaseQuery, r *Release) string {
	var b strings.Builder
	if strings.Contains(r.Name, ",") { // of several fields
		fmt.Fprintf(&b, "Release %s into %s: %s\n\n", q.Component, q.Environment, r.Name)
	} else {
		fmt.Fprintf(&b, "Release %s %s into %s\n\n", q.Component, r.Name, q.Environment)
	}
	for _, v := range q.Versions {
		b.WriteString(v.String() + "\n")
	}
	return b.String()
}

func refusef(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// maxUnitsNamed bounds the names that a refusal gives.
const maxUnitsNamed = 8

// findUnit finds the unit with a component whose environment is a source.
func (pl *planner) findUnit(pipeline string, q *ReleaseQuery) (*promotion.Unit, error) {
	var found *promotion.Unit
	var components, problems []string
	for _, p := range pl.snapshot.Pipelines {
		if pipeline != "" && p.Name() != pipeline {
			continue
		}
		for _, problem := range p.TargetSet.Problems {
			problems = append(problems, problem.String())
		}
		components = append(components, slices.Collect(maps.Keys(p.Units))...)
		u := p.Units[q.Component]
		if u == nil {
			continue
		}
		if why := whyNoSource(p, q.Environment); why != "" {
			return nil, refusef("%s", why)
		}
		if found != nil {
			return nil, refusef("%s is a component of the pipelines %s and %s: say which with --pipeline", q.Component, found.Pipeline,
				p.Name())
		}
		found = &u.Unit
	}
	slices.Sort(components)
	switch {
	case found != nil:
		return found, nil
	case len(problems) > 0:
		return nil, refusef("there is no component %s, and not everything could be resolved: %s", q.Component,
			wording.JoinFew(problems, maxUnitsNamed))
	case len(components) == 0:
		return nil, refusef("the pipeline file gives no components; liftlock resolve shows what there is")
	}
	return nil, refusef("there is no component %s; there are %s%s", q.Component, wording.JoinFew(components, maxUnitsNamed),
		strictyaml.DidYouMean(q.Component, components))
}

// whyNoSource says why nothing is released into an environment of a pipeline; empty: it is.
func whyNoSource(p *branch.ResolvedPipeline, environment string) string {
	var sources, all []string
	for i := range p.Spec.Environments {
		e := &p.Spec.Environments[i]
		if all = append(all, e.Name); e.IsSource() {
			sources = append(sources, e.Name)
		}
	}
	e := p.Spec.EnvironmentByName(environment)
	switch {
	case e == nil:
		return fmt.Sprintf("the pipeline %s has no environment %s; releases come into %s%s", p.Name(), environment,
			wording.JoinFew(sources, maxUnitsNamed), strictyaml.DidYouMean(environment, all))
	case !e.IsSource():
		return fmt.Sprintf("%s gets its releases from %s, by promotions; releases come into %s", environment,
			wording.JoinFew(e.After, maxUnitsNamed), wording.JoinFew(sources, maxUnitsNamed))
	}
	return ""
}
