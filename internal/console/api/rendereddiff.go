package api

import (
	"encoding/json"
	"time"
)

// RenderedDiff answers GET /api/v1/promotions/{id}/diff: everything that the
// pull request changes of rendered manifests.
type RenderedDiff struct {
	ID          int64     `json:"id"`
	Kind        string    `json:"kind"` // promotion or revert
	Repository  string    `json:"repository"`
	Pipeline    string    `json:"pipeline"`
	Component   string    `json:"component"`
	Environment string    `json:"environment"`
	Release     string    `json:"release,omitempty"`
	Name        string    `json:"name,omitempty"`
	Pull        *Pull     `json:"pull,omitempty"`
	At          time.Time `json:"at"`     // when it was compared
	Before      string    `json:"before"` // the commits that were compared
	After       string    `json:"after"`
	Landed      bool      `json:"landed"` // it was merged: After is what landed, Before the commit before it
	Files       []string  `json:"files"`
	// Targets are those that it is for. The ones that change alike are one entry.
	Targets  []TargetsDiff `json:"targets"`
	Problems []string      `json:"problems,omitempty"` // what of the two commits can't be resolved
	LeftOut  int           `json:"leftOut,omitempty"`  // objects that are too much for one answer
	Pending  bool          `json:"pending,omitempty"`  // an Argo CD is still rendering some of it
}

// TargetsDiff is what changes for some targets, for all of them alike.
type TargetsDiff struct {
	Names   []string     `json:"names"`
	Spec    bool         `json:"spec,omitempty"`    // the Application itself changes too
	Summary string       `json:"summary,omitempty"` // e.g. "1 added, 2 changed"; empty: the manifests stay as they are
	Why     string       `json:"why,omitempty"`     // why the manifests can't be told
	Objects []ObjectDiff `json:"objects,omitempty"`
}

// ObjectDiff is one object that differs.
type ObjectDiff struct {
	Op         string      `json:"op"` // added, removed or changed
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Was        string      `json:"was,omitempty"` // its name before, where only the hash in it changed
	Fields     []FieldDiff `json:"fields"`
	// Text is the same in the manner of a unified diff, long values cut.
	Text string `json:"-"`
}

// FieldDiff is one field that differs.
type FieldDiff struct {
	Path   string          `json:"path"`
	Op     string          `json:"op"` // added, removed, changed or reordered
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Hidden bool            `json:"hidden,omitempty"` // it is secret: neither value is here
}
