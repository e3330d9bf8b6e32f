package isolation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// Ineffective is a field that an edit changes without changing what of a target's manifests it should.
type Ineffective struct {
	Target   string
	Change   fieldedit.Change
	Override Override // what is known of why; the zero value: nothing
}

// ListIneffective lists the changes of an edit that must come to the targets which read them and
// don't: images, chart versions and fields under a pod template. Nothing is said of targets that
// aren't rendered. without tells what the edit does without one of its changes, where that has to
// be known; nil, or nothing of a target: nobody knows.
func ListIneffective(at Trees, effects []Effect, changes []fieldedit.Change, without func(*fieldedit.Change) []Effect) []Ineffective {
	var found []ineffectiveIn
	reached := map[string][]*Effect{} // by the field: where it has an effect
	for i := range effects {
		e := &effects[i]
		if e.Changes == nil || e.Nothing { // where nothing runs, nothing else does
			continue
		}
		own := slices.DeleteFunc(slices.Clone(changes), func(c fieldedit.Change) bool { return !e.hasRead(c.File) })
		for k := range own {
			c := &own[k]
			if !e.mustShow(c) {
				continue
			}
			if e.shows(c, own, false) {
				reached[fieldKey(c)] = append(reached[fieldKey(c)], e)
			}
			if one, is := e.findIneffective(at, c, own, without); is {
				found = append(found, one)
			}
		}
	}
	// A file may be for several targets of which some have no use for the field. That is so where
	// another one that is built of something else shows it.
	isUseless := func(f *ineffectiveIn) bool {
		isOther := func(e *Effect) bool { return !sameBuild(e, f.in) }
		return !f.isExplained && slices.ContainsFunc(reached[fieldKey(&f.Change)], isOther)
	}
	var out []Ineffective
	for i := range found {
		if !isUseless(&found[i]) {
			out = append(out, found[i].Ineffective)
		}
	}
	return out
}

// ineffectiveIn is a field that doesn't come to a target.
type ineffectiveIn struct {
	Ineffective
	in          *Effect
	isExplained bool
}

// findIneffective says that a change, which must show in the target's manifests, doesn't come to it.
func (e *Effect) findIneffective(at Trees, c *fieldedit.Change, own []fieldedit.Change,
	without func(*fieldedit.Change) []Effect) (ineffectiveIn, bool) {
	if e.shows(c, own, false) {
		found, is := e.findLiveOverride(at, c, own)
		if !is {
			found, is = e.findIgnoredOverride(at, c, own)
		}
		if is || !isAmbiguous(c, own) {
			return ineffectiveIn{found, e, true}, is
		}
	}
	override, overridden := FindOverride(at, &e.Target, c)
	out := ineffectiveIn{Ineffective{e.Target.Name, *c, override}, e, overridden && !e.shows(c, own, true)}
	// Else it has the change otherwise.
	hasNothing := e.Changes.Empty() || !overridden && e.isSame(c, own, without)
	return out, out.isExplained || hasNothing
}

// findLiveOverride finds what keeps a change from showing in a target that shows it as Git has it: what only
// its live Application has.
func (e *Effect) findLiveOverride(at Trees, c *fieldedit.Change, own []fieldedit.Change) (Ineffective, bool) {
	if e.Run == nil || e.Run.Changes == nil || e.Run.shows(c, own, true) {
		return Ineffective{}, false
	}
	found := Ineffective{Target: e.Target.Name, Change: *c}
	var known bool
	if found.Override, known = FindOverride(at, &e.Run.Target, c); !known {
		if !e.Run.Changes.Empty() {
			return Ineffective{}, false // it has them otherwise
		}
		found.Override = Override{What: "the live Application " + e.Target.Name + ", which has other options than in Git,"}
	}
	return found, true
}

// isSame says that the target's manifests are the same without a change: the others make all that differs. One
// that names an image together with another which shows, as a tag beside a digest, is never so.
func (e *Effect) isSame(c *fieldedit.Change, own []fieldedit.Change, without func(*fieldedit.Change) []Effect) bool {
	if without == nil || slices.ContainsFunc(own, func(o fieldedit.Change) bool { return nameOneImage(c, &o) && e.shows(&o, own, false) }) {
		return false
	}
	for _, o := range without(c) {
		if o.Target.ID() == e.Target.ID() {
			return o.Changes != nil && reflect.DeepEqual(o.Changes, e.Changes)
		}
	}
	return false
}

// nameOneImage says that two changes are of one image: fields of one mapping, or of one entry of a kustomization.
func nameOneImage(a, b *fieldedit.Change) bool {
	if a.File != b.File || a.Path == b.Path {
		return false
	}
	split := func(p string) (parent string, isImage bool) {
		at := strings.LastIndexByte(p, '.')
		return p[:max(0, at)], isImageKey(p[at+1:]) || p[at+1:] == "newTag"
	}
	ofA, isA := split(a.Path)
	ofB, isB := split(b.Path)
	return isA && isB && ofA == ofB
}

// Unrendered are the targets of which it can't be told whether changes show there, although they must.
func Unrendered(effects []Effect, changes []fieldedit.Change) []Effect {
	var out []Effect
	for i := range effects {
		e := &effects[i]
		if e.Changes == nil && slices.ContainsFunc(changes, func(c fieldedit.Change) bool { return e.hasRead(c.File) && e.mustShow(&c) }) {
			out = append(out, *e)
		}
	}
	return out
}

// MayBeOverridden says that something known overrides a change that must show in the manifests of a
// target which reads some files. It renders nothing, and doesn't find out whether the change shows.
func MayBeOverridden(at Trees, t *appset.Target, files []string, changes []fieldedit.Change) bool {
	e := Effect{Target: *t, Files: files}
	return slices.ContainsFunc(changes, func(c fieldedit.Change) bool {
		if !e.hasRead(c.File) || !e.mustShow(&c) {
			return false
		}
		_, overridden := FindOverride(at, t, &c)
		return overridden
	})
}

func fieldKey(c *fieldedit.Change) string { return c.File + "\x00" + c.Path }

// sameBuild says that two targets are built of the same folders and charts.
func sameBuild(a, b *Effect) bool {
	build := func(e *Effect) (out []string) {
		for _, s := range e.Target.Sources {
			if s.Path != "" || s.Chart != "" {
				out = append(out, s.RepoURL+"\x00"+s.Path+"\x00"+s.Chart)
			}
		}
		return out
	}
	return slices.Equal(build(a), build(b))
}

// hasRead says that the target read a file of the edit, or is generated from it.
func (e *Effect) hasRead(file string) bool {
	return slices.Contains(e.Files, file) || e.Target.IsGeneratedFrom(file)
}

// mustShow says that a change must show in the target's manifests.
func (e *Effect) mustShow(c *fieldedit.Change) bool {
	switch c.Kind {
	case fieldedit.KindImage:
		return true
	case fieldedit.KindYAML, fieldedit.KindJSON:
	default:
		return false
	}
	keys := pathKeys(c.Path)
	if len(keys) == 0 {
		return false
	}
	last := keys[len(keys)-1]
	if isImageKey(last) || last == "targetRevision" || last == "chartVersion" {
		return true
	}
	if last == "version" && slices.ContainsFunc(keys, func(k string) bool { return k == "dependencies" || k == "helmCharts" }) {
		return true
	}
	return !e.Target.IsGeneratedFrom(c.File) && isInPodTemplate(keys) // an ApplicationSet has a template, too
}

// isImageKey says that a key's value is an image or a part of its name, by what it is called.
func isImageKey(key string) bool {
	switch key {
	case "image", "tag", "digest", "newName":
		return true
	}
	return slices.ContainsFunc([]string{"Image", "Tag", "Digest"}, func(end string) bool { return strings.HasSuffix(key, end) })
}

// isInPodTemplate says that keys lead below a pod template, or to a pod's containers.
func isInPodTemplate(keys []string) bool {
	for i, k := range keys {
		if k == "containers" || k == "initContainers" {
			return true
		}
		if k == "template" && i > 0 && keys[i-1] == "spec" && i+1 < len(keys) {
			return true
		}
	}
	return false
}

// pathKeys are the keys of a path; none where it isn't understood. Keys with dots are taken apart: people
// write image.tag as one.
func pathKeys(path string) []string {
	p, err := fieldpath.Parse(path)
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range p.Segments() {
		if s.Kind == fieldpath.Key || s.Kind == fieldpath.Token {
			out = append(out, strings.Split(s.Key, ".")...)
		}
	}
	return out
}

// shows says that the new value of a change is to be seen in what changes in the manifests. onlyImages
// looks at fields that have images alone where another change brings the same value.
func (e *Effect) shows(c *fieldedit.Change, own []fieldedit.Change, onlyImages bool) bool {
	if e.Changes.Empty() {
		return false
	}
	if c.Removed || c.New == "" || len(e.Changes.LeftOut) > 0 {
		return true
	}
	onlyImages = onlyImages && isAmbiguous(c, own)
	for i := range e.Changes.Objects {
		o := &e.Changes.Objects[i]
		if o.MoreFields > 0 || slices.ContainsFunc(o.Fields, func(f render.Field) bool { return showsValue(f, c, onlyImages) }) {
			return true
		}
	}
	return false
}

// isAmbiguous says that another change of the same edit brings the same value.
func isAmbiguous(c *fieldedit.Change, own []fieldedit.Change) bool {
	return slices.ContainsFunc(own, func(o fieldedit.Change) bool {
		return (o.File != c.File || o.Path != c.Path) && !o.Removed && strings.Contains(o.New, c.New)
	})
}

// showsValue says that a field's new value has that of a change, or is hidden.
func showsValue(f render.Field, c *fieldedit.Change, onlyImages bool) bool {
	if onlyImages && !strings.HasSuffix(f.Path, "image") {
		return false
	}
	return f.Hidden || strings.Contains(valueText(f.New), c.New) && !strings.Contains(valueText(f.Old), c.New)
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
