package branch

import (
	"encoding/json"

	"github.com/liftlock/liftlock/internal/cache"
)

const (
	// MaxDecodedRows and MaxDecodedBytes bound what is remembered of the rows of one
	// table. A decoded row takes about as much again as its text.
	MaxDecodedRows  = 20_000
	MaxDecodedBytes = 32 << 20
)

// DecodedRows decodes the JSON of a stored row once, for as long as it is the same. Every look
// reads the same rows again, and decoding them costs more than reading them. Its values are shared:
// no caller changes them.
type DecodedRows[V any] struct {
	known    *cache.Cache[string, V]
	complete func(*V)
}

// NewDecodedRows makes an empty one; complete works out what depends on nothing but the row.
func NewDecodedRows[V any](group *cache.Group, name string, complete func(*V)) DecodedRows[V] {
	return DecodedRows[V]{complete: complete, known: cache.New(group, cache.Options[string, V]{Name: name, Entries: MaxDecodedRows,
		Bytes: MaxDecodedBytes,
		Size:  func(data string, _ V) int64 { return 2 * int64(len(data)) }})}
}

func (d DecodedRows[V]) Decode(data []byte) (V, error) {
	return d.known.GetOrLoad(string(data), func() (v V, err error) {
		if err = json.Unmarshal(data, &v); err == nil {
			d.complete(&v)
		}
		return v, err
	})
}
