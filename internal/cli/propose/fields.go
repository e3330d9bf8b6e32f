package propose

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// Bounds of what is read below one folder.
const (
	maxFolderFiles = 200
	maxFolderDepth = 3
	maxFileSize    = 1 << 20
)

// Moment is the repository after one commit of a branch.
type Moment struct {
	Branch  string // "" is the tracked one
	Tree    fs.FS
	Changed []string
}

// Source is where fields are read.
type Source struct {
	Components map[string]map[string]*history.Environment
	// Tree is a branch's files; "" is the tracked one.
	Tree func(branch string) fs.FS
	// Branch is an environment's own one; "" where it lives on the tracked one.
	Branch func(environment string) string
	// Tracked is the tracked branch's name: a revision that is that is nothing to carry.
	Tracked string
	// History is what was, oldest first.
	History []Moment

	readers map[fileOfBranch]int // of the environments' single files
}

// fieldLocation is a carried field's place, the same in every environment.
type fieldLocation struct {
	kind, file, path string
}

// use is a field in one environment of one component.
type use struct {
	component, environment string
	file                   string // from the repository's root
	scalar
	values []valueAt // oldest first; each another one than that before
}

type valueAt struct {
	value string
	at    int // the moment, as a place in History
}

// field is what may be carried, with all of its uses.
type field struct {
	fieldLocation
	key      string
	segments []fieldpath.Segment // with placeholders, of YAML and JSON
	uses     []*use
	// isComponents is that the component's name alone says whose its file is: each of its environments has others.
	isComponents bool
}

// isNamed says that a field is found by a name in a kustomization, and not by a path in a file.
func (f fieldLocation) isNamed() bool {
	return f.kind == fieldedit.KindImage || f.kind == fieldedit.KindRef
}

// findFields lists the fields that several environments of a component have at the same place, and those
// that no component has in several, both sorted.
func (s *Source) findFields(ctx context.Context) (shared, alone []*field, err error) {
	found := map[fieldLocation]*field{}
	reader := newFileReader()
	s.countReaders()
	for _, component := range slices.Sorted(maps.Keys(s.Components)) {
		envs := s.Components[component]
		for _, name := range slices.Sorted(maps.Keys(envs)) {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			s.findInEnvironment(found, reader, envs[name])
		}
	}
	for _, f := range slices.SortedFunc(maps.Values(found), func(a, b *field) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.file, b.file), cmp.Compare(a.path, b.path))
	}) {
		if f.shared() {
			shared = append(shared, f)
		} else {
			alone = append(alone, f)
		}
	}
	s.readHistory(shared)
	return shared, alone, ctx.Err()
}

// fileOfBranch is a file as a branch has it.
type fileOfBranch struct{ branch, file string }

// countReaders counts the environments of components that each of the single files is for.
func (s *Source) countReaders() {
	s.readers = map[fileOfBranch]int{}
	for _, environments := range s.Components {
		for _, e := range environments {
			for _, file := range e.Files {
				s.readers[fileOfBranch{s.Branch(e.Name), file}]++
			}
		}
	}
}

// isUsedIn says that an environment has the field.
func (f *field) isUsedIn(e *history.Environment) bool {
	return f != nil && slices.ContainsFunc(f.uses, func(u *use) bool { return u.component == e.Component && u.environment == e.Name })
}

// shared says that a component has the field in several environments.
func (f *field) shared() bool {
	of := map[string]string{}
	for _, u := range f.uses {
		if e, ok := of[u.component]; ok && e != u.environment {
			return true
		}
		of[u.component] = u.environment
	}
	return false
}

func (s *Source) findInEnvironment(found map[fieldLocation]*field, reader *fileReader, e *history.Environment) {
	branch := s.Branch(e.Name)
	tree := s.Tree(branch)
	if tree == nil {
		return
	}
	seen := map[string]bool{}
	look := func(root, name string, own, base bool) {
		file := path.Join(root, name)
		if seen[file] {
			return
		}
		seen[file] = true
		named := withPlaceholders(name, e.Name, e.Component, own)
		isComponents := strings.Contains(named, "{{component}}") && s.readers[fileOfBranch{branch, file}] == 1
		isOwn := own || isComponents || strings.Contains(named, "{{environment}}")
		for _, v := range reader.read(tree, branch, file) {
			p, segments := fieldLocation{v.kind, named, v.path}, v.segments
			if !p.isNamed() {
				if saysName(segments, e.Name) {
					segments = segmentsWithPlaceholder(segments, e.Name)
					p.path = fieldpath.New(segments...).String()
				} else if !isOwn {
					continue // another environment's as well
				}
			} else if !own || strings.Contains(name, "/") {
				continue // kustomize builds another folder's, or this environment isn't the only one
			} else {
				p.file = ""
			}
			f := found[p]
			if base && f.isUsedIn(e) {
				continue // kustomize lets what builds on it win
			}
			if f == nil {
				f = &field{fieldLocation: p, key: v.key, segments: segments, isComponents: !own && isComponents}
				found[p] = f
			}
			f.uses = append(f.uses, &use{component: e.Component, environment: e.Name, file: file, scalar: v})
		}
	}
	for _, root := range e.Roots {
		for _, name := range reader.list(tree, branch, root) {
			look(root, name, true, false)
		}
	}
	for _, root := range e.Bases {
		for _, name := range reader.list(tree, branch, root) {
			look(root, name, true, true)
		}
	}
	for _, root := range e.Shared {
		for _, name := range reader.list(tree, branch, root) {
			look(root, name, false, false)
		}
	}
	for _, file := range e.Files {
		look(path.Dir(file), path.Base(file), false, false)
	}
}

// withPlaceholders writes the placeholders into a file's name; in an environment's own folder that for the environment
// alone. Of two names that are a part of each other the longer one is meant: test-runner.yaml is no file of test's.
func withPlaceholders(text, environment, component string, own bool) string {
	named := "{{component}}"
	if own {
		const hidden = "{{}}"
		named = hidden
	}
	if len(component) > len(environment) {
		text = withPlaceholder(withPlaceholder(text, component, named), environment, "{{environment}}")
	} else {
		text = withPlaceholder(withPlaceholder(text, environment, "{{environment}}"), component, named)
	}
	if own {
		return strings.ReplaceAll(text, named, component)
	}
	return text
}

// withPlaceholder writes a placeholder for a name where it is a word of its own, once in each
// part of a path.
func withPlaceholder(text, name, placeholder string) string {
	parts := strings.Split(text, "/")
	for n, part := range parts {
		if strings.Contains(part, "{{") {
			continue // one placeholder in each
		}
		for from := 0; ; {
			i := strings.Index(part[from:], name)
			if i < 0 {
				break
			}
			i += from
			end := i + len(name)
			if (i == 0 || isSeparator(rune(part[i-1]))) && (end == len(part) || isSeparator(rune(part[end]))) {
				parts[n] = part[:i] + placeholder + part[end:]
				break
			}
			from = i + 1
		}
	}
	return strings.Join(parts, "/")
}

// saysName says that a key, or what picks an item, is a name.
func saysName(segments []fieldpath.Segment, name string) bool {
	return slices.ContainsFunc(segments, func(s fieldpath.Segment) bool {
		return s.Kind == fieldpath.Key && s.Key == name || s.Kind == fieldpath.Match && s.Value == name
	})
}

// segmentsWithPlaceholder writes the placeholder for an environment where a key, or what picks
// an item, is its name.
func segmentsWithPlaceholder(segments []fieldpath.Segment, environment string) []fieldpath.Segment {
	out := slices.Clone(segments)
	for i := range out {
		switch s := &out[i]; {
		case s.Kind == fieldpath.Key && s.Key == environment:
			s.Key = "{{environment}}"
		case s.Kind == fieldpath.Match && s.Value == environment:
			s.Value = "{{environment}}"
		}
	}
	return out
}

// listFiles are the YAML and JSON files below a folder, by their names from there, sorted.
func listFiles(tree fs.FS, root string) []string {
	var out []string
	err := fs.WalkDir(tree, root, func(name string, entry fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
		if root == "." {
			rel = name
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && (strings.Count(rel, "/") >= maxFolderDepth || name != root && path.Base(name) == "templates"):
			return fs.SkipDir
		case entry.Type().IsRegular() && (appset.IsKustomization(rel) || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(rel))):
			out = append(out, rel)
		}
		if len(out) >= maxFolderFiles {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return nil // a folder that can't be read is said by the proof
	}
	slices.Sort(out)
	return out
}

// fileReader remembers the values of files, and the files of folders, as branches have them.
type fileReader struct {
	scalars map[fileOfBranch][]scalar
	files   map[fileOfBranch][]string
}

func newFileReader() *fileReader {
	return &fileReader{scalars: map[fileOfBranch][]scalar{}, files: map[fileOfBranch][]string{}}
}

func (r *fileReader) read(tree fs.FS, branch, file string) []scalar {
	return readOnce(r.scalars, readFileScalars, tree, fileOfBranch{branch, file})
}

func (r *fileReader) list(tree fs.FS, branch, root string) []string {
	return readOnce(r.files, listFiles, tree, fileOfBranch{branch, root})
}

// readOnce reads a file or a folder that isn't known yet.
func readOnce[T any](known map[fileOfBranch][]T, read func(tree fs.FS, name string) []T, tree fs.FS, at fileOfBranch) []T {
	all, ok := known[at]
	if !ok {
		all = read(tree, at.file)
		known[at] = all
	}
	return all
}

func readFileScalars(tree fs.FS, file string) []scalar {
	info, err := fs.Stat(tree, file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFileSize {
		return nil
	}
	data, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil
	}
	return readScalars(path.Base(file), data)
}

// readHistory fills in which values the uses had, and when.
func (s *Source) readHistory(fields []*field) {
	uses := map[fileOfBranch]map[string][]*use{} // by path
	for _, f := range fields {
		for _, u := range f.uses {
			at := fileOfBranch{s.Branch(u.environment), u.file}
			if uses[at] == nil {
				uses[at] = map[string][]*use{}
			}
			uses[at][u.kind+u.path] = append(uses[at][u.kind+u.path], u)
		}
	}
	for i, m := range s.History {
		for _, file := range m.Changed {
			of := uses[fileOfBranch{m.Branch, file}]
			if of == nil {
				continue
			}
			for _, v := range readFileScalars(m.Tree, file) {
				for _, u := range of[v.kind+v.path] {
					u.add(v.value, i)
				}
			}
		}
	}
	for _, f := range fields {
		for _, u := range f.uses {
			u.add(u.value, len(s.History)) // what the working tree has
		}
	}
}

func (u *use) add(value string, at int) {
	if n := len(u.values); n > 0 && u.values[n-1].value == value {
		return
	}
	u.values = append(u.values, valueAt{value, at})
}
