package webhooks

import (
	"fmt"
	"sync/atomic"
)

// MinBudget is the least a budget may hold: reading a delivery of the largest
// size takes the room for it twice while the buffer grows.
const MinBudget = 2 * MaxBody

// DefaultBudget lets a handful of the largest deliveries, or thousands of usual
// ones (10 kB), be read at once.
const DefaultBudget = 128 << 20

// Budget caps the bytes of delivery bodies that are in memory at the same time,
// across all receivers that share it. Room is taken as bytes arrive, not as a
// sender announces them, so claiming a large body costs a stranger nothing more
// than sending it. Safe for concurrent use.
type Budget struct {
	max  int64
	used atomic.Int64
}

// NewBudget makes a budget of so many bytes, at least MinBudget.
func NewBudget(bytes int64) (*Budget, error) {
	if bytes < MinBudget {
		return nil, fmt.Errorf("a budget of %d bytes for webhook bodies is too small: at least %d", bytes, MinBudget)
	}
	return &Budget{max: bytes}, nil
}

// reserveBytes reserves n bytes, or says that there is no room.
func (b *Budget) reserveBytes(n int) bool {
	if b.used.Add(int64(n)) > b.max {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *Budget) releaseBytes(n int) { b.used.Add(-int64(n)) }
