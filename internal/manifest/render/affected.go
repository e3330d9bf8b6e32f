package render

import (
	"bytes"
	"strings"
)

// ObjectRef names an object. Namespace is empty where its manifest names none.
type ObjectRef struct{ Group, Kind, Namespace, Name string }

func (o *Object) toRef() ObjectRef {
	id := o.toIdentity()
	return ObjectRef{Group: id.group, Kind: id.kind, Namespace: id.namespace, Name: id.name}
}

// Affected lists the objects that changes may make unhealthy: those that differ, and those in the
// manifests after the changes that use one of them. Their pods read a ConfigMap, a Secret or a
// claim or run as a service account, or they run or scale a workload.
func (c *Changes) Affected(after *Manifests) []ObjectRef {
	if c.Empty() {
		return nil
	}
	var out []ObjectRef
	known := map[ObjectRef]bool{}
	add := func(r ObjectRef) {
		if !known[r] {
			known[r] = true
			out = append(out, r)
		}
	}
	for i := range c.Objects {
		o := Object{APIVersion: c.Objects[i].APIVersion, Kind: c.Objects[i].Kind, Namespace: c.Objects[i].Namespace,
			Name: c.Objects[i].Name}
		add(o.toRef())
	}
	for i := 0; after != nil && i < len(out); i++ {
		used := out[i]
		quoted := []byte(`"` + used.Name + `"`) // names have nothing to escape; one that has is used by none
		for k := range after.Objects {
			o := &after.Objects[k]
			if r := o.toRef(); o.Namespace == used.Namespace && !known[r] && bytes.Contains(o.JSON, quoted) &&
				usesObject(fieldsOf(o), used) {
				add(r)
			}
		}
	}
	return out
}

// referenceFields are the fields by which pods, and what makes them, name what they
// use: the kind, and the key under which its name is.
var referenceFields = map[string]struct{ kind, name string }{
	"configMapRef": {"ConfigMap", "name"}, "configMapKeyRef": {"ConfigMap", "name"}, "configMap": {"ConfigMap", "name"},
	"secretRef": {"Secret", "name"}, "secretKeyRef": {"Secret", "name"}, "secret": {"Secret", "secretName"},
	"persistentVolumeClaim": {"PersistentVolumeClaim", "claimName"},
	"scaleTargetRef":        {"", "name"}, "workloadRef": {"", "name"}, // they say the kind themselves
}

// usesObject says whether anything in a value names an object.
func usesObject(value any, used ObjectRef) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if usesObject(item, used) {
				return true
			}
		}
	case map[string]any:
		for key, item := range value {
			if refersToObject(key, item, used) || usesObject(item, used) {
				return true
			}
		}
	}
	return false
}

// refersToObject says whether a field is a reference to an object.
func refersToObject(key string, value any, used ObjectRef) bool {
	if key == "serviceAccountName" {
		return used.Kind == "ServiceAccount" && value == used.Name
	}
	ref, ok := referenceFields[key]
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
