package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
)

// Limit bounds a text for people; zero means no bound.
type Limit struct {
	Bytes  int // of the whole text
	Lines  int // of the whole text
	Object int // lines of one object
}

// maxValue bounds one value's characters in a line.
const maxValue = 200

// Text is the changes in the manner of a unified diff, for a fenced block: a
// line @@ object @@, then a line a field, those that went with a minus and
// those that came with a plus. It is always the same for the same changes and
// ends in a newline, or is empty. What is over a limit is counted instead.
// Lines have printable characters only, no matter what the manifests hold.
func (c *Changes) Text(limit Limit) string {
	if c.Empty() {
		return ""
	}
	const reserve = 60 // for the last line, which says how much more there is
	var b strings.Builder
	lines, leftLines, leftObjects := 0, 0, 0
	for i := range c.Objects {
		all := c.Objects[i].lines()
		shown := all
		if limit.Object > 0 && len(all) > limit.Object {
			shown = append(all[:limit.Object:limit.Object], fmt.Sprintf("  … and %s", number(len(all)-limit.Object, "more line")))
		}
		wrote := 0
		for _, l := range shown {
			if leftObjects > 0 || limit.Lines > 0 && lines+1 >= limit.Lines || limit.Bytes > 0 && b.Len()+len(l)+reserve > limit.Bytes {
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
	if leftObjects > 0 {
		fmt.Fprintf(&b, "… and %s in %s\n", number(leftLines, "more line"), number(leftObjects, "object"))
	}
	return b.String()
}

// number is a number of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// lines are one object's change.
func (c *Change) lines() []string {
	title := c.APIVersion + " " + c.Kind + " "
	if c.Namespace != "" {
		title += c.Namespace + "/"
	}
	if c.Was != "" {
		title += c.Was + " → "
	}
	title += c.Name
	if c.Op != Changed {
		title += " " + string(c.Op)
	}
	out := []string{"@@ " + oneLine(title) + " @@"}
	for i := range c.Fields {
		out = append(out, c.Fields[i].lines()...)
	}
	return out
}

func (f *Field) lines() []string {
	path := oneLine(f.Path)
	switch {
	case f.Hidden && f.Op == Added:
		return []string{"+ " + path + ": " + Placeholder}
	case f.Hidden && f.Op == Removed:
		return []string{"- " + path + ": " + Placeholder}
	case f.Hidden:
		return []string{"- " + path + ": " + Placeholder, "+ " + path + ": (hidden, changed)"}
	case f.Op == Reordered:
		return []string{"- " + path + ": in the order " + joined(f.Old), "+ " + path + ": in the order " + joined(f.New)}
	case f.Op == Added:
		return leaves("+ ", f.Path, f.New)
	case f.Op == Removed:
		return leaves("- ", f.Path, f.Old)
	}
	old, isText := f.Old.(string)
	recent, wasText := f.New.(string)
	if isText && wasText && strings.Contains(strings.TrimSuffix(old, "\n")+strings.TrimSuffix(recent, "\n"), "\n") {
		return textLines(path, old, recent)
	}
	return append(leaves("- ", f.Path, f.Old), leaves("+ ", f.Path, f.New)...)
}

// textLines shows only the lines of a text that differ.
func textLines(path, old, recent string) []string {
	a, b := strings.Split(old, "\n"), strings.Split(recent, "\n")
	out := []string{"  " + path + ":"}
	for _, h := range textdiff.Hunks(a, b) {
		for _, l := range a[h.OldFrom:h.OldTo] {
			out = append(out, "-   "+cut(oneLine(l)))
		}
		for _, l := range b[h.NewFrom:h.NewTo] {
			out = append(out, "+   "+cut(oneLine(l)))
		}
	}
	return out
}

// leaves is a line for each scalar of a value.
func leaves(sign, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return []string{sign + oneLine(path) + ": {}"}
		}
		var out []string
		for _, key := range sortedKeys(v) {
			out = append(out, leaves(sign, keyPath(path, key), v[key])...)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []string{sign + oneLine(path) + ": []"}
		}
		var out []string
		key := itemKey(v)
		for i, item := range v {
			at := path + "[" + strconv.Itoa(i) + "]"
			if key != "" {
				at = path + "[" + key + "=" + quotedKey(scalar(item.(map[string]any)[key]), "]") + "]"
			}
			out = append(out, leaves(sign, at, item)...)
		}
		return out
	case string:
		if text := strings.TrimSuffix(v, "\n"); strings.Contains(text, "\n") {
			out := []string{sign + oneLine(path) + ":"}
			for l := range strings.SplitSeq(text, "\n") {
				out = append(out, sign+"  "+cut(oneLine(l)))
			}
			return out
		}
	}
	return []string{sign + oneLine(path) + ": " + cut(shown(value))}
}

// shown is a scalar as YAML would have it, nearly: text in quotes only where
// it could be taken for something else.
func shown(value any) string {
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return oneLine(string(data))
	}
	var v any
	if text == "" || strings.TrimSpace(text) != text || json.Unmarshal([]byte(text), &v) == nil || oneLine(text) != text {
		return strconv.Quote(text)
	}
	return text
}

// oneLine is one line of printable characters; the others are escaped.
func oneLine(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxValue {
		return s
	}
	return string([]rune(s)[:maxValue]) + "…"
}

func joined(names any) string {
	list, _ := names.([]any)
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = scalar(n)
	}
	return cut(oneLine(strings.Join(parts, ", ")))
}
