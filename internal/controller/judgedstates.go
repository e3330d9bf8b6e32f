package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Every process hears of every change in an Argo CD, some of them later than others, and each would
// have the unit evaluated again. So the process that has judged a unit leaves the digests of the
// states that it had heard of. A process that hears of one of them afterwards has no news. A state
// that was judged, and is not the last judged one, is in no record: an Application that comes back
// to it is news.

const (
	// recentFor is how long a process may hear of a state after the first one did, and have no
	// run for it.
	recentFor = time.Minute
	// maxJudgedStates bounds the digests that are left about a unit. The states of a unit with more
	// are news to every process.
	maxJudgedStates = 256
)

// recentStates are the newest states of Applications, and when they were heard of.
type recentStates map[applicationID]recentState

type recentState struct {
	digest string
	at     time.Time
}

// digestApp tells states of Applications apart, the same in every process. It is empty for one
// that can't be told, which is never said to be judged.
func digestApp(a *verification.App) string {
	raw, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}

// noteState notes an Application's newest state; an empty one is that it is gone.
func (ai *applicationIndex) noteState(key wake.Key, id applicationID, digest string, now time.Time) {
	if digest == "" {
		delete(ai.recent[key], id)
		return
	}
	if ai.recent[key] == nil {
		ai.recent[key] = recentStates{}
	}
	ai.recent[key][id] = recentState{digest, now}
}

// listRecentStates forgets what was heard of long ago, and gives the digests of the others, sorted.
func (ai *applicationIndex) listRecentStates(key wake.Key, now time.Time) []string {
	var out []string
	for id, s := range ai.recent[key] {
		if age := now.Sub(s.at); age < 0 || age > recentFor {
			delete(ai.recent[key], id)
			continue
		}
		out = append(out, s.digest)
	}
	if len(ai.recent[key]) == 0 {
		delete(ai.recent, key)
	}
	if len(out) > maxJudgedStates {
		return nil
	}
	slices.Sort(out)
	return out
}

// judgedStates are digests of the states that units were last judged with.
var judgedStates = record.Declare[record.Unit, []string](record.Declaration{
	Name: "judged-states", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "Digests of the states of the targets that the component was last judged with.",
})

// putJudgedStates leaves the states that a unit is judged with.
func putJudgedStates(ctx context.Context, tx *store.Tx, u promotion.Unit, digests []string) error {
	if len(digests) == 0 {
		return judgedStates.Drop(ctx, tx, record.Unit(u))
	}
	return judgedStates.Put(ctx, tx, record.Unit(u), digests)
}

// wereJudged says that the last judgement of a unit was made with all of these states.
func (co *Controller) wereJudged(ctx context.Context, u promotion.Unit, digests []string) (bool, error) {
	judged, ok, err := judgedStates.Get(ctx, co.opts.Store, record.Unit(u))
	if err != nil || !ok {
		return false, err
	}
	return !slices.ContainsFunc(digests, func(d string) bool { return !slices.Contains(judged, d) }), nil
}
