package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
)

// shortID is how much of an id git writes, but in large repositories.
const shortID = 7

func (m *memory) writePatch(ctx context.Context, a, b string, o patchOptions) ([]byte, error) {
	paths, err := cleanPathspecs(o.paths)
	if err != nil {
		return nil, err
	}
	old, err := m.findTree(a)
	if err != nil {
		return nil, err
	}
	now, err := m.findTree(b)
	if err != nil {
		return nil, err
	}
	changes, err := m.objects.listChanges(old, now)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("write the change from %s to %s: %w", a, b, err)
		}
		if len(paths) > 0 && !isBelowAny(c.Path, paths) {
			continue
		}
		was, is := m.patchSide(old, c.Path, c.OldMode), m.patchSide(now, c.Path, c.NewMode)
		if c.Status == 'T' { // git writes it as one deleted and one added
			writeFilePatch(&out, c.Path, was, patchSide{id: noCommit}, o.fullIDs)
			was = patchSide{id: noCommit}
		}
		writeFilePatch(&out, c.Path, was, is, o.fullIDs)
		if int64(out.Len()) > o.limit {
			return out.Bytes()[:o.limit], &Error{Op: "write the change from " + a + " to " + b, Kind: ErrTooLarge}
		}
	}
	return out.Bytes(), nil
}

func isBelowAny(name string, paths []string) bool {
	for _, p := range paths {
		rest, ok := strings.CutPrefix(name, p)
		if p == "." || ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// patchSide is a file before or after a change; mode 0: it isn't there.
type patchSide struct {
	mode Mode
	id   string
	data []byte
}

func (m *memory) patchSide(tree, path string, mode Mode) patchSide {
	if mode == 0 {
		return patchSide{id: noCommit}
	}
	at, _ := m.objects.findPath(tree, path)
	if mode == Submodule {
		return patchSide{mode, at.sha, []byte("Subproject commit " + at.sha + "\n")}
	}
	blob, _ := m.objects.lookUp(at.sha)
	return patchSide{mode, at.sha, blob.data}
}

// writeFilePatch writes what git diff does for one file.
func writeFilePatch(out *bytes.Buffer, path string, was, is patchSide, fullIDs bool) {
	from, to := quotePatchName("a/"+path), quotePatchName("b/"+path)
	fmt.Fprintf(out, "diff --git %s %s\n", from, to)
	mode := ""
	switch {
	case was.mode == 0:
		fmt.Fprintf(out, "new file mode %s\n", is.mode)
		from = "/dev/null"
	case is.mode == 0:
		fmt.Fprintf(out, "deleted file mode %s\n", was.mode)
		to = "/dev/null"
	case was.mode != is.mode:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", was.mode, is.mode)
	default:
		mode = " " + is.mode.String()
	}
	if was.id == is.id {
		return
	}
	if fullIDs {
		fmt.Fprintf(out, "index %s..%s%s\n", was.id, is.id, mode)
	} else {
		fmt.Fprintf(out, "index %s..%s%s\n", was.id[:shortID], is.id[:shortID], mode)
	}
	out.WriteString(textdiff.Contents(from, to, was.data, is.data))
}

// quotePatchName writes a name as git does with core.quotePath=false.
func quotePatchName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c >= 7 && c <= 13:
			b.WriteString(`\` + string("abtnvfr"[c-7]))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
