package propose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/wording"
)

// Open is what of a proposal a person has to say; what is nil is settled.
type Open struct {
	Charts, Clusters, Templates, Carry, Order *ChoiceError
}

// recipes is where people read how others' repositories are laid out.
const recipes = "https://github.com/liftlock/liftlock/blob/main/docs/recipes.md"

// todo ends a line of a pipeline file that waits for a person.
const todo = "# TODO"

// writeOpen writes what is open at a key, above it.
func (w *writer) writeOpen(c *ChoiceError) {
	w.writeComment("  ", "TODO: "+capitalize(c.Question))
	for _, o := range c.Options {
		w.writeComment("  ", fmt.Sprintf("- %s: %s", strings.Join(o.Flags, " "),
			strings.Join(slices.DeleteFunc([]string{o.Meaning, o.Example}, func(s string) bool { return s == "" }), "; ")))
	}
	for _, s := range c.Seen {
		w.writeComment("  ", "- "+s)
	}
	if c.Other != "" {
		w.writeComment("  ", capitalize(c.Other)+".")
	}
	w.writeComment("  ", "Layouts with their files: "+recipes)
}

// writeTemplates writes the two templates.
func (p *Proposal) writeTemplates(w *writer) {
	if p.Open.Templates != nil {
		w.writeOpen(p.Open.Templates)
		w.writeLine("  component: '' %s", todo)
		w.writeLine("  environment: '' %s", todo)
		return
	}
	w.writeComment("  ", fmt.Sprintf("Components: %s.", wording.JoinFew(p.Assignment.Components, 8)))
	w.writeLine("  component: %s", quoteTemplate(p.Assignment.Component))
	for _, a := range p.Assignment.Alternatives {
		w.writeComment("  ", "It could also be "+a+": choose that with --environment.")
	}
	w.writeLine("  environment: %s", quoteTemplate(p.Assignment.Environment))
	if len(p.Branches) > 0 {
		w.writeComment("  ", "Each environment's targets follow a branch of their own.")
		w.writeLine("  layout: branches")
	}
}

// writeCarry writes what a promotion moves.
func (p *Proposal) writeCarry(w *writer) {
	switch {
	case p.Open.Carry != nil:
		w.writeOpen(p.Open.Carry)
		w.writeLine("  carry: [] %s", todo)
		return
	case p.Carried == nil: // it follows from the templates
		w.writeLine("  carry: [] %s: what a promotion moves between these environments", todo)
		return
	}
	w.writeLine("  carry:")
	for _, c := range p.Carried.Entries {
		w.writeComment("    ", capitalize(c.Evidence)+".")
		w.writeLine("    - %s", carryText(c))
		if c.WhenAbsent != "" {
			w.writeLine("      whenAbsent: %s", c.WhenAbsent)
		}
	}
}

// writeEnvironments writes the environments in their order.
func (p *Proposal) writeEnvironments(w *writer) {
	switch {
	case p.Open.Templates != nil:
		w.writeLine("  environments: [] %s: their names, in the order in which releases go through them", todo)
		return
	case p.Open.Order != nil:
		w.writeOpen(p.Open.Order)
		w.writeLine("  environments:")
		for _, name := range p.Assignment.Environments {
			w.writeLine("    - name: %s %s: after", name, todo)
			p.writeBranch(w, name)
		}
		return
	}
	w.writeComment("  ", "The order is "+p.OrderWhy+".")
	w.writeLine("  environments:")
	for i, step := range p.Steps {
		for _, name := range step {
			w.writeLine("    - name: %s", name)
			p.writeBranch(w, name)
			if i > 0 {
				before := p.Steps[i-1]
				if p.After != nil {
					before = p.After[name]
				}
				w.writeLine("      after: [%s]", strings.Join(before, ", "))
			}
			p.writeDiscover(w, name)
		}
	}
}

// writeDiscover writes what comes into an environment by itself.
func (p *Proposal) writeDiscover(w *writer, environment string) {
	entries := p.Discover[environment]
	if len(entries) == 0 {
		return
	}
	w.writeLine("      discover:")
	for i := range entries {
		e := &entries[i]
		w.writeComment("        ", "From "+e.From+".")
		kind := "image"
		if e.Chart != "" {
			kind = "chart"
		}
		w.writeLine("        - %s: %s", kind, quoteText(e.Name()))
		w.writeLine("          choose: %s", chooseText(&e.Choose))
		if len(e.Platforms) > 0 {
			w.writeLine("          platforms: %s", flowList(e.Platforms))
		}
	}
}

// writeBranch writes the branch that an environment lives on.
func (p *Proposal) writeBranch(w *writer, environment string) {
	if branch := p.Branches[environment]; branch != "" {
		w.writeLine("      branch: %s", quoteText(branch))
	}
}

// Bounds of what is listed at a key that is open.
const (
	maxSeenVersions   = 12
	maxSeenParameters = 12
	maxSeenValues     = 5
)

// seenVersion is a version in a file, with the environments of components that are made from it.
type seenVersion struct {
	field
	readers []string
}

// ListVersions lists the versions in the environments' files, with their places. They aren't
// versions at one place in two environments, so nothing moves them.
func (s *Source) ListVersions(ctx context.Context) ([]string, error) {
	found := map[fieldLocation]*seenVersion{}
	reader := newFileReader()
	for _, component := range slices.Sorted(maps.Keys(s.Components)) {
		for _, name := range slices.Sorted(maps.Keys(s.Components[component])) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e := s.Components[component][name]
			branch := s.Branch(name)
			tree := s.Tree(branch)
			if tree == nil {
				continue
			}
			files := slices.Clone(e.Files)
			for _, root := range slices.Concat(e.Roots, e.Bases, e.Shared) {
				for _, file := range reader.list(tree, branch, root) {
					files = append(files, path.Join(root, file))
				}
			}
			for _, file := range appset.SortedUnique(files) {
				for _, v := range reader.read(tree, branch, file) {
					f := field{fieldLocation: fieldLocation{v.kind, file, v.path}, key: v.key, segments: v.segments}
					f.uses = []*use{{component: component, environment: name, file: file, scalar: v}}
					if !f.isCandidate(s.Tracked) {
						continue
					}
					if found[f.fieldLocation] == nil {
						found[f.fieldLocation] = &seenVersion{field: f}
					}
					found[f.fieldLocation].readers = append(found[f.fieldLocation].readers, component+" in "+name)
				}
			}
		}
	}
	all := slices.SortedFunc(maps.Values(found), func(a, b *seenVersion) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.kind, b.kind), cmp.Compare(a.path, b.path))
	})
	var out []string
	for _, v := range all[:min(len(all), maxSeenVersions)] {
		out = append(out, v.describe())
	}
	if len(all) == 0 {
		return []string{"no version was seen in them"}, nil
	}
	if n := len(all) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return out, nil
}

// isCandidate says that a field may be a version that somebody wants to move.
func (f *field) isCandidate(tracked string) bool {
	value := f.uses[0].value
	isOther := f.saysWhatItIs() || counts.MatchString(f.key) || strings.Contains(value, "{{") || !hasDigit(value)
	isNote := slices.ContainsFunc(f.segments, func(s fieldpath.Segment) bool { return s.Key == "annotations" || s.Key == "labels" })
	return f.isVersion(tracked) && !isOther && !isNote
}

// describe says where a version is, and why nothing moves it.
func (s *seenVersion) describe() string {
	what := s.path
	switch s.kind {
	case fieldedit.KindImage:
		what = "image " + s.path
	case fieldedit.KindRef:
		what = "the ref of " + s.path
	}
	why := "for %s alone"
	if len(s.readers) > 1 {
		why = "the same file for %s"
	} else if isAtPlace(s.segments) {
		why = "for %s, in a list's item that only its place tells"
	}
	return fmt.Sprintf("%s: %s is %s, %s", s.file, what, quoteValue(s.uses[0].value), fmt.Sprintf(why, wording.JoinFew(s.readers, 3)))
}

// listParameters lists the candidates for both templates with what they give.
func listParameters(candidates []candidate) []string {
	var out []string
	for i := range candidates {
		if len(out) == maxSeenParameters {
			break
		}
		if all := candidates[i].distinct(); len(all) > 1 {
			out = append(out, fmt.Sprintf("'%s' gives %s", candidates[i].text, wording.JoinFew(all, maxSeenValues)))
		}
	}
	return out
}
