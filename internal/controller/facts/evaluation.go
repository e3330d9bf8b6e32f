package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// MemberEvaluation is a component in what moves several, with its own case and decision.
type MemberEvaluation struct {
	Member     promotion.Member
	Evaluation *Evaluation
	Decision   *promotion.ComponentDecision
}

// Moves says that the case is about a component.
func (c *Evaluation) Moves(component string) bool {
	if c.movableComponents != nil {
		return slices.Contains(c.movableComponents, component)
	}
	return component == c.Facts.Unit.Component
}

// withMembers is the case for an edit that moves several components; without any, the
// case as it is.
func (c *Evaluation) withMembers(members []promotion.Member) *Evaluation {
	if len(members) == 0 {
		return c
	}
	out := *c
	out.movableComponents = make([]string, 0, len(members))
	for _, p := range members {
		out.movableComponents = append(out.movableComponents, p.Component)
	}
	slices.Sort(out.movableComponents)
	return &out
}

// withAllComponents is the case for an edit that may come to move any components of its
// pipeline, where they travel together.
func (c *Evaluation) withAllComponents() *Evaluation {
	if !c.Pipeline.Spec.BatchesByEnvironment() {
		return c
	}
	out := *c
	out.movableComponents = slices.Sorted(maps.Keys(c.Pipeline.Units))
	return &out
}

// whyUnknown says that nobody knows any more what a release consists of: the store
// that knew is gone. An empty one in its place would take everything away.
func (c *Evaluation) whyUnknown(release string) string {
	if _, ok := c.ReleaseContents[release]; ok {
		return ""
	}
	return fmt.Sprintf("what the release %s consists of is not known any more", wording.Short(release))
}

// landedByPull says that what an environment carries came by a pull request.
func (c *Evaluation) landedByPull(environment string, number int) bool {
	return slices.ContainsFunc(c.Facts.Envs, func(e promotion.Env) bool {
		return e.Name == environment && e.Landed.OK && e.Landed.Value.Pull == number
	})
}

// envAt is an environment of a component; nil when there is none.
func (c *Evaluation) envAt(env, component string) *ResolvedEnv {
	u := c.Pipeline.Units[component]
	if u == nil {
		return nil
	}
	return u.Envs[env]
}

// unitOverlays is where an environment has its carried fields.
func (c *Evaluation) unitOverlays(at *ResolvedEnv) []fieldedit.Overlay {
	return []fieldedit.Overlay{at.Overlay(c.Pipeline.Pipeline)}
}

// memberOverlays is where several components have theirs.
func (c *Evaluation) memberOverlays(env string, members []promotion.Member) []fieldedit.Overlay {
	var out []fieldedit.Overlay
	for _, p := range members {
		if at := c.envAt(env, p.Component); at != nil {
			out = append(out, at.Overlay(c.Pipeline.Pipeline))
		}
	}
	return out
}

// listMembers are the components that the case moves together.
func (c *Evaluation) listMembers() []promotion.Member {
	var out []promotion.Member
	for _, m := range c.Members {
		out = append(out, m.Member)
	}
	return out
}

// joinMemberNames is what people call what moves together.
func joinMemberNames(members []promotion.Member) string {
	names := make([]string, len(members))
	for i, p := range members {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// FieldOwner is the component that a carried field belongs to, where the case moves
// several; "" when that can't be told.
func (c *Evaluation) FieldOwner(env, file, path string) string {
	if owner := c.fieldOwners[file+"|"+path]; owner != "" {
		return owner
	}
	var may []string
	for _, m := range c.Members {
		if at := c.envAt(env, m.Member.Component); at != nil {
			if scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline)); err == nil && scope.Covers(file) {
				may = append(may, m.Member.Component)
			}
		}
	}
	if len(may) != 1 {
		return ""
	}
	return may[0]
}

// OwnsPull says that an open pull request is the case's own, not one of several
// components that it is only a part of.
func (c *Evaluation) OwnsPull(number int) bool { return c.OpenPulls[number] != nil }
