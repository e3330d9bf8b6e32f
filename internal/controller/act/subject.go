package act

import (
	"net/url"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// subject is a pull request of ours, or one that is to be opened, with whom it moves:
// usually one component.
type subject struct {
	ev      *facts.Evaluation
	d       *promotion.Decision
	env     string
	pull    *facts.OpenPull // nil while it isn't open
	number  int
	batch   bool // it is the one pull request of all components that are ready
	members []promotion.Member
	// rendering says that an Argo CD is still rendering some of what it changes.
	rendering bool
}

// subjectOf is what an open pull request is about.
func subjectOf(ev *facts.Evaluation, d *promotion.Decision, p *facts.OpenPull) subject {
	return subject{ev: ev, d: d, env: p.Environment, pull: p, number: p.Number, batch: p.Batch && ev.IsBatch(), members: p.Members}
}

// unit is the component that moves, or the unit of all.
func (s *subject) unit() promotion.Unit {
	u := s.ev.Unit
	if !s.batch && len(s.members) > 0 {
		u.Component = s.members[0].Component
	}
	return u
}

// eachMember calls f for each component that moves and is still there.
func (s *subject) eachMember(f func(c *facts.ComponentEvaluation, m promotion.Member) error) error {
	for _, m := range s.members {
		if c, _ := s.ev.Component(m.Component); c != nil {
			if err := f(c, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// releases are what moves, by component.
func (s *subject) releases() map[string]string {
	out := make(map[string]string, len(s.members))
	for _, m := range s.members {
		out[m.Component] = m.Release
	}
	return out
}

// named is a member with what people call its release.
func (s *subject) named(m promotion.Member) promotion.Member {
	if m.Name == "" {
		m.Name = s.ev.ReleaseName(m.Release)
	}
	return m
}

// name is what people call all that moves.
func (s *subject) name() string {
	if !s.batch {
		return s.named(s.members[0]).Name
	}
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = s.named(m).String()
	}
	return strings.Join(names, ", ")
}

// newTextInput starts what a pull request's texts are made from.
func (a *Actor) newTextInput(s *subject, revert bool) prtext.Input {
	in := prtext.Input{Batch: s.batch, Actions: s.pullActions(), Environment: s.env, Revert: revert, Number: s.number,
		ConsoleURL:   a.consoleURL(s),
		BareCommands: s.ev.Pipeline.Spec.Commands == "bare", Now: s.ev.Now}
	if s.pull != nil {
		in.Release, in.Name = s.pull.Release, s.pull.Name
		if s.pull.Reverts != nil {
			in.RevertedPull = s.pull.Reverts.Number
		}
	}
	for _, m := range s.members {
		if c, i := s.ev.Component(m.Component); c != nil {
			in.Members = append(in.Members, prtext.Member{Member: s.named(m), Facts: &c.Facts, Decision: &s.d.Components[i]})
		}
	}
	return in
}

// pullActions are what is done to the pull requests of all, or to those that move the
// component.
func (s *subject) pullActions() []promotion.Action {
	if s.batch {
		return s.d.Actions
	}
	return slices.DeleteFunc(slices.Clone(s.d.Actions), func(x promotion.Action) bool {
		pull, ok := x.(promotion.PullAction)
		if !ok {
			return true
		}
		_, members := pull.Subject()
		_, is := promotion.FindMember(members, s.unit().Component)
		return !is
	})
}

func (a *Actor) consoleURL(s *subject) string { return a.pageURL(s.unit(), s.batch) }

// pageURL is the console's page about a component, or about the pipeline of those that move
// together; empty without a console.
func (a *Actor) pageURL(u promotion.Unit, batch bool) string {
	switch {
	case a.opts.Console == "":
		return ""
	case batch:
		return a.opts.Console + "/pipelines/" + url.PathEscape(u.Pipeline)
	}
	return a.opts.Console + "/pipelines/" + url.PathEscape(u.Pipeline) + "/" + url.PathEscape(u.Component)
}

func unitFields(u promotion.Unit) []zap.Field {
	return []zap.Field{zap.String("repository", u.Repo), zap.String("pipeline", u.Pipeline), zap.String("component", u.Component)}
}

// newEvent starts an event about a component.
func newEvent(c *facts.ComponentEvaluation, env string, pull int, kind event.Kind, message string) store.Event {
	u := c.Facts.Unit
	return store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env, Pull: pull,
		Kind: kind, Message: message}
}
