package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// maxUpdateTurn is how long a pull request is waited for that was brought up to date to be
// merged: its checks run again.
const maxUpdateTurn = time.Hour

// updateTurn is whose turn it is to be brought up to date with a branch. Where the forge demands
// that, each merge makes all others wait for their checks again, so it is one after the other.
type updateTurn struct {
	Pull int       `json:"pull"`
	At   time.Time `json:"at"`
}

// UpdateTurnKey is the store's key of whose turn it is to be brought up to date with a branch of
// a repository.
func UpdateTurnKey(repo, branch string) string { return "turn|" + repo + "|" + branch }

// TakeUpdateTurn gives a pull request its turn. It is for the one that merges in a repository.
func (o *pullGatherer) TakeUpdateTurn(ctx context.Context, s stateStore, r *Repository, branch string, number int) error {
	raw, err := json.Marshal(updateTurn{Pull: number, At: o.now()})
	if err != nil {
		return fmt.Errorf("write down that #%d is brought up to date: %w", number, err)
	}
	return s.PutState(ctx, UpdateTurnKey(r.ID, branch), raw)
}

// updateTurn says which other pull request is to be brought up to date and merged before this
// one, 0 where none is, and whether it is this one's turn. Without the database it is whoever's
// comes first.
func (o *Gatherer) updateTurn(ctx context.Context, r *Repository, pr *forge.PullRequest) (other int, own bool, err error) {
	raw, ok, err := o.opts.Store.State(ctx, UpdateTurnKey(r.ID, pr.Base))
	var turn updateTurn
	if err != nil || !ok || json.Unmarshal(raw, &turn) != nil || o.opts.Now().Sub(turn.At) > maxUpdateTurn {
		return 0, false, err
	}
	if turn.Pull == pr.Number {
		return 0, true, nil
	}
	known, err := o.KnownPull(ctx, r.ID, turn.Pull)
	if err != nil || known == nil || known.State != forge.Open {
		return 0, false, err
	}
	return turn.Pull, false, nil
}
