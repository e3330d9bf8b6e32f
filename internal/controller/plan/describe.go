package plan

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/manifest/textdiff"
)

// renderLimit bounds what one target's rendered difference is shown with.
var renderLimit = render.TextLimit{Bytes: 256 << 10, Lines: 4000, ObjectLines: 1000}

// maxDiff bounds what is shown of one file's difference, in bytes: more than
// anybody reads.
const maxDiff = 1 << 20

// describePromotion shows what would be opened.
func (m *planner) describePromotion(ctx context.Context, r *resolvedPipeline, o *opening) (Promotion, error) {
	p := Promotion{Environment: o.env, Branch: r.pipeline.BranchOf(o.env), Parts: []Part{}, Changes: []Change{}, Files: []File{}}
	for _, one := range o.parts {
		p.Parts = append(p.Parts, Part{Component: one.unit.component, From: one.unit.findEnv(o.env).Release.Value, To: one.release})
	}
	var files []string
	for i := range o.edits {
		e := &o.edits[i]
		files = append(files, e.File)
		for _, c := range e.Changes {
			p.Changes = append(p.Changes, Change{File: c.File, Line: c.Line, Kind: c.Kind, Path: c.Path, Old: c.Old, New: c.New, Added: c.Added, Removed: c.Removed, text: c.String()})
		}
		f, err := describeFile(m.branchOf(r.pipeline, o.env).tree, e)
		if err != nil {
			return p, err
		}
		p.Files = append(p.Files, f)
	}
	var err error
	if p.Reached, p.Unaffected, err = m.splitReaders(ctx, r, o.componentNames(), o.env, files); err != nil {
		return p, err
	}
	if m.input.Rendered {
		p.Rendered, err = m.renderEffects(ctx, r, o)
	}
	return p, err
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
