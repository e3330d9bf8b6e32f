package record

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/store"
)

// Rows are records of a few kinds that were read at once. They are a [Reader] and a [Lister] of those kinds within what
// was read, and have nothing else. Several that are read for every look cost one query so.
type Rows struct{ all []store.Record }

// AnyKind is a [Kind], whatever its type.
type AnyKind interface{ name() string }

func (k Kind[S, T]) name() string { return k.declaration.Name }

// ReadAll reads the records of some kinds within.
func ReadAll(ctx context.Context, l Lister, in Within, kinds ...AnyKind) (Rows, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name()
	}
	all, err := l.Records(ctx, store.RecordFilter{Kinds: names, Repo: in.Repo, Pull: in.Pull, NamePrefix: in.NamePrefix})
	return Rows{all: all}, err
}

// Record is the value of one of them; false when it isn't among them. There is no error.
func (r Rows) Record(_ context.Context, key store.RecordKey) ([]byte, bool, error) {
	i := slices.IndexFunc(r.all, func(one store.Record) bool { return one.RecordKey == key })
	if i < 0 {
		return nil, false, nil
	}
	return r.all[i].Data, true, nil
}

// Records are those of them that the filter chooses, in the order in which they were read. There is no error.
func (r Rows) Records(_ context.Context, f store.RecordFilter) ([]store.Record, error) {
	var out []store.Record
	for _, one := range r.all {
		if isChosen(&f, one.RecordKey) {
			out = append(out, one)
		}
	}
	return out, nil
}

// isChosen says that a filter chooses a record.
func isChosen(f *store.RecordFilter, key store.RecordKey) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, key.Kind) || f.Repo != "" && f.Repo != key.Repo {
		return false
	}
	return (f.Pull == 0 || f.Pull == key.Pull) && strings.HasPrefix(key.Name, f.NamePrefix)
}
