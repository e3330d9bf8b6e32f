package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

const (
	// announcementRetry is when a comment is tried again on a pull request that took none.
	announcementRetry = 15 * time.Second
	// maxAnnouncementAge is for how long it is tried: later, the comment would only confuse.
	maxAnnouncementAge = 24 * time.Hour
)

// announcement is a comment that a pull request has yet to get.
type announcement struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"` // of what it says
}

var announcements = record.Declare[record.InPull, announcement](record.Declaration{
	Name: "announcement", Owner: "controller", Lifetime: record.UntilDropped,
	Doc: "A comment that the pull request has yet to get, by a digest of its source.",
})

// announce writes a command's result into its pull request, once for its source. Where the forge
// takes no comment for the moment, it is written at the pull request's next run. The change is on
// record already, so it isn't undone for that.
func (co *Controller) announce(ctx context.Context, r *Repository, number int, source, text string) {
	sum := sha256.Sum256([]byte(source))
	about := record.InPull{Pull: record.OfPull(r.ID, number), Name: hex.EncodeToString(sum[:16])}
	a := announcement{Text: text, At: co.opts.Clock.Now()}
	err := announcements.Put(ctx, co.opts.Store, about, a)
	if err == nil {
		err = co.tryAnnouncement(ctx, r, about, &a)
	}
	if err == nil {
		return
	}
	co.opts.Log.Warn("a pull request takes no comment on what was done about it; the audit trail has it, and it is tried again",
		zap.String("repository", r.ID), zap.Int("pull", number), zap.Error(err))
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	err = co.opts.Store.Tx(after, "announceLater", func(tx *store.Tx) error {
		if err := announcements.Put(after, tx, about, a); err != nil { // it may be that which failed
			return err
		}
		return tx.WakeAt(after, co.opts.Clock.Now().Add(announcementRetry), wake.ForPull(r.ID, number).String())
	})
	if err != nil {
		co.opts.Log.Error("what was done about a pull request is said there with the next event of it only", zap.String("repository", r.ID),
			zap.Int("pull", number), zap.Error(err))
	}
}

// tryAnnouncement says it and forgets it; an error is worth another try.
func (co *Controller) tryAnnouncement(ctx context.Context, r *Repository, about record.InPull, a *announcement) error {
	_, err := r.Forge.CreateComment(ctx, r.Name, about.Number, r.Words(a.Text))
	if forge.IsRetryable(err) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		co.opts.Log.Warn("a pull request takes no comment on what was done about it, now or later; the audit trail has it",
			zap.String("repository", r.ID), zap.Int("pull", about.Number), zap.Error(err))
	}
	return announcements.Drop(ctx, co.opts.Store, about)
}

// announceRest says what a pull request has yet to get, unless it got it although the forge had
// said no; an error is worth another try.
func (co *Controller) announceRest(ctx context.Context, r *Repository, number int) error {
	all, err := announcements.List(ctx, co.opts.Store, record.Within{Repo: r.ID, Pull: number})
	if err != nil {
		return err
	}
	for i := range all {
		about, a := all[i].About, &all[i].Value
		if !all[i].Readable || co.opts.Clock.Now().Sub(a.At) > maxAnnouncementAge {
			err = announcements.Drop(ctx, co.opts.Store, about)
		} else {
			err = co.announceOnce(ctx, r, about, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (co *Controller) announceOnce(ctx context.Context, r *Repository, about record.InPull, a *announcement) error {
	comments, err := r.Forge.Comments(ctx, r.Name, about.Number, a.At.Truncate(time.Second)) // forges stamp whole seconds
	if err != nil && !isGone(err) {
		return err
	}
	text := strings.TrimSpace(r.Words(a.Text))
	if isGone(err) || slices.ContainsFunc(comments, func(k forge.Comment) bool {
		return r.HasWritten(&k) && strings.TrimSpace(k.Body) == text
	}) {
		return announcements.Drop(ctx, co.opts.Store, about)
	}
	return co.tryAnnouncement(ctx, r, about, a)
}
