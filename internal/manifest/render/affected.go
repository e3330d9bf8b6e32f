package render

import (
	"bytes"
	"strings"
)

// Ref names an object. Namespace is empty where its manifest names none.
type Ref struct{ Group, Kind, Namespace, Name string }

func (o *Object) ref() Ref {
	id := o.identity()
	return Ref{Group: id.group, Kind: id.kind, Namespace: id.namespace, Name: id.name}
}

// Affected lists the objects that changes may make unwell: those that differ,
// and of the manifests after the changes those that use one of them: their pods
// read a ConfigMap, a Secret or a claim or run as a service account, or they run
// or scale a workload.
func (c *Changes) Affected(after *Manifests) []Ref {
	if c.Empty() {
		return nil
	}
	var out []Ref
	known := map[Ref]bool{}
	add := func(r Ref) {
		if !known[r] {
			known[r] = true
			out = append(out, r)
		}
	}
	for i := range c.Objects {
		o := Object{APIVersion: c.Objects[i].APIVersion, Kind: c.Objects[i].Kind, Namespace: c.Objects[i].Namespace, Name: c.Objects[i].Name}
		add(o.ref())
	}
	for i := 0; after != nil && i < len(out); i++ {
		used := out[i]
		quoted := []byte(`"` + used.Name + `"`) // names have nothing to escape; one that has is used by none
		for k := range after.Objects {
			o := &after.Objects[k]
			if r := o.ref(); o.Namespace == used.Namespace && !known[r] && bytes.Contains(o.JSON, quoted) && uses(fieldsOf(o), used) {
				add(r)
			}
		}
	}
	return out
}

// references are the fields by which pods, and what makes them, name what they
// use: the kind, and the key under which its name is.
var references = map[string]struct{ kind, name string }{
	"configMapRef": {"ConfigMap", "name"}, "configMapKeyRef": {"ConfigMap", "name"}, "configMap": {"ConfigMap", "name"},
	"secretRef": {"Secret", "name"}, "secretKeyRef": {"Secret", "name"}, "secret": {"Secret", "secretName"},
	"persistentVolumeClaim": {"PersistentVolumeClaim", "claimName"},
	"scaleTargetRef":        {"", "name"}, "workloadRef": {"", "name"}, // they say the kind themselves
}

// uses says whether anything in a value names an object.
func uses(value any, used Ref) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if uses(item, used) {
				return true
			}
		}
	case map[string]any:
		for key, item := range value {
			if refers(key, item, used) || uses(item, used) {
				return true
			}
		}
	}
	return false
}

// refers says whether a field is a reference to an object.
func refers(key string, value any, used Ref) bool {
	if key == "serviceAccountName" {
		return used.Kind == "ServiceAccount" && value == used.Name
	}
	ref, ok := references[key]
	to, isMap := value.(map[string]any)
	if !ok || !isMap {
		return false
	}
	kind, name := ref.kind, to[ref.name]
	if kind == "" {
		kind, _ = to["kind"].(string)
		version, _ := to["apiVersion"].(string)
		if group, _, found := strings.Cut(version, "/"); found && group != used.Group {
			return false
		}
	}
	if key == "secret" && name == nil {
		name = to["name"] // a projected volume's
	}
	return kind == used.Kind && name == used.Name
}
