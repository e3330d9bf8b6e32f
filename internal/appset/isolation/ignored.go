package isolation

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/wording"
)

// Ignored is what an edit changes in a target's manifests and Argo CD ignores: it says Synced whether that
// arrives or not.
type Ignored struct {
	Fields []IgnoredField
	Left   *render.Changes // what it doesn't ignore
	// Respected says that what is ignored isn't synced either.
	Respected bool
}

// IgnoredField is a field of an object that differs.
type IgnoredField struct {
	Object string // its kind and name
	Path   string // empty: any that Managers own, which only the cluster knows
	// Managers are the field managers whose fields are ignored.
	Managers []string
}

// maxIgnoredNames bounds the fields that a text names.
const maxIgnoredNames = 5

// Describe names what is ignored; "" where nothing is.
func (i *Ignored) Describe() string {
	if i == nil {
		return ""
	}
	var names []string
	for _, f := range i.Fields {
		what := f.Path
		if what == "" {
			what = "what " + strings.Join(f.Managers, " and ") + " manages"
		}
		names = append(names, what+" of "+f.Object)
	}
	return wording.JoinFew(names, maxIgnoredNames)
}

// ListIgnored lists for some targets, by their ID, what an edit changes that the rules of their
// Argo CDs ignore. Targets that aren't rendered aren't listed.
func (r *Renderer) ListIgnored(ctx context.Context, e *Edit, rules map[string]*appset.IgnoreRules) (map[string]*Ignored, error) {
	var pairs []targetPair
	for _, p := range e.pairTargets() {
		if p.before != nil && p.after != nil && rules[p.id] != nil {
			pairs = append(pairs, p)
		}
	}
	out := map[string]*Ignored{}
	for some := range slices.Chunk(pairs, maxRenderedAtOnce) {
		rendered, err := r.renderPairs(ctx, e, some)
		if err != nil {
			return nil, err
		}
		for i, p := range some {
			if rendered[i].failed.why != "" {
				continue
			}
			found, err := findIgnored(rules[p.id], p.after.DestNS, rendered[i].before, rendered[i].after)
			if err != nil {
				return nil, fmt.Errorf("look for what is ignored of %s: %w", p.targetName(), err)
			}
			if len(found.Fields) > 0 {
				out[p.id] = found
			}
		}
	}
	return out, nil
}

func findIgnored(rules *appset.IgnoreRules, namespace string, before, after *render.Manifests) (*Ignored, error) {
	all := render.Diff(before, after)
	out := &Ignored{}
	differ := map[string]bool{}
	for i := range all.Objects {
		o := &all.Objects[i]
		differ[o.Kind+" "+o.Name] = true
		if o.PreviousName != "" {
			differ[o.Kind+" "+o.PreviousName] = true
		}
		if managers := rules.Managers(o.APIVersion, o.Kind, cmp.Or(o.Namespace, namespace), o.Name); len(managers) > 0 &&
			o.Op == render.Changed {
			out.Fields = append(out.Fields, IgnoredField{Object: o.Kind + " " + o.Name, Managers: managers})
		}
	}
	var sides [2]*render.Manifests
	for i, m := range []*render.Manifests{before, after} {
		sides[i] = &render.Manifests{}
		if m == nil {
			continue
		}
		for _, o := range m.Objects {
			if !differ[o.Kind+" "+o.Name] {
				continue
			}
			stripped, err := rules.Strip(o.JSON, namespace)
			if err != nil {
				return nil, err
			}
			o.JSON = stripped
			sides[i].Objects = append(sides[i].Objects, o)
		}
	}
	out.Left = render.Diff(sides[0], sides[1])
	left := map[objectKey][]render.Field{}
	for i := range out.Left.Objects {
		o := &out.Left.Objects[i]
		left[keyOfObject(o)] = o.Fields
	}
	for i := range all.Objects {
		o := &all.Objects[i]
		if o.Op != render.Changed {
			continue
		}
		for _, f := range o.Fields {
			if !slices.ContainsFunc(left[keyOfObject(o)], func(l render.Field) bool { return isSameField(&l, &f) }) {
				out.Fields = append(out.Fields, IgnoredField{Object: o.Kind + " " + o.Name, Path: f.Path})
			}
		}
	}
	return out, nil
}

// objectKey tells a manifest's objects apart.
type objectKey struct{ apiVersion, kind, namespace, name string }

func keyOfObject(o *render.Change) objectKey {
	return objectKey{o.APIVersion, o.Kind, o.Namespace, o.Name}
}

// isSameField says that a field of an object is one of it without what is ignored, where places in lists may be others.
func isSameField(left, f *render.Field) bool {
	if left.Path == f.Path {
		return true
	}
	inList := strings.Contains(f.Path, "[") && !strings.Contains(f.Path, "=")
	return inList && reflect.DeepEqual(left.Old, f.Old) && reflect.DeepEqual(left.New, f.New)
}

// findIgnoredOverride says that a change doesn't come to a target because what differs by it is ignored, and what is
// ignored isn't synced.
func (e *Effect) findIgnoredOverride(at Trees, c *fieldedit.Change, own []fieldedit.Change) (Ineffective, bool) {
	if e.Ignored == nil || !e.Ignored.Respected || len(e.Ignored.Fields) == 0 {
		return Ineffective{}, false
	}
	if left := (&Effect{Changes: e.Ignored.Left}); left.shows(c, own, true) {
		return Ineffective{}, false
	}
	override := LocateIgnored(at, &e.Target)
	override.What += ", with the sync option RespectIgnoreDifferences,"
	return Ineffective{Target: e.Target.Name, Change: *c, Override: override}, true
}

// LocateIgnored is where a target's Application says what it ignores.
func LocateIgnored(at Trees, t *appset.Target) Override {
	return locateInSet(at.Sets, t, "ignoreDifferences", `ignoreDifferences['"]?\s*:`)
}
