package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// wakesAtOnce is how many keys one statement wakes.
const wakesAtOnce = 50

// Urgency says which of the keys that are due are claimed first.
type Urgency int

// The urgencies.
const (
	Urgent     Urgency = -1 // somebody waits, or something breaks
	Normal     Urgency = 0
	Background Urgency = 1 // what looks for what was missed

	anyUrgency Urgency = math.MinInt // of a claim that doesn't go by it
)

// Claim is a key that its owner may work on.
type Claim struct {
	Key     string
	Gen     int64 // which claim of the key this is, rising; Finish knows a lost claim by it
	Fails   int   // how many runs in a row have ended with Outcome.Failed, or had no end before the lease's
	Urgency Urgency
}

// newClaim is a claim as it was made.
type newClaim struct {
	Claim
	died bool // the key's last owner never came to the run's end
}

// Outcome is how a run ended.
type Outcome struct {
	Next      time.Time // when to run again at the latest; zero: only when woken
	NotBefore time.Time // not earlier, however often the key is woken; zero: no such bound
	Failed    bool      // counts in Claim.Fails; the caller derives Next from it
	PutOff    bool      // nothing was tried: Claim.Fails stays as it is
	Urgency   Urgency   // of Next
}

// Depth is how much the queue holds.
type Depth struct {
	Due     int           // can be claimed now
	Later   int           // have a time to come
	Running int           // are claimed
	Oldest  time.Duration // how long the longest waiting of Due has been due; 0 without any
}

// Wake makes the keys due now. A key that is running runs once more after that.
func (s *Store) Wake(ctx context.Context, keys ...string) error {
	return s.WakeAs(ctx, Normal, keys...)
}

// WakeAs is Wake with an urgency. A key that is due already only gets more urgent.
func (s *Store) WakeAs(ctx context.Context, u Urgency, keys ...string) error {
	return s.Tx(ctx, "wake", func(tx *Tx) error { return tx.WakeAs(ctx, u, keys...) })
}

// Wake is Store.Wake; it takes effect at the transaction's end.
func (t *Tx) Wake(ctx context.Context, keys ...string) error { return t.WakeAs(ctx, Normal, keys...) }

// WakeAs is Store.WakeAs; it takes effect at the transaction's end.
func (t *Tx) WakeAs(_ context.Context, u Urgency, keys ...string) error {
	return t.wakeIn(0, u, keys)
}

// WakeAt makes the keys due at a time, unless they are due earlier already.
// It takes effect at the transaction's end.
func (t *Tx) WakeAt(_ context.Context, at time.Time, keys ...string) error {
	return t.wakeIn(microsUntil(t.now(), at), Normal, keys)
}

func (t *Tx) wakeIn(distance int64, u Urgency, keys []string) error {
	for _, k := range keys {
		if err := checkKey("the key to wake", k); err != nil {
			return err
		}
		next, ok := t.wakes[k]
		if !ok || distance < next.distance {
			next.distance = distance
		}
		if !ok || u < next.urgency {
			next.urgency = u
		}
		next.key = k
		t.wakes[k] = next
		t.subjects[subjectWakes] = true
	}
	return nil
}

// wakeKeys wakes at most wakesAtOnce keys, which are in order. A key that is due no later already,
// and as urgent, isn't written again. PostgreSQL locks its row all the same until the commit, so
// that no run that misses this transaction's other writes can take the wake with it.
func (t *Tx) wakeKeys(ctx context.Context, wakes []nextWake) error {
	var rows []string
	var args []any
	for _, w := range wakes {
		args = append(args, w.key, w.distance, int64(w.urgency))
		rows = append(rows, fmt.Sprintf("($%d, liftlock_now() + $%d, $%d)", len(args)-2, len(args)-1, len(args)))
	}
	args = append(args, int64(Urgent), int64(neverDue))
	// One that isn't due yet becomes as urgent as what makes it due. A key that is to be urgent at
	// a time stays so: it hasn't become less pressing.
	_, err := t.db.exec(ctx, fmt.Sprintf(`INSERT INTO wakes (key, due_at, urgency) VALUES %s
		ON CONFLICT (key) DO UPDATE SET due_at = CASE WHEN excluded.due_at < wakes.due_at THEN excluded.due_at ELSE wakes.due_at END,
			urgency = CASE WHEN excluded.urgency < wakes.urgency OR excluded.due_at < wakes.due_at AND wakes.due_at > liftlock_now() AND (wakes.urgency > $%d OR wakes.due_at = $%d) THEN excluded.urgency ELSE wakes.urgency END
		WHERE excluded.due_at < wakes.due_at OR excluded.urgency < wakes.urgency`, strings.Join(rows, ", "), len(args)-1, len(args)), args...)
	return err
}

// Claim takes at most n keys that are due, the most urgent first, of those the longest due. owner
// is the name of one process, which no other uses. A claim holds for Options.Lease and is renewed
// with Renew. No keys and no error: nothing is due.
func (s *Store) Claim(ctx context.Context, owner string, n int) ([]Claim, error) {
	return s.claimKeys(ctx, owner, n, Urgent, Normal, Background)
}

// ClaimOldest is Claim without regard to urgency: with one such claim every so often no key waits
// for ever.
func (s *Store) ClaimOldest(ctx context.Context, owner string, n int) ([]Claim, error) {
	return s.claimKeys(ctx, owner, n, anyUrgency)
}

func (s *Store) claimKeys(ctx context.Context, owner string, n int, order ...Urgency) ([]Claim, error) {
	if err := checkKey("the claim's owner", owner); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, nil
	}
	claims, err := txWithResult(withoutClaim(ctx), s, "claim", func(tx *Tx) ([]Claim, error) {
		var out []Claim
		for _, u := range order {
			if len(out) < n {
				more, err := tx.claimDue(ctx, owner, n-len(out), u)
				if err != nil {
					return nil, err
				}
				for _, c := range more {
					if delay := deathDelay(c, s.options.Lease); delay == 0 {
						out = append(out, c.Claim)
					} else if err := tx.putAside(ctx, owner, c.Claim, delay); err != nil {
						return nil, err
					}
				}
			}
		}
		return out, nil
	})
	return claims, wrapError(err, "claim keys that are due")
}

const (
	// harmlessDeaths is how many runs of a key may fail, the last one by the end of its process,
	// before the key is left alone for a while. Machines go away too.
	harmlessDeaths = 1
	// maxDeathLeases is how many leases a key is left alone for at last; at first it is half of one.
	maxDeathLeases = 10
)

// deathDelay is how long a key is left alone whose run ended with its process. Whatever kills a
// process must not do so at each start, and keep the others from being run. The keys that ran
// beside it are left alone for other times, so that they come to their end without it.
func deathDelay(c newClaim, lease time.Duration) time.Duration {
	if !c.died || c.Fails <= harmlessDeaths {
		return 0
	}
	delay := min(lease/2<<min(2*(c.Fails-harmlessDeaths-1), 10), maxDeathLeases*lease)
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Key)) // never fails
	return delay + time.Duration(float64(delay)*float64(h.Sum32())/math.MaxUint32).Truncate(time.Millisecond)
}

// putAside gives a claim back, not to be made again before a time has passed.
func (t *Tx) putAside(ctx context.Context, owner string, c Claim, delay time.Duration) error {
	t.store.options.Log.Error("runs of a key had no end, as where they end the process; it is left alone for a while",
		zap.String("key", c.Key), zap.Int("times", c.Fails), zap.Duration("for", delay))
	now := t.now()
	return t.Finish(ctx, owner, c, Outcome{Next: now, NotBefore: now.Add(delay), PutOff: true, Urgency: c.Urgency})
}

func (t *Tx) claimDue(ctx context.Context, owner string, n int, u Urgency) ([]newClaim, error) {
	before := t.store.time.own()
	claims, now, err := t.queryDue(ctx, owner, clampLimit(n), u)
	if len(claims) > 0 && t.store.hasOwnClock {
		t.store.time.learn(now, before, t.store.time.own())
	}
	return claims, err
}

// queryDue also says what time it is by the database's clock.
func (t *Tx) queryDue(ctx context.Context, owner string, n int, u Urgency) (claims []newClaim, now time.Time, err error) {
	which := ""
	if u != anyUrgency {
		which = fmt.Sprintf(" AND urgency = %d", u)
	}
	query := `WITH picked AS MATERIALIZED (
			SELECT key FROM wakes WHERE ready_at <= liftlock_now()` + which + ` ORDER BY ready_at` + limitTo("$1") +
		t.store.dialect.skipLocked + `)
		UPDATE wakes SET owner = $2, gen = gen + 1, due_at = $3, lease_until = liftlock_now() + $4,
			fails = CASE WHEN owner = '' THEN fails ELSE fails + 1 END, not_before = CASE WHEN owner = '' THEN 0 ELSE 1 END
		WHERE key IN (SELECT key FROM picked) RETURNING key, gen, fails, urgency, not_before, liftlock_now()`
	// not_before means nothing while the key is claimed, so it says whom it was claimed from.
	claims, err = queryAll(ctx, t.db, func(c *newClaim) []any {
		return []any{&c.Key, &c.Gen, &c.Fails, &c.Urgency, &c.died, timeColumn{&now}}
	}, query, n, owner, int64(neverDue), t.store.options.Lease.Microseconds())
	return claims, now, err
}

// Finish ends a run and says when the next one is due. ErrLost: the claim isn't
// the owner's any more, nothing was stored, and the key runs elsewhere.
func (s *Store) Finish(ctx context.Context, owner string, c Claim, o Outcome) error {
	return s.Tx(ctx, "finish", func(tx *Tx) error { return tx.Finish(ctx, owner, c, o) })
}

// Finish is Store.Finish as part of the transaction in which a run's results are
// stored: when the claim was lost, Store.Tx returns ErrLost and stores nothing.
func (t *Tx) Finish(_ context.Context, owner string, c Claim, o Outcome) error {
	t.finishes[c.Key] = runFinish{owner: owner, claim: c, outcome: o}
	return nil
}

func (t *Tx) writeFinish(ctx context.Context, f runFinish) error {
	f.next, f.hold = -1, -1
	if !f.outcome.Next.IsZero() {
		f.next = microsUntil(t.now(), f.outcome.Next)
	}
	if !f.outcome.NotBefore.IsZero() {
		f.hold = microsUntil(t.now(), f.outcome.NotBefore)
	}
	due, held, err := t.finishRun(ctx, f)
	if err == nil && !held {
		err = ErrLost
	}
	if err == nil && due < neverDue {
		t.subjects[subjectWakes] = true
	}
	return wrapError(err, "finish the run of %s", f.claim.Key)
}

// finishRun returns when the key is due next.
func (t *Tx) finishRun(ctx context.Context, f runFinish) (due int64, held bool, err error) {
	// The wakes since the claim are in due_at. The earlier of them and next counts, with its
	// urgency; a key that wants to run urgently does so also where it is woken before.
	return queryOne(ctx, t.db, oneColumn[int64], `UPDATE wakes SET owner = '', lease_until = 0, ended_at = liftlock_now(),
			due_at = CASE WHEN CAST($1 AS BIGINT) < 0 OR due_at < liftlock_now() + CAST($1 AS BIGINT) THEN due_at
				ELSE liftlock_now() + CAST($1 AS BIGINT) END,
			not_before = CASE WHEN CAST($2 AS BIGINT) < 0 THEN 0 ELSE liftlock_now() + CAST($2 AS BIGINT) END,
			urgency = CASE WHEN CAST($1 AS BIGINT) < 0 OR due_at < liftlock_now() + CAST($1 AS BIGINT) AND CAST($7 AS BIGINT) > $9 THEN urgency ELSE CAST($7 AS BIGINT) END,
			fails = CASE WHEN CAST($8 AS BIGINT) = 1 THEN fails WHEN CAST($3 AS BIGINT) = 1 THEN fails + 1 ELSE 0 END
		WHERE key = $4 AND owner = $5 AND gen = $6 RETURNING due_at`,
		f.next, f.hold, boolNumber(f.outcome.Failed), f.claim.Key, f.owner, f.claim.Gen, int64(f.outcome.Urgency),
		boolNumber(f.outcome.PutOff), int64(Urgent))
}

// holdsClaim also locks the key's row, where the database has such locks.
func (t *Tx) holdsClaim(ctx context.Context, owner string, c Claim) (bool, error) {
	_, held, err := queryOne(ctx, t.db, oneColumn[int], `SELECT 1 FROM wakes WHERE key = $1 AND owner = $2 AND gen = $3`+
		t.store.dialect.forUpdate, c.Key, owner, c.Gen)
	return held, err
}

// Renew extends the owner's claims and returns the keys that aren't its own any
// more: their runs must stop. After an error nothing is known to be renewed.
func (s *Store) Renew(ctx context.Context, owner string, keys []string) (lost []string, err error) {
	if err := checkKey("the claims' owner", owner); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, nil
	}
	held, err := txWithResult(withoutClaim(ctx), s, "renew", func(tx *Tx) ([]string, error) {
		var held []string
		for some := range slices.Chunk(keys, wakesAtOnce) {
			renewed, err := tx.renewClaims(ctx, owner, some)
			if err != nil {
				return nil, err
			}
			held = append(held, renewed...)
		}
		return held, nil
	})
	if err != nil {
		return nil, wrapError(err, "renew the claims of %d keys", len(keys))
	}
	for _, k := range keys {
		if !slices.Contains(held, k) {
			lost = append(lost, k)
		}
	}
	return lost, nil
}

func (t *Tx) renewClaims(ctx context.Context, owner string, keys []string) (held []string, err error) {
	var w whereClause
	addEquals(&w, "owner", owner)
	addIn(&w, "key", keys)
	w.args = append(w.args, t.store.options.Lease.Microseconds())
	return queryAll(ctx, t.db, oneColumn[string],
		`UPDATE wakes SET lease_until = liftlock_now() + `+w.lastPlaceholder()+w.String()+` RETURNING key`, w.args...)
}

// FreeClaims makes due again, at once, what the owner has claimed, but for the keys that it works
// on, and returns how many keys that are. A claim that fails may have been made all the same, its
// answer lost on the way: until its lease ends no process would run its keys.
func (s *Store) FreeClaims(ctx context.Context, owner string, except []string) (freed int, err error) {
	if err := checkKey("the claims' owner", owner); err != nil {
		return 0, err
	}
	freed, err = txWithResult(withoutClaim(ctx), s, "free", func(tx *Tx) (int, error) {
		n, err := tx.freeClaims(ctx, owner, except)
		if n > 0 {
			tx.subjects[subjectWakes] = true
		}
		return int(n), err
	})
	return freed, wrapError(err, "free the claims of keys that nothing runs")
}

// freeClaims makes due what an owner has claimed but for some keys.
func (t *Tx) freeClaims(ctx context.Context, owner string, except []string) (freed int64, err error) {
	var w whereClause
	addEquals(&w, "owner", owner)
	for some := range slices.Chunk(except, wakesAtOnce) {
		addNotIn(&w, "key", some)
	}
	return t.db.exec(ctx, `UPDATE wakes SET owner = '', lease_until = 0, due_at = liftlock_now()`+w.String(), w.args...)
}

// NextDue is when the next key can be claimed, by Options.Now; false when no key
// has a time. The time of a key that is running is the end of its lease.
func (q queries) NextDue(ctx context.Context) (time.Time, bool, error) {
	in, ok, err := queryOne(ctx, q.db, oneColumn[int64],
		`SELECT ready_at - liftlock_now() FROM wakes WHERE ready_at < $1 ORDER BY ready_at LIMIT 1`, int64(neverDue))
	if err != nil || !ok {
		return time.Time{}, false, wrapError(err, "read when the next key is due")
	}
	return q.now().Add(time.Duration(in) * time.Microsecond), true, nil
}

// Depth counts the keys in the queue.
func (q queries) Depth(ctx context.Context) (Depth, error) {
	d, _, err := queryOne(ctx, q.db, func(d *Depth) []any { return []any{&d.Due, &d.Later, &d.Running, &d.Oldest} }, `SELECT
			coalesce(sum(CASE WHEN ready_at <= liftlock_now() THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN ready_at > liftlock_now() AND owner = '' THEN 1 ELSE 0 END), 0),
			coalesce(sum(CASE WHEN ready_at > liftlock_now() AND owner <> '' THEN 1 ELSE 0 END), 0),
			coalesce(max(CASE WHEN ready_at <= liftlock_now() THEN liftlock_now() - ready_at END), 0)
		FROM wakes WHERE ready_at < $1`, int64(neverDue))
	d.Oldest *= time.Duration(time.Microsecond) // it was read in microseconds
	return d, wrapError(err, "count the keys in the queue")
}
