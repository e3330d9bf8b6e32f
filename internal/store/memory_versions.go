package store

import (
	"context"
	"strings"
)

// memoryVersion is the version of what is kept under a scope.
type memoryVersion struct {
	scope   string
	version int64
}

func newMemoryVersions() memoryTable[memoryVersion] {
	return newMemoryTable(memoryOrder[memoryVersion]{compare: func(a, b *memoryVersion) int { return strings.Compare(a.scope, b.scope) }})
}

func (mt *memoryTx) raiseVersion(scope string) {
	next := &memoryVersion{scope: scope, version: mt.databaseNow()}
	if old := mt.tables.versions.find(next); old != nil && old.version >= next.version {
		next.version = old.version + 1
	}
	mt.tables.versions.put(next)
}

func (m memoryReader) readVersion(ctx context.Context, scope string) (int64, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return 0, err
	}
	if v := tables.versions.find(&memoryVersion{scope: scope}); v != nil {
		return v.version, nil
	}
	return 0, nil
}

func (m memoryReader) ArrivalsVersion(ctx context.Context, unit string) (int64, error) {
	return m.readVersion(ctx, arrivalsScope(unit))
}

func (m memoryReader) PastPullsVersion(ctx context.Context, repo, pipeline, component string) (int64, error) {
	return m.readVersion(ctx, pastPullsScope(repo, pipeline, component))
}
