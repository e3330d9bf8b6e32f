package appset

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/wording"
)

// fieldDiff collects where two JSON values differ.
type fieldDiff struct {
	list []FieldDifference
	more int
}

// compareValues walks both values; what is absent is nil, and null is absent.
func (f *fieldDiff) compareValues(path string, live, resolved any) {
	if reflect.DeepEqual(live, resolved) {
		return
	}
	l, isMap := live.(map[string]any)
	r, areMaps := resolved.(map[string]any)
	// A missing value is compared like an empty one.
	if (isMap || live == nil) && (areMaps || resolved == nil) {
		before := len(f.list) + f.more
		for _, key := range SortedUnique(slices.AppendSeq(slices.Collect(maps.Keys(l)), maps.Keys(r))) {
			f.compareValues(memberPath(path, key), l[key], r[key])
		}
		if isMap != areMaps && len(f.list)+f.more == before {
			f.recordDifference(path, live, resolved) // one is there, but empty
		}
		return
	}
	a, isList := live.([]any)
	b, areLists := resolved.([]any)
	if isList && areLists {
		f.compareLists(path, a, b)
		return
	}
	f.recordDifference(path, live, resolved)
}

// compareLists pairs elements by their name, where all have one, or by position.
func (f *fieldDiff) compareLists(path string, live, resolved []any) {
	l, before := byName(live)
	r, after := byName(resolved)
	if len(l) > 0 && len(r) > 0 && len(l) == len(live) && len(r) == len(resolved) {
		names := maps.Clone(l)
		maps.Copy(names, r)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			f.compareValues(fmt.Sprintf("%s[%s]", path, name), l[name], r[name])
		}
		if len(names) == len(l) && len(l) == len(r) && !slices.Equal(before, after) {
			f.addField(FieldDifference{Path: path, Live: "in another order", Resolved: "in another order"})
		}
		return
	}
	for i := range max(len(live), len(resolved)) {
		f.compareValues(fmt.Sprintf("%s[%d]", path, i), elementAt(live, i), elementAt(resolved, i))
	}
}

func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// byName gives a list's elements by their name, and the names in order;
// nothing if one has none.
func byName(list []any) (elements map[string]any, names []string) {
	elements = map[string]any{}
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, ok := m["name"].(string)
		if !ok {
			return nil, nil
		}
		elements[name] = e
		names = append(names, name)
	}
	return elements, names
}

// memberPath is a key's path; a key with a dot or the like is quoted.
func memberPath(path, key string) string {
	if strings.ContainsAny(key, ".[]/\" ") {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func (f *fieldDiff) recordDifference(path string, live, resolved any) {
	d := FieldDifference{Path: path, Live: valueText(live), Resolved: valueText(resolved)}
	// In a long text, such as Helm values, the first line that differs says most.
	if a, b := strings.Split(d.Live, "\n"), strings.Split(d.Resolved, "\n"); len(a) > 1 || len(b) > 1 {
		i := 0
		for i < len(a)-1 && i < len(b)-1 && a[i] == b[i] {
			i++
		}
		d.Path, d.Live, d.Resolved = fmt.Sprintf("%s (line %d)", path, i+1), strings.TrimSpace(a[i]), strings.TrimSpace(b[i])
	}
	if secretPattern.MatchString(d.Path) || secretPattern.MatchString(d.Live) || secretPattern.MatchString(d.Resolved) {
		d.Live, d.Resolved = hideValue(d.Live), hideValue(d.Resolved)
	}
	d.Live, d.Resolved = wording.Clip(d.Live, maxQuoted), wording.Clip(d.Resolved, maxQuoted)
	f.addField(d)
}

func (f *fieldDiff) addField(d FieldDifference) {
	if len(f.list) == maxFields {
		f.more++
		return
	}
	f.list = append(f.list, d)
}

// secretPattern are names of fields, parameters and values whose content is not
// for everybody who may see a comparison.
var secretPattern = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|private.?key|api.?key|access.?key|://[^/\s]*:[^/\s]*@`)

func hideValue(value string) string {
	if value == "" {
		return ""
	}
	return "(hidden)"
}

// valueText is a value as it is shown; nothing for an absent one.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// WriteDifferencesTable writes a comparison for people.
func WriteDifferencesTable(w io.Writer, d *Differences) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, group := range []struct {
		what string
		list []Difference
	}{{"missing", d.Missing}, {"extra", d.Extra}, {"different", d.Different}} {
		for i := range group.list {
			writeDifference(tab, group.what, &group.list[i])
		}
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("writing the differences: %w", err)
	}
	var b strings.Builder
	if len(d.Missing)+len(d.Extra)+len(d.Different) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d equal, %d missing, %d extra, %d different", d.Equal, len(d.Missing), len(d.Extra), len(d.Different))
	if expected := len(d.Missing) + len(d.Extra) + len(d.Different) - d.Unexpected(); expected > 0 {
		fmt.Fprintf(&b, "; of these, %d as the ApplicationSet asks for", expected)
	}
	b.WriteString("\n")
	if len(d.Unsure) > 0 {
		fmt.Fprintf(&b, "Not compared, because they couldn't be resolved: %s\n", Printable(strings.Join(d.Unsure, ", ")))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the differences: %w", err)
	}
	return nil
}

func writeDifference(w io.Writer, what string, d *Difference) {
	where := d.ArgoCD + "/" + d.Namespace + "/" + d.Name
	if d.ArgoCD == "" {
		where = d.Namespace + "/" + d.Name
	}
	note := ""
	if d.Expected != "" {
		note = "  (" + d.Expected + ")"
	}
	fmt.Fprintf(w, "%s\t%s\tof %s%s\n", what, Printable(where), Printable(d.ApplicationSet), note)
	for _, f := range d.Fields {
		fmt.Fprintf(w, "\t  %s\t%s → %s\n", Printable(f.Path), PrintableValue(f.Live), PrintableValue(f.Resolved))
	}
	if d.More > 0 {
		fmt.Fprintf(w, "\t  and %d more\t\n", d.More)
	}
}

// PrintableValue is a field's value as it may be shown on a terminal.
func PrintableValue(value string) string {
	if value == "" {
		return "(none)"
	}
	return Printable(value)
}

// WriteJSON writes a document for programs, indented.
func WriteJSON[T any](w io.Writer, document T) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// WriteYAML writes the same document as WriteJSON, as YAML.
func WriteYAML[T any](w io.Writer, document T) error {
	raw, err := yaml.Marshal(document)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	return nil
}
