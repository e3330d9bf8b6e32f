package controller

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// PullReader finds pull requests that the store has of a repository by their heads.
type PullReader interface {
	PullsAt(ctx context.Context, repo, head string) ([]store.Pull, error)
}

// KeysOfEvent says where a verified event about a repository of ours makes us look
// again. It only ever widens: an event that says too little wakes the whole
// repository. botLogin is our own account, empty while it isn't known: what it did
// was looked at when it was done.
func KeysOfEvent(ctx context.Context, pulls PullReader, repo, botLogin string, ev *webhooks.Event) []wake.Key {
	if ev.Kind != webhooks.Push && botLogin != "" && ev.Sender == botLogin {
		return nil
	}
	switch ev.Kind {
	case webhooks.Push:
		return []wake.Key{wake.ForRepository(repo)}
	case webhooks.PullRequest, webhooks.Review, webhooks.Comment:
		if ev.Number > 0 {
			return []wake.Key{wake.ForPull(repo, ev.Number)}
		}
		return []wake.Key{wake.ForSweep(repo)}
	case webhooks.Status:
		return keysOfStatus(ctx, pulls, repo, ev.Commit)
	}
	return nil
}

// UrgencyOfEvent says how urgent the keys of an event are: what people say, and what
// the forge says of pull requests, may hold or release a merge.
func UrgencyOfEvent(ev *webhooks.Event) store.Urgency {
	if ev.Kind == webhooks.Push {
		return store.Normal
	}
	return store.Urgent
}

// keysOfStatus finds our open pull requests whose head a status is about.
func keysOfStatus(ctx context.Context, pulls PullReader, repo, commit string) []wake.Key {
	if commit == "" {
		return nil
	}
	rows, err := pulls.PullsAt(ctx, repo, commit)
	if err != nil {
		return []wake.Key{wake.ForSweep(repo)}
	}
	var keys []wake.Key
	for _, row := range rows {
		if row.ClosedAt.IsZero() {
			keys = append(keys, wake.ForPull(repo, row.Number))
		}
	}
	return keys
}
