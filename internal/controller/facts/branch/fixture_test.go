package branch

import (
	"context"

	"github.com/liftlock/liftlock/internal/store"
)

// storedRecords are the store's, by key.
type storedRecords map[store.RecordKey]string

func (s storedRecords) Record(_ context.Context, key store.RecordKey) ([]byte, bool, error) {
	v, ok := s[key]
	return []byte(v), ok, nil
}
