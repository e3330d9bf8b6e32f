package record

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/store"
)

// Lifetime says when a record goes.
type Lifetime string

// The lifetimes.
const (
	// UntilSettled records go with DropSettled, once their pull request is merged or closed.
	UntilSettled Lifetime = "settled"
	// UntilDropped records are dropped by their owner, when what they are about is over.
	UntilDropped Lifetime = "dropped"
	// Lasting records stay as long as the database.
	Lasting Lifetime = "lasting"
)

// Declaration describes a kind of record.
type Declaration struct {
	Name     string // in the database; never changes meaning
	Owner    string // the package that writes it, below internal
	Doc      string // one sentence: what it says, and what its loss means where that matters
	Lifetime Lifetime
	// Strict makes a value that can't be read an error instead of an absent one.
	Strict bool

	subject string       // what it is about, for people
	value   reflect.Type // what is kept
}

// Subject is what it is about, for people, such as "pull request".
func (d *Declaration) Subject() string { return d.subject }

// Value is the type of what is kept.
func (d *Declaration) Value() reflect.Type { return d.value }

// declared has every kind. Kinds are package-level variables, so it is filled before main begins.
var declared = struct {
	mu     sync.Mutex
	byName map[string]*Declaration
}{byName: map[string]*Declaration{}}

// List lists the kinds that are declared, by name.
func List() []Declaration {
	declared.mu.Lock()
	defer declared.mu.Unlock()
	out := make([]Declaration, 0, len(declared.byName))
	for _, d := range declared.byName {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Declaration) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Kind is a kind of record: about an S, with the value T. Its methods may be called concurrently.
type Kind[S Subject[S], T any] struct{ declaration *Declaration }

// Declare declares a kind. It panics where another one has the name.
func Declare[S Subject[S], T any](d Declaration) Kind[S, T] {
	var about S
	d.subject, d.value = about.describe(), reflect.TypeFor[T]()
	declared.mu.Lock()
	defer declared.mu.Unlock()
	if declared.byName[d.Name] != nil {
		panic("the kind of record " + d.Name + " is declared twice")
	}
	declared.byName[d.Name] = &d
	return Kind[S, T]{&d}
}

// Reader reads single records: a store, or a transaction of it.
type Reader interface {
	Record(ctx context.Context, key store.RecordKey) ([]byte, bool, error)
}

// Lister reads many records.
type Lister interface {
	Records(ctx context.Context, f store.RecordFilter) ([]store.Record, error)
}

// Writer changes records.
type Writer interface {
	PutRecord(ctx context.Context, key store.RecordKey, data []byte) error
	DeleteRecord(ctx context.Context, key store.RecordKey) error
}

// Adder adds records: a store, or a transaction of it.
type Adder interface {
	AddRecord(ctx context.Context, key store.RecordKey, data []byte) (added bool, err error)
}

// ReadWriter is a Reader and a Writer.
type ReadWriter interface {
	Reader
	Writer
}

// Key is where the store has the record about a subject.
func (k Kind[S, T]) Key(about S) store.RecordKey {
	key := about.key()
	key.Kind = k.declaration.Name
	return key
}

// Get reads a record; the zero value and false where there is none.
func (k Kind[S, T]) Get(ctx context.Context, r Reader, about S) (value T, found bool, err error) {
	one, found, err := k.Find(ctx, r, about)
	return one.Value, found && one.Readable, err
}

// Find is Get for who has to know of a record that can't be read, too.
func (k Kind[S, T]) Find(ctx context.Context, r Reader, about S) (one Stored[S, T], found bool, err error) {
	key := k.Key(about)
	data, found, err := r.Record(ctx, key)
	if err != nil || !found {
		return one, false, err
	}
	value, ok, err := k.decode(key, data)
	return Stored[S, T]{about, value, ok}, err == nil, err
}

func (k Kind[S, T]) decode(key store.RecordKey, data []byte) (value T, ok bool, err error) {
	if err = json.Unmarshal(data, &value); err == nil {
		return value, true, nil
	}
	var none T // some of it may have been read
	if k.declaration.Strict {
		return none, false, fmt.Errorf("read the record %s: %w", key, err)
	}
	return none, false, nil
}

// Has says whether there is a record, also one that can't be read.
func (k Kind[S, T]) Has(ctx context.Context, r Reader, about S) (bool, error) {
	_, found, err := r.Record(ctx, k.Key(about))
	return found, err
}

// Put stores a record; one that is there is replaced.
func (k Kind[S, T]) Put(ctx context.Context, w Writer, about S, value T) error {
	r, err := k.Encode(about, value)
	if err != nil {
		return err
	}
	return w.PutRecord(ctx, r.RecordKey, r.Data)
}

// Add stores a record that isn't there yet; false, and nothing changes, where one is.
func (k Kind[S, T]) Add(ctx context.Context, a Adder, about S, value T) (added bool, err error) {
	r, err := k.Encode(about, value)
	if err != nil {
		return false, err
	}
	return a.AddRecord(ctx, r.RecordKey, r.Data)
}

// Encode is a record for who stores it together with something else.
func (k Kind[S, T]) Encode(about S, value T) (store.Record, error) {
	key := k.Key(about)
	data, err := json.Marshal(value)
	if err != nil {
		return store.Record{}, fmt.Errorf("write the record %s: %w", key, err)
	}
	return store.Record{RecordKey: key, Data: data}, nil
}

// Drop forgets a record; one that isn't there is success.
func (k Kind[S, T]) Drop(ctx context.Context, w Writer, about S) error {
	return w.DeleteRecord(ctx, k.Key(about))
}

// Stored is a record that is there.
type Stored[S, T any] struct {
	About    S
	Value    T
	Readable bool // false: Value is zero, as it can't be read
}

// Within narrows a list.
type Within struct {
	Repo       string // empty: of every repository
	Pull       int    // 0: whatever pull request
	NamePrefix string
}

// List reads the records within, sorted by repository, pull request and name. In a strict kind, a
// record that can't be read is an error.
func (k Kind[S, T]) List(ctx context.Context, l Lister, in Within) ([]Stored[S, T], error) {
	rows, err := ReadAll(ctx, l, in, k)
	if err != nil {
		return nil, err
	}
	out := make([]Stored[S, T], 0, len(rows.all))
	for i := range rows.all {
		var about S
		value, ok, err := k.decode(rows.all[i].RecordKey, rows.all[i].Data)
		if err != nil {
			return nil, err
		}
		out = append(out, Stored[S, T]{about.of(rows.all[i].RecordKey), value, ok})
	}
	return out, nil
}

// DropSettled forgets what is on record of a pull request until it is merged or closed.
func DropSettled(ctx context.Context, tx *store.Tx, about Pull) error {
	var kinds []string
	for _, d := range List() {
		if d.Lifetime == UntilSettled {
			kinds = append(kinds, d.Name)
		}
	}
	return tx.DeletePullRecords(ctx, about.Repo, about.Number, kinds...)
}
