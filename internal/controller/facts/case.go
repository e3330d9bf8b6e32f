package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Member is a component in what moves several, with its own case and decision.
type Member struct {
	Passenger promotion.Member
	Case      *Case
	Decision  *promotion.Decision
}

// Moves says that the case is about a component.
func (c *Case) Moves(component string) bool {
	if c.insiders != nil {
		return slices.Contains(c.insiders, component)
	}
	return component == c.Facts.Unit.Component
}

// with is the case for an edit that moves several components; without any, the
// case as it is.
func (c *Case) with(passengers []promotion.Member) *Case {
	if len(passengers) == 0 {
		return c
	}
	out := *c
	out.insiders = make([]string, 0, len(passengers))
	for _, p := range passengers {
		out.insiders = append(out.insiders, p.Component)
	}
	slices.Sort(out.insiders)
	return &out
}

// withAll is the case for an edit that may come to move any components of its
// pipeline, where they travel together.
func (c *Case) withAll() *Case {
	if !c.Pipeline.Spec.BatchesByEnvironment() {
		return c
	}
	out := *c
	out.insiders = slices.Sorted(maps.Keys(c.Pipeline.Units))
	return &out
}

// unknown says that nobody knows any more what a release consists of: the store
// that knew is gone. An empty one in its place would take everything away.
func (c *Case) unknown(release string) string {
	if _, ok := c.Contents[release]; ok {
		return ""
	}
	return fmt.Sprintf("what the release %s consists of is not known any more", promotion.Short(release))
}

// landedBy says that what an environment carries came by a pull request.
func (c *Case) landedBy(environment string, number int) bool {
	return slices.ContainsFunc(c.Facts.Envs, func(e promotion.Env) bool {
		return e.Name == environment && e.Landed.OK && e.Landed.Value.Pull == number
	})
}

// envAt is an environment of a component; nil when there is none.
func (c *Case) envAt(env, component string) *EnvAt {
	u := c.Pipeline.Units[component]
	if u == nil {
		return nil
	}
	return u.Envs[env]
}

// overlayOf is where an environment has its carried fields.
func (c *Case) overlayOf(at *EnvAt) []fieldedit.Overlay {
	return []fieldedit.Overlay{at.Overlay(c.Pipeline.Pipeline)}
}

// overlaysOf is where several components have theirs.
func (c *Case) overlaysOf(env string, passengers []promotion.Member) []fieldedit.Overlay {
	var out []fieldedit.Overlay
	for _, p := range passengers {
		if at := c.envAt(env, p.Component); at != nil {
			out = append(out, at.Overlay(c.Pipeline.Pipeline))
		}
	}
	return out
}

// passengers are the components that the case moves together.
func (c *Case) passengers() []promotion.Member {
	var out []promotion.Member
	for _, m := range c.Members {
		out = append(out, m.Passenger)
	}
	return out
}

// nameAll is what people call what moves together.
func nameAll(passengers []promotion.Member) string {
	names := make([]string, len(passengers))
	for i, p := range passengers {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// Owner is the component that a carried field belongs to, where the case moves
// several; "" when that can't be told.
func (c *Case) Owner(env, file, path string) string {
	if owner := c.owners[file+"|"+path]; owner != "" {
		return owner
	}
	var may []string
	for _, m := range c.Members {
		if at := c.envAt(env, m.Passenger.Component); at != nil {
			if scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline)); err == nil && scope.Covers(file) {
				may = append(may, m.Passenger.Component)
			}
		}
	}
	if len(may) != 1 {
		return ""
	}
	return may[0]
}

// Own says that an open pull request is the case's own, not one of several
// components that it is only a part of.
func (c *Case) Own(number int) bool { return c.Pulls[number] != nil }
