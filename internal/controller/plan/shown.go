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

// promotion shows what would be opened.
func (m *maker) promotion(ctx context.Context, r *rules, o *opening) (Promotion, error) {
	p := Promotion{Environment: o.env, Branch: r.p.BranchOf(o.env), Parts: []Part{}, Changes: []Change{}, Files: []File{}}
	for _, one := range o.parts {
		p.Parts = append(p.Parts, Part{Component: one.unit.component, From: one.unit.env(o.env).Release.Value, To: one.release})
	}
	var files []string
	for i := range o.edits {
		e := &o.edits[i]
		files = append(files, e.File)
		for _, c := range e.Changes {
			p.Changes = append(p.Changes, Change{File: c.File, Line: c.Line, Kind: c.Kind, Path: c.Path, Old: c.Old, New: c.New, Added: c.Added, Removed: c.Removed, text: c.String()})
		}
		f, err := file(m.line(r.p, o.env).tree, e)
		if err != nil {
			return p, err
		}
		p.Files = append(p.Files, f)
	}
	var err error
	if p.Reaches, p.Spares, err = m.reach(ctx, r, o.components(), o.env, files); err != nil {
		return p, err
	}
	if m.in.Rendered {
		p.Rendered, err = m.effects(ctx, r, o)
	}
	return p, err
}

// file is an edit of a tree as git would show it.
func file(tree fs.StatFS, e *fieldedit.Edit) (File, error) {
	f := File{Path: e.File, What: "changed"}
	was := textdiff.File{Data: e.Before}
	switch {
	case e.Created:
		f.What = "created"
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
			f.What = "deleted"
		}
	}
	f.Diff = cutOff(textdiff.Unified(e.File, was, textdiff.File{Data: e.After, Mode: textdiff.Mode(e.Mode)}))
	return f, nil
}

// cutOff is a diff as far as it is shown; its last line says that there is more.
func cutOff(diff string) string {
	if len(diff) <= maxDiff {
		return diff
	}
	diff = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1]
	return diff + fmt.Sprintf("… cut off after %d bytes\n", len(diff))
}
