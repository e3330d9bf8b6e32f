package emulator

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
)

// kinds of objects that are served, by resource.
var kinds = map[string]string{
	"applications": "Application", "applicationsets": "ApplicationSet", "appprojects": "AppProject", "secrets": "Secret",
}

// apiVersion of a resource.
func apiVersion(resource string) string {
	if resource == "secrets" {
		return "v1"
	}
	return "argoproj.io/v1alpha1"
}

// object is an object's JSON. What encoding/json decodes into it, and nothing
// else, is in it.
type object = map[string]any

// record is an object as it is stored.
type record struct {
	resource, namespace, name string
	version                   int64
	raw                       json.RawMessage
}

// watchEvent is a change that watches tell.
type watchEvent struct {
	Type string // ADDED, MODIFIED or DELETED
	record
}

// objects is what etcd is to a real API server: the objects, and their changes
// for as long as they are kept. Its owner guards it.
type objects struct {
	keep      int
	version   int64
	forgotten int64 // changes up to this version are gone
	all       map[string]record
	changes   []watchEvent
	changed   chan struct{} // closed at the next change
}

func newObjects(keep int) *objects {
	return &objects{keep: keep, version: 1000, forgotten: 1000, all: map[string]record{}, changed: make(chan struct{})}
}

func objectKey(resource, namespace, name string) string {
	return resource + "/" + namespace + "/" + name
}

// get decodes an object; nil when there is none. The copy is the caller's.
func (o *objects) get(resource, namespace, name string) object {
	r, ok := o.all[objectKey(resource, namespace, name)]
	if !ok {
		return nil
	}
	var x object
	if err := json.Unmarshal(r.raw, &x); err != nil {
		panic(fmt.Sprintf("emulator: a stored object can't be read: %v", err)) // put wrote it
	}
	return x
}

// put stores an object, unless it is what is stored already. It sets the
// resourceVersion.
func (o *objects) put(resource, namespace, name string, x object) error {
	key := objectKey(resource, namespace, name)
	before, exists := o.all[key]
	raw, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if exists && string(raw) == string(before.raw) {
		return nil
	}
	o.version++
	meta(x)["resourceVersion"] = strconv.FormatInt(o.version, 10)
	if raw, err = json.Marshal(x); err != nil {
		return err
	}
	r := record{resource, namespace, name, o.version, raw}
	o.all[key] = r
	kind := "ADDED"
	if exists {
		kind = "MODIFIED"
	}
	o.tell(watchEvent{kind, r})
	return nil
}

func (o *objects) remove(resource, namespace, name string) {
	key := objectKey(resource, namespace, name)
	r, ok := o.all[key]
	if !ok {
		return
	}
	last := o.get(resource, namespace, name)
	o.version++
	meta(last)["resourceVersion"] = strconv.FormatInt(o.version, 10)
	if raw, err := json.Marshal(last); err == nil { // it was marshaled before
		r.raw = raw
	}
	delete(o.all, key)
	r.version = o.version
	o.tell(watchEvent{"DELETED", r})
}

func (o *objects) tell(e watchEvent) {
	o.changes = append(o.changes, e)
	if over := len(o.changes) - o.keep; over > 0 {
		o.forgotten = o.changes[over-1].version
		o.changes = append([]watchEvent(nil), o.changes[over:]...)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// since are the changes after a version, oldest first.
func (o *objects) since(version int64) []watchEvent {
	i := sort.Search(len(o.changes), func(i int) bool { return o.changes[i].version > version })
	return o.changes[i:]
}

// compact forgets all changes: watches can't be resumed from before now.
func (o *objects) compact() { o.changes, o.forgotten = nil, o.version }

// meta is an object's metadata, created when it has none.
func meta(x object) object {
	m, ok := x["metadata"].(object)
	if !ok {
		m = object{}
		x["metadata"] = m
	}
	return m
}
