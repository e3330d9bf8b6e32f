package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/webhooks"
)

// TimeOfEvent is when the keys of an event are to run. That is now, or after a while for comments
// of people who may not write to a repository, or of whom that isn't known yet. Then enough time
// must have gone by since their other comments.
func TimeOfEvent(ctx context.Context, st *store.Store, repo string, ev *webhooks.Event, now time.Time) (time.Time, error) {
	if ev.Kind != webhooks.Comment {
		return now, nil
	}
	at := now
	err := updateStrangers(ctx, st, repo, func(s *command.Strangers) { at = s.LookAt(ev.Sender, now) })
	return at, err
}

// strangers are what is known of people who may not write to repositories, and what they did.
var strangers = record.Declare[record.Repository, command.Strangers](record.Declaration{
	Name: "strangers", Owner: "controller", Lifetime: record.Lasting,
	Doc: "The comments of people without write access, so that they cost little. Without it each is served once more.",
})

// updateStrangers changes the record of a repository's strangers. If two servers do so in the same
// moment one change may be lost: then a stranger is served once more.
func updateStrangers(ctx context.Context, st *store.Store, repo string, change func(*command.Strangers)) error {
	return st.Tx(ctx, "strangers", func(tx *store.Tx) error {
		s, _, err := strangers.Get(ctx, tx, record.Repository(repo))
		if err != nil {
			return err
		}
		change(&s)
		return strangers.Put(ctx, tx, record.Repository(repo), s)
	})
}

// admitComment says whether a comment with commands is served. It costs at most one call, and none
// for a person who had enough. again is when one that has to wait may be.
func (co *Controller) admitComment(ctx context.Context, r *Repository, number int, k *forge.Comment, cmds []command.Command,
	errs []error) (serve bool, again time.Time, err error) {
	questions := len(errs) == 0 && !slices.ContainsFunc(cmds, func(c command.Command) bool {
		return command.Needs(
			c.Verb) != command.NeedRead
	})
	var a command.Admission
	admit := func(s *command.Strangers) {
		a, again = s.Admit(k.User, act.CommentSource(r.ID, number, k.ID), questions, co.opts.Clock.Now())
	}
	if err := updateStrangers(ctx, co.opts.Store, r.ID, admit); err != nil {
		return false, time.Time{}, err
	}
	if a == command.LookUp {
		err := co.learnPermission(ctx, r, k.User, admit)
		if err != nil {
			return false, time.Time{}, err
		}
	}
	return a == command.Serve, again, nil
}

// meetAuthor finds out what somebody may do who only talks. Where the forge doesn't tell our
// account anybody's permission, that is for who gives a command to hear.
func (co *Controller) meetAuthor(ctx context.Context, r *Repository, k *forge.Comment) error {
	worth := false
	if err := updateStrangers(ctx, co.opts.Store, r.ID, func(s *command.Strangers) {
		worth = s.Meet(k.User,
			co.opts.Clock.Now())
	}); err != nil || !worth {
		return err
	}
	err := co.learnPermission(ctx, r, k.User, func(*command.Strangers) {})
	if errors.Is(err, forge.ErrForbidden) {
		return nil
	}
	return err
}

// learnPermission asks the forge what somebody may do, remembers it, and goes on with that.
func (co *Controller) learnPermission(ctx context.Context, r *Repository, login string, then func(*command.Strangers)) error {
	level, err := r.Forge.Permission(ctx, r.Name, login)
	if err != nil {
		return fmt.Errorf("read the permission of %s: %w", login, err)
	}
	return updateStrangers(ctx, co.opts.Store, r.ID, func(s *command.Strangers) {
		s.Learn(login, command.Permission(level), co.opts.Clock.Now())
		then(s)
	})
}
