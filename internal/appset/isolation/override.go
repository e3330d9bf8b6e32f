package isolation

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// Trees are where it is looked for what overrides a field, before the edit.
type Trees struct {
	Files fs.FS // that targets read
	Sets  fs.FS // that has the ApplicationSets; another branch's, where environments have branches
}

// Override is what has the last word on a carried field.
type Override struct {
	What string // such as helm.parameters of the Application
	File string // that says so, where it is known
	Line int    // in it, from 1; 0: it isn't known
}

// String names it with its place.
func (o Override) String() string {
	switch {
	case o.File == "":
		return o.What
	case o.What == "":
		return o.location()
	}
	return o.What + " (" + o.location() + ")"
}

func (o Override) location() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// FindOverride finds what overrides a carried field of a file that a target reads: its Application,
// a later values file, or the kustomization that its source is. Argo CD lays values files over each
// other in their order, then the Application's values, then its parameters, then its file
// parameters (helm template's -f, --set and --set-file). Over all of that it lays the source's
// .argocd-source files.
func FindOverride(at Trees, t *appset.Target, c *fieldedit.Change) (Override, bool) {
	field := newCarriedField(c)
	for i := range t.Sources {
		s := &t.Sources[i]
		if !s.Here && s.At == "" && s.Chart == "" {
			continue
		}
		if found, ok := field.findInOverrideFiles(at.Files, t, s); ok {
			return found, true
		}
		if found, ok := field.findInOptions(at.Sets, t, s); ok {
			return found, true
		}
		if found, ok := field.findInValueFiles(at.Files, t, s); ok {
			return found, true
		}
		if found, ok := field.findInKustomization(at.Files, s); ok {
			return found, true
		}
	}
	return Override{}, false
}

// carriedField is a change as what may override it names it.
type carriedField struct {
	change *fieldedit.Change
	path   fieldpath.Path
	keys   []string // of a value
	images []string // names that an image goes by
}

func newCarriedField(c *fieldedit.Change) *carriedField {
	f := &carriedField{change: c}
	if image, ok := fieldedit.ImageOfPath(c.Path); ok && c.Kind == fieldedit.KindImage {
		f.images = []string{image}
		return f
	}
	p, err := fieldpath.Parse(c.Path)
	if err != nil {
		return f
	}
	f.path = p
	for _, s := range p.Segments() {
		switch s.Kind {
		case fieldpath.Key, fieldpath.Token:
			f.keys = append(f.keys, s.Key)
		case fieldpath.Match:
			if len(f.keys) == 1 && f.keys[0] == "images" && slices.Equal(s.KeyPath, []string{"name"}) {
				f.images = append(f.images, s.Value)
			}
			f.keys = append(f.keys, "")
		default:
			f.keys = append(f.keys, "")
		}
	}
	if len(f.keys) > 0 && f.keys[len(f.keys)-1] == "image" {
		f.images = append(f.images, fieldedit.ImageName(c.Old), fieldedit.ImageName(c.New))
	}
	return f
}

// asOption is the field as a source's options name it: it is none of Helm's values where the target is made from it.
func (c *carriedField) asOption(t *appset.Target) fieldedit.OptionField {
	out := fieldedit.OptionField{Images: c.images}
	isGenerated := t.IsGeneratedFrom(c.change.File)
	isValue := slices.ContainsFunc(t.Sources, func(s appset.Source) bool { return isValuesFile(t, &s, c.change.File) })
	if len(c.keys) > 0 && (!isGenerated || isValue) {
		out.Path = c.path
	}
	return out
}

// findInOptions finds what of a source's options overrides the field, the strongest first.
func (c *carriedField) findInOptions(tree fs.FS, t *appset.Target, s *appset.Source) (Override, bool) {
	if len(s.Options) == 0 {
		return Override{}, false
	}
	by, ok, err := fieldedit.FindOptionOverride(s.Options, c.asOption(t))
	if err != nil || !ok {
		return Override{}, false // what Argo CD can't read it doesn't run
	}
	pattern := nameItem(by.Name)
	switch {
	case by.Name == "":
		pattern = strings.TrimPrefix(by.Option, "helm.") + `['"]?\s*:`
	case by.Option == "kustomize.images":
		pattern = regexp.QuoteMeta(fieldedit.ImageName(by.Name)) + `['"]?\s*[:=@]`
	}
	return locateInSet(tree, t, by.Option, pattern), true
}

// findInOverrideFiles finds what overrides the field in the files that Argo CD lays over a source's options, that for the
// Application first. A list of values files there stands for the Application's.
func (c *carriedField) findInOverrideFiles(tree fs.FS, t *appset.Target, s *appset.Source) (Override, bool) {
	for _, file := range appset.FilesOf(*t, *s).Overrides {
		data, err := fs.ReadFile(tree, file)
		if err != nil || file == c.change.File {
			continue
		}
		if by, ok, err := fieldedit.FindOptionOverride(data, c.asOption(t)); err == nil && ok {
			return Override{What: by.Option, File: file, Line: by.Line}, true
		}
		var laid struct {
			Helm struct {
				ValueFiles yaml.Node `yaml:"valueFiles"`
			} `yaml:"helm"`
		}
		own := *s
		if yaml.Unmarshal(data, &laid) != nil || laid.Helm.ValueFiles.Decode(&own.ValueFiles) != nil || laid.Helm.ValueFiles.Kind == 0 {
			continue
		}
		if isValuesFile(t, s, c.change.File) && !isValuesFile(t, &own, c.change.File) {
			return Override{What: "helm.valueFiles without it", File: file, Line: laid.Helm.ValueFiles.Line}, true
		}
		if found, ok := c.findInValueFiles(tree, t, &own); ok {
			found.What += ", which " + file + " gives"
			return found, true
		}
	}
	return Override{}, false
}

// nameItem is a pattern of an item that has a name.
func nameItem(name string) string {
	return `name['"]?\s*:\s*['"]?` + regexp.QuoteMeta(name) + `['"]?\s*(,|}|#|$)`
}

// findInYAML finds the field, or a value in which it has no place, in a mapping; line says where.
func (c *carriedField) findInYAML(data []byte) (line int, has bool) {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return 0, false
	}
	at := doc.Content[0]
	for _, key := range c.keys {
		if at.Kind == yaml.AliasNode {
			at = at.Alias
		}
		if at.Kind != yaml.MappingNode {
			return at.Line, at != doc.Content[0]
		}
		i := slices.IndexFunc(at.Content, func(n *yaml.Node) bool { return n.Value == key && n.Kind == yaml.ScalarNode })
		if i < 0 || i%2 != 0 || key == "" {
			return 0, false
		}
		at = at.Content[i+1]
	}
	return at.Line, true
}

// isValuesFile says that a source gives its chart a file as values.
func isValuesFile(t *appset.Target, s *appset.Source, file string) bool {
	return s.Path != "" && file == path.Join(s.Path, "values.yaml") || slices.Contains(listValueFiles(t, s), file)
}

// listValueFiles lists a source's values files, from the repository's root, in their order; "" for one
// that is elsewhere.
func listValueFiles(t *appset.Target, s *appset.Source) []string {
	var out []string
	for _, name := range s.ValueFiles {
		ref, rest, below := strings.Cut(name, "/")
		switch {
		case strings.Contains(name, "://"):
			out = append(out, "")
		case strings.HasPrefix(ref, "$") && below:
			here := slices.ContainsFunc(t.Sources, func(o appset.Source) bool { return o.Ref == ref[1:] && (o.Here || o.At != "") })
			if !here {
				rest = ""
			}
			out = append(out, path.Clean(cmp.Or(rest, ".")))
		case path.IsAbs(name):
			out = append(out, strings.TrimLeft(path.Clean(name), "/"))
		default:
			out = append(out, path.Join(s.Path, name))
		}
	}
	return out
}

// findInValueFiles finds a values file after the field's own that has it.
func (c *carriedField) findInValueFiles(tree fs.FS, t *appset.Target, s *appset.Source) (Override, bool) {
	files := listValueFiles(t, s)
	own := slices.Index(files, c.change.File)
	if len(c.keys) == 0 || own < 0 && !isValuesFile(t, s, c.change.File) {
		return Override{}, false
	}
	for _, later := range slices.Backward(files[own+1:]) {
		data, err := fs.ReadFile(tree, later)
		if err != nil {
			continue
		}
		if line, has := c.findInYAML(data); has && later != c.change.File {
			return Override{What: "a later values file", File: later, Line: line}, true
		}
	}
	return Override{}, false
}

// findInKustomization finds an entry for the field's image in the kustomization that a source is, where the field
// is in another file.
func (c *carriedField) findInKustomization(tree fs.FS, s *appset.Source) (Override, bool) {
	if len(c.images) == 0 || s.Path == "" {
		return Override{}, false
	}
	for _, name := range appset.KustomizationNames {
		file := path.Join(s.Path, name)
		if file == c.change.File {
			return Override{}, false
		}
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			continue
		}
		var k struct {
			Images []yaml.Node `yaml:"images"`
		}
		if yaml.Unmarshal(data, &k) != nil {
			return Override{}, false
		}
		for _, n := range k.Images {
			var i struct {
				Name string `yaml:"name"`
			}
			if n.Decode(&i) == nil && slices.Contains(c.images, i.Name) {
				return Override{What: "images of the kustomization above it", File: file, Line: n.Line}, true
			}
		}
		return Override{}, false
	}
	return Override{}, false
}

// locateInSet finds where a target's ApplicationSet or plain Application says something, by a pattern of the
// line: it may be in a templatePatch, which is text. Where no line does, as in a set that is built, the file is named.
func locateInSet(tree fs.FS, t *appset.Target, what, pattern string) Override {
	if t.Live {
		return Override{What: what + " of the live Application " + t.Name}
	}
	out := Override{What: what + " of the Application", File: t.ApplicationSetFile}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return out
	}
	for _, file := range slices.Concat([]string{t.ApplicationSetFile}, t.SetFiles) {
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			continue
		}
		if line := findLine(string(data), cmp.Or(t.ApplicationSet, t.Name), re); line > 0 {
			out.File, out.Line = file, line
			return out
		}
	}
	return out
}

// findLine is the first line that matches in the document that names a set; of all, where none does.
func findLine(text, set string, re *regexp.Regexp) int {
	named := regexp.MustCompile(`(?m)name['"]?\s*:\s*['"]?` + regexp.QuoteMeta(set) + `['"]?\s*(,|}|#|$)`)
	first, start := 0, 0
	lines := strings.Split(text, "\n")
	for start <= len(lines)-1 {
		end := start + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "---") {
			end++
		}
		for i := start; i < end; i++ {
			if strings.HasPrefix(strings.TrimSpace(lines[i]), "#") || !re.MatchString(lines[i]) {
				continue
			}
			if named.MatchString(strings.Join(lines[start:end], "\n")) {
				return i + 1
			}
			first = cmp.Or(first, i+1)
			break
		}
		start = end
	}
	return first
}
