package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Op says what happened to an object or a field.
type Op string

// The kinds of changes. Reordered is a list's: the same items in another order.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Changed   Op = "changed"
	Reordered Op = "reordered"
)

// Changes are what differs between two renderings; none is equality of their
// digests. They marshal to JSON; what is hidden isn't in them at all.
type Changes struct {
	Objects []Change `json:"objects"` // sorted as manifests are
	// LeftOut counts the objects that differ besides, where they were clipped.
	LeftOut map[Op]int `json:"leftOut,omitempty"`
}

// Change is one object that differs.
type Change struct {
	Op           Op      `json:"op"` // not Reordered
	APIVersion   string  `json:"apiVersion"`
	Kind         string  `json:"kind"`
	Namespace    string  `json:"namespace,omitempty"`
	Name         string  `json:"name"`
	PreviousName string  `json:"was,omitempty"`        // its name before, where only the hash of its content in it changed
	Fields       []Field `json:"fields"`               // of an added or removed object all, but its identity
	MoreFields   int     `json:"moreFields,omitempty"` // that differ besides, where they were clipped
}

// Field is one field that differs.
type Field struct {
	// Path is dotted, with items of lists by what tells them apart, e.g.
	// spec.containers[name=web].image, or else by their places.
	Path string `json:"path"`
	Op   Op     `json:"op"`
	// Old and New are as JSON decodes, numbers as json.Number; nil where
	// there was or is none. For Reordered they list what tells the items apart.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
	// Hidden says that the values are secret: then neither is here.
	Hidden bool `json:"hidden,omitempty"`
}

// UnmarshalJSON keeps numbers as they are written.
func (f *Field) UnmarshalJSON(data []byte) error {
	type bare Field
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode((*bare)(f))
}

// Diff says what changed from before to after; nil stands for no objects.
// Objects are the same when group, kind, namespace and name are; ConfigMaps and
// Secrets also when their names differ in nothing but kustomize's hash.
func Diff(before, after *Manifests) *Changes { return compareManifests(before, after, false) }

// DiffNames is Diff where any value may be a secret, as in what a plugin made: all are hidden
// but a few harmless ones, such as images.
func DiffNames(before, after *Manifests) *Changes { return compareManifests(before, after, true) }

func compareManifests(before, after *Manifests, namesOnly bool) *Changes {
	old, recent := byIdentity(before), byIdentity(after)
	for from, to := range pairRenamed(old, recent) {
		old[to] = old[from]
		delete(old, from)
	}
	ids := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(recent))
	slices.SortFunc(ids, identity.compare)
	out := &Changes{Objects: []Change{}}
	for _, id := range slices.Compact(ids) {
		if c, differs := compareObjects(old[id], recent[id], namesOnly); differs {
			out.Objects = append(out.Objects, c)
		}
	}
	return out
}

func byIdentity(m *Manifests) map[identity]*Object {
	out := map[identity]*Object{}
	if m == nil {
		return out
	}
	for i := range m.Objects {
		out[m.Objects[i].toIdentity()] = &m.Objects[i]
	}
	return out
}

// hashedNamePattern is a name with the ten characters that kustomize makes of a hash.
var hashedNamePattern = regexp.MustCompile(`^(.+)-[bcdfghkmt2456789]{10}$`)

// pairRenamed pairs objects that went with objects that came, where the names
// differ in the hash alone and there is only one of each.
func pairRenamed(old, recent map[identity]*Object) map[identity]identity {
	went, came := listUnmatched(old, recent), listUnmatched(recent, old)
	out := map[identity]identity{}
	for base, from := range went {
		if to := came[base]; len(from) == 1 && len(to) == 1 {
			out[from[0]] = to[0]
		}
	}
	return out
}

// listUnmatched lists the hashed objects that the other side doesn't have, by
// their names without the hash.
func listUnmatched(side, other map[identity]*Object) map[identity][]identity {
	out := map[identity][]identity{}
	for id := range side {
		if _, there := other[id]; there || id.group != "" || id.kind != "ConfigMap" && id.kind != "Secret" {
			continue
		}
		if parts := hashedNamePattern.FindStringSubmatch(id.name); parts != nil {
			base := id
			base.name = parts[1]
			out[base] = append(out[base], id)
		}
	}
	return out
}

// compareObjects says how an object changed; nil stands for none.
func compareObjects(old, recent *Object, namesOnly bool) (Change, bool) {
	switch {
	case old == nil:
		return newWholeChange(Added, recent, namesOnly), true
	case recent == nil:
		return newWholeChange(Removed, old, namesOnly), true
	case bytes.Equal(old.JSON, recent.JSON):
		return Change{}, false
	}
	c := newChange(Changed, recent)
	if old.Name != recent.Name {
		c.PreviousName = old.Name
	}
	d := fieldDiffer{}
	d.compareValues("", fieldsOf(old), fieldsOf(recent), newRedactor(recent, namesOnly))
	if c.PreviousName != "" {
		d.fields = slices.DeleteFunc(d.fields, func(f Field) bool { return f.Path == "metadata.name" })
	}
	c.Fields = d.fields
	return c, true
}

func newChange(op Op, o *Object) Change {
	return Change{Op: op, APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Fields: []Field{}}
}

// newWholeChange lists an added or removed object's fields, one each.
func newWholeChange(op Op, o *Object, namesOnly bool) Change {
	c := newChange(op, o)
	fields := fieldsOf(o)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "name")
		delete(metadata, "namespace")
		if len(metadata) == 0 {
			delete(fields, "metadata")
		}
	}
	d := fieldDiffer{}
	for _, key := range sortedKeys(fields) {
		d.recordOneSided(op, appendKey("", key), fields[key], newRedactor(o, namesOnly).enterKey(fields, key))
	}
	c.Fields = d.fields
	return c
}

// fieldsOf decodes an object; what isn't one has no fields.
func fieldsOf(o *Object) map[string]any {
	fields, err := decodeFields(o.JSON)
	if err != nil {
		return map[string]any{}
	}
	return fields
}

// Empty says that nothing differs.
func (c *Changes) Empty() bool { return c == nil || len(c.Objects) == 0 }

// FirstShared names an object and a field of it in which both changes differ, such as
// "Deployment web (spec.replicas)"; empty where they have none in common. nil for other stands
// for changes of anything.
func (c *Changes) FirstShared(other *Changes) string {
	for i := range c.Objects {
		o := &c.Objects[i]
		name := o.Kind + " " + o.Name
		if other == nil {
			return name
		}
		for k := range other.Objects {
			if at := &other.Objects[k]; at.isAbout(o) {
				if field, ok := o.sharedField(at); ok {
					return name + field
				}
			}
		}
	}
	return ""
}

func (c *Change) isAbout(o *Change) bool {
	group := func(version string) string {
		group, _, ok := strings.Cut(version, "/")
		if !ok {
			return ""
		}
		return group
	}
	isOfName := c.Name == o.Name || c.PreviousName == o.Name || c.Name == o.PreviousName
	return isOfName && c.Kind == o.Kind && c.Namespace == o.Namespace && group(c.APIVersion) == group(o.APIVersion)
}

// sharedField is a field that both change, or that is within one that the other changes; of
// an object that comes or goes it is all of it.
func (c *Change) sharedField(o *Change) (string, bool) {
	if c.Op != Changed || o.Op != Changed {
		return "", true
	}
	within := func(path, of string) bool {
		rest, ok := strings.CutPrefix(path, of)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	for _, f := range c.Fields {
		for _, g := range o.Fields {
			if within(f.Path, g.Path) || within(g.Path, f.Path) {
				return " (" + f.Path + ")", true
			}
		}
	}
	return "", false
}

// Summary counts the objects, e.g. "1 added, 2 changed"; "no changes" for none.
func (c *Changes) Summary() string {
	if c.Empty() {
		return "no changes"
	}
	count := map[Op]int{}
	maps.Copy(count, c.LeftOut)
	for _, o := range c.Objects {
		count[o.Op]++
	}
	var parts []string
	for _, op := range []Op{Added, Changed, Removed} {
		if count[op] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[op], op))
		}
	}
	return strings.Join(parts, ", ")
}
