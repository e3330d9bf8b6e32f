package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/manifest/textdiff"
)

// fieldDiffer gathers the fields that differ between two JSON values.
type fieldDiffer struct{ fields []Field }

// compareValues compares two values at a path.
func (fd *fieldDiffer) compareValues(path string, old, recent any, v redactor) {
	if reflect.DeepEqual(old, recent) {
		return
	}
	switch a := old.(type) {
	case map[string]any:
		if b, ok := recent.(map[string]any); ok {
			fd.compareMappings(path, a, b, v)
			return
		}
	case []any:
		if b, ok := recent.([]any); ok && !v.hidden {
			fd.compareLists(path, a, b, v)
			return
		}
	}
	if v.hides(old) && v.hides(recent) {
		fd.fields = append(fd.fields, Field{Path: path, Op: Changed, Hidden: true})
		return
	}
	fd.fields = append(fd.fields, Field{Path: path, Op: Changed, Old: v.maskSecrets(old), New: v.maskSecrets(recent)})
}

func (fd *fieldDiffer) compareMappings(path string, old, recent map[string]any, v redactor) {
	keys := append(sortedKeys(old), sortedKeys(recent)...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := appendKey(path, key)
		a, was := old[key]
		b, is := recent[key]
		switch {
		case was && is:
			fd.compareValues(at, a, b, v.enterEither(old, recent, key))
		case was:
			fd.recordOneSided(Removed, at, a, v.enterKey(old, key))
		default:
			fd.recordOneSided(Added, at, b, v.enterKey(recent, key))
		}
	}
}

// recordOneSided notes a value that only one side has; of a secret mapping its keys.
func (fd *fieldDiffer) recordOneSided(op Op, path string, value any, v redactor) {
	if m, ok := value.(map[string]any); ok && v.hidden && len(m) > 0 {
		for _, key := range sortedKeys(m) {
			fd.recordOneSided(op, appendKey(path, key), m[key], v.enterKey(m, key))
		}
		return
	}
	f := Field{Path: path, Op: op, Hidden: v.hides(value)}
	if !f.Hidden {
		if op == Added {
			f.New = v.maskSecrets(value)
		} else {
			f.Old = v.maskSecrets(value)
		}
	}
	fd.fields = append(fd.fields, f)
}

func (fd *fieldDiffer) compareLists(path string, old, recent []any, v redactor) {
	if key := v.itemKey(old, recent); key != "" {
		fd.compareKeyedLists(path, key, old, recent, v)
		return
	}
	for _, h := range textdiff.Hunks(encodeItems(old), encodeItems(recent)) {
		both := min(h.OldTo-h.OldFrom, h.NewTo-h.NewFrom)
		for i := range both {
			fd.compareValues(path+"["+strconv.Itoa(h.NewFrom+i)+"]", old[h.OldFrom+i], recent[h.NewFrom+i], v)
		}
		for i := h.OldFrom + both; i < h.OldTo; i++ {
			fd.recordOneSided(Removed, path+"["+strconv.Itoa(i)+"]", old[i], v)
		}
		for i := h.NewFrom + both; i < h.NewTo; i++ {
			fd.recordOneSided(Added, path+"["+strconv.Itoa(i)+"]", recent[i], v)
		}
	}
}

// compareKeyedLists compares lists whose items a field tells apart.
func (fd *fieldDiffer) compareKeyedLists(path, key string, old, recent []any, v redactor) {
	name := func(item any) string { return scalarText(item.(map[string]any)[key]) }
	at := func(item any) string { return path + keyedStep(key, item) }
	was, is := map[string]any{}, map[string]bool{}
	for _, item := range old {
		was[name(item)] = item
	}
	for _, item := range recent {
		is[name(item)] = true
	}
	var before, after []any // the names of those that both have
	for _, item := range old {
		if is[name(item)] {
			before = append(before, name(item))
		} else {
			fd.recordOneSided(Removed, at(item), item, v)
		}
	}
	for _, item := range recent {
		if other := was[name(item)]; other != nil {
			after = append(after, name(item))
			fd.compareValues(at(item), other, item, v)
		} else {
			fd.recordOneSided(Added, at(item), item, v)
		}
	}
	if !slices.Equal(before, after) {
		fd.fields = append(fd.fields, Field{Path: path, Op: Reordered, Old: before, New: after})
	}
}

// keyedStep is the step of a path to a list's item that a field tells apart.
func keyedStep(key string, item any) string {
	name := scalarText(item.(map[string]any)[key])
	if strings.Contains(name, "]") || strconv.Quote(name) != `"`+name+`"` {
		name = strconv.Quote(name)
	}
	return "[" + key + "=" + name + "]"
}

// itemKeys tell the items of Kubernetes' lists apart, the best first.
var itemKeys = []string{"name", "key", "mountPath", "containerPort", "port", "topologyKey", "host", "path", "type", "ip", "id"}

// itemKey finds the field that every item has and that is different in each;
// "" for none.
func itemKey(lists ...[]any) string {
	i := slices.IndexFunc(itemKeys, func(key string) bool {
		return !slices.ContainsFunc(lists, func(l []any) bool { return !isUniqueKey(key, l) })
	})
	if i < 0 {
		return ""
	}
	return itemKeys[i]
}

func isUniqueKey(key string, list []any) bool {
	seen := map[string]bool{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := scalarText(m[key])
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// scalarText is a text or a number as text; "" for anything else.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// encodeItems are items as text that is equal where they are.
func encodeItems(list []any) []string {
	out := make([]string, len(list))
	for i, item := range list {
		data, err := json.Marshal(item)
		if err != nil {
			data = fmt.Append(nil, item)
		}
		out[i] = string(data)
	}
	return out
}

// plainKeyPattern is a key that a path can have as it is.
var plainKeyPattern = regexp.MustCompile(`^[A-Za-z0-9_/-]+$`)

// appendKey appends a key; one with other characters is quoted.
func appendKey(path, key string) string {
	switch {
	case !plainKeyPattern.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
