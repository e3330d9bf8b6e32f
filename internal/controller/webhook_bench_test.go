package controller

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// BenchmarkStatusWebhook is a commit status of which the forge tells, mapped to what it
// wakes and written down, in a repository with many closed pull requests.
func BenchmarkStatusWebhook(b *testing.B) {
	const closed = 20_000
	b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
		st, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		rows := make([]store.Pull, closed+1)
		for i := range rows {
			at := time.Now().Add(-time.Duration(closed-i) * time.Hour)
			pr := forge.PullRequest{Number: i + 1, Branch: promotion.Branch("shop", "qa", fmt.Sprintf("c%04d", i%1000)), State: forge.Merged, Head: fmt.Sprintf("%040x", i), Author: bot,
				CreatedAt: at, UpdatedAt: at, ClosedAt: at, MergedAt: at, Body: strings.Repeat("what a person reads ", 100)}
			if i == closed {
				pr.State, pr.ClosedAt, pr.MergedAt = forge.Open, time.Time{}, time.Time{}
			}
			data, err := json.Marshal(map[string]any{"pr": pr})
			if err != nil {
				b.Fatal(err)
			}
			rows[i] = store.Pull{Repo: testRepo, Number: pr.Number, Branch: pr.Branch, State: string(pr.State), Pipeline: "shop", Environment: "qa", Component: fmt.Sprintf("c%04d", i%1000),
				Author: bot, Head: pr.Head, CreatedAt: at, ClosedAt: pr.ClosedAt, UpdatedAt: at, Data: data}
		}
		if err := st.PutPulls(b.Context(), rows...); err != nil {
			b.Fatal(err)
		}
		n := 0
		for b.Loop() {
			n++
			ev := &webhooks.Event{Kind: webhooks.Status, Commit: fmt.Sprintf("%040x", closed-n%2), Sender: "ci"} // every second one is of the open one
			keys := KeysOfEvent(b.Context(), st, testRepo, bot, ev)
			if len(keys) != 1-n%2 {
				b.Fatal(keys)
			}
			fresh, err := st.Accept(b.Context(), store.Delivery{Forge: "hub", ID: fmt.Sprint(n), Event: "status", Repo: repoName, ReceivedAt: time.Now(), Keys: wake.Strings(keys...), Urgency: UrgencyOfEvent(ev)})
			if err != nil || !fresh {
				b.Fatal(fresh, err)
			}
		}
	})
	const arrived = 1000 // by one push, whose commit CI reports on
	b.Run(fmt.Sprintf("arrived=%d", arrived), func(b *testing.B) {
		st, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		ev := &webhooks.Event{Kind: webhooks.Status, Commit: strings.Repeat("a", 40), Sender: "ci"}
		if err := st.Tx(b.Context(), "fill", func(tx *store.Tx) error {
			for i := range arrived {
				u := promotion.Unit{Repo: testRepo, Pipeline: "shop", Component: fmt.Sprintf("c%04d", i)}
				if err := tx.PutUnit(b.Context(), store.Unit{Key: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Data: json.RawMessage(`{}`)}); err != nil {
					return err
				}
				if _, err := tx.PutArrival(b.Context(), store.Arrival{Unit: wake.UnitName(u), Environment: "dev", Release: fmt.Sprintf("%064x", i), Commit: ev.Commit, At: time.Now(), Data: json.RawMessage(`{}`)}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			keys := KeysOfEvent(b.Context(), st, testRepo, bot, ev)
			if len(keys) != 1 {
				b.Fatal(keys)
			}
			fresh, err := st.Accept(b.Context(), store.Delivery{Forge: "hub", ID: fmt.Sprint(n), Event: "status", Repo: repoName, ReceivedAt: time.Now(), Keys: wake.Strings(keys...), Urgency: UrgencyOfEvent(ev)})
			if err != nil || !fresh {
				b.Fatal(fresh, err)
			}
		}
	})
}
