package plan

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/manifest/textdiff"
	"github.com/liftlock/liftlock/internal/promotion"
)

// renderLimit bounds what one target's rendered difference is shown with.
var renderLimit = render.TextLimit{Bytes: 256 << 10, Lines: 4000, ObjectLines: 1000}

// maxDiff bounds what is shown of one file's difference, in bytes: more than
// anybody reads.
const maxDiff = 1 << 20

// describePromotion shows what would be opened.
func (pl *planner) describePromotion(ctx context.Context, u *unit, open promotion.Open) (Promotion, error) {
	out := Promotion{Environment: open.Environment, Branch: u.Pipeline.BranchOf(open.Environment), Parts: []Part{},
		Changes: []fieldedit.Change{}, Files: []File{}}
	var components, targets, files []string
	for _, member := range open.Members {
		c, _ := u.Component(member.Component)
		env := c.Env(open.Environment)
		out.Parts = append(out.Parts, Part{Component: member.Component, From: env.Release.Value,
			To: promotion.Release{ID: member.Release, Name: member.Name}})
		components = append(components, member.Component)
		for _, t := range env.Targets {
			targets = append(targets, t.Name)
		}
	}
	edits := u.ComposedEdits(open.Environment, open.Release)
	for i := range edits {
		e := &edits[i]
		f, err := describeFile(pl.input.Mirror.Tree(open.Tip), e)
		if err != nil {
			return out, err
		}
		files, out.Changes, out.Files = append(files, e.File), append(out.Changes, e.Changes...), append(out.Files, f)
	}
	maybeOverridden, err := pl.addReaders(ctx, u, open, edits, files, &out)
	if err != nil {
		return out, err
	}
	if err := pl.addRegenerated(ctx, u, components, open, edits, files, &out); err != nil {
		return out, err
	}
	required := u.Pipeline.Spec.EnvironmentByName(open.Environment).RequiresEffect()
	if !pl.input.Rendered && !(required && maybeOverridden) {
		return out, nil
	}
	for _, component := range components {
		if required {
			found, err := pl.gatherer.Effects.ListIneffective(ctx, &u.Basis, open.Environment, open.Tip, open.Members, edits, component)
			if err != nil {
				return out, err
			}
			out.Join(found)
		}
	}
	effects, err := pl.gatherer.Effects.ListEffects(ctx, &u.Basis, components, open.Environment, open.Tip, edits)
	if err != nil {
		if pl.input.Rendered {
			out.Rendered = []Rendered{{Target: strings.Join(targets, ", "), Why: err.Error()}}
		}
		return out, ctx.Err()
	}
	if !pl.input.Rendered {
		return out, nil
	}
	out.Rendered = []Rendered{}
	for _, e := range effects {
		out.Rendered = append(out.Rendered, Rendered{Target: e.Target.Name, Spec: e.Spec, Why: e.Why, Summary: e.Changes.Summary(),
			Diff: e.Changes.Text(renderLimit)})
	}
	return out, nil
}

// addReaders says which targets that a promotion is for read its files, to which of them it
// doesn't come, and which others read them. maybeOverridden: in one of those that it is for something is known
// to override what it carries.
func (pl *planner) addReaders(ctx context.Context, u *unit, open promotion.Open, edits []fieldedit.Edit, files []string,
	out *Promotion) (maybeOverridden bool, err error) {
	of := u.Pipeline
	inside, outside := map[string]bool{}, map[string]bool{}
	branch := pl.snapshot.BranchFor(of.Pipeline, open.Environment).Branch
	for _, p := range pl.snapshot.Pipelines {
		readers, err := p.AffectedReaders(ctx, branch, files)
		if err != nil {
			return false, err
		}
		for i := range p.TargetSet.Targets {
			t := &p.TargetSet.Targets[i]
			if readers[t.ID()] == nil {
				continue
			}
			if _, moves := promotion.FindMember(open.Members, t.Component); moves && p == of && t.Environment == open.Environment {
				inside[t.Name] = true
				maybeOverridden = maybeOverridden || len(t.Ignores.Differences) > 0 || effects.MayBeOverridden(&u.Basis, open.Environment,
					open.Tip, open.Members, edits, t, readers[t.ID()])
				if follows := t.OtherRevision(branch, files); follows != "" {
					out.Unreached = append(out.Unreached, Unreached{Target: t.Name, Follows: follows})
				} else if t.IsCreatedOnly(files) {
					out.Unreached = append(out.Unreached, Unreached{Target: t.Name, CreatedOnly: true})
				}
			} else {
				outside[t.Name] = true
			}
		}
	}
	maps.DeleteFunc(outside, func(name string, _ bool) bool { return inside[name] })
	out.Reached, out.Unaffected = append([]string{}, slices.Sorted(maps.Keys(inside))...),
		append([]string{}, slices.Sorted(maps.Keys(outside))...)
	return maybeOverridden, nil
}

// addRegenerated adds the targets that a promotion is for and whose Applications it changes, as an edit of an
// ApplicationSet does: they read none of its files.
func (pl *planner) addRegenerated(ctx context.Context, u *unit, components []string, open promotion.Open, edits []fieldedit.Edit,
	files []string, out *Promotion) error {
	reached, _, err := pl.gatherer.Effects.Reach(ctx, &u.Basis, components, open.Environment, open.Tip, edits)
	if err != nil {
		out.ReachErr = err.Error()
		return ctx.Err()
	}
	for _, t := range reached {
		if len(t.Fields) > 0 {
			a := Application{Target: t.Name}
			for _, f := range t.Fields {
				a.Fields = append(a.Fields, ApplicationField{f.Path, f.Live, f.Resolved})
			}
			out.Applications = append(out.Applications, a)
		}
		_, moves := promotion.FindMember(open.Members, t.Component)
		if !moves || t.Environment != open.Environment || slices.Contains(out.Reached, t.Name) {
			continue
		}
		out.Reached = append(out.Reached, t.Name)
		if t.IsCreatedOnly(files) {
			out.Unreached = append(out.Unreached, Unreached{Target: t.Name, CreatedOnly: true})
		}
	}
	slices.Sort(out.Reached)
	return nil
}

// describeFile is an edit of a tree as git would show it.
func describeFile(tree fs.StatFS, e *fieldedit.Edit) (File, error) {
	f, was := File{Path: e.File, Action: "created"}, textdiff.File{Data: e.Before}
	if !e.Created {
		info, err := tree.Stat(e.File)
		if err != nil {
			return f, err
		}
		f.Action, was.Mode = "changed", textdiff.Mode(fieldedit.ModeOf(info))
	}
	if e.Deleted {
		f.Action = "deleted"
	}
	f.Diff = truncateDiff(textdiff.Unified(e.File, was, textdiff.File{Data: e.After, Mode: textdiff.Mode(e.Mode)}))
	return f, nil
}

// truncateDiff is a diff as far as it is shown; its last line says that there is more.
func truncateDiff(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	diff = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1]
	return diff + fmt.Sprintf("… cut off after %d bytes\n", len(diff))
}
