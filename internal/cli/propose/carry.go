package propose

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
	"github.com/liftlock/liftlock/internal/wording"
)

// Carry is one entry of what a promotion moves, with what speaks for it.
type Carry struct {
	pipeline.Carry
	Evidence string
}

// Carried is what was inferred about the fields.
type Carried struct {
	Entries []Carry
	// Alone are versions that one environment alone has, which nothing moves to or from.
	Alone []string
	// Seen is that some carried value was the same in several environments.
	Seen bool
	// LeftOut is how many environments of components nothing is promoted into: those that no field of the entries is
	// found in, or one with several values.
	LeftOut int
	order   orderEvidence
}

// IsBetterThan says that more goes from one environment to another than by what was found with other templates.
func (c *Carried) IsBetterThan(o *Carried) bool {
	return c.Seen && (!o.Seen || c.LeftOut == 0 && o.LeftOut > 0)
}

// versionKey are the keys by which people call what a release changes.
var versionKey = regexp.MustCompile(`(?i)^(new)?(tag|version|revision|digest|image|release|build|sha|commit)$|(tag|version|revision|digest|image|release)$`)

// otherVersions are keys that only look so.
var otherVersions = []string{"apiversion", "resourceversion", "kubeversion", "argocdversion", "schemaversion"}

// isRevision says that a field is the version that Applications are made from, whatever its key is: in every
// environment the revision of one of their sources is its value, and a number is in it.
func (f *field) isRevision(s *Source) bool {
	if f.isNamed() || f.namesEnvironment() {
		return false
	}
	return !slices.ContainsFunc(f.uses, func(u *use) bool {
		e := s.Components[u.component][u.environment]
		return e == nil || !hasDigit(u.value) || !slices.ContainsFunc(e.Targets, func(t appset.Target) bool {
			return slices.ContainsFunc(t.Sources, func(o appset.Source) bool { return o.TargetRevision == u.value })
		})
	})
}

func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }

// isVersion says that a field is one that releases usually change, by its key and its value.
func (f *field) isVersion(tracked string) bool {
	if f.namesEnvironment() {
		return false
	}
	if f.kind == fieldedit.KindImage {
		return true
	}
	if f.kind == fieldedit.KindRef {
		return !f.isWord()
	}
	if !versionKey.MatchString(f.key) || slices.Contains(otherVersions, strings.ToLower(f.key)) {
		return false
	}
	if path.Base(f.file) == "Chart.yaml" && len(f.segments) == 1 {
		return false // the chart's own, which nothing deploys
	}
	for _, u := range f.uses {
		switch v := u.value; {
		case v == "", v == "true", v == "false", v == tracked:
			return false
		case strings.HasSuffix(strings.ToLower(f.key), "image") && !strings.ContainsAny(path.Base(v), ":@"):
			return false // where an image is, and not which
		}
	}
	return !f.isWord()
}

// isWord says that a field has the same word everywhere, as one that follows the latest does: that is no version.
func (f *field) isWord() bool {
	first := f.uses[0].value
	return !strings.ContainsFunc(first, unicode.IsDigit) && !slices.ContainsFunc(f.uses, func(u *use) bool { return u.value != first })
}

// movingRevisions are what people call a revision that is another one tomorrow.
var movingRevisions = []string{"HEAD", "main", "master", "trunk", "develop"}

// counts are keys that say how much of something an environment has.
var counts = regexp.MustCompile(`(?i)(replicas|replicacount)$`)

// isHarmful says that a promotion must not move a field, whatever speaks for it: Applications are told apart by
// its value or by a template that it is, it is a branch, or how much an environment has, or its item
// of a list is known by its place alone, so that it is another one in another environment.
func (f *field) isHarmful(s *Source, identities map[string]string) bool {
	if counts.MatchString(f.key) || isAtPlace(f.segments) || f.saysWhatItIs() {
		return true
	}
	return f.kind != fieldedit.KindImage && slices.ContainsFunc(f.uses, func(u *use) bool {
		follows := slices.Contains(movingRevisions, u.value) || u.value == s.Tracked || u.value == s.Branch(u.environment)
		return follows || identities[u.value] != "" || strings.Contains(u.value, "{{")
	})
}

// saysWhatItIs says that a field is what an object is, or how Argo CD syncs it: moved on, it would be another object, of
// another schema, or synced otherwise.
func (f *field) saysWhatItIs() bool {
	if slices.Contains(otherVersions, strings.ToLower(f.key)) || f.key == "kind" {
		return true
	}
	n := len(f.segments)
	isName := n > 1 && f.segments[n-2].Key == "metadata" && (f.key == "name" || f.key == "namespace")
	isSync := slices.ContainsFunc(f.segments, func(s fieldpath.Segment) bool { return s.Key == "syncPolicy" })
	return isName || isSync
}

// structure are lists of an ApplicationSet's own, in which a place is as good as a name.
var structure = []string{"generators", "sources"}

// isAtPlace says that a path goes through an item of a list that only its place tells.
func isAtPlace(segments []fieldpath.Segment) bool {
	for i, s := range segments {
		if s.Kind == fieldpath.Index && (i == 0 || !slices.Contains(structure, segments[i-1].Key)) {
			return true
		}
	}
	return false
}

// namesEnvironment says that a value is its environment's name, as tags that follow an
// environment are: moved on, it would have one environment run what another one's is.
func (f *field) namesEnvironment() bool {
	return slices.ContainsFunc(f.uses, func(u *use) bool { return u.value == u.environment })
}

// evidence is what the uses of a field say about whether releases go through it.
type evidence struct {
	shared  int    // values that several environments of one component had
	moved   int    // of those, the ones that came after another value
	example string // of one of them
}

func (f *field) weigh() evidence {
	var out evidence
	type key struct{ component, value string }
	envs, moved := map[key][]string{}, map[key]int{}
	var order []key
	for _, u := range f.uses {
		seen := map[string]bool{}
		for i, v := range u.values {
			k := key{u.component, v.value}
			if i > 0 {
				moved[k]++
			}
			if seen[v.value] {
				continue
			}
			seen[v.value] = true
			if envs[k] == nil {
				order = append(order, k)
			}
			if !slices.Contains(envs[k], u.environment) {
				envs[k] = append(envs[k], u.environment)
			}
		}
	}
	for _, k := range order {
		if len(envs[k]) < 2 {
			continue
		}
		out.shared++
		if moved[k] > 1 {
			out.moved++
		}
		if out.example == "" || moved[k] > 1 && out.moved == 1 {
			slices.Sort(envs[k])
			out.example = fmt.Sprintf("%s of %s was %s in %s", describe(f), k.component, quoteValue(k.value), wording.JoinFew(envs[k], 3))
		}
	}
	return out
}

func describe(f *field) string {
	switch f.kind {
	case fieldedit.KindImage:
		return "image " + f.path
	case fieldedit.KindRef:
		return "the ref of " + f.path
	}
	return f.file + ": " + f.path
}

// quoteValue is a value for a comment, in one short line.
func quoteValue(v string) string { return wording.ClipLine(v, 60) }

// FindCarry infers what a promotion moves: the fields by whose keys people call versions where
// several environments had the same values, and all others that were seen to go from one
// environment to another. Where no values were the same, those that are called versions.
func FindCarry(ctx context.Context, s *Source) (*Carried, error) {
	fields, alone, err := s.findFields(ctx)
	if err != nil {
		return nil, err
	}
	var chosen, named []*field
	evidences, identities := map[*field]evidence{}, history.Identities(s.Components)
	for _, f := range fields {
		if f.isHarmful(s, identities) {
			continue
		}
		e := f.weigh()
		evidences[f] = e
		switch version := f.isVersion(s.Tracked) || f.isRevision(s); {
		case version && e.shared > 0, e.moved > 0 && !f.namesEnvironment():
			chosen = append(chosen, f)
		case version:
			named = append(named, f)
		}
	}
	chosen = append(chosen, otherImages(chosen, named)...)
	chosen = append(chosen, refsOfImages(chosen, named)...)
	if len(chosen) == 0 {
		chosen = named
	}
	out := &Carried{order: newOrderEvidence(chosen), Seen: slices.ContainsFunc(chosen, func(f *field) bool { return evidences[f].shared > 0 }), LeftOut: s.countLeftOut(chosen)}
	// Of a component in one environment nothing is left out: once it is in another one, it moves as well.
	isOfSeveral := func(u *use) bool { return len(s.Components[u.component]) > 1 }
	alone = slices.DeleteFunc(alone, func(f *field) bool { return !slices.ContainsFunc(f.uses, isOfSeveral) })
	for _, f := range alone {
		if u := f.uses[slices.IndexFunc(f.uses, isOfSeveral)]; f.kind != fieldedit.KindRef && !f.isOfManifest() && !f.isHarmful(s, identities) && f.isVersion(s.Tracked) {
			out.Alone = append(out.Alone, fmt.Sprintf("%s of %s in %s", describe(f), u.component, u.environment))
		}
	}
	all := slices.Concat(fields, alone)
	out.Entries = slices.Concat(imageEntries(chosen, all, evidences), refEntries(chosen, all, evidences), pathEntries(chosen, all, evidences), s.chartEntries(chosen))
	return out, nil
}

// isOfManifest says that a field is in an ApplicationSet or Application that is called after its component.
func (f *field) isOfManifest() bool { return f.isComponents && f.segments[0].Key == "spec" }

// countLeftOut is how many environments of components none of some fields is found in, or one with several values.
func (s *Source) countLeftOut(chosen []*field) int {
	type place struct{ component, environment string }
	found, mixed := map[place]bool{}, map[place]bool{}
	for _, f := range chosen {
		values := map[place]string{}
		for _, u := range f.uses {
			at := place{u.component, u.environment}
			if value, ok := values[at]; ok && value != u.value {
				mixed[at] = true
			}
			found[at], values[at] = true, u.value
		}
	}
	out := len(mixed)
	for component, environments := range s.Components {
		for environment := range environments {
			if !found[place{component, environment}] {
				out++
			}
		}
	}
	return out
}

// otherImages are the images that have never been the same in two environments, where others
// have: those of a component whose first release is still on its way.
func otherImages(chosen, named []*field) []*field {
	isImage := func(f *field) bool { return f.kind == fieldedit.KindImage }
	if !slices.ContainsFunc(chosen, isImage) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(named), func(f *field) bool { return !isImage(f) })
}

// refsOfImages are the refs that one commit changed together with a carried image.
func refsOfImages(chosen, named []*field) []*field {
	return slices.DeleteFunc(slices.Clone(named), func(f *field) bool {
		return f.kind != fieldedit.KindRef || imageChangedWith(f, chosen) == nil
	})
}

// imageChangedWith is a carried image that a commit changed together with a field, in one environment
// of a component; nil without one.
func imageChangedWith(f *field, chosen []*field) *field {
	for _, image := range chosen {
		if image.kind != fieldedit.KindImage {
			continue
		}
		for _, u := range f.uses {
			for _, v := range image.uses {
				if u.component == v.component && u.environment == v.environment && u.changedWith(v) {
					return image
				}
			}
		}
	}
	return nil
}

// changedWith says that a commit changed both uses.
func (u *use) changedWith(o *use) bool {
	for i := 1; i < len(u.values); i++ {
		if j := slices.IndexFunc(o.values, func(v valueAt) bool { return v.at == u.values[i].at }); j > 0 {
			return true
		}
	}
	return false
}

// summarize says what speaks for some fields together.
func summarize(fields []*field, evidences map[*field]evidence) string {
	shared, example := 0, ""
	for _, f := range fields {
		e := evidences[f]
		shared += e.shared
		example = cmp.Or(example, e.example)
	}
	if shared == 0 {
		return "no two environments have had the same value yet: taken because of the name"
	}
	return fmt.Sprintf("%s that several environments had, such as: %s", wording.Count(shared, "value"), example)
}

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
	for _, at := range slices.SortedFunc(maps.Keys(paths), func(a, b file) int { return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(a.name, b.name)) }) {
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
		out = append(out, Carry{pipeline.Carry{Files: &pipeline.FilePick{Include: locks}}, "Helm builds a chart whose lock fits its dependencies, and no other"})
	}
	if vendored = appset.SortedUnique(vendored); len(vendored) > 0 {
		out = append(out, Carry{pipeline.Carry{Files: &pipeline.FilePick{Include: vendored}, WhenAbsent: pipeline.WhenAbsentAdd}, "these archives are what is rendered, whatever version the chart names"})
	}
	return out
}

var globMeta = regexp.MustCompile(`[\\*?\[\]]`)

// escapeGlob makes a glob of a file's name, whose placeholders stay.
func escapeGlob(name string) string { return globMeta.ReplaceAllString(name, `\$0`) }

// generalize writes a wildcard for what picks a list's items where several are carried alike, and none of those that are
// there isn't: the containers of a Deployment, a chart's dependencies.
func generalize(f *field, chosen, all []*field) []fieldpath.Segment {
	out := slices.Clone(f.segments)
	for i := range out {
		if out[i].Kind != fieldpath.Match || out[i].Value == "{{environment}}" {
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
		slices.EqualFunc(o.segments[:i], f.segments[:i], fieldpath.Segment.Equal) && slices.EqualFunc(o.segments[i+1:], f.segments[i+1:], fieldpath.Segment.Equal)
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
