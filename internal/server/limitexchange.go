package server

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store/record"
)

// limitsAge is how long what a process that has ended knew is kept: longer than any limit counts.
const limitsAge = 2 * time.Hour

// knownLimits is what a process knows of a forge's limits, and when it was there.
type knownLimits struct {
	At     time.Time `json:"at"`
	Limits []byte    `json:"limits"`
}

// forgeLimits are by forge, identity there, and process.
var forgeLimits = record.Declare[record.Named, knownLimits](record.Declaration{
	Name: "forge-limits", Owner: "server", Lifetime: record.UntilDropped,
	Doc: "What a process knows of a forge's limits, so that others on the same database count it too.",
})

// exchangeLimits keeps what this process knows of a forge's limits in the store, and reads what
// the others do. On a database of its own there are no others.
func (s *Server) exchangeLimits(forgeName string) forge.Exchange {
	if strings.HasPrefix(s.o.Config.Store.Reveal(), "sqlite:") {
		return nil
	}
	return func(ctx context.Context, identity string, own []byte) (others [][]byte, err error) {
		prefix := forgeName + "|" + identity + "|"
		mine := record.Named(prefix + s.owner)
		if err := forgeLimits.Put(ctx, s.store, mine, knownLimits{s.o.Clock.Now(), own}); err != nil {
			return nil, err
		}
		all, err := forgeLimits.List(ctx, s.store, record.Within{NamePrefix: prefix})
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].About == mine {
				continue
			}
			known := &all[i].Value
			if !all[i].Readable || s.o.Clock.Now().Sub(known.At) > limitsAge {
				if err := forgeLimits.Drop(ctx, s.store, all[i].About); err != nil {
					s.log.Warn("what an ended process knew of a forge's limits can't be deleted", zap.String("forge", forgeName),
						zap.Error(err))
				}
				continue
			}
			others = append(others, known.Limits)
		}
		return others, nil
	}
}
