package appset

import (
	"encoding/json"
	"fmt"
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
}

// planValue prepares a value: it normalizes what lies below it as rendering does
// (raw JSON, that is), and returns how to fill in its templates.
func (p *renderPlanner) planValue(v reflect.Value) templateFiller {
	switch v.Kind() {
	case reflect.Pointer:
		return p.planPointer(v)
	case reflect.Struct:
		return p.planStruct(v)
	case reflect.Slice:
		return p.planSlice(v)
	case reflect.Map:
		return p.planMap(v)
	case reflect.String:
		return p.planString(v)
	}
	return nil
}

func (p *renderPlanner) planString(v reflect.Value) templateFiller {
	t := p.parse(v.String())
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

func (p *renderPlanner) planPointer(v reflect.Value) templateFiller {
	if v.IsNil() {
		return nil
	}
	inner := p.planValue(v.Elem())
	if inner == nil {
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		fresh := reflect.New(into.Type().Elem())
		fresh.Elem().Set(into.Elem())
		if err := inner(fresh.Elem(), params); err != nil {
			return err
		}
		into.Set(fresh)
		return nil
	}
}

// planStruct goes through the exported fields; unexported ones of the API's
// types hold no text. Raw JSON is rendered string by string, keys included.
func (p *renderPlanner) planStruct(v reflect.Value) templateFiller {
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
			fill = p.planRawJSON(v.Field(i))
		} else {
			fill = p.planValue(v.Field(i))
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

func (p *renderPlanner) planSlice(v reflect.Value) templateFiller {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil
	}
	fillers := make([]templateFiller, v.Len())
	some := false
	for i := range fillers {
		fillers[i] = p.planValue(v.Index(i))
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
func (p *renderPlanner) planMap(v reflect.Value) templateFiller {
	type entry struct {
		key   reflect.Value
		name  *parsedString // nil: not a string
		value reflect.Value
		fill  templateFiller
	}
	var entries []entry
	some := false
	for iter := v.MapRange(); iter.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(iter.Value())
		e := entry{key: iter.Key(), value: value, fill: p.planValue(value)}
		if e.key.Kind() == reflect.String {
			e.name = p.parse(e.key.String())
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
				value = reflect.New(into.Type().Elem()).Elem()
				value.Set(e.value)
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

// planRawJSON renders JSON that the API's types don't describe.
func (p *renderPlanner) planRawJSON(v reflect.Value) templateFiller {
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
	value := p.planTree(decoded)
	write := func(into reflect.Value, tree any) error {
		data, err := json.Marshal(tree)
		if err != nil {
			return fmt.Errorf("failed to marshal templated JSON field: %w", err)
		}
		into.SetBytes(data)
		return nil
	}
	if value.fill == nil {
		if err := write(v, value.fixed); err != nil {
			return broken(err)
		}
		return nil
	}
	return func(into reflect.Value, params map[string]any) error {
		tree, err := value.fill(params)
		if err != nil {
			return fmt.Errorf("failed to deeply replace JSON field contents: %w", err)
		}
		return write(into, tree)
	}
}

// treePlan is a plan for decoded JSON: fixed, or filled in.
type treePlan struct {
	fixed any
	fill  func(params map[string]any) (any, error)
}

func (t *treePlan) valueFor(params map[string]any) (any, error) {
	if t.fill == nil {
		return t.fixed, nil
	}
	return t.fill(params)
}

func (p *renderPlanner) planTree(v any) treePlan {
	switch v := v.(type) {
	case string:
		t := p.parse(v)
		if t.plain {
			return treePlan{fixed: v}
		}
		return treePlan{fill: func(params map[string]any) (any, error) { return t.render(params) }}
	case []any:
		return p.planList(v)
	case map[string]any:
		return p.planObject(v)
	}
	return treePlan{fixed: v}
}

func (p *renderPlanner) planList(v []any) treePlan {
	fixed, items, some := make([]any, len(v)), make([]treePlan, len(v)), false
	for i := range v {
		items[i] = p.planTree(v[i])
		fixed[i] = items[i].fixed
		some = some || items[i].fill != nil
	}
	if !some {
		return treePlan{fixed: fixed}
	}
	return treePlan{fill: func(params map[string]any) (any, error) {
		out := make([]any, len(items))
		for i := range items {
			var err error
			if out[i], err = items[i].valueFor(params); err != nil {
				return nil, err
			}
		}
		return out, nil
	}}
}

func (p *renderPlanner) planObject(v map[string]any) treePlan {
	type entry struct {
		key   *parsedString
		value treePlan
	}
	fixed, entries, some := make(map[string]any, len(v)), make([]entry, 0, len(v)), false
	for key, value := range v {
		if value == nil {
			continue // the controller's rendering drops it
		}
		e := entry{p.parse(key), p.planTree(value)}
		entries = append(entries, e)
		fixed[key] = e.value.fixed
		some = some || !e.key.plain || e.value.fill != nil
	}
	if !some {
		return treePlan{fixed: fixed}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key.raw, b.key.raw) })
	return treePlan{fill: func(params map[string]any) (any, error) {
		out := make(map[string]any, len(entries))
		for i := range entries {
			e := &entries[i]
			value, err := e.value.valueFor(params)
			if err != nil {
				return nil, err
			}
			key, err := e.key.render(params)
			if err != nil {
				return nil, err
			}
			out[key] = value
		}
		return out, nil
	}}
}
