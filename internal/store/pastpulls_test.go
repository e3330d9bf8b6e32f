package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPastPulls holds that what closed pull requests moved is found by component and
// release, as long as nothing was heard of them since.
func TestPastPulls(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		at := w.Now()
		place := PastPlace{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web", Rules: []string{"r1", "r2"}}
		pull := func(number int) Pull {
			return Pull{Repo: place.Repo, Number: number, Branch: "liftlock/shop/qa/web", State: "closed", Pipeline: "shop", Environment: "qa", Component: "web", Head: fmt.Sprint("h", number),
				CreatedAt: at, ClosedAt: at.Add(time.Duration(number) * time.Minute), UpdatedAt: at}
		}
		settle := func(number int, rules string, kind PastKind, short string) PastPull {
			t.Helper()
			must(t, w.PutPulls(ctx, pull(number)))
			p := found(w.Pull(ctx, place.Repo, number))(t)
			m := PastPull{Repo: p.Repo, Number: number, Component: "web", Pipeline: "shop", Environment: "qa", BranchOf: "web", Kind: kind, Release: short + "full", Short: short, Whole: short,
				At: p.ClosedAt, Commit: "c", By: "ada", Rules: rules, Version: p.Version}
			must(t, w.Tx(ctx, "settle", func(tx *Tx) error { return tx.SettlePull(ctx, p, rules, m) }))
			return m
		}
		one, two := settle(1, "r1", PastMerged, "aaa"), settle(2, "r1", PastRefused, "bbb")
		three, four := settle(3, "r2", PastRevert, "aaa"), settle(4, "r1", PastMerged, "bbb")
		settle(5, "old", PastRefused, "aaa")
		settle(6, "r1", PastSuperseded, "aaa")
		assertEqual(t, value(w.NewestPastPulls(ctx, place, "qa", "prod"))(t), []PastPull{four, three, two})
		assertEqual(t, value(w.RestrainingPulls(ctx, place, "aaa", "ccc"))(t), []PastPull{three})
		assertEqual(t, value(w.RestrainingPulls(ctx, place))(t), []PastPull(nil))
		assertEqual(t, value(w.MergedPulls(ctx, place, "aaa"))(t), []PastPull{one})
		if n, ok, err := w.PullThatMoved(ctx, place.Repo, "shop", "web", "qa", "bbb", 5); n != 4 || !ok || err != nil {
			t.Errorf("bbb was moved by %d, %t, %v", n, ok, err)
		}
		if n, ok, err := w.PullThatMoved(ctx, place.Repo, "shop", "web", "qa", "bbb", 4); ok || err != nil {
			t.Errorf("before #4 bbb was moved by %d, %v", n, err)
		}
		numbers := func(rows []Pull) (out []int) {
			for _, p := range rows {
				out = append(out, p.Number)
			}
			return out
		}
		assertEqual(t, numbers(value(w.UnsettledPulls(ctx, place.Repo, "shop", PullsByRules{"web", "r1"}))(t)), []int{5, 3})

		// Something is heard of one: what it moved isn't known any more, nor is a
		// reading from before that taken.
		before := found(w.Pull(ctx, place.Repo, 2))(t)
		must(t, w.PutPulls(ctx, pull(2)))
		must(t, w.Tx(ctx, "settle", func(tx *Tx) error { return tx.SettlePull(ctx, before, "r1", two) }))
		assertEqual(t, value(w.RestrainingPulls(ctx, place, "bbb"))(t), []PastPull(nil))
		assertEqual(t, numbers(value(w.UnsettledPulls(ctx, place.Repo, "shop", PullsByRules{"web", "r1"}))(t)), []int{5, 3, 2})
	})
}

// TestPullUsage holds what takes of limits, and how heads and merges are found.
func TestPullUsage(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		const repo = "hub:acme/fleet"
		at := w.Now()
		open := Pull{Repo: repo, State: "open", Pipeline: "shop", Environment: "qa", Author: "bot", CreatedAt: at, UpdatedAt: at}
		pull := func(number int, component string, change func(*Pull)) Pull {
			p := open
			p.Number, p.Component, p.Branch, p.Head = number, component, "liftlock/shop/qa/"+component, fmt.Sprint("h", number)
			if change != nil {
				change(&p)
			}
			return p
		}
		merged := func(minutes int) func(*Pull) {
			return func(p *Pull) {
				p.State, p.ClosedAt, p.MergeCommit = "merged", at.Add(time.Duration(minutes)*time.Minute), fmt.Sprint("m", p.Number)
			}
		}
		reverts := func(p *Pull) { p.Revert, p.Branch = true, "liftlock-revert/shop/qa/web/aaa" }
		must(t, w.PutPulls(ctx, pull(1, "web", nil), pull(2, "api", nil), pull(3, "db", func(p *Pull) { p.Author = "ada" }), pull(4, "web", merged(-70)), pull(5, "web", merged(-30)),
			pull(6, "api", merged(-20)), pull(7, "web", reverts), pull(8, "", func(p *Pull) { p.Branch = "liftlock/shop/a/b/c" })))
		assertEqual(t, value(w.PullUsage(ctx, repo, "shop", "bot", "web", "liftlock/shop/", at.Add(-time.Hour)))(t),
			PullUsage{OpenByEnv: map[string]int{"qa": 1}, Merged: 2, OldestMerge: at.Add(-30 * time.Minute)})
		if rows := value(w.RevertPulls(ctx, repo, "shop", at))(t); len(rows) != 1 || rows[0].Number != 7 || !rows[0].Revert {
			t.Errorf("the reverts are %+v", rows)
		}
		if rows := value(w.PullsAt(ctx, repo, "h5"))(t); len(rows) != 1 || rows[0].Number != 5 {
			t.Errorf("with the head h5 there are %+v", rows)
		}
		if rows := value(w.PullsMergedAs(ctx, repo, "m6"))(t); len(rows) != 1 || rows[0].Number != 6 {
			t.Errorf("merged as m6 are %+v", rows)
		}
		assertEqual(t, value(w.PullsMergedAs(ctx, repo, ""))(t), []Pull(nil))
	})
}

// TestPullsAreFoundByIndex holds that no question of a look goes through what is closed:
// SQLite says how it would find the rows.
func TestPullsAreFoundByIndex(t *testing.T) {
	w := onSQLite(t)
	seen := &explainingSession{session: w.db, t: t}
	q := queries{db: seen, now: w.Now}
	place := PastPlace{Repo: "r", Pipeline: "shop", Component: "web", Rules: []string{"a", "b"}}
	value(q.OpenPulls(ctx, "r", "liftlock/"))(t)
	value(q.UnsettledPulls(ctx, "r", "shop", PullsByRules{"web", "a"}, PullsByRules{"batch", "b"}))(t)
	value(q.PullsAt(ctx, "r", "h"))(t)
	value(q.PullsMergedAs(ctx, "r", "h"))(t)
	value(q.RevertPulls(ctx, "r", "shop", w.Now()))(t)
	value(q.PullUsage(ctx, "r", "shop", "bot", "web", "liftlock/shop/", w.Now()))(t)
	value(q.NewestPastPulls(ctx, place, "qa", "prod"))(t)
	value(q.RestrainingPulls(ctx, place, "a", "b"))(t)
	value(q.MergedPulls(ctx, place, "a", "b"))(t)
	_, _, err := q.PullThatMoved(ctx, "r", "shop", "web", "qa", "a", 7)
	must(t, err)
	if seen.explained != 11 {
		t.Errorf("%d questions were looked at", seen.explained)
	}
}

// explainingSession holds of every query that it goes by an index that says more than
// the repository.
type explainingSession struct {
	session
	t         *testing.T
	explained int
}

func (e *explainingSession) query(c context.Context, scan scanRow, query string, args ...any) error {
	e.t.Helper()
	e.explained++
	plan, err := queryAll(c, e.session, func(p *[4]string) []any { return []any{&p[0], &p[1], &p[2], &p[3]} }, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return err
	}
	for _, step := range plan {
		if how := step[3]; (strings.HasPrefix(how, "SEARCH") || strings.Contains(how, "pulls")) && (!strings.HasPrefix(how, "SEARCH") || strings.Contains(how, "(repo=?)")) {
			e.t.Errorf("%s\n%s", how, query)
		}
	}
	return e.session.query(c, scan, query, args...)
}
