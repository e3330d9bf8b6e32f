package facts

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// maxUpdateTurn is how long a pull request is waited for that was brought up to date to be
// merged: its checks run again.
const maxUpdateTurn = time.Hour

// updateTurn is whose turn it is to be brought up to date with a branch. Where the forge demands
// that, each merge makes all others wait for their checks again, so it is one after the other.
type updateTurn struct {
	Pull int         `json:"pull"`
	At   time.Time   `json:"at"`
	Sent *sentUpdate `json:"sent,omitempty"` // nil: the forge wasn't sent to do it
}

// sentUpdate says that the forge was sent to bring a head up to date. GitHub does that some time
// after it has answered ("Update a pull request branch": 202).
type sentUpdate struct {
	Head  string    `json:"head"`
	At    time.Time `json:"at"` // the last time
	Tries int       `json:"tries"`
}

var updateTurns = record.Declare[record.InRepository, updateTurn](record.Declaration{
	Name: "update-turn", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "The pull request whose turn it is to be brought up to date with a branch, and whether the forge was sent to do it.",
})

// readUpdateTurn is whose turn it is; nil where it is no pull request's.
func readUpdateTurn(ctx context.Context, s record.Reader, repo, branch string) (*updateTurn, error) {
	turn, _, err := updateTurns.Get(ctx, s, record.OfBranch(repo, branch))
	if err != nil || turn.Pull == 0 {
		return nil, err
	}
	return &turn, nil
}

// TakeUpdateTurn gives a pull request its turn. It is for the one that merges in a repository.
func (pg *pullGatherer) TakeUpdateTurn(ctx context.Context, s record.ReadWriter, r *branch.Repository, branch string, number int) error {
	return pg.putUpdateTurn(ctx, s, r, branch, number, "")
}

// RecordUpdateSent writes down that the forge was sent to bring a pull request's head up to date.
func (pg *pullGatherer) RecordUpdateSent(ctx context.Context, s record.ReadWriter, r *branch.Repository, branch string, number int,
	head string) error {
	return pg.putUpdateTurn(ctx, s, r, branch, number, head)
}

// putUpdateTurn writes down whose turn it is. sent is the head that the forge was sent to bring up
// to date; empty: none was.
func (pg *pullGatherer) putUpdateTurn(ctx context.Context, s record.ReadWriter, r *branch.Repository, branch string, number int,
	sent string) error {
	was, err := readUpdateTurn(ctx, s, r.ID, branch)
	if err != nil {
		return err
	}
	turn := updateTurn{Pull: number, At: pg.now()}
	if was != nil && was.Pull == number {
		turn.Sent = was.Sent
	}
	if sent != "" {
		tries := 1
		if turn.Sent != nil && turn.Sent.Head == sent {
			tries = turn.Sent.Tries + 1
		}
		turn.Sent = &sentUpdate{Head: sent, At: turn.At, Tries: tries}
	}
	return updateTurns.Put(ctx, s, record.OfBranch(r.ID, branch), turn)
}

// ReleaseUpdateTurn takes a pull request's turn from it, and no other's.
func ReleaseUpdateTurn(ctx context.Context, tx *store.Tx, repo, branch string, number int) error {
	turn, err := readUpdateTurn(ctx, tx, repo, branch)
	if err != nil || turn == nil || turn.Pull != number {
		return err
	}
	return updateTurns.Drop(ctx, tx, record.OfBranch(repo, branch))
}

// addUpdateTurn fills in which other pull request is to be brought up to date and merged before
// this one, or that it is this one's turn, and the outcome of that. Without the database the turn
// goes to whichever comes first.
func (ga *Gatherer) addUpdateTurn(ctx context.Context, r *branch.Repository, p *OpenPull) error {
	turn, err := readUpdateTurn(ctx, ga.opts.Store, r.ID, p.PR.Base)
	if err != nil || turn == nil || ga.opts.Now().Sub(turn.At) > maxUpdateTurn {
		return err
	}
	if turn.Pull != p.Number {
		known, err := ga.PullCache.KnownPull(ctx, r.ID, turn.Pull)
		if err == nil && known != nil && known.State == forge.Open {
			p.UpdatedFirst = turn.Pull
		}
		return err
	}
	p.HasTurn = true
	switch sent := turn.Sent; {
	case sent == nil:
	case sent.Head == p.Head:
		p.SentUpdate = &promotion.SentUpdate{At: sent.At, Tries: sent.Tries}
	case p.HeadState == promotion.HeadComposed:
		p.UpdatedFrom = sent.Head
	}
	return nil
}
