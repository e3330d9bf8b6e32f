package appset

import (
	"encoding/json"
	"fmt"
)

// ChangedFields compares the manifests of one Application at two commits field by field, as a
// [Comparison] does with a live one. Live is the value before, Resolved the one after. more counts
// the fields beyond those that are listed.
func ChangedFields(before, after json.RawMessage) (list []FieldDifference, more int, err error) {
	var was, is any
	if err := json.Unmarshal(before, &was); err != nil {
		return nil, 0, fmt.Errorf("reading the Application before: %w", err)
	}
	if err := json.Unmarshal(after, &is); err != nil {
		return nil, 0, fmt.Errorf("reading the Application after: %w", err)
	}
	f := fieldDiff{}
	f.compareValues("", was, is)
	return f.list, f.more, nil
}
