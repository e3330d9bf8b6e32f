package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// templateFuncs are what a chart's templates may call: Sprig's and Helm's own,
// with bounds, and with stand-ins for what depends on more than its arguments.
func (e *engine) templateFuncs() template.FuncMap {
	f := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv"} { // Helm has none, so that a chart can't read the server's environment
		delete(f, name)
	}
	for _, more := range []template.FuncMap{helmFuncs(), boundedFuncs(f), e.deterministicFuncs(f)} {
		maps.Copy(f, more)
	}
	f["lookup"] = func(string, string, string, string) map[string]any {
		e.usesLookup = true
		return map[string]any{}
	}
	f["getHostByName"] = func(string) string { return "" }
	f[stepName], f[enterName], f[leaveName] = e.countStep, e.enterTemplate, e.leaveTemplate
	// bind replaces these; the parser wants to know their names.
	f["include"] = func(string, any) (string, error) { return "", errUnbound }
	f["tpl"] = func(string, any) (string, error) { return "", errUnbound }
	return f
}

var errUnbound = errors.New("called outside a chart")

// helmFuncs are those that Helm adds to Sprig's. Errors of the plain
// conversions are swallowed or returned as text, as Helm's are.
func helmFuncs() template.FuncMap {
	return template.FuncMap{
		"required": requireValue,
		"fail":     func(message string) (string, error) { return "", errors.New(message) },
		"toToml":   toTOML,
		"toYaml":   toYAML,
		"toJson":   toJSON,
		"fromYaml": func(text string) map[string]any {
			out := map[string]any{}
			if err := decodeYAML(text, &out); err != nil {
				out["Error"] = err.Error()
			}
			return out
		},
		"fromYamlArray": func(text string) []any {
			out := []any{}
			if err := decodeYAML(text, &out); err != nil {
				return []any{err.Error()}
			}
			return out
		},
		"fromJson": func(text string) map[string]any {
			out := map[string]any{}
			if err := json.Unmarshal([]byte(text), &out); err != nil {
				out["Error"] = err.Error()
			}
			return out
		},
		"fromJsonArray": func(text string) []any {
			out := []any{}
			if err := json.Unmarshal([]byte(text), &out); err != nil {
				return []any{err.Error()}
			}
			return out
		},
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

func decodeYAML(text string, into any) error {
	if err := checkAliases([]byte(text)); err != nil {
		return err
	}
	return yaml.Unmarshal([]byte(text), into)
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

// boundedFuncs are those of Sprig's that make much out of little.
func boundedFuncs(sprigs template.FuncMap) template.FuncMap {
	until := sprigs["until"].(func(int) []int)
	untilStep := sprigs["untilStep"].(func(int, int, int) []int)
	seq := sprigs["seq"].(func(...int) string)
	join := sprigs["join"].(func(string, any) string)
	cat := sprigs["cat"].(func(...any) string)
	concat := sprigs["concat"].(func(...any) any)
	return template.FuncMap{
		// The template language's own; what they print is about as long as
		// what they are given.
		"print":   boundArguments("print", fmt.Sprint),
		"println": boundArguments("println", fmt.Sprintln),
		"cat":     boundArguments("cat", cat),
		"printf": func(format string, v ...any) (string, error) {
			if err := checkArguments("printf", v); err != nil {
				return "", err
			}
			return fmt.Sprintf(format, v...), nil
		},
		"join": func(sep string, v any) (string, error) {
			if err := checkArguments("join", []any{sep, v}); err != nil {
				return "", err
			}
			return join(sep, v), nil
		},
		"concat": func(lists ...any) (any, error) {
			if err := checkArguments("concat", lists); err != nil {
				return nil, err
			}
			return concat(lists...), nil
		},
		"repeat": func(n int, s string) (string, error) {
			if n < 0 {
				return "", fmt.Errorf("repeat: %d is negative", n)
			}
			if err := checkTextSize("repeat", n, len(s)); err != nil {
				return "", err
			}
			return strings.Repeat(s, n), nil
		},
		"indent": func(n int, s string) (string, error) { return indentText("", n, s) },
		"nindent": func(n int, s string) (string, error) {
			return indentText("\n", n, s)
		},
		"replace": func(old, new, s string) (string, error) {
			if err := checkTextSize("replace", strings.Count(s, old), len(new)); err != nil {
				return "", err
			}
			return strings.ReplaceAll(s, old, new), nil
		},
		"until": func(n int) ([]int, error) {
			if err := checkCount("until", 0, n, 1); err != nil {
				return nil, err
			}
			return until(n), nil
		},
		"untilStep": func(start, stop, step int) ([]int, error) {
			if err := checkCount("untilStep", start, stop, step); err != nil {
				return nil, err
			}
			return untilStep(start, stop, step), nil
		},
		"seq": func(n ...int) (string, error) {
			start, stop, step := 1, 0, 1
			switch len(n) {
			case 1:
				stop = n[0]
			case 2:
				start, stop = n[0], n[1]
			case 3:
				start, step, stop = n[0], n[1], n[2]
			}
			if err := checkCount("seq", start, stop, step); err != nil {
				return "", err
			}
			return seq(n...), nil
		},
	}
}

// boundArguments is a function that is only called with what isn't too long.
func boundArguments(what string, f func(...any) string) func(...any) (string, error) {
	return func(v ...any) (string, error) {
		if err := checkArguments(what, v); err != nil {
			return "", err
		}
		return f(v...), nil
	}
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

func indentText(before string, n int, s string) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("indent: %d is negative", n)
	}
	if err := checkTextSize("indent", strings.Count(s, "\n")+1, n); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", n)
	return before + pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

// checkTextSize refuses n pieces of text that together are too long.
func checkTextSize(what string, n, size int) error {
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
