package facts

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// joinedQueue is which head of a pull request Liftlock had join the forge's merge queue, and when.
type joinedQueue struct {
	Head     string    `json:"head"`
	At       time.Time `json:"at,omitzero"`        // zero: Liftlock took it out since, or is about to
	Pipeline string    `json:"pipeline,omitempty"` // whose limits.mergesPerHour it counts in; empty: in none
}

// joinedQueues is kept nowhere else: without the database what the forge dropped joins once more.
var joinedQueues = record.Declare[record.Pull, joinedQueue](record.Declaration{
	Name: "joined-queue", Owner: "controller/facts", Lifetime: record.UntilSettled,
	Doc: "The head that joined the forge's merge queue, and when. Without it, what the forge dropped joins once more.",
})

// MergesByQueue says that merges into a repository go through the forge's merge queue, as far as
// that was seen. Then each of its pull requests is read with its place there.
var MergesByQueue = record.Declare[record.Repository, bool](record.Declaration{
	Name: "merges-by-queue", Owner: "controller/facts", Lifetime: record.Lasting,
	Doc: "Merges into the repository go through the forge's merge queue.",
})

// DropJoinedQueue forgets that a pull request joined the forge's merge queue.
func DropJoinedQueue(ctx context.Context, w record.Writer, repo string, pull int) error {
	return joinedQueues.Drop(ctx, w, record.OfPull(repo, pull))
}

// PutJoinedQueue notes that Liftlock had a head join the forge's merge queue: when it is no longer
// there and hasn't landed, the forge or a person took it out. A promotion counts in the limit of
// the unit's pipeline until it has landed; a revert counts in none. A later record of the head
// stays: that it joined, or that Liftlock took it out.
func PutJoinedQueue(ctx context.Context, tx *store.Tx, u promotion.Unit, pull int, head string, revert bool, at time.Time) error {
	noted, _, err := joinedQueues.Get(ctx, tx, record.OfPull(u.Repo, pull))
	if err != nil || noted.Head == head {
		return err
	}
	if err := MergesByQueue.Put(ctx, tx, record.Repository(u.Repo), true); err != nil {
		return err
	}
	joined := joinedQueue{Head: head, At: at}
	if !revert {
		joined.Pipeline = u.Pipeline
	}
	return joinedQueues.Put(ctx, tx, record.OfPull(u.Repo, pull), joined)
}

// PutLeftQueue records that Liftlock takes a head out of the forge's merge queue. Earlier readings
// don't say that it is there, and when it isn't, nothing dropped it.
func PutLeftQueue(ctx context.Context, tx *store.Tx, repo string, pull int, head string) error {
	return joinedQueues.Put(ctx, tx, record.OfPull(repo, pull), joinedQueue{Head: head})
}

// RecordSeenQueued records which of a component's open pull requests in the forge's merge queue
// Liftlock had join. The record of their judgement is from before the request, so it is there
// though the forge's answer was lost, or the process died before it recorded it. It is for the
// transaction that stores the evaluation.
func (rg *recordGatherer) RecordSeenQueued(ctx context.Context, tx *store.Tx, c *ComponentEvaluation) error {
	u := c.Facts.Unit
	for i := range c.Facts.Envs {
		e := &c.Facts.Envs[i]
		for _, p := range []*promotion.Pull{e.Open, e.Revert, e.WrongKind, e.BatchPull} {
			if p == nil || !p.Queued || !p.JoinedQueueAt.IsZero() {
				continue
			}
			judged, ok, err := Merging.Get(ctx, tx, OfMerge(u, p.Number))
			if err != nil {
				return err
			}
			if !ok || judged.Head != p.Head {
				continue
			}
			if err := PutJoinedQueue(ctx, tx, u, p.Number, p.Head, judged.Kind == promotion.KindRevert, judged.JudgedAt); err != nil {
				return err
			}
		}
	}
	return nil
}

// listMergesUnderWay lists the promotions of a pipeline, by number, that aren't known to have
// landed although they joined the forge's merge queue since a time, or the forge was asked for
// their merge since then. One that the forge dropped, that landed or was closed, or that was read
// since and is still open, isn't under way. One whose record can't be understood isn't listed.
func (rg *recordGatherer) listMergesUnderWay(ctx context.Context, records record.Lister, repo, pipeline string,
	since time.Time) ([]promotion.QueuedMerge, error) {
	started, err := listStartedMerges(ctx, records, repo, pipeline)
	if err != nil {
		return nil, err
	}
	var out []promotion.QueuedMerge
	for number, at := range started {
		if !at.After(since) {
			continue
		}
		row, known, err := rg.store.Pull(ctx, repo, number)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		pull, err := rg.pulls.decodePull(row)
		if err != nil {
			return nil, err
		}
		if pull.PR.State == forge.Open && isQueued(pull, at) {
			out = append(out, promotion.QueuedMerge{Pull: number, At: at})
		}
	}
	slices.SortFunc(out, func(a, b promotion.QueuedMerge) int { return a.Pull - b.Pull })
	return out, nil
}

// listStartedMerges says of a pipeline's promotions, by number, when they joined the forge's merge
// queue, or when the forge was about to be asked to merge them. That is on record before the
// request, and stays while its answer is lost or the landed commit couldn't be recorded.
func listStartedMerges(ctx context.Context, records record.Lister, repo, pipeline string) (map[int]time.Time, error) {
	out := map[int]time.Time{}
	merging, err := Merging.List(ctx, records, record.Within{Repo: repo, NamePrefix: record.PipelinePrefix(pipeline)})
	if err != nil {
		return nil, err
	}
	for i := range merging {
		number, err := strconv.Atoi(merging[i].About.Name)
		if err == nil && merging[i].Value.Kind == promotion.KindPromotion {
			out[number] = merging[i].Value.SentAt
		}
	}
	joined, err := joinedQueues.List(ctx, records, record.Within{Repo: repo})
	if err != nil {
		return nil, err
	}
	for i := range joined {
		if joined[i].Value.Pipeline == pipeline {
			out[joined[i].About.Number] = joined[i].Value.At
		}
	}
	return out, nil
}

// isQueued says that a pull request is in the forge's merge queue, as far as is known. It was when
// it was read, or wasn't read since Liftlock had it join; zero: it didn't.
func isQueued(p *stored.Pull, joinedAt time.Time) bool {
	return p.PR.Queue == forge.Queued || !joinedAt.IsZero() && !p.NotifiedAt.After(joinedAt)
}

// readJoinedQueue is when Liftlock had a head join the forge's merge queue. It is zero where it
// didn't, where another head did, where Liftlock took it out since, and where the record can't be
// understood.
func readJoinedQueue(ctx context.Context, s record.Reader, repo string, pull int, head string) (time.Time, error) {
	joined, _, err := joinedQueues.Get(ctx, s, record.OfPull(repo, pull))
	if joined.Head != head {
		return time.Time{}, err
	}
	return joined.At, nil
}
