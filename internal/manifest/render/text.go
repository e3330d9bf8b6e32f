package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
	"github.com/liftlock/liftlock/internal/wording"
)

// TextLimit bounds a text for people; zero means no bound.
type TextLimit struct {
	Bytes       int // of the whole text
	Lines       int // of the whole text
	ObjectLines int // lines of one object
}

// maxValueRunes bounds one value's characters in a line.
const maxValueRunes = 201 // the ellipsis among them

// Text is the changes in the manner of a unified diff, for a fenced block. A line @@ object @@
// comes first, then a line a field: removed ones with a minus and added ones with a plus. It is
// always the same for the same changes and ends in a newline, or is empty. Changes over a limit are
// counted instead. Lines have printable characters only, no matter what the manifests hold.
func (c *Changes) Text(limit TextLimit) string {
	if c.Empty() {
		return ""
	}
	const reserve = 60 // for the last line, which says how much more there is
	var b strings.Builder
	lines, leftLines, leftObjects := 0, 0, 0
	clipped := 0 // objects of which there is nothing here
	for _, n := range c.LeftOut {
		clipped += n
	}
	for i := range c.Objects {
		all := c.Objects[i].diffLines()
		shown := all
		if limit.ObjectLines > 0 && len(all) > limit.ObjectLines {
			shown = append(all[:limit.ObjectLines:limit.ObjectLines],
				fmt.Sprintf("  … and %s", wording.Count(len(all)-limit.ObjectLines, "more line")))
		}
		wrote := 0
		for _, l := range shown {
			isFull := limit.Lines > 0 && lines+1 >= limit.Lines || limit.Bytes > 0 && b.Len()+len(l)+reserve > limit.Bytes
			if isFull || leftObjects > 0 {
				break
			}
			b.WriteString(l)
			b.WriteByte('\n')
			lines, wrote = lines+1, wrote+1
		}
		if wrote < len(shown) {
			leftObjects++
			leftLines += len(all) - wrote
		}
	}
	switch {
	case clipped > 0:
		fmt.Fprintf(&b, "… and %s\n", wording.Count(leftObjects+clipped, "more object"))
	case leftObjects > 0:
		fmt.Fprintf(&b, "… and %s in %s\n", wording.Count(leftLines, "more line"), wording.Count(leftObjects, "object"))
	}
	return b.String()
}

// diffLines are one object's change.
func (c *Change) diffLines() []string {
	title := c.APIVersion + " " + c.Kind + " "
	if c.Namespace != "" {
		title += c.Namespace + "/"
	}
	if c.PreviousName != "" {
		title += c.PreviousName + " → "
	}
	title += c.Name
	if c.Op != Changed {
		title += " " + string(c.Op)
	}
	out := []string{"@@ " + escapeLine(title) + " @@"}
	for i := range c.Fields {
		out = append(out, c.Fields[i].diffLines()...)
	}
	if c.MoreFields > 0 {
		out = append(out, fmt.Sprintf("  … and %s", wording.Count(c.MoreFields, "more field")))
	}
	return out
}

func (f *Field) diffLines() []string {
	path := escapeLine(f.Path)
	switch {
	case f.Hidden && f.Op == Added:
		return []string{"+ " + path + ": " + Placeholder}
	case f.Hidden && f.Op == Removed:
		return []string{"- " + path + ": " + Placeholder}
	case f.Hidden:
		return []string{"- " + path + ": " + Placeholder, "+ " + path + ": (hidden, changed)"}
	case f.Op == Reordered:
		return []string{"- " + path + ": in the order " + joinNames(f.Old), "+ " + path + ": in the order " + joinNames(f.New)}
	case f.Op == Added:
		return leafLines("+ ", f.Path, f.New)
	case f.Op == Removed:
		return leafLines("- ", f.Path, f.Old)
	}
	old, isText := f.Old.(string)
	recent, wasText := f.New.(string)
	if isText && wasText && strings.Contains(strings.TrimSuffix(old, "\n")+strings.TrimSuffix(recent, "\n"), "\n") {
		return textDiffLines(path, old, recent)
	}
	return append(leafLines("- ", f.Path, f.Old), leafLines("+ ", f.Path, f.New)...)
}

// textDiffLines shows only the lines of a text that differ.
func textDiffLines(path, old, recent string) []string {
	a, b := strings.Split(old, "\n"), strings.Split(recent, "\n")
	out := []string{"  " + path + ":"}
	for _, h := range textdiff.Hunks(a, b) {
		for _, l := range a[h.OldFrom:h.OldTo] {
			out = append(out, "-   "+clipValue(escapeLine(l)))
		}
		for _, l := range b[h.NewFrom:h.NewTo] {
			out = append(out, "+   "+clipValue(escapeLine(l)))
		}
	}
	return out
}

// leafLines is a line for each scalar of a value.
func leafLines(sign, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return []string{sign + escapeLine(path) + ": {}"}
		}
		var out []string
		for _, key := range sortedKeys(v) {
			out = append(out, leafLines(sign, appendKey(path, key), v[key])...)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []string{sign + escapeLine(path) + ": []"}
		}
		var out []string
		key := itemKey(v)
		for i, item := range v {
			at := path + "[" + strconv.Itoa(i) + "]"
			if key != "" {
				at = path + keyedStep(key, item)
			}
			out = append(out, leafLines(sign, at, item)...)
		}
		return out
	case string:
		if text := strings.TrimSuffix(v, "\n"); strings.Contains(text, "\n") {
			out := []string{sign + escapeLine(path) + ":"}
			for l := range strings.SplitSeq(text, "\n") {
				out = append(out, sign+"  "+clipValue(escapeLine(l)))
			}
			return out
		}
	}
	return []string{sign + escapeLine(path) + ": " + clipValue(formatScalar(value))}
}

// formatScalar is a scalar as YAML would have it, nearly: text in quotes only where
// it could be taken for something else.
func formatScalar(value any) string {
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return escapeLine(string(data))
	}
	var v any
	if text == "" || strings.TrimSpace(text) != text || json.Unmarshal([]byte(text), &v) == nil || escapeLine(text) != text {
		return strconv.Quote(text)
	}
	return text
}

// escapeLine is one line of printable characters; the others are escaped.
func escapeLine(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func clipValue(s string) string { return wording.ClipRunes(s, maxValueRunes) }

func joinNames(names any) string {
	list, _ := names.([]any)
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = scalarText(n)
	}
	return clipValue(escapeLine(strings.Join(parts, ", ")))
}
