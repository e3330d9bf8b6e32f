package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

type storedPulls struct {
	rows []store.Pull
	err  error
}

func (p storedPulls) PullsAt(_ context.Context, _, head string) ([]store.Pull, error) {
	return slices.DeleteFunc(slices.Clone(p.rows), func(row store.Pull) bool { return row.Head != head }), p.err
}

// TestKeysOfEvent holds where each event makes us look again.
func TestKeysOfEvent(t *testing.T) {
	t.Parallel()
	row := func(number int, state forge.State, head string) store.Pull {
		p := store.Pull{Repo: testRepo, Number: number, State: string(state), Head: head}
		if state != forge.Open {
			p.ClosedAt = time.Unix(7, 0)
		}
		return p
	}
	pulls := storedPulls{rows: []store.Pull{row(1, forge.Open, "c1"), row(2, forge.Merged, "c1"), row(3, forge.Open, "c2"), row(4, forge.Open, "c1"), row(5, forge.Open, "")}}
	repo, sweep, pull := []wake.Key{wake.ForRepository(testRepo)}, []wake.Key{wake.ForSweep(testRepo)}, []wake.Key{wake.ForPull(testRepo, 7)}
	for _, c := range []struct {
		name  string
		ev    webhooks.Event
		pulls PullReader
		want  []wake.Key
	}{
		{name: "a push", ev: webhooks.Event{Kind: webhooks.Push}, want: repo},
		{name: "our own push", ev: webhooks.Event{Kind: webhooks.Push, Sender: "bot"}, want: repo},
		{name: "a pull request", ev: webhooks.Event{Kind: webhooks.PullRequest, Number: 7, Sender: "ada"}, want: pull},
		{name: "a review", ev: webhooks.Event{Kind: webhooks.Review, Number: 7}, want: pull},
		{name: "a comment", ev: webhooks.Event{Kind: webhooks.Comment, Number: 7}, want: pull},
		{name: "our own comment", ev: webhooks.Event{Kind: webhooks.Comment, Number: 7, Sender: "bot"}},
		{name: "a comment that doesn't say where", ev: webhooks.Event{Kind: webhooks.Comment}, want: sweep},
		{name: "a status of a head", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c1"}, want: []wake.Key{wake.ForPull(testRepo, 1), wake.ForPull(testRepo, 4)}},
		{name: "a status of a commit that is no head", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c3"}},
		{name: "a status of no commit", ev: webhooks.Event{Kind: webhooks.Status}},
		{name: "a status while the store can't be read", ev: webhooks.Event{Kind: webhooks.Status, Commit: "c1"}, pulls: storedPulls{err: errors.New("locked")}, want: sweep},
		{name: "anything else", ev: webhooks.Event{Kind: webhooks.Other, Number: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.pulls == nil {
				c.pulls = pulls
			}
			if diff := cmp.Diff(c.want, KeysOfEvent(t.Context(), c.pulls, testRepo, "bot", &c.ev)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
