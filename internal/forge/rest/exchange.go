package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

const (
	// exchangeInterval is how often what is known is exchanged while calls are made.
	exchangeInterval = 2 * time.Second
	// processAge is from when on a process that calls nothing has no share of the limits.
	processAge = 30 * time.Second
	// exchangeTimeout bounds an exchange: without it, calls are made all the same.
	exchangeTimeout = 5 * time.Second
	// maxProcesses bounds how many share a limit.
	maxProcesses = 64
)

// knownLimits is what a process knows of an identity's limits and others should.
type knownLimits struct {
	At          time.Time `json:"at"`
	ClosedUntil time.Time `json:"closedUntil"`
	LimitedAt   time.Time `json:"limitedAt"`
	Repeated    int       `json:"repeated"`
}

// Share has the budget share the published limits with other processes, in equal parts among those
// that call. It closes when the forge refuses a call of any of them. It is called before the budget
// is used. The processes must go by one clock.
func (b *Budget) Share(identity string, exchange forge.Exchange) *Budget {
	b.identity, b.exchange = identity, exchange
	return b
}

// exchangeIfDue exchanges what is known, where that is due.
func (b *Budget) exchangeIfDue(ctx context.Context) {
	if b.exchange == nil {
		return
	}
	b.mu.Lock()
	now := b.now()
	due := b.exchangedAt.IsZero() || now.Sub(b.exchangedAt) >= exchangeInterval || now.Before(b.exchangedAt)
	if due {
		b.exchangedAt = now
	}
	b.mu.Unlock()
	if due {
		b.exchangeNow(ctx)
	}
}

// exchangeNow gives the others what is known, and takes what they know. Nothing is told of a
// failure: without the others' word, calls are made as before.
func (b *Budget) exchangeNow(ctx context.Context) {
	b.mu.Lock()
	own, err := json.Marshal(knownLimits{At: b.now(), ClosedUntil: b.closedUntil, LimitedAt: b.limitedAt, Repeated: b.repeated})
	b.mu.Unlock()
	if err != nil {
		return // times that no clock shows
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	others, err := b.exchange(ctx, b.identity, own)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, calling := b.now(), 1
	for _, text := range others {
		var known knownLimits
		if json.Unmarshal(text, &known) != nil {
			continue
		}
		if age := now.Sub(known.At); age < processAge && age > -processAge {
			calling++
		}
		if known.LimitedAt.After(b.limitedAt) && !known.LimitedAt.After(now) {
			b.limitedAt, b.repeated = known.LimitedAt, max(0, known.Repeated)
			b.closedUntil = known.ClosedUntil
			if most := now.Add(maxRetryAfter); b.closedUntil.After(most) {
				b.closedUntil = most
			}
		}
	}
	for _, p := range b.paces {
		p.shareAmong(now, min(calling, maxProcesses))
	}
}
