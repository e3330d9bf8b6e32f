package facts

import (
	"encoding/json"

	"github.com/liftlock/liftlock/internal/cache"
)

const (
	// maxDecodedRows and maxDecodedBytes bound what is remembered of the rows of one
	// table. A decoded row takes about as much again as its text.
	maxDecodedRows  = 20_000
	maxDecodedBytes = 32 << 20
)

// decodedRows decodes what the store keeps of a row as JSON, once for as long as it is
// the same: every look reads the same rows again, and to decode them costs more than to
// read them. What it gives is shared: nobody changes it.
type decodedRows[V any] struct {
	known    *cache.Cache[string, V]
	complete func(*V)
}

// newDecodedRows makes an empty one; complete works out what depends on nothing but the row.
func newDecodedRows[V any](group *cache.Group, name string, complete func(*V)) decodedRows[V] {
	return decodedRows[V]{complete: complete, known: cache.New(group, cache.Options[string, V]{Name: name, Entries: maxDecodedRows,
		Bytes: maxDecodedBytes,
		Size:  func(data string, _ V) int64 { return 2 * int64(len(data)) }})}
}

func (d decodedRows[V]) decode(data []byte) (V, error) {
	return d.known.GetOrLoad(string(data), func() (v V, err error) {
		if err = json.Unmarshal(data, &v); err == nil {
			d.complete(&v)
		}
		return v, err
	})
}
