package appset

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// matchPathspec reports whether git would list name for this pathspec, run at
// the root: what the controller's default file globbing does (`git ls-files
// -z -- pattern`). Unlike shell globs, * and ? cross slashes, and a pattern
// that literally names a file or a folder takes all below it.
func matchPathspec(spec, name string) bool {
	if spec == "" {
		return true
	}
	if strings.HasPrefix(name, spec) {
		if len(name) == len(spec) || spec[len(spec)-1] == '/' || name[len(spec)] == '/' {
			return true
		}
	}
	return strings.ContainsAny(spec, `*?[\`) && wildmatch(spec, name)
}

// cleanPathspec makes a pattern relative to the root, as git does before it matches. An error means
// that git would refuse it, or that it uses pathspec magic, which is not supported here.
func cleanPathspec(pattern string) (string, error) {
	switch {
	case strings.HasPrefix(pattern, ":"):
		return "", fmt.Errorf("path %q uses git's pathspec magic: not supported yet; write the path from the repository's root", pattern)
	case strings.HasPrefix(pattern, "/"):
		return "", fmt.Errorf("path %q is absolute: git finds nothing there; write it from the repository's root", pattern)
	}
	// git's own cleaning leaves the slash before a last . or .. where it is.
	slash := strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "/.") || strings.HasSuffix(pattern, "/..")
	clean := path.Clean(pattern)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("path %q leads out of the repository", pattern)
	}
	if clean == "." {
		return "", nil
	}
	if slash {
		clean += "/"
	}
	return clean, nil
}

// wildmatch is git's wildmatch() without WM_PATHNAME: * and ** match any
// bytes, ? one byte, [set] one byte, backslash quotes. It backtracks to the
// last star only, so it takes at most len(pattern)×len(text) steps.
func wildmatch(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, mark = p, t
				p++
				continue
			}
			if n, ok := matchOne(pattern[p:], text[t]); ok {
				p += n
				t++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one byte against the pattern's first element and returns
// that element's length.
func matchOne(pattern string, c byte) (int, bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchSet(pattern, c)
	case '\\':
		if len(pattern) < 2 {
			return 0, false
		}
		return 2, pattern[1] == c
	default:
		return 1, pattern[0] == c
	}
}

// matchSet matches a bracket expression. An unclosed one matches nothing.
func matchSet(pattern string, c byte) (int, bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	matched := false
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && !first {
			return i + 1, matched != negated
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			// A class ends at the next bracket; without a colon before that, [
			// is an ordinary member.
			end := strings.IndexByte(pattern[i+2:], ']')
			if end < 0 {
				return 0, false
			}
			if end > 0 && pattern[i+2+end-1] == ':' {
				in, known := inClass(pattern[i+2:i+2+end-1], c)
				if !known {
					return 0, false
				}
				matched = matched || in
				i += end + 3
				continue
			}
		}
		low, n, ok := setByte(pattern[i:])
		if !ok {
			return 0, false
		}
		i += n
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if high, n, ok = setByte(pattern[i+1:]); !ok {
				return 0, false
			}
			i += 1 + n
		}
		matched = matched || low <= c && c <= high
	}
}

func setByte(s string) (c byte, n int, ok bool) {
	if s[0] != '\\' {
		return s[0], 1, true
	}
	if len(s) < 2 {
		return 0, 0, false
	}
	return s[1], 2, true
}

// classes are the sets of bytes that a bracket expression may name.
var classes = func() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for _, name := range []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
		"upper", "xdigit"} {
		out[name] = regexp.MustCompile("^[[:" + name + ":]]$")
	}
	return out
}()

func inClass(class string, c byte) (in, known bool) {
	set := classes[class]
	return set != nil && set.Match([]byte{c}), set != nil
}
