package server

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/forge"
)

// limitsKey begins the keys under which processes keep what they know of a forge's limits.
const limitsKey = "limits|"

// limitsAge is how long what a process that has ended knew is kept: longer than any limit counts.
const limitsAge = 2 * time.Hour

// limitsRow is what is kept of one: what it knows, and when it was there.
type limitsRow struct {
	at   time.Time
	text []byte
}

// exchangeLimits keeps what this process knows of a forge's limits in the store, and reads what
// the others do. On a database of its own there are no others.
func (s *Server) exchangeLimits(forgeName string) forge.Exchange {
	if strings.HasPrefix(s.o.Config.Store.Reveal(), "sqlite:") {
		return nil
	}
	return func(ctx context.Context, identity string, own []byte) (others [][]byte, err error) {
		prefix := limitsKey + forgeName + "|" + identity + "|"
		mine := prefix + s.owner
		if err := s.store.PutState(ctx, mine, joinRow(limitsRow{s.o.Clock.Now(), own})); err != nil {
			return nil, err
		}
		all, err := s.store.StateByPrefix(ctx, prefix)
		if err != nil {
			return nil, err
		}
		delete(all, mine)
		for key, data := range all {
			row, ok := splitRow(data)
			if !ok || s.o.Clock.Now().Sub(row.at) > limitsAge {
				if err := s.store.DeleteState(ctx, key); err != nil {
					s.log.Warn("what an ended process knew of a forge's limits can't be deleted", zap.String("forge", forgeName), zap.Error(err))
				}
				continue
			}
			others = append(others, row.text)
		}
		return others, nil
	}
}

func joinRow(r limitsRow) []byte {
	return append([]byte(r.at.UTC().Format(time.RFC3339)+"\n"), r.text...)
}

func splitRow(data []byte) (r limitsRow, ok bool) {
	at, text, found := strings.Cut(string(data), "\n")
	when, err := time.Parse(time.RFC3339, at)
	return limitsRow{when, []byte(text)}, found && err == nil
}
