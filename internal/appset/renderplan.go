package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"

	"github.com/liftlock/liftlock/internal/wording"
)

// A plan renders a value of the API's types again and again, with other
// parameters each time. It is made once: what holds no template is shared by
// everything rendered from it, so what is rendered must not be changed below
// its top level.

// templateFiller replaces the templates below a value, which must be settable and a
// copy of the plan's own. nil: there are none.
type templateFiller func(into reflect.Value, params map[string]any) error

// renderPlanner makes plans. text gives a parsed string.
type renderPlanner struct {
	parse func(raw string) *parsedString
	// parseOwn gives a parsed string of a generator's values block whose missing
	// parameters are errors; nil: such blocks are like any other map.
	parseOwn func(raw string) *parsedString
}

// planValue prepares a value: it normalizes what lies below it as rendering does
// (raw JSON, that is), and returns how to fill in its templates.
func (r *renderPlanner) planValue(v reflect.Value) templateFiller {
	switch v.Kind() {
	case reflect.Pointer:
		return r.planPointer(v)
	case reflect.Struct:
		return r.planStruct(v)
	case reflect.Slice:
		return r.planSlice(v)
	case reflect.Map:
		return r.planMap(v)
	case reflect.String:
		return r.planString(v)
	case reflect.Interface:
		return r.planInterface(v)
	}
	return nil
}

func (r *renderPlanner) planString(v reflect.Value) templateFiller {
	t := r.parse(v.String())
	if t.plain {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		out, err := t.render(params)
		if err != nil {
			return err
		}
		into.SetString(out)
		return nil
	}
}

func (r *renderPlanner) planPointer(v reflect.Value) templateFiller {
	if v.IsNil() {
		return nil
	}
	inner := r.planValue(v.Elem())
	if inner == nil {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		fresh := copyOf(into.Elem())
		if err := inner(fresh, params); err != nil {
			return err
		}
		into.Set(fresh.Addr())
		return nil
	}
}

// planStruct goes through the exported fields; unexported ones of the API's
// types hold no text. Raw JSON is rendered string by string, keys included.
func (r *renderPlanner) planStruct(v reflect.Value) templateFiller {
	type field struct {
		index int
		fill  templateFiller
	}
	var fields []field
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		var fill templateFiller
		if v.Type().Field(i).Name == "Raw" && v.Field(i).Type() == reflect.TypeFor[[]byte]() {
			fill = r.planRawJSON(v.Field(i))
		} else if values, ok := v.Field(i).Interface().(map[string]string); ok && r.parseOwn != nil && v.Type().Field(i).Name == "Values" {
			fill = r.planOwnValues(values)
		} else {
			fill = r.planValue(v.Field(i))
		}
		if fill != nil {
			fields = append(fields, field{i, fill})
		}
	}
	if fields == nil {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		for _, f := range fields {
			if err := f.fill(into.Field(f.index), params); err != nil {
				return err
			}
		}
		return nil
	}
}

// planOwnValues renders what the parameters fill in and keeps the rest as it is. Keys
// are no templates.
func (r *renderPlanner) planOwnValues(values map[string]string) templateFiller {
	parsed := make(map[string]*parsedString, len(values))
	some := false
	for key, raw := range values {
		parsed[key] = r.parseOwn(raw)
		some = some || !parsed[key].plain
	}
	if !some {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		out := make(map[string]string, len(parsed))
		for key, t := range parsed {
			text, err := t.render(params)
			if err != nil && !isMissingParameter(err) {
				return fmt.Errorf("failed to pre-resolve Values key %q: %w", key, err)
			}
			if err != nil {
				text = t.raw
			}
			out[key] = text
		}
		into.Set(reflect.ValueOf(out))
		return nil
	}
}

// isMissingParameter says that a template failed on a parameter that isn't there. The
// template package has no better way to know.
func isMissingParameter(err error) bool {
	text := err.Error()
	return strings.Contains(text, "map has no entry for key") || strings.Contains(text, "can't evaluate field")
}

func (r *renderPlanner) planSlice(v reflect.Value) templateFiller {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil
	}
	fillers := make([]templateFiller, v.Len())
	some := false
	for i := range fillers {
		fillers[i] = r.planValue(v.Index(i))
		some = some || fillers[i] != nil
	}
	if !some {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		fresh := reflect.MakeSlice(into.Type(), into.Len(), into.Len())
		reflect.Copy(fresh, into)
		for i, fill := range fillers {
			if fill == nil {
				continue
			}
			if err := fill(fresh.Index(i), params); err != nil {
				return err
			}
		}
		into.Set(fresh)
		return nil
	}
}

// planMap renders values and string keys. Which value wins when two keys
// render to the same is random in the controller, and the last by name here.
func (r *renderPlanner) planMap(v reflect.Value) templateFiller {
	if texts, ok := v.Interface().(map[string]string); ok {
		return r.planTexts(texts)
	}
	type entry struct {
		key   reflect.Value
		name  *parsedString // nil: not a string
		value reflect.Value
		fill  templateFiller
	}
	var entries []entry
	some := false
	for iter := v.MapRange(); iter.Next(); {
		value := copyOf(iter.Value())
		if value.Kind() == reflect.Interface && value.IsNil() { // the controller's rendering drops nulls of decoded JSON
			v.SetMapIndex(iter.Key(), reflect.Value{})
			continue
		}
		e := entry{key: iter.Key(), value: value, fill: r.planValue(value)}
		if e.key.Kind() == reflect.String {
			e.name = r.parse(e.key.String())
			some = some || !e.name.plain
		}
		some = some || e.fill != nil
		entries = append(entries, e)
	}
	if !some {
		return nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key.String(), b.key.String()) })
	return func(into reflect.Value, params map[string]any) error {
		fresh := reflect.MakeMapWithSize(into.Type(), len(entries))
		for _, e := range entries {
			key, value := e.key, e.value
			if e.fill != nil {
				value = copyOf(e.value)
				if err := e.fill(value, params); err != nil {
					return err
				}
			}
			if e.name != nil && !e.name.plain {
				name, err := e.name.render(params)
				if err != nil {
					return err
				}
				key = reflect.ValueOf(name).Convert(key.Type())
			}
			fresh.SetMapIndex(key, value)
		}
		into.Set(fresh)
		return nil
	}
}

// planTexts is planMap for the most common of them.
func (r *renderPlanner) planTexts(texts map[string]string) templateFiller {
	type entry struct{ key, value *parsedString }
	entries := make([]entry, 0, len(texts))
	some := false
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		e := entry{r.parse(key), r.parse(texts[key])}
		some = some || !e.key.plain || !e.value.plain
		entries = append(entries, e)
	}
	if !some {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		fresh := make(map[string]string, len(entries))
		for _, e := range entries {
			value, err := e.value.render(params)
			if err != nil {
				return err
			}
			key, err := e.key.render(params)
			if err != nil {
				return err
			}
			fresh[key] = value
		}
		into.Set(reflect.ValueOf(fresh))
		return nil
	}
}

// planRawJSON renders JSON that the API's types don't describe.
func (r *renderPlanner) planRawJSON(v reflect.Value) templateFiller {
	broken := func(err error) templateFiller {
		return func(reflect.Value, map[string]any) error { return err }
	}
	converted, err := utils.ConvertYAMLToJSON(string(v.Bytes()))
	if err != nil {
		return broken(fmt.Errorf("error while converting template to json %q: %w", wording.Clip(converted, maxQuoted), err))
	}
	var decoded any
	if err := json.Unmarshal([]byte(converted), &decoded); err != nil {
		return broken(fmt.Errorf("failed to unmarshal JSON field: %w", err))
	}
	write := func(into, tree reflect.Value) error {
		data, err := json.Marshal(tree.Interface())
		if err != nil {
			return fmt.Errorf("failed to marshal templated JSON field: %w", err)
		}
		into.SetBytes(data)
		return nil
	}
	tree := reflect.ValueOf(&decoded).Elem()
	fill := r.planValue(tree)
	if fill == nil {
		if err := write(v, tree); err != nil {
			return broken(err)
		}
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		own := copyOf(tree)
		if err := fill(own, params); err != nil {
			return fmt.Errorf("failed to deeply replace JSON field contents: %w", err)
		}
		return write(into, own)
	}
}

// planInterface prepares what is in decoded JSON.
func (r *renderPlanner) planInterface(v reflect.Value) templateFiller {
	if v.IsNil() {
		return nil
	}
	fill := r.planValue(copyOf(v.Elem()))
	if fill == nil {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		own := copyOf(into.Elem())
		if err := fill(own, params); err != nil {
			return err
		}
		into.Set(own)
		return nil
	}
}

// copyOf is a value that can be set, whose top level is its own.
func copyOf(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	return out
}
