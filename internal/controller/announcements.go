package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	// announcementRetry is when a pull request that took no comment is looked at for it again.
	announcementRetry = 15 * time.Second
	// maxAnnouncementAge is for how long it is tried: later, the comment would only confuse.
	maxAnnouncementAge = 24 * time.Hour
)

// announcement is a comment that a pull request has yet to get.
type announcement struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"` // of what it says
}

func announcementPrefix(r *Repository, number int) string {
	return fmt.Sprintf("announcement|%s|%d|", r.ID, number)
}

// announce says in a pull request what was done about it, once for its source. Where the forge
// takes no comment for the moment, it is said when the pull request is looked at again: what was
// done is on record already, so nothing of it is undone for that.
func (e *Controller) announce(ctx context.Context, r *Repository, number int, source, text string) {
	sum := sha256.Sum256([]byte(source))
	key, a := announcementPrefix(r, number)+hex.EncodeToString(sum[:16]), announcement{Text: text, At: e.opts.Clock.Now()}
	raw, err := json.Marshal(a)
	if err == nil {
		err = e.opts.Store.PutState(ctx, key, raw)
	}
	if err == nil {
		err = e.tryAnnouncement(ctx, r, number, key, &a)
	}
	if err == nil {
		return
	}
	e.opts.Log.Warn("a pull request takes no comment on what was done about it; the audit trail has it, and it is tried again", zap.String("repository", r.ID), zap.Int("pull", number), zap.Error(err))
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	err = e.opts.Store.Tx(after, "announceLater", func(tx *store.Tx) error {
		if err := tx.PutState(after, key, raw); err != nil { // it may be that which failed
			return err
		}
		return tx.WakeAt(after, e.opts.Clock.Now().Add(announcementRetry), wake.ForPull(r.ID, number).String())
	})
	if err != nil {
		e.opts.Log.Error("what was done about a pull request is said there with the next event of it only", zap.String("repository", r.ID), zap.Int("pull", number), zap.Error(err))
	}
}

// tryAnnouncement says it and forgets it; an error is worth another try.
func (e *Controller) tryAnnouncement(ctx context.Context, r *Repository, number int, key string, a *announcement) error {
	_, err := r.Forge.CreateComment(ctx, r.Name, number, r.Words(a.Text))
	if forge.IsRetryable(err) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		e.opts.Log.Warn("a pull request takes no comment on what was done about it, now or later; the audit trail has it", zap.String("repository", r.ID), zap.Int("pull", number), zap.Error(err))
	}
	return e.opts.Store.DeleteState(ctx, key)
}

// announceRest says what a pull request has yet to get, unless it got it although the forge had
// said no; an error is worth another try.
func (e *Controller) announceRest(ctx context.Context, r *Repository, number int) error {
	rows, err := e.opts.Store.StateByPrefix(ctx, announcementPrefix(r, number))
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		var a announcement
		if json.Unmarshal(rows[key], &a) != nil || e.opts.Clock.Now().Sub(a.At) > maxAnnouncementAge {
			err = e.opts.Store.DeleteState(ctx, key)
		} else {
			err = e.announceOnce(ctx, r, number, key, &a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Controller) announceOnce(ctx context.Context, r *Repository, number int, key string, a *announcement) error {
	comments, err := r.Forge.Comments(ctx, r.Name, number, a.At.Truncate(time.Second)) // forges stamp whole seconds
	if err != nil && !isGone(err) {
		return err
	}
	text := strings.TrimSpace(r.Words(a.Text))
	if isGone(err) || slices.ContainsFunc(comments, func(k forge.Comment) bool {
		return r.HasWritten(&k) && strings.TrimSpace(k.Body) == text
	}) {
		return e.opts.Store.DeleteState(ctx, key)
	}
	return e.tryAnnouncement(ctx, r, number, key, a)
}
