package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// pullGatherer reads pull requests from the forge and keeps the store's copy of them.
type pullGatherer struct {
	store  pullStore
	now    func() time.Time
	maxAge time.Duration // how long what was read may be used when nothing was heard of it

	mu         sync.Mutex                        // while reviews are added to a detail
	details    *cache.Cache[string, *pullDetail] // open pull requests as read from the forge, by detailKey
	uncomputed *cache.Cache[string, uncomputed]  // by detailKey
	listed     *cache.Cache[string, struct{}]    // repositories whose list was read in this process
	settled    *cache.Cache[string, *pullRecord] // the last that were merged
	past       *cache.Cache[string, pastAnswer]  // the last answers about closed ones
	rows       branch.DecodedRows[stored.Pull]
}

// pullStore is what is read and written of the store for that.
type pullStore interface {
	Pull(ctx context.Context, repo string, number int) (store.Pull, bool, error)
	OpenPulls(ctx context.Context, repo, branchPrefix string) ([]store.Pull, error)
	UnsettledPulls(ctx context.Context, repo, pipeline string, of ...store.PullsByRules) ([]store.Pull, error)
	PullsAt(ctx context.Context, repo, head string) ([]store.Pull, error)
	PullsMergedAs(ctx context.Context, repo, commit string) ([]store.Pull, error)
	PastPullsVersion(ctx context.Context, repo, pipeline, component string) (int64, error)
	NewestPastPulls(ctx context.Context, at store.PastPlace, environments ...string) ([]store.PastPull, error)
	RestrainingPulls(ctx context.Context, at store.PastPlace, shorts ...string) ([]store.PastPull, error)
	MergedPulls(ctx context.Context, at store.PastPlace, shorts ...string) ([]store.PastPull, error)
	PullThatMoved(ctx context.Context, repo, pipeline, branchOf, environment, whole string, below int) (int, bool, error)
	PutPullSince(ctx context.Context, p store.Pull, seen int64) (version int64, err error)
	PullCursor(ctx context.Context, repo string) (time.Time, error)
	record.Reader
	Tx(ctx context.Context, name string, do func(*store.Tx) error) error
}

func newPullGatherer(s pullStore, now func() time.Time, maxAge time.Duration, group *cache.Group) *pullGatherer {
	return &pullGatherer{store: s, now: now, maxAge: maxAge,
		details:    branch.NewCache[string, *pullDetail](group, "pull_requests", 10_000),
		uncomputed: branch.NewCache[string, uncomputed](group, "uncomputed_merges", 10_000),
		listed:     branch.NewCache[string, struct{}](group, "listed_repositories", 10_000),
		settled:    branch.NewCache[string, *pullRecord](group, "settled_pull_requests", 10_000),
		past:       newPastAnswers(group),
		rows:       branch.NewDecodedRows(group, "pull_request_rows", clipLabels)}
}

// The cache is the store's copy of every pull request whose branch is named like one of ours. It is
// read from the forge by the updates since the last time, so keeping it costs one call however many
// there are. Only a start with an empty store reads the whole list, a hundred a call.

// cursorOverlap is read again every time: forges stamp whole seconds, and two
// updates of one second may be seen apart.
const cursorOverlap = 2 * time.Second

// lateChangeWindow is how old the last news of a closed pull request may be for its comments to be
// read when a list names it. A command may have been given while no process ran. Without a bound a
// start with an empty store would read every pull request that there ever was.
const lateChangeWindow = 7 * 24 * time.Hour

// lateAfter is how long after its last change a closed pull request has nothing urgent to tell.
const lateAfter = 10 * time.Minute

// IsLate says that a pull request can only have an unserved command of a while ago. With an empty
// store that is every one of the last days, and open ones go first.
func IsLate(pr *forge.PullRequest, now time.Time) bool {
	return pr.State != forge.Open && now.Sub(pr.UpdatedAt) > lateAfter
}

// RefreshPullRequests reads the changes on the forge since the last time, and wakes the changed
// pull requests, ours or not, in the same transaction. So no change in the list is lost, whichever
// process reads it first.
func (pg *pullGatherer) RefreshPullRequests(ctx context.Context, r *branch.Repository) error {
	cursor, err := pg.store.PullCursor(ctx, r.ID)
	if err != nil {
		return err
	}
	since := cursor
	if !since.IsZero() {
		since = since.Add(-cursorOverlap)
	}
	prs, err := r.Forge.PullRequests(ctx, r.Name, since)
	if err != nil {
		return fmt.Errorf("list the pull requests of %s: %w", r.ID, err)
	}
	var wakes, late []string
	var rows []store.Pull
	var changed []*forge.PullRequest
	for i, pr := range prs {
		if pr.UpdatedAt.After(cursor) {
			cursor = pr.UpdatedAt
		}
		if _, ours := promotion.ParseBranch(pr.Branch); !ours || pr.Fork {
			key := wake.ForPull(r.ID, pr.Number).String()
			if pr.State == forge.Open {
				wakes = append(wakes, key)
			} else if !since.IsZero() { // with an empty store there is nothing to forget
				if kept, err := Shown.Has(ctx, pg.store, record.OfPull(r.ID, pr.Number)); err != nil {
					return err
				} else if kept {
					late = append(late, key)
				}
			}
			continue
		}
		known, err := pg.findCachedPull(ctx, r, pr.Number)
		if err != nil {
			return err
		}
		if known != nil && sameListedPull(&known.PR, &pr) {
			continue
		}
		if known != nil && known.PR.UpdatedAt.Equal(pr.UpdatedAt) {
			// Which of two answers of one second is the newer one only a new question tells.
			wakes = append(wakes, wake.ForPull(r.ID, pr.Number).String())
			continue
		}
		switch key := wake.ForPull(r.ID, pr.Number).String(); {
		case !IsLate(&pr, pg.now()):
			wakes = append(wakes, key)
		case pg.now().Sub(pr.UpdatedAt) < lateChangeWindow:
			late = append(late, key)
		}
		if known != nil && pr.State == forge.Open && pr.Head == known.PR.Head && pr.Queue == forge.NotQueued {
			pr.Queue = known.PR.Queue // not every list tells; it is read by itself right after
		}
		if known != nil && pr.Head == known.PR.Head {
			pr.Pipeline = known.PR.Pipeline // no list tells
		}
		if known != nil && known.PR.State == forge.Merged && known.PR.MergeCommit != pr.MergeCommit {
			// Its own run sees no difference any more.
			ref, _ := promotion.ParseBranch(pr.Branch)
			wakes = append(wakes, wake.ForUnit(promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}).String())
		}
		rows = append(rows, pg.pullRow(r, pr, known, known != nil && known.Read))
		changed = append(changed, &prs[i])
	}
	err = pg.store.Tx(ctx, "booked", func(tx *store.Tx) error {
		if err := tx.PutPulls(ctx, rows...); err != nil {
			return err
		}
		for _, pr := range changed {
			if err := ForgetCommentCount(ctx, tx, r.ID, pr); err != nil {
				return err
			}
		}
		if err := tx.SetPullCursor(ctx, r.ID, cursor); err != nil {
			return err
		}
		if err := tx.WakeAs(ctx, store.Background, late...); err != nil {
			return err
		}
		return tx.Wake(ctx, wakes...)
	})
	if err != nil {
		return err
	}
	pg.listed.Put(r.ID, struct{}{})
	return nil
}

// sameListedPull compares what a list shows; Mergeable is not in lists.
func sameListedPull(a, b *forge.PullRequest) bool {
	if a.Head != b.Head || a.Base != b.Base || a.State != b.State || a.MergeCommit != b.MergeCommit {
		return false
	}
	return a.UpdatedAt.Equal(b.UpdatedAt) && a.Title == b.Title && fmt.Sprint(a.Labels) == fmt.Sprint(b.Labels)
}

// ensurePullsCached reads the book once a process before anything is judged: a pull
// request may have been opened just before the last process died.
func (pg *pullGatherer) ensurePullsCached(ctx context.Context, r *branch.Repository) error {
	if _, done := pg.listed.Get(r.ID); done {
		return nil
	}
	return pg.RefreshPullRequests(ctx, r)
}

// readTries bounds how often a pull request is read again that somebody else read in the
// same moment.
const readTries = 3

// RefreshPullRequest reads one pull request from the forge and writes it into the book;
// whatever is remembered of its reviews is forgotten. An answer that another one overtook
// is not believed: it is read again.
func (pg *pullGatherer) RefreshPullRequest(ctx context.Context, r *branch.Repository, number int) (*forge.PullRequest, error) {
	row, _, err := pg.store.Pull(ctx, r.ID, number)
	if err != nil {
		return nil, err
	}
	if queued, err := MergesByQueue.Has(ctx, pg.store, record.Repository(r.ID)); err != nil {
		return nil, err
	} else if queued {
		ctx = forge.WithMergeQueue(ctx)
	}
	for range readTries {
		var known *stored.Pull
		if len(row.Data) > 0 {
			if known, err = pg.decodePull(row); err != nil {
				return nil, err
			}
		}
		read, err := pg.readPull(ctx, r, number)
		if err == nil && (known == nil || !known.Read) && !forge.HasMergeQueue(ctx) {
			err = pg.findQueued(ctx, r, read)
		}
		if err != nil {
			return nil, fmt.Errorf("read #%d of %s: %w", number, r.ID, err)
		}
		pr := &read.pr
		if _, ours := promotion.ParseBranch(pr.Branch); !ours || pr.Fork {
			return pr, nil
		}
		version, err := pg.store.PutPullSince(ctx, pg.pullRow(r, *pr, known, true), row.Version)
		if err != nil {
			return nil, err
		}
		if version == 0 {
			seen := row.Version
			if row, _, err = pg.store.Pull(ctx, r.ID, number); err != nil {
				return nil, err
			}
			if row.Version != seen {
				continue
			}
			// It is older by the forge's time, although no other write overtook it. That is the
			// forge's own fault: the row stays, and its present answer is believed.
			version = seen
		}
		read.version = version
		pg.putDetail(r, read)
		return pr, nil
	}
	return nil, fmt.Errorf("read #%d of %s, which others read all the time: %w", number, r.ID, forge.ErrConflict)
}

// findQueued fills in that a pull request of ours is in the forge's merge queue which the store
// doesn't know of, as it was lost since. All others are read with how they stand to the queue then,
// too. A forge that can't tell has none.
func (pg *pullGatherer) findQueued(ctx context.Context, r *branch.Repository, read *pullDetail) error {
	if _, ours := promotion.ParseBranch(read.pr.Branch); !ours || !r.HasOpened(&read.pr) || read.pr.State != forge.Open ||
		read.pr.Queue == forge.Queued {
		return nil
	}
	pr, err := r.Forge.PullRequest(forge.WithMergeQueue(ctx), r.Name, read.pr.Number)
	if failed := branch.RetryableError(ctx, err); failed != nil {
		return failed
	}
	if err != nil || pr.Queue != forge.Queued {
		return nil
	}
	read.pr = *pr
	return pg.store.Tx(ctx, "queueFound", func(tx *store.Tx) error {
		return MergesByQueue.Put(ctx, tx, record.Repository(r.ID), true)
	})
}

// readPull reads a pull request, and with the same call its reviews where they were asked for
// before and the forge gives both.
func (pg *pullGatherer) readPull(ctx context.Context, r *branch.Repository, number int) (*pullDetail, error) {
	known, _ := pg.details.Get(detailKey(r, number))
	if bulk, is := r.Forge.(forge.BulkReader); is && known != nil && known.wanted {
		found, err := bulk.ReviewedPullRequests(ctx, r.Name, number)
		switch {
		case err == nil && len(found) == 1:
			return &pullDetail{pr: found[0].PullRequest, reviews: people.Reviews{All: found[0].Reviews, Read: true}, wanted: true}, nil
		case err != nil && !errors.Is(err, forge.ErrUnsupported):
			return nil, err
		}
	}
	pr, err := r.Forge.PullRequest(ctx, r.Name, number)
	if err != nil {
		return nil, err
	}
	return &pullDetail{pr: *pr, wanted: known != nil && known.wanted}, nil
}

// RecordCreated writes a pull request into the cache as the forge answered when it was made. That
// spares reading it, and its reviews: there are none yet. Where there is other news of it by now it
// is read all the same.
func (pg *pullGatherer) RecordCreated(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) (*forge.PullRequest, error) {
	_, known, err := pg.store.Pull(ctx, r.ID, pr.Number)
	if err != nil {
		return nil, err
	}
	if !known {
		made := *pr
		made.Mergeable = forge.MergeableUnknown
		version, err := pg.store.PutPullSince(ctx, pg.pullRow(r, made, nil, true), 0)
		if err != nil {
			return nil, err
		}
		if version != 0 {
			pg.putDetail(r, &pullDetail{pr: made, version: version, reviews: people.Reviews{Read: true}})
			return &made, nil
		}
	}
	return pg.RefreshPullRequest(ctx, r, pr.Number)
}

// RecordMerged records that a pull request of ours was merged just now, from its landed commit: the
// forge made that commit when it merged, by its own clock. That saves a reading. Where there is
// other news of it by now, or the forge made no commit, it is read all the same.
func (pg *pullGatherer) RecordMerged(ctx context.Context, r *branch.Repository, pr *forge.PullRequest, landed *git.CommitInfo) error {
	row, _, err := pg.store.Pull(ctx, r.ID, pr.Number)
	if err != nil {
		return err
	}
	known := &stored.Pull{}
	if len(row.Data) > 0 {
		if known, err = pg.decodePull(row); err != nil {
			return err
		}
	}
	if landed.SHA != pr.Head && known.PR.UpdatedAt.Equal(pr.UpdatedAt) {
		merged := *pr
		merged.State, merged.Mergeable, merged.MergeReason, merged.Queue = forge.Merged, forge.MergeableUnknown, "", forge.NotQueued
		merged.MergeCommit, merged.MergedAt, merged.ClosedAt = landed.SHA, landed.CommitTime, landed.CommitTime
		merged.MergedBy, merged.MergedByID = r.BotLogin, r.BotID
		version, err := pg.store.PutPullSince(ctx, pg.pullRow(r, merged, known, true), row.Version)
		if err != nil {
			return err
		}
		if version != 0 {
			pg.putDetail(r, &pullDetail{pr: merged, version: version})
			return nil
		}
	}
	_, err = pg.RefreshPullRequest(ctx, r, pr.Number)
	return err
}

// putDetail remembers an answer, unless a newer one is.
func (pg *pullGatherer) putDetail(r *branch.Repository, read *pullDetail) {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	key := detailKey(r, read.pr.Number)
	if d, ok := pg.details.Get(key); !ok || d.version <= read.version {
		read.at = pg.now()
		pg.details.Put(key, read)
	}
}

// pullRow is the row of a pull request as the forge tells it; known is what the store has
// of it, nil: nothing; read as stored.Pull has it.
func (pg *pullGatherer) pullRow(r *branch.Repository, pr forge.PullRequest, known *stored.Pull, read bool) store.Pull {
	now := pg.now()
	cached := stored.Pull{PR: pr, NotifiedAt: now, HeadSince: now, Read: read}
	if known != nil && known.PR.Head == pr.Head && !known.HeadSince.IsZero() {
		cached.HeadSince = known.HeadSince
	} else if pr.UpdatedAt.After(now) {
		cached.HeadSince = pr.UpdatedAt
	}
	data, err := json.Marshal(cached)
	if err != nil {
		panic(err) // plain data always marshals
	}
	row := store.Pull{Repo: r.ID, Number: pr.Number, Branch: pr.Branch, State: string(pr.State), Author: pr.Author, Head: pr.Head,
		MergeCommit: pr.MergeCommit,
		CreatedAt:   pr.CreatedAt, UpdatedAt: pr.UpdatedAt, Data: data}
	if ref, ours := promotion.ParseBranch(pr.Branch); ours {
		row.Pipeline, row.Environment, row.Component, row.Revert = ref.Pipeline, ref.Environment, ref.Component, ref.Revert
	}
	switch pr.State {
	case forge.Open:
	case forge.Merged:
		row.ClosedAt = firstKnown(pr.MergedAt, pr.ClosedAt, pr.UpdatedAt, pg.now())
	default:
		row.ClosedAt = firstKnown(pr.ClosedAt, pr.UpdatedAt, pg.now())
	}
	return row
}

// firstKnown is the first in the list of the times that a forge told.
func firstKnown(times ...time.Time) time.Time {
	i := slices.IndexFunc(times, func(t time.Time) bool { return !t.IsZero() })
	return times[max(i, 0)]
}

func (pg *pullGatherer) findCachedPull(ctx context.Context, r *branch.Repository, number int) (*stored.Pull, error) {
	p, ok, err := pg.store.Pull(ctx, r.ID, number)
	if err != nil || !ok {
		return nil, err
	}
	return pg.decodePull(p)
}

// KnownPull is a pull request as the store has it; nil where it has none.
func (pg *pullGatherer) KnownPull(ctx context.Context, repo string, number int) (*forge.PullRequest, error) {
	row, ok, err := pg.store.Pull(ctx, repo, number)
	if err != nil || !ok {
		return nil, err
	}
	known, err := pg.decodePull(row)
	if err != nil {
		return nil, err
	}
	return &known.PR, nil
}

// clipLabels keeps callers from appending to the labels that others have too.
func clipLabels(p *stored.Pull) { p.PR.Labels = slices.Clip(p.PR.Labels) }

func (pg *pullGatherer) decodePull(p store.Pull) (*stored.Pull, error) {
	e, err := pg.rows.Decode(p.Data)
	if err != nil {
		return nil, fmt.Errorf("read #%d of %s from the store: %w", p.Number, p.Repo, err)
	}
	return &e, nil
}

// OpenPulls are the open pull requests on our branches of a repository.
func (pg *pullGatherer) OpenPulls(ctx context.Context, r *branch.Repository) ([]forge.PullRequest, error) {
	var out []forge.PullRequest
	for _, prefix := range []string{promotion.BranchPrefix, promotion.RevertPrefix} {
		rows, err := pg.store.OpenPulls(ctx, r.ID, prefix)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Component == "" {
				continue // only its name begins like one of ours
			}
			e, err := pg.decodePull(row)
			if err != nil {
				return nil, err
			}
			out = append(out, e.PR)
		}
	}
	return out, nil
}
