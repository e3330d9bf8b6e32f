package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// fixedFuncs are those of a chart's functions that depend on their arguments alone:
// Sprig's, Helm's own and the bounded ones.
var fixedFuncs = sync.OnceValue(func() template.FuncMap {
	f := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv"} { // Helm has none, so that a chart can't read the server's environment
		delete(f, name)
	}
	maps.Copy(f, boundedFuncs(f))
	maps.Copy(f, template.FuncMap{
		"keys": sortedKeys, "values": sortedValues,
		"getHostByName": func(string) string { return "" },
		"required":      requireValue,
		"fail":          func(message string) (string, error) { return "", errors.New(message) },
		// Errors of the plain conversions are swallowed or returned as text, as Helm's are.
		"toToml": toTOML, "toYaml": toYAML, "toJson": toJSON,
		"fromYaml": decodeMapping(decodeYAML), "fromYamlArray": decodeList(decodeYAML),
		"fromJson": decodeMapping(json.Unmarshal), "fromJsonArray": decodeList(json.Unmarshal),
	})
	return f
})

// templateFuncs are what a chart's templates may call: the fixed functions, and
// stand-ins for what depends on more than its arguments.
func (e *engine) templateFuncs() template.FuncMap {
	f := maps.Clone(fixedFuncs())
	maps.Copy(f, e.deterministicFuncs(f))
	f["lookup"] = func(string, string, string, string) map[string]any {
		e.usesLookup = true
		return map[string]any{}
	}
	f[stepName], f[enterName], f[leaveName] = e.countStep, e.enterTemplate, e.leaveTemplate
	// bindFuncs replaces these; the parser wants to know their names.
	f["include"], f["tpl"] = fmt.Sprint, fmt.Sprint
	return f
}

func decodeMapping(decode func([]byte, any) error) func(text string) map[string]any {
	return func(text string) map[string]any {
		out := map[string]any{}
		if err := decode([]byte(text), &out); err != nil {
			out["Error"] = err.Error()
		}
		return out
	}
}

func decodeList(decode func([]byte, any) error) func(text string) []any {
	return func(text string) []any {
		out := []any{}
		if err := decode([]byte(text), &out); err != nil {
			return []any{err.Error()}
		}
		return out
	}
}

// requireValue is a value that must be there and not be empty text.
func requireValue(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}

func toYAML(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

// decodeYAML decodes YAML whose aliases don't make it much larger.
func decodeYAML(text []byte, into any) error {
	if err := checkAliases(text); err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

func toTOML(v any) string {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(v); err != nil {
		return err.Error()
	}
	return b.String()
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// boundedFuncs are Sprig's and the template language's own that make much out of
// little, behind a check of what they are given.
func boundedFuncs(sprigs template.FuncMap) template.FuncMap {
	texts := func(name string) func([]any) error { // what these print is about as long as what they are given
		return func(args []any) error { return checkArguments(name, args[len(args)-1].([]any)) }
	}
	indent := func(args []any) error {
		return errors.Join(checkTextSize("indent", args[0].(int), 1), checkTextSize("indent", strings.Count(args[1].(string), "\n")+1,
			args[0].(int)))
	}
	f := template.FuncMap{"print": boundFunc(fmt.Sprint, texts("print")), "println": boundFunc(fmt.Sprintln, texts("println")),
		"printf": boundFunc(fmt.Sprintf, texts("printf"))}
	for name, check := range map[string]func(args []any) error{
		"cat": texts("cat"), "concat": texts("concat"), "indent": indent, "nindent": indent,
		"join":   func(args []any) error { return checkArguments("join", args) },
		"repeat": func(args []any) error { return checkTextSize("repeat", args[0].(int), len(args[1].(string))) },
		"replace": func(args []any) error {
			return checkTextSize("replace", strings.Count(args[2].(string), args[0].(string)), len(args[1].(string)))
		},
		"until":     func(args []any) error { return checkCount("until", 0, args[0].(int), 1) },
		"untilStep": func(args []any) error { return checkCount("untilStep", args[0].(int), args[1].(int), args[2].(int)) },
		"seq": func(args []any) error {
			start, stop, step := 1, 0, 1
			switch n := args[0].([]int); len(n) {
			case 1:
				stop = n[0]
			case 2:
				start, stop = n[0], n[1]
			case 3:
				start, step, stop = n[0], n[1], n[2]
			}
			return checkCount("seq", start, stop, step)
		},
	} {
		f[name] = boundFunc(sprigs[name], check)
	}
	return f
}

// boundFunc is a function of one result that is only called with what a check
// lets pass.
func boundFunc(fn any, check func(args []any) error) any {
	f := reflect.ValueOf(fn)
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	call, failure := f.Call, reflect.TypeFor[error]()
	if t.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{t.Out(0), failure}, t.IsVariadic()),
		func(args []reflect.Value) []reflect.Value {
			given := make([]any, len(args))
			for i, a := range args {
				given[i] = a.Interface()
			}
			if err := check(given); err != nil {
				return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(err)}
			}
			return append(call(args), reflect.Zero(failure))
		}).Interface()
}

// checkArguments refuses arguments that together are too long, so that doubling a text
// or a list over and over ends soon.
func checkArguments(what string, args []any) error {
	length, items := 0, 0
	for _, a := range args {
		switch a := a.(type) {
		case string:
			length += len(a)
		case []any:
			items += len(a)
			for _, item := range a {
				s, _ := item.(string)
				length += len(s)
			}
		case []string:
			items += len(a)
			for _, s := range a {
				length += len(s)
			}
		}
	}
	if length > maxTextBytes || items > maxCount {
		return fmt.Errorf("%w: %s is given more than %d bytes or %d items", ErrLimit, what, maxTextBytes, maxCount)
	}
	return nil
}

// checkTextSize refuses n pieces of text that together are too long.
func checkTextSize(what string, n, size int) error {
	if n < 0 {
		return fmt.Errorf("%s: %d is negative", what, n)
	}
	if size > 0 && n > maxTextBytes/size {
		return fmt.Errorf("%w: %s makes more than %d bytes", ErrLimit, what, maxTextBytes)
	}
	return nil
}

// checkCount refuses to count too far.
func checkCount(what string, start, stop, step int) error {
	n := float64(stop) - float64(start)
	if step != 0 {
		n /= float64(step)
	}
	if n > maxCount || n < -maxCount {
		return fmt.Errorf("%w: %s counts further than %d", ErrLimit, what, maxCount)
	}
	return nil
}

// sortedKeys and sortedValues are Sprig's keys and values, in an order.
func sortedKeys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

func sortedValues(dict map[string]any) []any {
	out := make([]any, 0, len(dict))
	for _, key := range sortedKeys(dict) {
		out = append(out, dict[key])
	}
	return out
}
