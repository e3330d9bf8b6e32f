package fieldedit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// class is what a plain scalar is to a YAML reader.
type class string

const (
	classString  class = TypeString
	classNull    class = TypeNull
	classBool    class = TypeBool
	classNumber  class = TypeNumber
	classTime    class = "time"
	classSpecial class = "special" // the merge key << and the 1.1 default value =
)

// What a plain scalar may be. For 1.1 it is the union of what the
// specification and the readers in use (libyaml's, PyYAML, go-yaml 2 behind
// Kubernetes, go-yaml 3) take for something other than a string.
var (
	null      = regexp.MustCompile(`^(~|null|Null|NULL|)$`)
	bool11    = regexp.MustCompile(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	bool12    = regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)
	number11  = regexp.MustCompile(`^[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|\.[0-9][0-9_]*([eE][-+]?[0-9_]+)?|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
	number12  = regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	timestamp = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)

	canonicalInt = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	radixInt     = regexp.MustCompile(`^[-+]?0([xXoObB]?)[0-9a-fA-F]+$`)
)

func class11(s string) class {
	switch {
	case s == "<<" || s == "=":
		return classSpecial
	case null.MatchString(s):
		return classNull
	case bool11.MatchString(s):
		return classBool
	case number11.MatchString(s):
		return classNumber
	case timestamp.MatchString(s):
		return classTime
	}
	return classString
}

// meaning11 is a text that two plain scalars share where a reader of YAML 1.1
// may take them for the same value.
func meaning11(s string) string {
	switch class11(s) {
	case classNull:
		return "null"
	case classBool:
		return "bool " + strconv.FormatBool(strings.ContainsAny(s[:1], "yYtT") || strings.EqualFold(s, "on"))
	case classNumber:
		digits := strings.ReplaceAll(s, "_", "")
		if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return fmt.Sprintf("number %g", float64(n))
		}
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return fmt.Sprintf("number %g", f+0) // -0 is 0
		}
	}
	return "text " + s
}

func class12(s string) class {
	switch {
	case null.MatchString(s):
		return classNull
	case bool12.MatchString(s):
		return classBool
	case number12.MatchString(s):
		return classNumber
	}
	return classString
}

// scalarType is the type of a scalar as it is written, as a Field carries it.
func scalarType(n *yaml.Node) string {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return TypeString
	}
	switch c := class11(n.Value); c {
	case classNull, classBool, classNumber:
		return string(c)
	}
	return TypeString
}

// scalarValue is the scalar's value; a null, however written, is "".
func scalarValue(n *yaml.Node) string {
	if scalarType(n) == TypeNull {
		return ""
	}
	return n.Value
}

// lossless says that a plain number reads back as the text it is: 1.20
// becomes 1.2, 1e3 becomes 1000, 010 becomes 8, and a 20-digit one rounds.
func lossless(s string) bool {
	if canonicalInt.MatchString(s) {
		_, err := strconv.ParseInt(s, 10, 64)
		return err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s && strings.Contains(s, ".")
}

// keepsType says that value may stand plain where old, a plain scalar that
// isn't a string, stood: it is of the same type to every reader, and doesn't
// lose its text by it. Octal and hexadecimal numbers follow each other: who
// wrote 0644 reads it as a number on purpose.
func keepsType(old, value string) bool {
	if class11(old) != class11(value) || class12(old) != class12(value) {
		return false
	}
	switch class11(value) {
	case classBool:
		return true
	case classNumber:
		if lossless(value) {
			return true
		}
		o, v := radixInt.FindStringSubmatch(old), radixInt.FindStringSubmatch(value)
		return o != nil && v != nil && o[1] == v[1]
	}
	return false
}

// plainString says that a plain value is this string to every reader,
// wherever it stands.
func plainString(s string, flow bool) bool {
	if class11(s) != classString || class12(s) != classString {
		return false
	}
	return plainText(s, flow)
}

// plainText says that a value can be written without quotes at all.
func plainText(s string, flow bool) bool {
	switch {
	case s == "" || strings.TrimSpace(s) != s || !printable(s):
		return false
	case strings.HasPrefix(s, "---") || strings.HasPrefix(s, "..."):
		return false
	case strings.ContainsRune("?:,[]{}#&*!|>'\"%@`", rune(s[0])):
		return false
	case s[0] == '-' && (flow || len(s) == 1 || s[1] == ' '):
		return false
	case strings.Contains(s, ": ") || strings.Contains(s, " #") || strings.HasSuffix(s, ":") || strings.ContainsRune(s, '\t'):
		return false
	case strings.Contains(s, "{{"):
		return false
	case flow && strings.ContainsAny(s, ",[]{}:?"):
		return false
	}
	return true
}

// printable says that s can stand in a single-quoted or plain scalar on one line.
func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) && r != '\t' {
			return false
		}
	}
	return true
}

func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// doubleQuoted writes only escapes that JSON has too, so that the same text
// serves JSON-like YAML.
func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			// A lone plane-1 escape exists in YAML only; both have the pair
			// in JSON, but YAML readers don't join it.
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// renderYAML is how value is written where old stands. A quoted scalar keeps
// its quotes; a plain one gets double quotes only where the value would
// otherwise be of another type or no longer the same text. With asString the
// field is a string whatever old is; otherwise a plain scalar keeps its type.
func renderYAML(old *yaml.Node, value string, asString, flow bool) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the value %q isn't UTF-8", value)
	}
	switch {
	case old.Style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted(value), nil
	case old.Style&yaml.SingleQuotedStyle != 0:
		if printable(value) {
			return singleQuoted(value), nil
		}
		return doubleQuoted(value), nil
	case plainString(value, flow):
		return value, nil
	case !asString && keepsType(old.Value, value) && plainText(value, flow):
		return value, nil
	}
	return doubleQuoted(value), nil
}

// renderNewYAML is how the value of a key that isn't there yet is written:
// as the type it has at its source, a string where nothing is known.
func renderNewYAML(value, typ string, flow, quoted bool) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the value %q isn't UTF-8", value)
	}
	switch {
	case typ == TypeNull && value == "":
		return "null", nil
	case (typ == TypeNumber || typ == TypeBool) && string(class11(value)) == typ && plainText(value, flow):
		return value, nil
	case !quoted && plainString(value, flow):
		return value, nil
	}
	return doubleQuoted(value), nil
}
