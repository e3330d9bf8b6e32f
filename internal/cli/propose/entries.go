package propose

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// maxImageNames bounds the images that are listed one by one.
const maxImageNames = 12

// imageEntries is the entry for images, if there are any.
func imageEntries(chosen, all []*field, evidences map[*field]evidence) []Carry {
	var names []string
	var images []*field
	for _, f := range chosen {
		if f.kind == fieldedit.KindImage {
			names, images = append(names, f.path), append(images, f)
		}
	}
	if len(images) == 0 {
		return nil
	}
	globs := slices.Clone(names)
	if prefix := path.Dir(names[0]); prefix != "." && !slices.ContainsFunc(names, func(n string) bool { return path.Dir(n) != prefix }) &&
		!slices.ContainsFunc(all, func(f *field) bool {
			return f.kind == fieldedit.KindImage && path.Dir(f.path) == prefix && !slices.Contains(names, f.path)
		}) {
		globs = []string{prefix + "/*"}
	}
	if len(globs) > maxImageNames {
		globs = []string{"**"}
	}
	return []Carry{{pipeline.Carry{KustomizeImages: globs}, summarize(images, evidences)}}
}

// refEntries is the entry for remote bases, if there are any.
func refEntries(chosen, all []*field, evidences map[*field]evidence) []Carry {
	var refs []*field
	var globs []string
	for _, f := range chosen {
		if f.kind == fieldedit.KindRef {
			refs = append(refs, f)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	for _, f := range refs {
		owner := ownerOf(f.path)
		glob := escapeGlob(f.path)
		if owner != "" && !slices.ContainsFunc(all, func(o *field) bool {
			return o.kind == fieldedit.KindRef && ownerOf(o.path) == owner && !slices.Contains(refs, o)
		}) {
			glob = escapeGlob(owner) + "/**"
		}
		if !slices.Contains(globs, glob) {
			globs = append(globs, glob)
		}
	}
	why := summarize(refs, evidences)
	for _, f := range refs {
		if image := imageChangedWith(f, chosen); image != nil {
			why += fmt.Sprintf("; one commit changed it together with image %s", image.path)
			break
		}
	}
	return []Carry{{pipeline.Carry{KustomizeRefs: globs}, why}}
}

// ownerOf is a remote base's address up to whom its repository belongs to; "" where that can't be told.
func ownerOf(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	host, rest, _ := strings.Cut(rest, "/")
	if scheme == "" && strings.Contains(host, ":") { // git@git.example:acme/build
		return host
	}
	owner, _, found := strings.Cut(rest, "/")
	if !found || owner == "" {
		return ""
	}
	return scheme + host + "/" + owner
}

// pathEntries are the entries for fields of YAML and JSON files: an entry for all files with
// the same paths.
func pathEntries(chosen, all []*field, evidences map[*field]evidence) []Carry {
	type file struct{ kind, name string }
	paths, of := map[file][]string{}, map[file][]*field{}
	for _, f := range chosen {
		if f.isNamed() {
			continue
		}
		at := file{f.kind, escapeGlob(f.file)}
		p := fieldpathText(generalize(f, chosen, all))
		if !slices.Contains(paths[at], p) {
			paths[at] = append(paths[at], p)
		}
		of[at] = append(of[at], f)
	}
	type group struct{ kind, paths string }
	files := map[group][]file{}
	var order []group
	for _, at := range slices.SortedFunc(maps.Keys(paths), func(a, b file) int {
		return cmp.Or(cmp.Compare(b.kind, a.kind),
			cmp.Compare(a.name, b.name))
	}) {
		slices.Sort(paths[at])
		g := group{at.kind, strings.Join(paths[at], "\x00")}
		if files[g] == nil {
			order = append(order, g)
		}
		files[g] = append(files[g], at)
	}
	var out []Carry
	for _, g := range order {
		pick := &pipeline.FieldPick{Paths: strings.Split(g.paths, "\x00")}
		var fields []*field
		for _, f := range files[g] {
			pick.Files = append(pick.Files, f.name)
			fields = append(fields, of[f]...)
		}
		entry := Carry{pipeline.Carry{YAML: pick}, summarize(fields, evidences)}
		if g.kind == fieldedit.KindJSON {
			entry.Carry = pipeline.Carry{JSON: pick}
		}
		out = append(out, entry)
	}
	return out
}

// chartEntries are the entries for what must fit the versions of a chart's dependencies that are
// carried: the lock beside it, and the archives in its charts/.
func (s *Source) chartEntries(chosen []*field) []Carry {
	const archives = "charts/*.tgz"
	var locks, vendored []string
	for _, f := range chosen {
		name := path.Base(f.file)
		lock, isChart := map[string]string{"Chart.yaml": "Chart.lock", "requirements.yaml": "requirements.lock"}[name]
		if !isChart || f.isNamed() || f.segments[0].Key != "dependencies" {
			continue
		}
		for _, u := range f.uses {
			tree := s.Tree(s.Branch(u.environment))
			if tree == nil {
				continue
			}
			at, named := path.Dir(u.file), escapeGlob(path.Dir(f.file))
			if _, err := fs.Stat(tree, path.Join(at, lock)); err == nil {
				locks = append(locks, path.Join(named, lock))
			}
			entries, err := fs.ReadDir(tree, path.Join(at, path.Dir(archives)))
			if err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return path.Ext(e.Name()) == ".tgz" }) {
				vendored = append(vendored, path.Join(named, archives))
			}
		}
	}
	var out []Carry
	if locks = appset.SortedUnique(locks); len(locks) > 0 {
		out = append(out, Carry{pipeline.Carry{Files: &pipeline.FilePick{Include: locks}},
			"Helm builds a chart whose lock fits its dependencies, and no other"})
	}
	if vendored = appset.SortedUnique(vendored); len(vendored) > 0 {
		out = append(out, Carry{pipeline.Carry{Files: &pipeline.FilePick{Include: vendored}, WhenAbsent: pipeline.WhenAbsentAdd},
			"these archives are what is rendered, whatever version the chart names"})
	}
	return out
}

var globMeta = regexp.MustCompile(`[\\*?\[\]]`)

// escapeGlob makes a glob of a file's name, whose placeholders stay.
func escapeGlob(name string) string { return globMeta.ReplaceAllString(name, `\$0`) }

// generalize writes a wildcard for the key of a list's items where all that are there are carried
// alike: the containers of a Deployment, a chart's dependencies.
func generalize(f *field, chosen, all []*field) []fieldpath.Segment {
	out := slices.Clone(f.segments)
	for i := range out {
		if out[i].Kind != fieldpath.Match || out[i].Value == "{{environment}}" || i == 0 && isDocumentPick(out[i]) {
			continue
		}
		isAlike := func(o *field) bool { return f.isAlikeBut(o, i) }
		isLeftOut := func(o *field) bool { return isAlike(o) && !slices.Contains(chosen, o) }
		if slices.ContainsFunc(chosen, isAlike) && !slices.ContainsFunc(all, isLeftOut) {
			out[i] = fieldpath.Segment{Kind: fieldpath.Any}
		}
	}
	return out
}

// isAlikeBut says that another field is at the same place but for the item of a list that the i-th segment picks.
func (f *field) isAlikeBut(o *field, i int) bool {
	if o.kind != f.kind || o.file != f.file || len(o.segments) != len(f.segments) {
		return false
	}
	return o.segments[i].Kind == fieldpath.Match && o.segments[i].Value != f.segments[i].Value &&
		slices.EqualFunc(o.segments[:i], f.segments[:i], fieldpath.Segment.Equal) && slices.EqualFunc(o.segments[i+1:], f.segments[i+1:],
		fieldpath.Segment.Equal)
}

// fieldpathText writes a path that may have wildcards: of Any it is [*].
func fieldpathText(segments []fieldpath.Segment) string {
	var b strings.Builder
	var run []fieldpath.Segment
	flush := func() {
		if len(run) == 0 {
			return
		}
		text := fieldpath.New(run...).String()
		if b.Len() > 0 && !strings.HasPrefix(text, "[") {
			b.WriteByte('.')
		}
		b.WriteString(text)
		run = nil
	}
	for _, s := range segments {
		if s.Kind == fieldpath.Any {
			flush()
			b.WriteString("[*]")
			continue
		}
		run = append(run, s)
	}
	flush()
	return b.String()
}
