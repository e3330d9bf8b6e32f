package fieldedit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// Op is one thing to set in a file: a path, or an image of a kustomization.
type Op struct {
	Path  fieldpath.Path
	Value string

	Image string // set: Edit applies to this image, and Path and Value don't
	Edit  ImageEdit
}

// ParseOp reads PATH=VALUE; see fieldpath.ParseAssignment.
func ParseOp(arg string) (Op, error) {
	p, value, err := fieldpath.ParseAssignment(arg)
	if err != nil {
		return Op{}, err
	}
	return Op{Path: p, Value: value}, nil
}

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]*$`)
	tagPattern    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}$`)
)

// ParseImageOp reads NAME=TAG, NAME=NEWNAME:TAG or NAME=NEWNAME, each with
// @DIGEST behind it or that alone: NAME@DIGEST. NEWNAME is told from a tag by
// its slash or colon.
func ParseImageOp(arg string) (Op, error) {
	name, to, assigned := strings.Cut(arg, "=")
	rest := &name
	if assigned {
		rest = &to
	}
	var digest string
	pinned := false
	*rest, digest, pinned = strings.Cut(*rest, "@")
	op := Op{Image: name, Edit: ImageEdit{Digest: digest}}
	switch {
	case name == "" || !assigned && !pinned:
		return Op{}, fmt.Errorf("%q isn't NAME=TAG or NAME@sha256:…", arg)
	case pinned && !digestPattern.MatchString(digest):
		return Op{}, fmt.Errorf("%q: %q isn't a digest such as sha256:…", arg, digest)
	case !assigned:
		return op, nil
	}
	tag := to
	if colon, slash := strings.LastIndexByte(to, ':'), strings.LastIndexByte(to, '/'); colon >= 0 || slash >= 0 {
		op.Edit.NewName, tag = to, ""
		if colon > slash {
			op.Edit.NewName, tag = to[:colon], to[colon+1:]
		}
		if !namePattern.MatchString(op.Edit.NewName) {
			return Op{}, fmt.Errorf("%q: %q isn't an image's name", arg, op.Edit.NewName)
		}
		if colon < slash {
			return op, nil
		}
	}
	if !tagPattern.MatchString(tag) {
		return Op{}, fmt.Errorf("%q: %q isn't an image tag (letters, digits, _ . -, at most 128)", arg, tag)
	}
	op.Edit.NewTag = tag
	return op, nil
}

// Set applies ops to one file's bytes; file is its path, by whose name it is a
// kustomization, YAML or JSON. It returns the new bytes and what changed, by
// line; no changes and the bytes as they were where all is so already. Any op
// that is refused refuses all.
func Set(data []byte, file string, ops []Op) ([]byte, []Change, error) {
	kind, as, err := fileKind(file)
	if err != nil {
		return nil, nil, err
	}
	d, err := parseDocument(data, as)
	if err != nil {
		return nil, nil, withLocation(err, file, "")
	}
	w := &editedFile{before: data, doc: d}
	seen := map[string]bool{}
	for _, op := range ops {
		if op.Image != "" && kind != KindImage {
			return nil, nil, &RefusedError{File: file, Reason: fmt.Sprintf("it isn't a kustomization (%s), so it has no image %s to set",
				strings.Join(kustomizations, ", "), op.Image)}
		}
		if err := w.applyOp(file, op, as, seen); err != nil {
			return nil, nil, withLocation(err, file, "")
		}
	}
	changes, err := w.finalChanges(file)
	if err != nil {
		return nil, nil, err
	}
	return w.doc.data, changes, nil
}

func (ef *editedFile) applyOp(file string, op Op, as fileFormat, seen map[string]bool) error {
	name := op.Path.String()
	if op.Image != "" {
		name = "images[" + op.Image + "]"
	}
	if seen[name] {
		return newRefusal(0, "%s is set twice", name)
	}
	seen[name] = true
	if op.Image != "" {
		return ef.setImage(file, op.Image, op.Edit)
	}
	return ef.setField(file, fieldAddress{kind: as.fieldKind(), path: op.Path}, op.Value, TypeString)
}

// fileKind tells from a file's name what it holds.
func fileKind(file string) (string, fileFormat, error) {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	switch ext := strings.ToLower(path.Ext(base)); {
	case slices.Contains(kustomizations, base):
		return KindImage, formatYAML, nil
	case ext == ".yaml" || ext == ".yml":
		return KindYAML, formatYAML, nil
	case ext == ".json":
		return KindJSON, formatJSON, nil
	}
	return "", 0, &RefusedError{File: file, Reason: "its name says neither YAML (.yaml, .yml, Kustomization) nor JSON (.json)"}
}

// String is the change in one line, as people read it:
//
//	overlays/dev/kustomization.yaml:7: images[registry.example/web].newTag 1.4.1 → 1.4.2
//	overlays/dev/config/app.conf: 6ccfdb5 → 1e9e2cc
func (c Change) String() string {
	var b strings.Builder
	switch {
	case c.File == "":
		fmt.Fprintf(&b, "line %d:", c.Line)
	case c.Line == 0:
		b.WriteString(DisplayFileName(c.File) + ":")
	default:
		fmt.Fprintf(&b, "%s:%d:", DisplayFileName(c.File), c.Line)
	}
	if c.Path != "" {
		b.WriteString(" " + c.Path)
	}
	was, is := displayValue(c.Kind, c.Old), displayValue(c.Kind, c.New)
	switch {
	case c.Added:
		fmt.Fprintf(&b, " %s (added)", is)
	case c.Removed:
		fmt.Fprintf(&b, " %s (removed)", was)
	default:
		fmt.Fprintf(&b, " %s → %s", was, is)
	}
	return b.String()
}

// displayValue is a value on one line, quoted where it would be misread otherwise; of
// a whole file the start of its content's id.
func displayValue(kind, v string) string {
	if mode, id, ok := (Field{Kind: kind, Value: v}).parseWholeValue(); ok {
		if id = id[:7]; mode == ModeExecutable {
			id += " executable"
		}
		return id
	}
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if v == "" || strings.ContainsFunc(v, odd) {
		return fmt.Sprintf("%q", v)
	}
	return v
}

// ChangeLines are changes for a terminal, one a line; "nothing to do" without any.
func ChangeLines(changes []Change) []string {
	if len(changes) == 0 {
		return []string{"nothing to do"}
	}
	var out []string
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}
