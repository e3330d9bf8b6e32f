package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// memoryPastPull is what a closed pull request moved of a component; of two of one time
// the one that was written later is newer.
type memoryPastPull struct {
	PastPull
	written int64
}

// The orders of what closed pull requests moved, beside that of their numbers.
const (
	pastByTime  = 1
	pastByShort = 2
	pastByWhole = 3
)

func newMemoryPastPulls() memoryTable[memoryPastPull] {
	place := func(a, b *memoryPastPull) int {
		return cmp.Or(strings.Compare(a.Repo, b.Repo), strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.Component, b.Component))
	}
	return newMemoryTable(
		memoryOrder[memoryPastPull]{compare: func(a, b *memoryPastPull) int {
			return cmp.Or(strings.Compare(a.Repo, b.Repo), cmp.Compare(a.Number, b.Number), strings.Compare(a.Component, b.Component))
		}},
		memoryOrder[memoryPastPull]{compare: func(a, b *memoryPastPull) int {
			return cmp.Or(place(a, b), strings.Compare(a.Environment, b.Environment), cmp.Compare(a.Kind, b.Kind), compareTimes(a.At, b.At),
				cmp.Compare(a.written, b.written))
		}},
		memoryOrder[memoryPastPull]{compare: func(a, b *memoryPastPull) int {
			return cmp.Or(place(a, b), strings.Compare(a.Short, b.Short), cmp.Compare(a.written, b.written))
		}},
		memoryOrder[memoryPastPull]{compare: func(a, b *memoryPastPull) int {
			return cmp.Or(strings.Compare(a.Repo, b.Repo), strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.BranchOf, b.BranchOf),
				strings.Compare(a.Environment, b.Environment),
				strings.Compare(a.Whole, b.Whole), cmp.Compare(a.Number, b.Number), cmp.Compare(a.written, b.written))
		}, wants: func(p *memoryPastPull) bool { return p.Kind == PastMerged }})
}

// forgetPast forgets what a pull request moved.
func (mt *memoryTx) forgetPast(repo string, number int) {
	var moved []*memoryPastPull
	for p := range takeWhile(mt.tables.pastPulls.from(byKey, &memoryPastPull{PastPull: PastPull{Repo: repo, Number: number}}),
		func(p *memoryPastPull) bool { return p.Repo == repo && p.Number == number }) {
		moved = append(moved, p)
		mt.raiseVersion(pastPullsScope(p.Repo, p.Pipeline, p.Component))
	}
	mt.tables.pastPulls.removeAll(moved)
}

func (mt *memoryTx) addPastPull(_ context.Context, m PastPull) error {
	mt.tables.last.pastPull++
	m.At = storedTime(m.At)
	row := &memoryPastPull{PastPull: m, written: mt.tables.last.pastPull}
	if mt.tables.pastPulls.find(row) != nil {
		return fmt.Errorf("%s moved %s twice", m.Repo, m.Component)
	}
	mt.tables.pastPulls.put(row)
	mt.raiseVersion(pastPullsScope(m.Repo, m.Pipeline, m.Component))
	return nil
}

// isHere says whether a row is asked for.
func (p PastPlace) isHere(row *memoryPastPull) bool {
	return row.Repo == p.Repo && row.Pipeline == p.Pipeline && row.Component == p.Component
}

func (p PastPlace) isByRules(row *memoryPastPull) bool {
	return len(p.Rules) == 0 || slices.Contains(p.Rules, row.Rules)
}

// newestAt is the newest of a kind in an environment; nil when there is none.
func (m *memoryTables) newestAt(at PastPlace, environment string, kind PastKind) *memoryPastPull {
	here := func(row *memoryPastPull) bool {
		return at.isHere(row) && row.Environment == environment && row.Kind == kind
	}
	after := &memoryPastPull{PastPull: PastPull{Repo: at.Repo, Pipeline: at.Pipeline, Component: at.Component, Environment: environment,
		Kind: kind + 1, At: fromMicros(-neverDue)}}
	for row := range m.pastPulls.downFrom(pastByTime, after) {
		switch {
		case !here(row):
			return nil
		case at.isByRules(row):
			return row
		}
	}
	return nil
}

func (m memoryReader) NewestPastPulls(ctx context.Context, at PastPlace, environments ...string) (out []PastPull, err error) {
	if len(environments) == 0 {
		return nil, nil
	}
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for _, environment := range environments {
		for kind := range pastKinds {
			if row := tables.newestAt(at, environment, kind); row != nil {
				out = append(out, row.PastPull)
			}
		}
	}
	sortNewestFirst(out)
	return out, nil
}

func (m memoryReader) RestrainingPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error) {
	return m.pastPullsOf(ctx, at, shorts, func(k PastKind) bool { return k != PastMerged })
}

func (m memoryReader) MergedPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error) {
	return m.pastPullsOf(ctx, at, shorts, func(k PastKind) bool { return k == PastMerged })
}

func (m memoryReader) pastPullsOf(ctx context.Context, at PastPlace, shorts []string,
	wanted func(PastKind) bool) (out []PastPull, err error) {
	if len(shorts) == 0 {
		return nil, nil
	}
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	shorts = slices.Compact(slices.Sorted(slices.Values(shorts)))
	for _, short := range shorts {
		for row := range tables.movedInShort(at, short) {
			if wanted(row.Kind) && at.isByRules(row) {
				out = append(out, row.PastPull)
			}
		}
	}
	sortNewestFirst(out)
	return out, nil
}

// movedInShort are the rows of a place and a release.
func (m *memoryTables) movedInShort(at PastPlace, short string) iter.Seq[*memoryPastPull] {
	first := &memoryPastPull{PastPull: PastPull{Repo: at.Repo, Pipeline: at.Pipeline, Component: at.Component, Short: short}}
	return takeWhile(m.pastPulls.from(pastByShort, first), func(row *memoryPastPull) bool { return at.isHere(row) && row.Short == short })
}

func (m memoryReader) PullThatMoved(ctx context.Context, repo, pipeline, branchOf, environment, whole string, below int) (int,
	bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return 0, false, err
	}
	last := &memoryPastPull{PastPull: PastPull{Repo: repo, Pipeline: pipeline, BranchOf: branchOf, Environment: environment, Whole: whole,
		Number: below}}
	row := firstOf(tables.pastPulls.downFrom(pastByWhole, last))
	if row == nil || row.Repo != repo || row.Pipeline != pipeline || row.Environment != environment {
		return 0, false, nil
	}
	if row.BranchOf != branchOf || row.Whole != whole {
		return 0, false, nil
	}
	return row.Number, true, nil
}
