package appset

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/argoproj/argo-cd/v2/applicationset/utils"
)

// Most generator files are JSON, which the library reads as YAML: ten times as slow. JSON that is
// read the same either way is read as such here, and made parameters of as the library does. A fuzz
// test holds both against each other.

const (
	// maxPlainKey bounds keys: YAML refuses those of more than 1,024 characters.
	maxPlainKey = 1000
	// maxPlainDigits bounds numbers: longer ones may be read otherwise.
	maxPlainDigits = 15
)

// isPlainJSON says that JSON and YAML read the same of the text, if it is JSON at all. There
// are no escapes, no characters but those of ASCII, no keys apart from their values, and no
// numbers but short ones.
func isPlainJSON(data []byte) bool {
	inString, start, last := false, 0, byte(0) // last: what was before, spaces left out; a line's end isn't
	digits := 0
	for i, c := range data {
		switch {
		case c == '\n' && !inString:
			last, digits = c, 0
			continue
		case c < ' ' || c > '~' || c == '\\':
			return false
		case inString:
			if c == '"' {
				inString, last = false, c
			}
			continue
		}
		switch {
		case c == '"':
			inString, start = true, i
		case c == ':' && (last != '"' || i-start > maxPlainKey):
			return false
		case c == '+', c == 'e' && digits > 0, c == 'E', c == '-' && i+1 < len(data) && data[i+1] == '0':
			return false
		}
		if c >= '0' && c <= '9' || c == '.' {
			if digits++; digits > maxPlainDigits {
				return false
			}
		} else {
			digits = 0
		}
		if c != ' ' {
			last = c
		}
	}
	return !bytes.Contains(data, []byte(`"<<"`)) // which YAML merges
}

// plainParams makes parameters of a file of plain JSON, as the library does of any; nil
// where the file is none, or isn't what the library takes.
func plainParams(name string, data []byte, prefix string, goTemplate bool) []map[string]any {
	objects := readObjects(data)
	if len(objects) == 0 {
		return nil
	}
	out := make([]map[string]any, len(objects))
	for i, object := range objects {
		if goTemplate {
			out[i] = nestedFileParams(name, object, prefix)
		} else {
			out[i] = flatFileParams(name, object, prefix)
		}
	}
	return out
}

// nestedFileParams are the parameters of one object of a file, for Go templates.
func nestedFileParams(name string, object map[string]any, prefix string) map[string]any {
	dir := path.Dir(name)
	at := map[string]any{
		"path": dir, "basename": path.Base(dir), "filename": path.Base(name), "segments": strings.Split(dir, "/"),
		"basenameNormalized": sanitizeName(path.Base(dir)), "filenameNormalized": sanitizeName(path.Base(name)),
	}
	if object == nil {
		object = map[string]any{}
	}
	if prefix != "" {
		object[prefix] = map[string]any{"path": at}
	} else {
		object["path"] = at
	}
	return object
}

// flatFileParams are the parameters of one object of a file, for fasttemplate.
func flatFileParams(name string, object map[string]any, prefix string) map[string]any {
	out := make(map[string]any, len(object)+8)
	flattenInto(out, true, "", object)
	at := "path"
	if prefix != "" {
		at = prefix + ".path"
	}
	dir := path.Dir(name)
	out[at], out[at+".basename"], out[at+".filename"] = dir, path.Base(dir), path.Base(name)
	out[at+".basenameNormalized"], out[at+".filenameNormalized"] = sanitizeName(path.Base(dir)), sanitizeName(path.Base(name))
	n := 0
	for segment := range strings.SplitSeq(dir, "/") {
		if segment != "" {
			out[at+"["+strconv.Itoa(n)+"]"] = segment
		}
		n++
	}
	return out
}

// flattenInto writes what is below a value into flat parameters, as texts. An empty value leaves
// nothing.
func flattenInto(out map[string]any, top bool, at string, v any) {
	below := func(key string, v any) {
		if !top {
			key = at + "." + key
		}
		flattenInto(out, false, key, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			below(key, value)
		}
	case []any:
		for i, value := range v {
			below(strconv.Itoa(i), value)
		}
	case string:
		out[at] = v
	default:
		out[at] = fmt.Sprintf("%v", v)
	}
}

// sanitizeName is utils.SanitizeName, which compiles its regular expression anew each time.
func sanitizeName(name string) string {
	for i := range len(name) {
		if name[i] >= 0x80 || len(name) > 253 {
			return utils.SanitizeName(name)
		}
	}
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, name), "-.")
}
