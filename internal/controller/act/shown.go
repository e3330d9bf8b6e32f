package act

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// StatusContext is the name of the one commit status.
const StatusContext = "liftlock"

func hashParts(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (a *Actor) readShown(ctx context.Context, r *branch.Repository, number int) (facts.ShownState, error) {
	s, _, err := facts.Shown.Get(ctx, a.opts.Store, record.OfPull(r.ID, number))
	return s, err
}

func (a *Actor) putShown(ctx context.Context, r *branch.Repository, number int, s facts.ShownState) error {
	return facts.Shown.Put(ctx, a.opts.Store, record.OfPull(r.ID, number), s)
}

// commentText is what the one comment should say.
type commentText struct {
	body   string
	notice string // what it asks of a person or the state that it ends, which is told at once; "": neither
	last   bool   // nobody comes back to it: it is never put off
}

// putComment brings the one comment up to date: the one we know, the one that is found, or a new
// one. An edit that comes too soon after the last is put off, and so is one for which the forge's
// limits leave no call. Then it gives when to look again; the zero time otherwise.
func (a *Actor) putComment(ctx context.Context, r *branch.Repository, number int, text commentText) (time.Time, error) {
	ctx = forge.WithPriority(ctx, forge.PriorityComment)
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return time.Time{}, err
	}
	text.body = r.Words(text.body)
	if s.ID != 0 && s.Comment == hashParts(text.body) {
		return time.Time{}, nil
	}
	isFirst := s.ID == 0 && s.Bare
	var written *forge.Comment
	switch {
	case s.ID != 0:
	case s.Bare: // if we die right after it was written, the next run has to look
		s.Bare = false
		if err := a.putShown(ctx, r, number, s); err != nil {
			return time.Time{}, err
		}
	default:
		found, err := a.findComment(ctx, r, number)
		if err != nil {
			return text.putOff(err)
		}
		if found != nil {
			s.ID, s.Pace = found.ID, facts.CommentPace{At: found.UpdatedAt}
		}
	}
	now, notice, pace := a.opts.Now(), text.notice, commentPace(s.Pace)
	if notice != "" {
		notice = hashParts(notice)
	}
	if s.ID != 0 {
		if at := pace.nextEdit(now, notice); at.After(now) && !text.last {
			return at, nil
		}
		err = r.Forge.UpdateComment(ctx, r.Name, number, s.ID, text.body)
		if errors.Is(err, forge.ErrNotFound) {
			s.ID = 0 // somebody deleted it
		}
	}
	if s.ID == 0 {
		if written, err = r.Forge.CreateComment(ctx, r.Name, number, text.body); err == nil {
			s.ID = written.ID
		}
	}
	if errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrInvalid) {
		// As where somebody has locked the conversation. A text must not keep a merge or a revert
		// back: the next run tries it again.
		a.opts.Log.Warn("the comment on a pull request can't be written; everything else goes on", zap.String("repository", r.ID),
			zap.Int("number", number), zap.Error(err))
		return time.Time{}, nil
	}
	if errors.Is(err, forge.ErrRateLimited) && isFirst { // it isn't there: nobody has to look
		s.Bare = true
		if err := a.putShown(ctx, r, number, s); err != nil {
			return time.Time{}, err
		}
	}
	if err != nil {
		return text.putOff(err)
	}
	s.Comment, s.Pace = hashParts(text.body), facts.CommentPace(pace.edited(now, notice))
	if written == nil {
		return time.Time{}, a.putShown(ctx, r, number, s)
	}
	return time.Time{}, a.opts.Store.Tx(ctx, "commented", func(tx *store.Tx) error {
		if err := facts.CountOwnComment(ctx, tx, r.ID, number, written.CreatedAt, isFirst); err != nil {
			return err
		}
		return facts.Shown.Put(ctx, tx, record.OfPull(r.ID, number), s)
	})
}

// putOff is when to look again at a comment that couldn't be written, where only the forge's limits
// stand in its way. More urgent calls, above all a merge, go on without it.
func (c commentText) putOff(err error) (time.Time, error) {
	if c.last {
		return time.Time{}, err
	}
	return putOff(err)
}

// putOff is when to try again what the forge's limits leave to more urgent calls; of any other error
// it is the error.
func putOff(err error) (time.Time, error) {
	if forge.LeavesHigher(err) {
		return forge.RetryAfter(err), nil
	}
	return time.Time{}, err
}

// UpdateComment brings the one comment on a pull request that isn't ours up to date. It says its
// first words about a head at once. Later edits may be put off, and the time is when to look again:
// zero where it wasn't. With worth false there is nothing to tell, and no comment is begun.
func (a *Actor) UpdateComment(ctx context.Context, r *branch.Repository, number int, head, text string, worth bool) (time.Time, error) {
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return time.Time{}, err
	}
	if !worth && s.ID == 0 {
		if found, err := a.findComment(ctx, r, number); err != nil || found == nil {
			return time.Time{}, err
		}
	}
	return a.putComment(ctx, r, number, commentText{body: text, notice: "head " + head})
}

// findComment finds the one comment of ours on the forge; nil where there is none.
func (a *Actor) findComment(ctx context.Context, r *branch.Repository, number int) (*forge.Comment, error) {
	comments, err := r.Forge.Comments(ctx, r.Name, number, time.Time{})
	if err != nil {
		return nil, err
	}
	for i := range comments {
		if k := &comments[i]; r.IsOurs(k.User, k.UserID) && prtext.IsStatusComment(k.Body) {
			return k, nil
		}
	}
	return nil, nil
}

// putStatus sets the commit status liftlock where it isn't so already, with the context's priority;
// set says that it did.
func (a *Actor) putStatus(ctx context.Context, r *branch.Repository, number int, commit string, st prtext.Status, target string) (set bool,
	err error) {
	s, err := a.readShown(ctx, r, number)
	if err != nil {
		return false, err
	}
	st.Description = r.Words(st.Description)
	pipeline, err := a.findPipeline(ctx, r, number, commit)
	if err != nil {
		return false, err
	}
	parts := []string{commit, st.State, st.Description}
	if pipeline != 0 { // it is set again in one that came later
		parts = append(parts, strconv.FormatInt(pipeline, 10))
	}
	want := hashParts(parts...)
	if s.Status == want {
		return false, nil
	}
	err = r.Forge.SetStatus(ctx, r.Name, commit, forge.Status{Context: StatusContext, State: forge.StatusState(st.State),
		Description: st.Description, TargetURL: target, Pipeline: pipeline})
	if errors.Is(err, forge.ErrInvalid) {
		// GitHub takes a thousand statuses of a context for a commit, and refuses one of a commit
		// that it doesn't know yet. The pull request says the same in its comment, so nothing
		// waits for it; the next run tries again.
		a.opts.Log.Warn("the commit status can't be set; everything else goes on", zap.String("repository", r.ID),
			zap.String("commit", commit), zap.Error(err))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.Status = want
	return true, a.putShown(ctx, r, number, s)
}

// findPipeline is the forge's run of checks that goes for a pull request of ours with this head, as
// far as it is known; 0: none.
func (a *Actor) findPipeline(ctx context.Context, r *branch.Repository, number int, commit string) (int64, error) {
	if number == 0 {
		return 0, nil
	}
	pr, err := a.opts.Gatherer.PullCache.KnownPull(ctx, r.ID, number)
	if err != nil || pr == nil || pr.Head != commit {
		return 0, err
	}
	return pr.Pipeline, nil
}

// SetStatus sets the commit status liftlock on a pull request that isn't ours, or,
// with number 0, on a commit of the tracked branch.
func (a *Actor) SetStatus(ctx context.Context, r *branch.Repository, number int, commit string, st prtext.Status) error {
	_, err := a.putStatus(forge.WithPriority(ctx, forge.PriorityNormal), r, number, commit, st, a.opts.Console)
	return err
}
