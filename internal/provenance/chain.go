package provenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Want is what a statement has to be about. What is empty is not looked at.
type Want struct {
	Repository  string
	Pipeline    string
	Component   string
	Environment string
	Release     string // its identity
	Image       string // a digest, sha256:…
	// At is when it has to have been true: a statement that was issued later doesn't count.
	At time.Time
}

// Check says why a statement isn't what is wanted; nil: it is a verification (or a verified revert) of just that.
func (p *Proven) Check(want Want) error {
	r := p.Record
	if r == nil {
		return fmt.Errorf("the statement is of the type %s and not of %s", bounded(p.Predicate), PromotionPredicate)
	}
	for _, field := range []struct{ name, has, want string }{
		{"repository", r.Repository, want.Repository}, {"pipeline", r.Pipeline, want.Pipeline}, {"component", r.Component, want.Component},
		{"environment", r.Environment, want.Environment}, {"release", r.Release.ID, want.Release},
	} {
		if field.want != "" && field.has != field.want {
			return fmt.Errorf("the statement is about the %s %s and not %s", field.name, bounded(field.has), bounded(field.want))
		}
	}
	switch digest := strings.TrimPrefix(want.Image, "sha256:"); {
	case want.Image != "" && !p.isAbout("sha256", digest):
		return fmt.Errorf("the statement isn't about the image with the digest sha256:%s", bounded(digest))
	case !want.At.IsZero() && r.IssuedAt.After(want.At.Add(maxSkew)):
		return fmt.Errorf("the statement was issued at %s, after %s", shownTime(r.IssuedAt), shownTime(want.At))
	case r.Kind == Quarantined:
		return fmt.Errorf("the release %s is quarantined in %s since %s", r.Release.shown(), bounded(r.Environment), shownTime(r.Since))
	}
	return nil
}

// shown names a release for people.
func (r Release) shown() string { return bounded(cmp.Or(r.Name, r.ID)) }

// QuarantinedBy is the last word about the same release in the same environment where that is a quarantine, which takes
// back what an earlier statement says; nil: there is none. at bounds it as [Want.At] does.
func (p *Proven) QuarantinedBy(all []*Proven, at time.Time) *Proven {
	last := p
	for _, o := range all {
		isOf := o.Record != nil && o.isOfSame(p) && o.Record.Environment == p.Record.Environment
		if !isOf || !at.IsZero() && o.Record.IssuedAt.After(at) {
			continue
		}
		if o.Record.Since.After(last.Record.Since) {
			last = o
		}
	}
	if last.Record.Kind != Quarantined || last == p {
		return nil
	}
	return last
}

// isOfSame says that two statements are about one release of one component. Their repositories may differ: two installations
// with an air gap between them have each its own copy.
func (p *Proven) isOfSame(o *Proven) bool {
	a, b := p.Record, o.Record
	return a.Pipeline == b.Pipeline && a.Component == b.Component && a.Release.ID == b.Release.ID
}

// Chain is a statement and those before it, back to the source environments.
type Chain struct {
	Links []*Proven // each once, the one that was looked from last
	// Problems say what is missing or wrong; none: the chain holds.
	Problems []string
}

// maxLinks bounds a chain: a pipeline has at most some dozens of environments.
const maxLinks = 200

// VerifyChain follows a statement to the source environments through all that are known. Each of those before it has to be
// there, about the same release of the same component in the environment that the later one names, and older. at bounds
// all as [Want.At] does; zero: it isn't looked at.
func VerifyChain(from *Proven, all []*Proven, at time.Time) Chain {
	w := chainWalk{all: all, at: at, seen: map[string]bool{}}
	if from.Record == nil {
		return Chain{Problems: []string{"a statement of the type " + bounded(from.Predicate) + " has no chain"}}
	}
	if err := from.Check(Want{At: at}); err != nil {
		w.problem(from, err)
	}
	w.follow(from)
	return Chain{Links: w.links, Problems: w.problems}
}

type chainWalk struct {
	all      []*Proven
	at       time.Time
	seen     map[string]bool
	links    []*Proven
	problems []string
}

func (c *chainWalk) problem(of *Proven, err error) {
	c.problems = append(c.problems, fmt.Sprintf("%s: %s", bounded(of.Record.Environment), err))
}

func (c *chainWalk) follow(p *Proven) {
	if c.seen[p.Digest] {
		return
	}
	c.seen[p.Digest] = true
	if len(c.seen) > maxLinks {
		if len(c.seen) == maxLinks+1 {
			c.problem(p, fmt.Errorf("the chain has more than %d statements", maxLinks))
		}
		return
	}
	if by := p.QuarantinedBy(c.all, c.at); by != nil {
		c.problem(p, fmt.Errorf("the release %s was quarantined later, at %s", p.Record.Release.shown(), shownTime(by.Record.Since)))
	}
	for _, environment := range p.Record.After {
		if !slices.ContainsFunc(p.Record.Previous, func(b Previous) bool { return b.Environment == environment }) {
			c.problem(p, fmt.Errorf("it names no statement of %s, the environment before", bounded(environment)))
		}
	}
	for _, before := range p.Record.Previous {
		c.followTo(p, before)
	}
	c.links = append(c.links, p)
}

// followTo looks at one that a statement names as before it.
func (c *chainWalk) followTo(p *Proven, before Previous) {
	if before.Digest == "" {
		c.problem(p, fmt.Errorf("there was no statement of %s, the environment before, when it was made", bounded(before.Environment)))
		return
	}
	i := slices.IndexFunc(c.all, func(o *Proven) bool { return o.Digest == before.Digest })
	if i < 0 {
		c.problem(p, fmt.Errorf("the statement of %s with the digest sha256:%s is missing: export it too", bounded(before.Environment),
			bounded(before.Digest)))
		return
	}
	o := c.all[i]
	if err := o.precedes(p, before.Environment); err != nil {
		c.problem(p, fmt.Errorf("the statement before it is refused: %w", err))
		return
	}
	c.follow(o)
}

// precedes says why a statement can't be the one before another; nil: it can.
func (p *Proven) precedes(later *Proven, environment string) error {
	if p.Record == nil {
		return errors.New("it is of the type " + bounded(p.Predicate))
	}
	r, l := p.Record, later.Record
	if err := p.Check(Want{
		Pipeline: l.Pipeline, Component: l.Component, Environment: environment, Release: l.Release.ID,
	}); err != nil {
		return err
	}
	switch {
	case r.IssuedAt.After(l.IssuedAt.Add(maxSkew)):
		return fmt.Errorf("it was issued at %s, after the one that names it, at %s", shownTime(r.IssuedAt), shownTime(l.IssuedAt))
	case r.Since.After(l.Since.Add(maxSkew)) && !r.Rebuilt:
		return fmt.Errorf("it is of %s, after what the one that names it states, at %s", shownTime(r.Since), shownTime(l.Since))
	}
	return nil
}
