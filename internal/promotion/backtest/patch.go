package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// A patch is JSON: of a struct, or what a pointer leads to, an object with the fields that changed; of
// a map with texts as keys, an object with the keys that changed; of anything else the new value. null
// is the zero value, and takes a key out of a map.

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

// patchField is a field of a struct, by the name that it has in a patch.
type patchField struct {
	name   string
	quoted string // as it begins the field in a patch
	index  int
}

// fieldsOf are the exported fields of a struct type, by their JSON names. An embedded struct goes by
// its type's name.
var fieldsOf = func() func(reflect.Type) []patchField {
	var known sync.Map
	return func(t reflect.Type) []patchField {
		if all, ok := known.Load(t); ok {
			return all.([]patchField)
		}
		var all []patchField
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			if name == "" {
				name = f.Name
			}
			all = append(all, patchField{name, quoteName(name), i})
		}
		known.Store(t, all)
		return all
	}
}()

// isLeaf says that a type's values are replaced as a whole.
func isLeaf(t reflect.Type) bool {
	if known, ok := leaves.Load(t); ok {
		return known.(bool)
	}
	leaf := findLeaf(t)
	leaves.Store(t, leaf)
	return leaf
}

// leaves remembers isLeaf by type.
var leaves sync.Map

func findLeaf(t reflect.Type) bool {
	if t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Map:
		return t.Key().Kind() != reflect.String || t.Elem().Kind() != reflect.Pointer
	case reflect.Pointer:
		return t.Elem().Kind() != reflect.Struct || isLeaf(t.Elem())
	}
	return true
}

// diffValues is the patch that leads from one state to another; nil where they are the same.
func diffValues(before, now *State) (json.RawMessage, error) {
	var out bytes.Buffer
	changed, err := writeStruct(&out, reflect.ValueOf(before).Elem(), reflect.ValueOf(now).Elem())
	if err != nil || !changed {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeDiff writes the patch of two values of a type; false, with nothing written, where they are the
// same.
func writeDiff(out *bytes.Buffer, before, now reflect.Value) (bool, error) {
	t := now.Type()
	switch {
	case isLeaf(t):
		return writeLeaf(out, before, now)
	case t.Kind() == reflect.Pointer:
		return writePointer(out, before, now)
	case t.Kind() == reflect.Map:
		return writeMap(out, before, now)
	}
	return writeStruct(out, before, now)
}

func writeStruct(out *bytes.Buffer, before, now reflect.Value) (bool, error) {
	start, separator := out.Len(), "{"
	for _, f := range fieldsOf(now.Type()) {
		written := out.Len()
		out.WriteString(separator)
		out.WriteString(f.quoted)
		changed, err := writeDiff(out, before.Field(f.index), now.Field(f.index))
		if err != nil {
			return false, err
		}
		if !changed {
			out.Truncate(written)
			continue
		}
		separator = ","
	}
	if separator == "{" {
		out.Truncate(start)
		return false, nil
	}
	out.WriteByte('}')
	return true, nil
}

func quoteName(name string) string {
	quoted, _ := json.Marshal(name) // a text always can be
	return string(quoted) + ":"
}

// writePointer writes the patch of what two pointers lead to. A pointer to a zero value is kept apart
// from nil.
func writePointer(out *bytes.Buffer, before, now reflect.Value) (bool, error) {
	if now.IsNil() {
		if before.IsNil() {
			return false, nil
		}
		out.WriteString("null")
		return true, nil
	}
	from := before
	if before.IsNil() {
		from = reflect.New(now.Type().Elem())
	}
	changed, err := writeDiff(out, from.Elem(), now.Elem())
	if err == nil && !changed && before.IsNil() {
		out.WriteString("{}")
		return true, nil
	}
	return changed, err
}

func writeMap(out *bytes.Buffer, before, now reflect.Value) (bool, error) {
	var keys []string
	for _, m := range []reflect.Value{before, now} {
		for k := m.MapRange(); k.Next(); {
			keys = append(keys, k.Key().String())
		}
	}
	slices.Sort(keys)
	separator := "{"
	zero := reflect.Zero(now.Type().Elem())
	for _, key := range slices.Compact(keys) {
		at := func(m reflect.Value) reflect.Value {
			if v := m.MapIndex(reflect.ValueOf(key).Convert(now.Type().Key())); v.IsValid() {
				return v
			}
			return zero
		}
		written := out.Len()
		out.WriteString(separator)
		out.WriteString(quoteName(key))
		changed, err := writeDiff(out, at(before), at(now))
		if err != nil {
			return false, err
		}
		if !changed {
			out.Truncate(written)
			continue
		}
		separator = ","
	}
	if separator == "{" {
		return false, nil
	}
	out.WriteByte('}')
	return true, nil
}

// writeLeaf writes a value that is replaced as a whole. Two lists without anything in them are the
// same, and so are two times of the same moment.
func writeLeaf(out *bytes.Buffer, before, now reflect.Value) (bool, error) {
	if now.Type() == timeType {
		if before.Equal(now) || before.Interface().(time.Time).Equal(now.Interface().(time.Time)) {
			return false, nil
		}
		now = reflect.ValueOf(now.Interface().(time.Time).UTC().Round(0))
	}
	if isSame(before, now) {
		return false, nil
	}
	if isEmpty(now) {
		out.WriteString("null")
		return true, nil
	}
	raw, err := json.Marshal(now.Interface())
	if err != nil {
		return false, fmt.Errorf("write a value of type %s: %w", now.Type(), err)
	}
	if was, err := json.Marshal(before.Interface()); err == nil && bytes.Equal(was, raw) {
		return false, nil
	}
	out.Write(raw)
	return true, nil
}

func isEmpty(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func isSame(a, b reflect.Value) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	if a.Comparable() && b.Comparable() {
		return a.Equal(b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// applyPatch changes a state as a patch says. An error says what isn't as NextChange writes it; then
// the state may be changed in part.
func applyPatch(s *State, patch json.RawMessage) error {
	return applyToParts(reflect.ValueOf(s).Elem(), patch)
}

func applyTo(v reflect.Value, raw json.RawMessage) error {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		v.SetZero()
		return nil
	}
	t := v.Type()
	if isLeaf(t) {
		fresh := reflect.New(t)
		if err := json.Unmarshal(raw, fresh.Interface()); err != nil {
			return fmt.Errorf("read a value of type %s: %w", t, err)
		}
		v.Set(fresh.Elem())
		return nil
	}
	if t.Kind() == reflect.Pointer {
		fresh := reflect.New(t.Elem())
		if !v.IsNil() { // whoever has the state from before keeps it as it was
			fresh.Elem().Set(v.Elem())
		}
		v.Set(fresh)
		return applyTo(fresh.Elem(), raw)
	}
	return applyToParts(v, raw)
}

// applyToParts changes the fields of a struct, or the keys of a map.
func applyToParts(v reflect.Value, raw json.RawMessage) error {
	t := v.Type()
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("read a change of %s: %w", t, err)
	}
	if t.Kind() == reflect.Map {
		return applyToMap(v, parts)
	}
	for _, f := range fieldsOf(t) {
		if part, changed := parts[f.name]; changed {
			if err := applyTo(v.Field(f.index), part); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			delete(parts, f.name)
		}
	}
	for name := range parts {
		return fmt.Errorf("%s has no field %q: it was written by a newer version", t, name)
	}
	return nil
}

func applyToMap(v reflect.Value, parts map[string]json.RawMessage) error {
	fresh := reflect.MakeMapWithSize(v.Type(), v.Len()+len(parts))
	for k := v.MapRange(); k.Next(); {
		fresh.SetMapIndex(k.Key(), k.Value())
	}
	for name, part := range parts {
		key := reflect.ValueOf(name).Convert(v.Type().Key())
		elem := reflect.New(v.Type().Elem()).Elem()
		if was := v.MapIndex(key); was.IsValid() {
			elem.Set(was)
		}
		if err := applyTo(elem, part); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if elem.IsNil() {
			fresh.SetMapIndex(key, reflect.Value{})
			continue
		}
		fresh.SetMapIndex(key, elem)
	}
	v.Set(fresh)
	return nil
}
