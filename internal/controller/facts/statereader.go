package facts

import (
	"context"
	"encoding/json"
	"fmt"
)

// StateReader is where small values are read by their keys: the store, or a transaction of it.
type StateReader interface {
	State(ctx context.Context, key string) ([]byte, bool, error)
}

// readState reads the value that is kept as JSON by a key; the zero value and false where there is none,
// or where it can't be understood: who wrote it may have been another version.
func readState[T any](ctx context.Context, s StateReader, key string) (value T, ok bool, err error) {
	raw, _, err := s.State(ctx, key)
	if err != nil || json.Unmarshal(raw, &value) != nil {
		var none T // some of it may have been read
		return none, false, err
	}
	return value, true, nil
}

// putState keeps a value as JSON by a key, for readState.
func putState(ctx context.Context, s stateWriter, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write down %s: %w", key, err)
	}
	return s.PutState(ctx, key, raw)
}
