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

// scalarClass is what a plain scalar is to a YAML reader.
type scalarClass string

const (
	classString  scalarClass = TypeString
	classNull    scalarClass = TypeNull
	classBool    scalarClass = TypeBool
	classNumber  scalarClass = TypeNumber
	classTime    scalarClass = "time"
	classSpecial scalarClass = "special" // the merge key << and the 1.1 default value =
)

// These say which types a plain scalar may be. For 1.1 it is every text that the specification or a
// reader in use (libyaml's, PyYAML, go-yaml 2 behind Kubernetes, go-yaml 3) takes for something
// other than a string.
var (
	nullPattern     = regexp.MustCompile(`^(~|null|Null|NULL|)$`)
	bool11Pattern   = regexp.MustCompile(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	bool12Pattern   = regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)
	number11Pattern = regexp.MustCompile(
		`^[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|\.[0-9][0-9_]*([eE][-+]?[0-9_]+)?|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
	number12Pattern = regexp.MustCompile(
		`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	timestampPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)

	canonicalIntPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	radixIntPattern     = regexp.MustCompile(`^[-+]?0([xXoObB]?)[0-9a-fA-F]+$`)
)

func classifyYAML11(s string) scalarClass {
	switch {
	case s == "<<" || s == "=":
		return classSpecial
	case nullPattern.MatchString(s):
		return classNull
	case bool11Pattern.MatchString(s):
		return classBool
	case number11Pattern.MatchString(s):
		return classNumber
	case timestampPattern.MatchString(s):
		return classTime
	}
	return classString
}

// canonicalYAML11 gives a key for comparing plain scalars: two that a reader of YAML 1.1 may take for the same value
// have the same key. Numbers are compared as floats, as some readers do.
func canonicalYAML11(s string) string {
	switch classifyYAML11(s) {
	case classNull:
		return "null"
	case classBool: // of y, yes, true and on, only the last begins as its opposite, off, does
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

func classifyYAML12(s string) scalarClass {
	switch {
	case nullPattern.MatchString(s):
		return classNull
	case bool12Pattern.MatchString(s):
		return classBool
	case number12Pattern.MatchString(s):
		return classNumber
	}
	return classString
}

// scalarType is the type of a scalar as it is written, as a Field carries it.
func scalarType(n *yaml.Node) string {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return TypeString
	}
	switch c := classifyYAML11(n.Value); c {
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

// isLosslessNumber says that a plain number reads back as the text it is: 1.20
// becomes 1.2, 1e3 becomes 1000, 010 becomes 8, and a 20-digit one rounds.
func isLosslessNumber(s string) bool {
	if canonicalIntPattern.MatchString(s) {
		_, err := strconv.ParseInt(s, 10, 64)
		return err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s && strings.Contains(s, ".")
}

// keepsType says that value may stand plain in place of old, a plain scalar that isn't a string. It
// has the same type to every reader, and doesn't lose its text by it. Octal and hexadecimal numbers
// follow each other: an author who wrote 0644 reads it as a number on purpose.
func keepsType(old, value string) bool {
	if classifyYAML11(old) != classifyYAML11(value) || classifyYAML12(old) != classifyYAML12(value) {
		return false
	}
	switch classifyYAML11(value) {
	case classBool:
		return true
	case classNumber:
		if isLosslessNumber(value) {
			return true
		}
		o, v := radixIntPattern.FindStringSubmatch(old), radixIntPattern.FindStringSubmatch(value)
		return o != nil && v != nil && o[1] == v[1]
	}
	return false
}

// plainString says that a plain value is this string to every reader,
// wherever it stands.
func plainString(s string, flow bool) bool {
	if classifyYAML11(s) != classString || classifyYAML12(s) != classString {
		return false
	}
	return plainText(s, flow)
}

// plainText says that a value can be written without quotes at all.
func plainText(s string, flow bool) bool {
	switch {
	case s == "" || strings.TrimSpace(s) != s || !isPrintable(s):
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

// isPrintable says that s can stand in a single-quoted or plain scalar on one line.
func isPrintable(s string) bool {
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
		if isPrintable(value) {
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
	case (typ == TypeNumber || typ == TypeBool) && string(classifyYAML11(value)) == typ && plainText(value, flow):
		return value, nil
	case !quoted && plainString(value, flow):
		return value, nil
	}
	return doubleQuoted(value), nil
}
