package store

import "context"

// maxSingleReads is up to how many changed units are read one by one: then, of a thousand, only
// those.
const maxSingleReads = 128

// unitReader reads units; a Store does.
type unitReader interface {
	Units(ctx context.Context, f UnitFilter) ([]Unit, error)
	Unit(ctx context.Context, key string) (Unit, bool, error)
}

// ChangedUnits reads all units, in the order of Units, for a caller that remembers its results. It
// gives the Data of those that the caller doesn't know, and maybe of others. isKnown is given each
// without its Data. A unit's Data is the same while its Digest and UpdatedAt are.
func ChangedUnits(ctx context.Context, r unitReader, isKnown func(*Unit) bool) ([]Unit, error) {
	rows, err := r.Units(ctx, UnitFilter{WithoutData: true})
	if err != nil {
		return nil, err
	}
	var changed []int
	for i := range rows {
		if !isKnown(&rows[i]) {
			changed = append(changed, i)
		}
	}
	if len(changed) > maxSingleReads {
		return r.Units(ctx, UnitFilter{})
	}
	gone := map[int]bool{}
	for _, i := range changed {
		row, ok, err := r.Unit(ctx, rows[i].Key)
		if err != nil {
			return nil, err
		}
		if gone[i] = !ok; ok {
			rows[i] = row
		}
	}
	out := rows[:0]
	for i := range rows {
		if !gone[i] {
			out = append(out, rows[i])
		}
	}
	return out, nil
}
