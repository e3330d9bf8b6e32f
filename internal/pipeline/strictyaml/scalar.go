package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// decodeScalar decodes text, numbers, booleans and durations.
func (d *decoder) decodeScalar(n *yaml.Node, v reflect.Value, path string) {
	want, tag := expectedScalar(v)
	node, expanded, ok := d.expandScalar(n, path, want)
	if !ok {
		return
	}
	found := node.ShortTag()
	// A variable's value is text wherever text is wanted, "12345" included.
	isText := expanded && tag == "!!str"
	isWholeNumber := tag == "!!float" && found == "!!int"
	if found != tag && !isText && !isWholeNumber {
		hint := ""
		if v.Kind() == reflect.String {
			hint = "; put it in quotes"
		}
		d.errorf(n, path, "expected %s, found %s%s", want, describeKind(node), hint)
		return
	}
	switch {
	case v.Type() == durationType:
		parsed, err := ParseDuration(node.Value)
		if err != nil {
			d.errorf(n, path, "%s", err)
			return
		}
		v.SetInt(int64(parsed))
	case tag == "!!str":
		v.SetString(node.Value)
	default:
		// Into the very type, so that yaml.v3 checks the range. Its error would
		// print the value.
		if err := node.Decode(v.Addr().Interface()); err != nil {
			d.errorf(n, path, "out of range for %s", want)
		}
	}
}

// expectedScalar is what a Go type wants to read, for people and as a YAML tag.
func expectedScalar(v reflect.Value) (name, tag string) {
	if v.Type() == durationType {
		return "a duration such as 90s, 15m or 1h30m", "!!str"
	}
	switch v.Kind() {
	case reflect.String:
		return "text", "!!str"
	case reflect.Bool:
		return "true or false", "!!bool"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number", "!!int"
	case reflect.Float32, reflect.Float64:
		return "a number", "!!float"
	}
	panic(fmt.Sprintf("strictyaml: can't decode into %s", v.Type()))
}

// decodeText decodes a type that reads itself from text. Its error is printed: it
// must not show the value where that is a secret.
func (d *decoder) decodeText(n *yaml.Node, into encoding.TextUnmarshaler, path string) {
	node, _, ok := d.expandScalar(n, path, "text")
	if !ok {
		return
	}
	if err := into.UnmarshalText([]byte(node.Value)); err != nil {
		d.errorf(n, path, "%s", err)
	}
}

// expandScalar is the scalar behind n with its variables replaced. Not ok: it isn't
// a scalar, or a variable is missing; the error has been reported.
func (d *decoder) expandScalar(n *yaml.Node, path, want string) (node *yaml.Node, expanded, ok bool) {
	node = followAlias(n)
	if node.Kind != yaml.ScalarNode {
		d.errorf(n, path, "expected %s, found %s%s", want, describeKind(node), hintAtQuotes(node))
		return nil, false, false
	}
	if d.lookup == nil || node.ShortTag() != "!!str" || !strings.Contains(node.Value, "${") {
		return node, false, true
	}
	value, err := expandVariables(node.Value, d.lookup)
	if err != nil {
		d.errorf(n, path, "%s", err)
		return nil, false, false
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: node.Line, Column: node.Column}, true, true
}

var variablePattern = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{`)

// expandVariables replaces ${NAME}; what comes out is not expanded again.
func expandVariables(s string, lookup func(string) (string, bool)) (string, error) {
	var err error
	out := variablePattern.ReplaceAllStringFunc(s, func(m string) string {
		switch m {
		case "$${":
			return "${"
		case "${":
			if err == nil {
				err = fmt.Errorf("a ${ without a variable's name and }; write ${NAME}, or $${ for a literal ${")
			}
			return m
		}
		name := m[2 : len(m)-1]
		value, ok := lookup(name)
		if !ok && err == nil {
			err = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	if err != nil {
		return "", err
	}
	return out, nil
}

// ParseDuration reads a time such as "90s", "15m" or "1h30m".
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if m := daysPattern.FindStringSubmatch(s); m != nil {
		days, _ := strconv.Atoi(m[1]) // at most four digits by the expression
		if m[2] == "w" {
			days *= 7
		}
		return 0, fmt.Errorf("days and weeks are no unit of a duration; write %dh", 24*days)
	}
	return 0, errors.New("not a duration; write it like 90s, 15m or 1h30m")
}

// daysPattern is a number of days or weeks.
var daysPattern = regexp.MustCompile(`^(\d{1,4})\s*(d|w)$`)
