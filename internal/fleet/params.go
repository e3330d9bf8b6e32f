package fleet

import (
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// generatorFiles are those of this commit that one set of parameters names:
// git file generators may read other repositories too, and any generator may
// give parameters of these names.
func (r *run) generatorFiles(params map[string]any, goTemplate bool) []string {
	return slices.DeleteFunc(generatorFiles(params, goTemplate), func(f string) bool {
		_, read := slices.BinarySearch(r.files, f)
		return !read
	})
}

// generatorFiles are the git file generators' files that one set of
// parameters names: path and filename, plain or under a pathParamPrefix. The
// unprefixed one comes first.
func generatorFiles(params map[string]any, goTemplate bool) []string {
	var first string
	rest := map[string]bool{}
	note := func(prefixed bool, dir, file any) {
		d, okD := dir.(string)
		f, okF := file.(string)
		if !okD || !okF || f == "" {
			return
		}
		full := path.Join(d, f)
		if !prefixed {
			first = full
			return
		}
		rest[full] = true
	}
	if goTemplate {
		notePath := func(prefixed bool, v any) {
			if m, ok := v.(map[string]any); ok {
				note(prefixed, m["path"], m["filename"])
			}
		}
		notePath(false, params["path"])
		for key, v := range params {
			if m, ok := v.(map[string]any); ok && key != "path" {
				notePath(true, m["path"])
			}
		}
	} else {
		note(false, params["path"], params["path.filename"])
		for key := range params {
			if stem, ok := strings.CutSuffix(key, ".path.filename"); ok {
				note(true, params[stem+".path"], params[key])
			}
		}
	}
	delete(rest, first)
	out := make([]string, 0, len(rest)+1)
	for f := range rest {
		out = append(out, f)
	}
	sort.Strings(out)
	if first != "" {
		out = append([]string{first}, out...)
	}
	return out
}

// nested gives a fasttemplate set's flat parameters ("path", "path.basename",
// "path[0]", "values.team", "metadata.labels.x/y") the shape that Go template
// sets have, so that a pipeline's templates read the same over both. Where a
// key is a value and a group at once, the value goes into the group under the
// key's own last word, as path.path.
func nested(flat map[string]any) map[string]any {
	out := map[string]any{}
	keys := make([]string, 0, len(flat))
	for k := range flat {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	segments := map[string][]string{}
	for _, key := range keys {
		if stem, n, ok := indexed(key); ok {
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
		put(out, words(key), flat[key])
	}
	for stem, list := range segments {
		put(out, append(words(stem), "segments"), list)
	}
	return out
}

// maxSegments bounds how far a key like path[17] may grow a list.
const maxSegments = 256

// indexed splits "path[2]".
func indexed(key string) (stem string, n int, ok bool) {
	stem, rest, found := strings.Cut(key, "[")
	if !found || !strings.HasSuffix(rest, "]") || (stem != "path" && !strings.HasSuffix(stem, ".path")) {
		return "", 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return stem, n, err == nil && n >= 0 && n < maxSegments
}

// words splits a key at its dots, but not inside label, annotation and value names.
func words(key string) []string {
	for _, group := range []string{"metadata.labels.", "metadata.annotations.", "values."} {
		if name, ok := strings.CutPrefix(key, group); ok && name != "" {
			return append(strings.Split(strings.TrimSuffix(group, "."), "."), name)
		}
	}
	return strings.Split(key, ".")
}

func put(into map[string]any, words []string, value any) {
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
