package argoemulator

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
)

// kindByResource of objects that are served, by resource.
var kindByResource = map[string]string{
	"applications": "Application", "applicationsets": "ApplicationSet", "appprojects": "AppProject", "secrets": "Secret",
}

// apiVersion of a resource.
func apiVersion(resource string) string {
	if resource == "secrets" {
		return "v1"
	}
	return "argoproj.io/v1alpha1"
}

// jsonObject is an object's JSON. Only fields that encoding/json decodes into it are in it.
type jsonObject = map[string]any

// objectRecord is an object as it is stored.
type objectRecord struct {
	resource, namespace, name string
	version                   int64
	raw                       json.RawMessage
}

// watchEvent is a change that watches tell.
type watchEvent struct {
	Type string // ADDED, MODIFIED or DELETED
	objectRecord
}

// objectStore is what etcd is to a real API server: the objects, and their changes
// for as long as they are kept. Its owner guards it.
type objectStore struct {
	maxChanges  int
	version     int64
	compactedTo int64 // changes up to this version are gone
	records     map[string]objectRecord
	changes     []watchEvent
	changed     chan struct{} // closed at the next change
}

func newObjectStore(maxChanges int) *objectStore {
	return &objectStore{maxChanges: maxChanges, version: 1000, compactedTo: 1000, records: map[string]objectRecord{},
		changed: make(chan struct{})}
}

func objectKey(resource, namespace, name string) string {
	return resource + "/" + namespace + "/" + name
}

// get decodes an object; nil when there is none. The copy is the caller's.
func (o *objectStore) get(resource, namespace, name string) jsonObject {
	r, ok := o.records[objectKey(resource, namespace, name)]
	if !ok {
		return nil
	}
	var x jsonObject
	if err := json.Unmarshal(r.raw, &x); err != nil {
		panic(fmt.Sprintf("emulator: a stored object can't be read: %v", err)) // put wrote it
	}
	return x
}

// put stores an object, unless it is what is stored already. It sets the
// resourceVersion.
func (o *objectStore) put(resource, namespace, name string, x jsonObject) error {
	key := objectKey(resource, namespace, name)
	before, exists := o.records[key]
	raw, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if exists && string(raw) == string(before.raw) {
		return nil
	}
	o.version++
	metadataOf(x)["resourceVersion"] = strconv.FormatInt(o.version, 10)
	if raw, err = json.Marshal(x); err != nil {
		return err
	}
	r := objectRecord{resource, namespace, name, o.version, raw}
	o.records[key] = r
	kind := "ADDED"
	if exists {
		kind = "MODIFIED"
	}
	o.recordChange(watchEvent{kind, r})
	return nil
}

func (o *objectStore) remove(resource, namespace, name string) {
	key := objectKey(resource, namespace, name)
	r, ok := o.records[key]
	if !ok {
		return
	}
	last := o.get(resource, namespace, name)
	o.version++
	metadataOf(last)["resourceVersion"] = strconv.FormatInt(o.version, 10)
	if raw, err := json.Marshal(last); err == nil { // it was marshaled before
		r.raw = raw
	}
	delete(o.records, key)
	r.version = o.version
	o.recordChange(watchEvent{"DELETED", r})
}

func (o *objectStore) recordChange(e watchEvent) {
	o.changes = append(o.changes, e)
	if over := len(o.changes) - o.maxChanges; over > 0 {
		o.compactedTo = o.changes[over-1].version
		o.changes = append([]watchEvent(nil), o.changes[over:]...)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// changesSince are the changes after a version, oldest first.
func (o *objectStore) changesSince(version int64) []watchEvent {
	i := sort.Search(len(o.changes), func(i int) bool { return o.changes[i].version > version })
	return o.changes[i:]
}

// compact forgets all changes: watches can't be resumed from before now.
func (o *objectStore) compact() { o.changes, o.compactedTo = nil, o.version }

// metadataOf is an object's metadata, created when it has none.
func metadataOf(x jsonObject) jsonObject {
	m, ok := x["metadata"].(jsonObject)
	if !ok {
		m = jsonObject{}
		x["metadata"] = m
	}
	return m
}
