package propose

import (
	"cmp"
	"context"
	"fmt"
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
var versionKey = regexp.MustCompile(
	`(?i)^(new)?(tag|version|revision|digest|image|release|build|sha|commit)$|(tag|version|revision|digest|image|release)$`)

// otherVersions are keys that only look so.
var otherVersions = []string{"apiversion", "resourceversion", "kubeversion", "argocdversion", "schemaversion"}

// isRevision says that a field is the version that Applications are made from, whatever its key is.
// In every environment the revision of one of their sources is its value, and a number is in it.
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

// isHarmful says that a promotion must not move a field, whatever speaks for it. Its value, or a
// template that it is, tells Applications apart. It is a branch, or how much an environment has. Or
// its item of a list is known by its place alone, so that another environment has another one
// there.
func (f *field) isHarmful(s *Source, identities map[string]string) bool {
	if counts.MatchString(f.key) || isAtPlace(f.segments) || f.saysWhatItIs() {
		return true
	}
	return f.kind != fieldedit.KindImage && slices.ContainsFunc(f.uses, func(u *use) bool {
		follows := slices.Contains(movingRevisions, u.value) || u.value == s.Tracked || u.value == s.Branch(u.environment)
		return follows || identities[u.value] != "" || strings.Contains(u.value, "{{")
	})
}

// saysWhatItIs says that a field tells what an object is, or how Argo CD syncs it. If it moved, the
// object would be another one, or of another schema, or synced otherwise.
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

// FindCarry infers what a promotion moves. It takes the fields with usual keys of versions where
// several environments had the same values. It also takes all others that were seen to go from one
// environment to another. Where no values were the same, it takes those that are called versions.
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
	out := &Carried{order: newOrderEvidence(chosen), Seen: slices.ContainsFunc(chosen,
		func(f *field) bool { return evidences[f].shared > 0 }), LeftOut: s.countLeftOut(chosen)}
	// A component in one environment keeps all its fields: once it is in another one, it moves as
	// well.
	isOfSeveral := func(u *use) bool { return len(s.Components[u.component]) > 1 }
	alone = slices.DeleteFunc(alone, func(f *field) bool { return !slices.ContainsFunc(f.uses, isOfSeveral) })
	for _, f := range alone {
		if u := f.uses[slices.IndexFunc(f.uses, isOfSeveral)]; f.kind != fieldedit.KindRef && !f.isOfManifest() &&
			!f.isHarmful(s, identities) && f.isVersion(s.Tracked) {
			out.Alone = append(out.Alone, fmt.Sprintf("%s of %s in %s", describe(f), u.component, u.environment))
		}
	}
	all := slices.Concat(fields, alone)
	out.Entries = slices.Concat(imageEntries(chosen, all, evidences), refEntries(chosen, all, evidences),
		pathEntries(chosen, all, evidences), s.chartEntries(chosen))
	return out, nil
}

// isOfManifest says that a field is in an ApplicationSet or Application that the component's name alone picks.
func (f *field) isOfManifest() bool {
	rest := f.segments
	if f.isComponents && isDocumentPick(rest[0]) {
		rest = rest[1:]
	}
	return f.isComponents && len(rest) > 0 && rest[0].Key == "spec"
}

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
