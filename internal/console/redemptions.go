package console

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/console/login"
)

// How often the identity provider is asked to redeem a code. Everybody can begin a login and bring
// an answer of their own making to it, and each is a call with the client's secret. A whole office
// may come from one address in the morning.
const (
	redemptionsOfClient      = 20 // at once
	redemptionsOfClientEvery = 3 * time.Second
	redemptionsOfAll         = 60
	redemptionsOfAllEvery    = time.Second / 5
	// maxRedemptionClients and maxRedeemed bound what is remembered. A forgotten client begins
	// anew; the sum of all stays bounded.
	maxRedemptionClients = 4096
	maxRedeemed          = 8192
)

// errTooManyLogins: the provider is not asked now.
var errTooManyLogins = errors.New("too many logins come at once")

// redemptions bounds how often the identity provider is asked: of one attempt once, and by address
// and in all as often as a bucket each fills up. It may be called concurrently.
type redemptions struct {
	now      func() time.Time
	mu       sync.Mutex
	all      *rate.Limiter
	byClient *cache.Cache[string, *rate.Limiter]
	redeemed *cache.Cache[string, bool] // attempts, by their digests
}

func newRedemptions(o *Options) *redemptions {
	return &redemptions{now: o.Now, all: rate.NewLimiter(rate.Every(redemptionsOfAllEvery), redemptionsOfAll),
		byClient: cache.New(o.Caches, cache.Options[string, *rate.Limiter]{Name: "login-clients", Entries: maxRedemptionClients}),
		redeemed: cache.New(o.Caches, cache.Options[string, bool]{Name: "login-attempts", Entries: maxRedeemed})}
}

// take allows one redemption of an attempt, or says why there is none. A refused attempt takes
// nothing from others.
func (r *redemptions) take(client, attempt string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used := r.redeemed.Get(attempt); used {
		return &login.RefusedError{Why: "this login was used before. Log in again"}
	}
	if err := r.fill(client); err != nil {
		return err
	}
	r.redeemed.Put(attempt, true)
	return nil
}

// takeGuess allows one look at a token that somebody logs in with, or says why there is none.
func (r *redemptions) takeGuess(client string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fill(client)
}

// fill takes one login from the buckets, or nothing. r.mu is held.
func (r *redemptions) fill(client string) error {
	own, ok := r.byClient.Get(client)
	if !ok {
		own = rate.NewLimiter(rate.Every(redemptionsOfClientEvery), redemptionsOfClient)
		r.byClient.Put(client, own)
	}
	now := r.now()
	if own.TokensAt(now) < 1 || !r.all.AllowN(now, 1) {
		return errTooManyLogins
	}
	own.AllowN(now, 1)
	return nil
}
