package appset

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// firstFile is the one of the generator files that the parameters name
// without a pathParamPrefix; if they name none, the first one.
func firstFile(g *generatedApp, files []string, goTemplate bool) string {
	if len(files) == 0 {
		return ""
	}
	dir, file := g.params["path"], g.params["path.filename"]
	if goTemplate {
		p, _ := dir.(map[string]any)
		dir, file = p["path"], p["filename"]
	}
	d, _ := dir.(string)
	f, _ := file.(string)
	if named := path.Join(d, f); f != "" && slices.Contains(files, named) {
		return named
	}
	return files[0]
}

// nestParams gives a fasttemplate set's flat parameters ("path", "path.basename",
// "path[0]", "values.team", "metadata.labels.x/y") the shape that Go template
// sets have, so that a pipeline's templates read the same over both. Where a
// key is a value and a group at once, the value goes into the group under the
// key's own last word, as path.path.
func nestParams(flat map[string]any) map[string]any {
	out := map[string]any{}
	segments := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		if stem, n, ok := splitIndexed(key); ok {
			if s, isString := flat[key].(string); isString {
				list := segments[stem]
				for len(list) <= n {
					list = append(list, "")
				}
				list[n] = s
				segments[stem] = list
				continue
			}
		}
		putNested(out, splitKey(key), flat[key])
	}
	for stem, list := range segments {
		putNested(out, append(splitKey(stem), "segments"), list)
	}
	return out
}

// maxSegments bounds how far a key like path[17] may grow a list.
const maxSegments = 256

// splitIndexed splits "path[2]".
func splitIndexed(key string) (stem string, n int, ok bool) {
	stem, rest, found := strings.Cut(key, "[")
	if !found || !strings.HasSuffix(rest, "]") || (stem != "path" && !strings.HasSuffix(stem, ".path")) {
		return "", 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return stem, n, err == nil && n >= 0 && n < maxSegments
}

// splitKey splits a key at its dots, but not inside label, annotation and value names.
func splitKey(key string) []string {
	for _, group := range []string{"metadata.labels.", "metadata.annotations.", "values."} {
		if name, ok := strings.CutPrefix(key, group); ok && name != "" {
			return append(strings.Split(strings.TrimSuffix(group, "."), "."), name)
		}
	}
	return strings.Split(key, ".")
}

func putNested(into map[string]any, words []string, value any) {
	for _, w := range words[:len(words)-1] {
		next, ok := into[w].(map[string]any)
		if !ok {
			next = map[string]any{}
			if old, exists := into[w]; exists {
				next[w] = old
			}
			into[w] = next
		}
		into = next
	}
	last := words[len(words)-1]
	if group, ok := into[last].(map[string]any); ok {
		group[last] = value
		return
	}
	into[last] = value
}
