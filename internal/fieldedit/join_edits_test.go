package fieldedit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestJoinEdits(t *testing.T) {
	edit := func(file, before, after string, paths ...string) Edit {
		e := Edit{File: file, Before: []byte(before), After: []byte(after), Mode: 0o100644}
		for _, p := range paths {
			e.Changes = append(e.Changes, Change{File: file, Path: p})
		}
		return e
	}
	created := edit("c", "", "new", "c")
	created.Before, created.Created = nil, true
	deleted := Edit{File: "c", Before: []byte("new"), Deleted: true}
	gone := Edit{File: "d", Before: []byte("old"), Deleted: true}
	again := edit("d", "", "back", "d")
	again.Before, again.Created = nil, true
	back := edit("d", "old", "back", "d")
	for _, c := range []struct {
		name               string
		edits, later, want []Edit
	}{
		{"nothing", nil, nil, nil},
		{"apart", []Edit{edit("b", "1", "2", "x")}, []Edit{edit("a", "1", "2", "y")}, []Edit{edit("a", "1", "2", "y"), edit("b", "1", "2", "x")}},
		{"one file", []Edit{edit("a", "1", "2", "x")}, []Edit{edit("a", "2", "3", "y")}, []Edit{edit("a", "1", "3", "x", "y")}},
		{"created, then deleted", []Edit{created}, []Edit{deleted}, nil},
		{"deleted, then created", []Edit{gone}, []Edit{again}, []Edit{back}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, JoinEdits(c.edits, c.later), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
