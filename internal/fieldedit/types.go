package fieldedit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
)

// The kinds of carried fields.
const (
	KindImage = "image" // an entry of a kustomization's images list
	KindYAML  = "yaml"  // a scalar in a YAML file
	KindJSON  = "json"  // a scalar in a JSON file
	KindFile  = "file"  // a whole file
	KindRef   = "ref"   // the ref that a kustomization asks of a remote base
)

// Field is one carried value. File is relative to the root that it was found under. Path is the
// field's address in the file. An image has "images[NAME].newTag" (or .newName, .digest), a remote
// base "resources[ADDRESS].ref" (or components), and a scalar its path. A whole file has no path,
// and its mode and git's id of its content as the value: "100644 " (or "100755 ") and 40 hex
// digits.
type Field struct {
	Kind  string `json:"kind"`
	File  string `json:"file"`
	Path  string `json:"path"`
	Value string `json:"value"`
	Type  string `json:"type,omitempty"` // of the value where it was read; no part of the identity; empty: a string
}

// The types that a value can have where it was read. A field keeps the type it
// has in its own file; this one only says what a field that is added shall be.
const (
	TypeString = ""
	TypeNumber = "number"
	TypeBool   = "bool"
	TypeNull   = "null" // the value is ""
)

// Key is the field's address without its value.
func (f Field) Key() string { return f.Kind + "\x00" + f.File + "\x00" + f.Path }

// Release is the values of a component's carried fields in one environment,
// sorted by place.
type Release struct {
	Fields []Field `json:"fields"`
}

// Empty says that nothing is carried.
func (r Release) Empty() bool { return len(r.Fields) == 0 }

// Sort puts the fields into their canonical order.
func (r Release) Sort() {
	sort.Slice(r.Fields, func(i, j int) bool { return r.Fields[i].Key() < r.Fields[j].Key() })
}

// ID is the release's identity: sha256, 64 hex digits, over its sorted fields.
// The empty release has the identity "".
func (r Release) ID() string {
	if r.Empty() {
		return ""
	}
	h := sha256.New()
	for _, f := range r.Fields {
		for _, s := range []string{f.Kind, f.File, f.Path, f.Value} {
			fmt.Fprintf(h, "%d:%s,", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Change is one field that an edit moves.
type Change struct {
	File    string `json:"file"`           // from the repository's root; empty where only bytes were given
	Line    int    `json:"line,omitempty"` // in the new file, from 1; 0 for a whole file and where Removed
	Kind    string `json:"kind"`
	Path    string `json:"path,omitempty"`
	Old     string `json:"old"`               // "" where Added
	New     string `json:"new"`               // "" where Removed
	Added   bool   `json:"added,omitempty"`   // the field wasn't there
	Removed bool   `json:"removed,omitempty"` // the field isn't there any more
}

// Edit is what happens to one file.
type Edit struct {
	File    string // from the repository's root
	Before  []byte
	After   []byte
	Mode    Mode // with the edit; 0 where Deleted
	Created bool // it wasn't there; Before is nil
	Deleted bool // it isn't there any more; After is nil
	Changes []Change
}
