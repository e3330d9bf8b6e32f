package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func (m *memory) grepFiles(ctx context.Context, commit, expression string, globs []string) ([]string, error) {
	c, err := m.findCommit(commit)
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, &Error{Op: fmt.Sprintf("read the expression %q", shortenForLog(expression)), Err: err}
	}
	wanted, err := compileGlobs(globs)
	if err != nil {
		return nil, err
	}
	var names []string
	err = m.objects.walkFiles("", treeEntry{mode: Directory, sha: c.info.Tree}, func(f FileEntry) {
		if ctx.Err() != nil || f.Mode != Regular && f.Mode != Executable || !wanted(f.Path) {
			return
		}
		if blob, ok := m.objects.lookUp(f.Blob); ok && hasMatchingLine(pattern, blob.data) {
			names = append(names, f.Path)
		}
	})
	slices.Sort(names)
	return names, errors.Join(ctx.Err(), err)
}

func hasMatchingLine(pattern *regexp.Regexp, text []byte) bool {
	for line := range bytes.Lines(text) {
		if pattern.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			return true
		}
	}
	return false
}

// compileGlobs are git's pathspecs: a file, a folder with all that is below it, or a
// pattern for the whole path, in which * and ? match slashes too.
func compileGlobs(globs []string) (func(name string) bool, error) {
	var patterns []*regexp.Regexp
	for _, glob := range globs {
		p, err := regexp.Compile(`(?s)\A` + globExpression(glob) + `\z`)
		if err != nil {
			return nil, &Error{Op: fmt.Sprintf("read the pattern %q", shortenForLog(glob)), Err: err}
		}
		patterns = append(patterns, p)
	}
	return func(name string) bool {
		if len(globs) == 0 {
			return true
		}
		for i, glob := range globs {
			folder := path.Clean(glob)
			if folder == "." || name == folder || strings.HasPrefix(name, folder+"/") || patterns[i].MatchString(name) {
				return true
			}
		}
		return false
	}, nil
}

// globExpression writes a glob as a regular expression.
func globExpression(glob string) string {
	var b strings.Builder
	for glob != "" {
		_, size := utf8.DecodeRuneInString(glob)
		one := glob[:size]
		glob = glob[size:]
		switch one {
		case "*":
			b.WriteString(".*")
		case "?":
			b.WriteString(".")
		case "[":
			set, rest, closed := strings.Cut(glob, "]")
			if !closed || set == "" {
				b.WriteString(`\[`)
				continue
			}
			if set[0] == '!' {
				set = "^" + set[1:]
			}
			b.WriteString("[" + set + "]")
			glob = rest
		case `\`:
			_, size := utf8.DecodeRuneInString(glob)
			b.WriteString(regexp.QuoteMeta(glob[:size]))
			glob = glob[size:]
		default:
			b.WriteString(regexp.QuoteMeta(one))
		}
	}
	return b.String()
}
