package plan

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts"
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
func (m *planner) describePromotion(ctx context.Context, p *facts.ResolvedPipeline, u *unit, open promotion.Open) (Promotion, error) {
	out := Promotion{Environment: open.Environment, Branch: p.BranchOf(open.Environment), Parts: []Part{}, Changes: []Change{}, Files: []File{}}
	for _, member := range open.Members {
		from := u.env(member.Component, open.Environment).Release.Value
		out.Parts = append(out.Parts, Part{Component: member.Component, From: from, To: promotion.Release{ID: member.Release, Name: member.Name}})
	}
	tree, edits := m.input.Mirror.Tree(open.Tip), u.ComposedEdits(open.Environment, open.Release)
	var files []string
	for i := range edits {
		e := &edits[i]
		files = append(files, e.File)
		for _, c := range e.Changes {
			out.Changes = append(out.Changes, Change{File: c.File, Line: c.Line, Kind: c.Kind, Path: c.Path, Old: c.Old, New: c.New, Added: c.Added, Removed: c.Removed, text: c.String()})
		}
		f, err := describeFile(tree, e)
		if err != nil {
			return out, err
		}
		out.Files = append(out.Files, f)
	}
	var err error
	if out.Reached, out.Unaffected, err = m.splitReaders(ctx, p, open, files); err != nil || !m.input.Rendered {
		return out, err
	}
	effects, err := m.effects(ctx, u, open)
	if err != nil {
		if ctx.Err() != nil {
			return out, err
		}
		out.Rendered = []Rendered{{Target: strings.Join(u.targetNames(open), ", "), Why: err.Error()}}
		return out, nil
	}
	out.Rendered = []Rendered{}
	for _, e := range effects {
		out.Rendered = append(out.Rendered, Rendered{Target: e.Target.Name, Spec: e.Spec, Why: e.Why, Summary: e.Changes.Summary(), Diff: e.Changes.Text(renderLimit)})
	}
	return out, nil
}

// splitReaders says which targets that a promotion is for read its files, and which
// others do.
func (m *planner) splitReaders(ctx context.Context, of *facts.ResolvedPipeline, open promotion.Open, files []string) (reached, others []string, err error) {
	inside, outside := map[string]bool{}, map[string]bool{}
	for _, p := range m.snapshot.Pipelines {
		readers, err := p.AffectedReaders(ctx, m.snapshot.BranchFor(of.Pipeline, open.Environment).Branch, files)
		if err != nil {
			return nil, nil, err
		}
		for i := range p.TargetSet.Targets {
			t := &p.TargetSet.Targets[i]
			if _, moves := promotion.FindMember(open.Members, t.Component); readers[t.ID()] != nil {
				own := p == of && t.Environment == open.Environment && moves
				map[bool]map[string]bool{true: inside, false: outside}[own][t.Name] = true
			}
		}
	}
	maps.DeleteFunc(outside, func(name string, _ bool) bool { return inside[name] })
	sorted := func(names map[string]bool) []string {
		return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(names))))
	}
	return sorted(inside), sorted(outside), nil
}

// describeFile is an edit of a tree as git would show it.
func describeFile(tree fs.StatFS, e *fieldedit.Edit) (File, error) {
	f := File{Path: e.File, Action: "changed"}
	was := textdiff.File{Data: e.Before}
	switch {
	case e.Created:
		f.Action = "created"
	default:
		info, err := tree.Stat(e.File)
		if err != nil {
			return f, err
		}
		was.Mode = textdiff.Mode(fieldedit.ModeRegular)
		if info.Mode()&0o100 != 0 {
			was.Mode = textdiff.Mode(fieldedit.ModeExecutable)
		}
		if e.Deleted {
			f.Action = "deleted"
		}
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
