package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// The orders of pull requests, beside that of their numbers: what is looked for is
// found without going through what is closed.
const (
	pullsByHead    = 1
	pullsByMerge   = 2
	pullsByRules   = 3
	pullsOpen      = 4
	pullsByClosing = 5
	pullsOfReverts = 6
)

func newMemoryPulls() memoryTable[Pull] {
	number := func(a, b *Pull) int { return cmp.Or(strings.Compare(a.Repo, b.Repo), cmp.Compare(a.Number, b.Number)) }
	by := func(compare func(a, b *Pull) int, wants func(*Pull) bool) memoryOrder[Pull] {
		return memoryOrder[Pull]{compare: func(a, b *Pull) int {
			return cmp.Or(strings.Compare(a.Repo, b.Repo), compare(a, b), cmp.Compare(a.Number, b.Number))
		}, wants: wants}
	}
	return newMemoryTable(
		memoryOrder[Pull]{compare: number},
		by(func(a, b *Pull) int { return strings.Compare(a.Head, b.Head) }, nil),
		by(func(a, b *Pull) int { return strings.Compare(a.MergeCommit, b.MergeCommit) },
			func(p *Pull) bool { return p.MergeCommit != "" }),
		by(func(a, b *Pull) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.Component, b.Component),
				strings.Compare(a.Rules, b.Rules))
		}, nil),
		by(func(a, b *Pull) int { return strings.Compare(a.Branch, b.Branch) }, (*Pull).isOpen),
		by(func(a, b *Pull) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), compareTimes(a.ClosedAt, b.ClosedAt))
		}, nil),
		by(func(a, b *Pull) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), compareTimes(a.CreatedAt, b.CreatedAt))
		}, func(p *Pull) bool { return p.Revert }),
	)
}

func (p *Pull) isOpen() bool { return p.ClosedAt.IsZero() }

func (mt *memoryTx) putPull(_ context.Context, p Pull, seen int64) (version int64, err error) {
	p.CreatedAt, p.ClosedAt, p.UpdatedAt = storedTime(p.CreatedAt), storedTime(p.ClosedAt), storedTime(p.UpdatedAt)
	p.Version, p.Rules, p.Data = 1, "", copyPayload(p.Data)
	if old := mt.tables.pulls.find(&p); old != nil {
		later := compareTimes(p.UpdatedAt, old.UpdatedAt)
		if later < 0 || later == 0 && seen != anyVersion && seen != old.Version {
			return 0, nil
		}
		p.Version = old.Version + 1
	}
	mt.tables.pulls.put(&p)
	mt.forgetPast(p.Repo, p.Number)
	return p.Version, nil
}

func (mt *memoryTx) settlePull(_ context.Context, p Pull, rules string) (settled bool, err error) {
	old := mt.tables.pulls.find(&p)
	if old == nil || old.Version != p.Version {
		return false, nil
	}
	changed := *old
	changed.Rules = rules
	mt.tables.pulls.put(&changed)
	mt.forgetPast(p.Repo, p.Number)
	return true, nil
}

func (m memoryReader) Pull(ctx context.Context, repo string, number int) (Pull, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return Pull{}, false, err
	}
	p := tables.pulls.find(&Pull{Repo: repo, Number: number})
	if p == nil {
		return Pull{}, false, nil
	}
	return p.copy(), true, nil
}

func (p *Pull) copy() Pull {
	out := *p
	out.Data = copyPayload(p.Data)
	return out
}

// copyPulls copies rows, the newest first.
func copyPulls(rows iter.Seq[*Pull]) (out []Pull) {
	for p := range rows {
		out = append(out, p.copy())
	}
	slices.SortFunc(out, func(a, b Pull) int { return cmp.Compare(b.Number, a.Number) })
	return out
}

// lastBranch is after every branch with a prefix, and those after it.
func lastBranch(prefix string) string { return prefix + "\U0010FFFF" }

// openOn are a repository's open pull requests on branches with a prefix.
func (m *memoryTables) openOn(repo, branchPrefix string) iter.Seq[*Pull] {
	return takeWhile(m.pulls.from(pullsOpen, &Pull{Repo: repo, Branch: branchPrefix}), func(p *Pull) bool {
		return p.Repo == repo && p.Branch < lastBranch(branchPrefix)
	})
}

func (m memoryReader) OpenPulls(ctx context.Context, repo, branchPrefix string) ([]Pull, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	return copyPulls(tables.openOn(repo, branchPrefix)), nil
}

func (m memoryReader) UnsettledPulls(ctx context.Context, repo, pipeline, component, rules string) ([]Pull, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	here := func(p *Pull) bool { return p.Repo == repo && p.Pipeline == pipeline && p.Component == component }
	// What is settled isn't touched.
	before := takeWhile(tables.pulls.from(pullsByRules, &Pull{Repo: repo, Pipeline: pipeline, Component: component}),
		func(p *Pull) bool { return here(p) && p.Rules < rules })
	after := takeWhile(tables.pulls.from(pullsByRules, &Pull{Repo: repo, Pipeline: pipeline, Component: component, Rules: rules + "\x00"}),
		here)
	return copyPulls(func(yield func(*Pull) bool) {
		more := true
		before(func(p *Pull) bool { more = yield(p); return more })
		if more {
			after(yield)
		}
	}), nil
}

func (m memoryReader) PullsAt(ctx context.Context, repo, head string) ([]Pull, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	return copyPulls(takeWhile(tables.pulls.from(pullsByHead, &Pull{Repo: repo, Head: head}),
		func(p *Pull) bool { return p.Repo == repo && p.Head == head })), nil
}

func (m memoryReader) PullsMergedAs(ctx context.Context, repo, commit string) ([]Pull, error) {
	if commit == "" {
		return nil, nil
	}
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	return copyPulls(takeWhile(tables.pulls.from(pullsByMerge, &Pull{Repo: repo, MergeCommit: commit}),
		func(p *Pull) bool { return p.Repo == repo && p.MergeCommit == commit })), nil
}

func (m memoryReader) RevertPulls(ctx context.Context, repo, pipeline string, since time.Time) ([]Pull, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	return copyPulls(takeWhile(tables.pulls.from(pullsOfReverts, &Pull{Repo: repo, Pipeline: pipeline, CreatedAt: since}),
		func(p *Pull) bool { return p.Repo == repo && p.Pipeline == pipeline })), nil
}

func (m memoryReader) PullUsage(ctx context.Context, repo, pipeline, author, component, branchPrefix string,
	since time.Time) (PullUsage, error) {
	out := PullUsage{OpenByEnv: map[string]int{}}
	tables, err := m.tables(ctx)
	if err != nil {
		return out, err
	}
	for p := range tables.openOn(repo, branchPrefix) {
		if p.Author == author && p.Component != component && p.Component != "" {
			out.OpenByEnv[p.Environment]++
		}
	}
	if tables, err = m.tables(ctx); err != nil { // a second question, which may fail by itself, as over SQL
		return out, err
	}
	first := &Pull{Repo: repo, Pipeline: pipeline, ClosedAt: fromMicros(toMicros(since) + 1)}
	for p := range takeWhile(tables.pulls.from(pullsByClosing, first),
		func(p *Pull) bool { return p.Repo == repo && p.Pipeline == pipeline }) {
		if p.MergeCommit == "" || p.Revert || p.Author != author {
			continue
		}
		if out.Merged == 0 {
			out.OldestMerge = p.ClosedAt
		}
		out.Merged++
	}
	return out, nil
}

// memoryCursor is how far a repository's list of pull requests was read.
type memoryCursor struct {
	repo string
	at   time.Time
}

func newMemoryCursors() memoryTable[memoryCursor] {
	return newMemoryTable(memoryOrder[memoryCursor]{compare: func(a, b *memoryCursor) int { return strings.Compare(a.repo, b.repo) }})
}

func (mt *memoryTx) setPullCursor(_ context.Context, repo string, cursor time.Time) error {
	mt.tables.cursors.put(&memoryCursor{repo: repo, at: storedTime(cursor)})
	return nil
}

func (m memoryReader) PullCursor(ctx context.Context, repo string) (time.Time, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if c := tables.cursors.find(&memoryCursor{repo: repo}); c != nil {
		return c.at, nil
	}
	return time.Time{}, nil
}
