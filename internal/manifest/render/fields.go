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

// differ gathers the fields that differ between two JSON values.
type differ struct{ fields []Field }

// value compares two values at a path.
func (d *differ) value(path string, old, recent any, v veil) {
	if reflect.DeepEqual(old, recent) {
		return
	}
	switch a := old.(type) {
	case map[string]any:
		if b, ok := recent.(map[string]any); ok {
			d.mapping(path, a, b, v)
			return
		}
	case []any:
		if b, ok := recent.([]any); ok && !v.hidden {
			d.list(path, a, b, v)
			return
		}
	}
	if v.hidden {
		d.fields = append(d.fields, Field{Path: path, Op: Changed, Hidden: true})
		return
	}
	d.fields = append(d.fields, Field{Path: path, Op: Changed, Old: v.masked(old), New: v.masked(recent)})
}

func (d *differ) mapping(path string, old, recent map[string]any, v veil) {
	keys := append(sortedKeys(old), sortedKeys(recent)...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := keyPath(path, key)
		a, was := old[key]
		b, is := recent[key]
		switch {
		case was && is:
			d.value(at, a, b, v.either(old, recent, key))
		case was:
			d.one(Removed, at, a, v.key(old, key))
		default:
			d.one(Added, at, b, v.key(recent, key))
		}
	}
}

// one notes a value that only one side has; of a secret mapping its keys.
func (d *differ) one(op Op, path string, value any, v veil) {
	if m, ok := value.(map[string]any); ok && v.hidden && len(m) > 0 {
		for _, key := range sortedKeys(m) {
			d.one(op, keyPath(path, key), m[key], v.key(m, key))
		}
		return
	}
	f := Field{Path: path, Op: op, Hidden: v.hidden}
	if !v.hidden {
		if op == Added {
			f.New = v.masked(value)
		} else {
			f.Old = v.masked(value)
		}
	}
	d.fields = append(d.fields, f)
}

func (d *differ) list(path string, old, recent []any, v veil) {
	if key := itemKey(old, recent); key != "" {
		d.keyed(path, key, old, recent, v)
		return
	}
	for _, h := range textdiff.Hunks(texts(old), texts(recent)) {
		both := min(h.OldTo-h.OldFrom, h.NewTo-h.NewFrom)
		for i := range both {
			d.value(path+"["+strconv.Itoa(h.NewFrom+i)+"]", old[h.OldFrom+i], recent[h.NewFrom+i], v)
		}
		for i := h.OldFrom + both; i < h.OldTo; i++ {
			d.one(Removed, path+"["+strconv.Itoa(i)+"]", old[i], v)
		}
		for i := h.NewFrom + both; i < h.NewTo; i++ {
			d.one(Added, path+"["+strconv.Itoa(i)+"]", recent[i], v)
		}
	}
}

// keyed compares lists whose items a field tells apart.
func (d *differ) keyed(path, key string, old, recent []any, v veil) {
	name := func(item any) string { return scalar(item.(map[string]any)[key]) }
	was := map[string]any{}
	for _, item := range old {
		was[name(item)] = item
	}
	is := map[string]bool{}
	var before, after []string
	for _, item := range recent {
		is[name(item)] = true
		if was[name(item)] != nil {
			after = append(after, name(item))
		}
	}
	at := func(name string) string { return path + "[" + key + "=" + quotedKey(name, "]") + "]" }
	for _, item := range old {
		if !is[name(item)] {
			d.one(Removed, at(name(item)), item, v)
			continue
		}
		before = append(before, name(item))
	}
	for _, item := range recent {
		if other := was[name(item)]; other != nil {
			d.value(at(name(item)), other, item, v)
			continue
		}
		d.one(Added, at(name(item)), item, v)
	}
	if !slices.Equal(before, after) {
		d.fields = append(d.fields, Field{Path: path, Op: Reordered, Old: anys(before), New: anys(after)})
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// itemKeys tell the items of Kubernetes' lists apart, the best first.
var itemKeys = []string{"name", "key", "mountPath", "containerPort", "port", "topologyKey", "host", "path", "type", "ip", "id"}

// itemKey finds the field that every item has and that is different in each;
// "" for none.
func itemKey(lists ...[]any) string {
	for _, key := range itemKeys {
		if slices.ContainsFunc(lists, func(l []any) bool { return !tellsApart(key, l) }) {
			continue
		}
		return key
	}
	return ""
}

func tellsApart(key string, list []any) bool {
	seen := map[string]bool{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := scalar(m[key])
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// scalar is a text or a number as text; "" for anything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// texts are items as text that is equal where they are.
func texts(list []any) []string {
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

// plain is a key that a path can have as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_/-]+$`)

// keyPath appends a key; one with other characters is quoted.
func keyPath(path, key string) string {
	switch {
	case !plain.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func quotedKey(name, stop string) string {
	if strings.Contains(name, stop) || strconv.Quote(name) != `"`+name+`"` {
		return strconv.Quote(name)
	}
	return name
}
