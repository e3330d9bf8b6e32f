package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

const (
	// confirmWithin is how long after a comment was written its author may say that it is theirs, where
	// the forge doesn't tell who edits comments.
	confirmWithin = time.Hour
	// confirmationEvery is how often that is looked for: no event tells of a reaction.
	confirmationEvery = 30 * time.Second
)

// errUnconfirmed says that a command waits for its author's own word.
var errUnconfirmed = errors.New("it isn't known yet whether the comment is its author's")

// wordCheck finds out whether a comment is its author's own word. It does so once for all of its
// commands, and only when one that its author may give would loosen something.
type wordCheck struct {
	find      func(ctx context.Context) (forge.Authorship, string, error)
	mayWait   bool
	checked   bool
	found     forge.Authorship
	editor    string
	confirmed bool // some command was taken because its author confirmed the comment
}

// check is nil where the comment is its author's; errUnconfirmed where that is to be waited for, and a
// *RefusedError where it isn't, or nobody can tell.
func (w *wordCheck) check(ctx context.Context) (err error) {
	if !w.checked {
		w.found, w.editor, err = w.find(ctx)
		if isGone(err) {
			return newRefusal("the comment isn't there any more")
		}
		if err != nil {
			return err
		}
		w.checked = true
	}
	switch {
	case w.found == forge.AuthorsOwn:
		return nil
	case w.found == forge.ConfirmedByAuthor:
		w.confirmed = true
		return nil
	case w.found == forge.EditedLater && w.editor != "":
		return newRefusal("%s edited the comment after it was written, so it isn't known to be its author's: write it anew", w.editor)
	case w.found == forge.EditedLater:
		return newRefusal("the comment was edited after it was written, so it isn't known to be its author's: write it anew")
	case w.mayWait:
		return errUnconfirmed
	}
	return newRefusal("its author didn't confirm the comment within %s: write it anew, or give the command in the console", confirmWithin)
}

// checkWord has the forge asked whether a command that loosens something is its author's own word,
// where it came by a comment. A command that restrains is taken from anybody who may write.
func (c *Command) checkWord(ctx context.Context) error {
	if c.word == nil || !command.Loosens(c.Command.Verb) {
		return nil
	}
	return c.word.check(ctx)
}

// confirmationText asks a comment's author for their word.
const confirmationText = "This forge doesn't tell who edits a comment, and whoever may write can edit yours. React to your comment with " +
	"👍 within an hour, and what it loosens is done; or give the command in the console."

// auditedWord is what the audit trail keeps beside a command of how its author was known; nil: nothing.
func (c *Command) auditedWord() (json.RawMessage, error) {
	if c.word == nil || !c.word.confirmed {
		return nil, nil
	}
	raw, err := json.Marshal(map[string]string{"confirmed": "by a reaction of its author's"})
	if err != nil {
		return nil, fmt.Errorf("keep how the author of a command was known: %w", err)
	}
	return raw, nil
}

// newWordCheck is that of a comment.
func (co *Controller) newWordCheck(r *Repository, number int, k *forge.Comment) *wordCheck {
	return &wordCheck{
		find: func(ctx context.Context) (forge.Authorship, string, error) {
			return r.Forge.Authorship(ctx, r.Name, number, k)
		},
		mayWait: co.opts.Clock.Now().Before(k.CreatedAt.Add(confirmWithin)),
	}
}

// hasWaited says that a comment waits for its author's word, and its commands that loosen nothing were taken.
func (co *Controller) hasWaited(ctx context.Context, r *Repository, number int, k *forge.Comment) (bool, error) {
	return facts.Unconfirmed.Has(ctx, co.opts.Store, facts.OfComment(r.ID, number, k.ID))
}

// waitForWord notes that a comment waits for its author's word, and says when to look again.
func (co *Controller) waitForWord(ctx context.Context, r *Repository, number int, k *forge.Comment) (again time.Time, err error) {
	if err := facts.Unconfirmed.Put(ctx, co.opts.Store, facts.OfComment(r.ID, number, k.ID), k.CreatedAt.UTC()); err != nil {
		return time.Time{}, err
	}
	return co.opts.Clock.Now().Add(confirmationEvery), nil
}

// forgetUnconfirmed forgets the comments of a repository that waited for their authors' word and
// were never read again, as they were deleted.
func (co *Controller) forgetUnconfirmed(ctx context.Context, tx *store.Tx, r *Repository) error {
	all, err := facts.Unconfirmed.List(ctx, tx, record.Within{Repo: r.ID})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Readable && co.opts.Clock.Now().Sub(all[i].Value) < 2*confirmWithin {
			continue
		}
		if err := facts.Unconfirmed.Drop(ctx, tx, all[i].About); err != nil {
			return err
		}
	}
	return nil
}
