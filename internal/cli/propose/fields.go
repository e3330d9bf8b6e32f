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
	// isComponents is that the component's name alone says whose it is: each of its environments has another file.
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

// isForOther says that another environment of a component has a file, too, alone or in a folder.
func (s *Source) isForOther(e *history.Environment, branch, file string) bool {
	for _, o := range s.Components[e.Component] {
		if o.Name == e.Name || s.Branch(o.Name) != branch {
			continue
		}
		isBelow := func(root string) bool { return root == "." || strings.HasPrefix(file, root+"/") }
		if slices.Contains(o.Files, file) || slices.ContainsFunc(slices.Concat(o.Roots, o.Bases, o.Shared), isBelow) {
			return true
		}
	}
	return false
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
		f := s.newLookedFile(e, branch, file, name, own)
		for _, v := range reader.read(tree, branch, file) {
			if at, ok := f.locate(&v); ok {
				f.add(found, at, v, base)
			}
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

// lookedFile is a file that an environment of a component is made from, while fields are looked for in it.
type lookedFile struct {
	source       *Source
	environment  *history.Environment
	branch, file string // from the repository's root
	name         string // from the folder that is the environment's
	named        string // the name with placeholders
	own          bool   // it is in a folder that is this environment's alone
	isNamed      bool   // after the component, and for this environment alone
}

func (s *Source) newLookedFile(e *history.Environment, branch, file, name string, own bool) *lookedFile {
	f := &lookedFile{source: s, environment: e, branch: branch, file: file, name: name, own: own,
		named: withPlaceholders(name, e.Name, e.Component, own)}
	f.isNamed = !own && strings.Contains(f.named, "{{component}}") && s.readers[fileOfBranch{branch, file}] == 1
	return f
}

// isAlone says that no other environment of the component has the file. It is asked of few values.
func (l *lookedFile) isAlone() bool {
	return l.own || !l.source.isForOther(l.environment, l.branch, l.file)
}

// saysOther says that a path has the name of another component.
func (l *lookedFile) saysOther(segments []fieldpath.Segment) bool {
	isOther := func(name string) bool {
		return l.source.Components[name] != nil && name != l.environment.Component && name != l.environment.Name
	}
	return slices.ContainsFunc(segments, func(s fieldpath.Segment) bool {
		return s.Kind == fieldpath.Key && isOther(s.Key) || s.Kind == fieldpath.Match && isOther(s.Value)
	})
}

// locatedScalar is where a value is in every environment.
type locatedScalar struct {
	fieldLocation
	segments []fieldpath.Segment
	// isComponents is that the component's name says whose the value is, and nothing says of which environment it is.
	isComponents bool
}

// locate says where a value is in every environment; not ok where it is others' as well.
func (l *lookedFile) locate(v *scalar) (locatedScalar, bool) {
	at := locatedScalar{fieldLocation{v.kind, l.named, v.path}, v.segments, l.isNamed}
	if at.fieldLocation.isNamed() {
		if strings.Contains(l.name, "/") {
			return at, false // kustomize builds another folder's
		}
		if !l.own {
			return l.locateComponentsImage(v)
		}
		at.file = ""
		return at, true
	}
	e := l.environment
	switch hasComponent := saysName(v.segments, e.Component); {
	case saysName(v.segments, e.Name):
		if !l.own && !hasComponent && l.saysOther(v.segments) {
			return at, false
		}
		at.segments, at.isComponents = segmentsWithPlaceholder(v.segments, e.Name, "{{environment}}"), false
		if hasComponent && !l.own {
			at.segments = segmentsWithPlaceholder(at.segments, e.Component, "{{component}}")
		}
	case l.own, strings.Contains(l.named, "{{environment}}"), l.isNamed:
		return at, true
	case hasComponent && l.isAlone():
		at.segments, at.isComponents = segmentsWithPlaceholder(v.segments, e.Component, "{{component}}"), true
	default:
		picked, ok := v.pickByComponent(e.Component, e.Name, l.isAlone)
		if !ok {
			return at, false // another environment's as well
		}
		at.segments, at.isComponents = picked, true
	}
	at.path = fieldpath.New(at.segments...).String()
	return at, true
}

// locateComponentsImage says where a component's image is in a kustomization that all components of an
// environment build on: the last part of the image's name is the component's.
func (l *lookedFile) locateComponentsImage(v *scalar) (locatedScalar, bool) {
	registry, name := path.Split(v.path)
	if v.kind != fieldedit.KindImage || name != l.environment.Component || !l.isAlone() {
		return locatedScalar{}, false
	}
	segments := []fieldpath.Segment{
		{Kind: fieldpath.Key, Key: "images"},
		{Kind: fieldpath.Match, KeyPath: []string{"name"}, Value: registry + "{{component}}"},
		{Kind: fieldpath.Key, Key: v.key},
	}
	location := fieldLocation{fieldedit.KindYAML, l.named, fieldpath.New(segments...).String()}
	return locatedScalar{location, segments, true}, true
}

// add adds what an environment has at a place.
func (l *lookedFile) add(found map[fieldLocation]*field, at locatedScalar, v scalar, base bool) {
	known := found[at.fieldLocation]
	if base && known.isUsedIn(l.environment) {
		return // kustomize lets what builds on it win
	}
	if known == nil {
		known = &field{fieldLocation: at.fieldLocation, key: v.key, segments: at.segments, isComponents: at.isComponents}
		found[at.fieldLocation] = known
	}
	known.uses = append(known.uses, &use{component: l.environment.Component, environment: l.environment.Name, file: l.file, scalar: v})
}

// withPlaceholders writes the placeholders into a file's name; in an environment's own folder that
// for the environment alone. Where one name is a part of another, the longer one is meant:
// test-runner.yaml is no file of test's.
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
		if !strings.Contains(part, "{{") { // one placeholder in each
			parts[n] = withWord(part, name, placeholder)
		}
	}
	return strings.Join(parts, "/")
}

// withWord writes a placeholder for the first place in a text where a name is a word of its own.
func withWord(text, name, placeholder string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 || name == "" {
			return text
		}
		i += from
		end := i + len(name)
		if (i == 0 || isSeparator(rune(text[i-1]))) && (end == len(text) || isSeparator(rune(text[end]))) {
			return text[:i] + placeholder + text[end:]
		}
		from = i + 1
	}
}

// saysName says that a key, or what picks an item, is a name.
func saysName(segments []fieldpath.Segment, name string) bool {
	return slices.ContainsFunc(segments, func(s fieldpath.Segment) bool {
		return s.Kind == fieldpath.Key && s.Key == name || s.Kind == fieldpath.Match && s.Value == name
	})
}

// segmentsWithPlaceholder writes a placeholder for a name where a key, or what picks an item, is it.
func segmentsWithPlaceholder(segments []fieldpath.Segment, name, placeholder string) []fieldpath.Segment {
	out := slices.Clone(segments)
	for i := range out {
		switch s := &out[i]; {
		case s.Kind == fieldpath.Key && s.Key == name:
			s.Key = placeholder
		case s.Kind == fieldpath.Match && s.Value == name:
			s.Value = placeholder
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
		case entry.Type().IsRegular() &&
			(appset.IsKustomization(rel) || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(rel))):
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

func (f *fileReader) read(tree fs.FS, branch, file string) []scalar {
	return readOnce(f.scalars, readFileScalars, tree, fileOfBranch{branch, file})
}

func (f *fileReader) list(tree fs.FS, branch, root string) []string {
	return readOnce(f.files, listFiles, tree, fileOfBranch{branch, root})
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
