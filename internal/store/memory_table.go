package store

import (
	"cmp"
	"iter"
	"time"

	"github.com/tidwall/btree"
)

// treeDegree is small, since each transaction copies the nodes that it changes.
const treeDegree = 8

// memoryTable keeps rows of one kind, which are never changed, in several orders. A
// table that another shares is copied at its first change: trees share their nodes.
type memoryTable[R any] struct {
	trees  []*btree.BTreeG[*R]
	wants  []func(*R) bool // which rows an order has; nil: all
	shared bool
}

// memoryOrder is one order of a table's rows, in which no two are equal.
type memoryOrder[R any] struct {
	compare func(a, b *R) int
	wants   func(*R) bool // nil: it has every row
}

// newMemoryTable makes a table. Its first order is that of the rows' keys.
func newMemoryTable[R any](orders ...memoryOrder[R]) memoryTable[R] {
	var t memoryTable[R]
	for _, o := range orders {
		t.trees = append(t.trees, btree.NewBTreeGOptions(func(a, b *R) bool { return o.compare(a, b) < 0 },
			btree.Options{NoLocks: true, Degree: treeDegree}))
		t.wants = append(t.wants, o.wants)
	}
	return t
}

func (m *memoryTable[R]) share() { m.shared = true }

func (m *memoryTable[R]) unshare() {
	if !m.shared {
		return
	}
	own := make([]*btree.BTreeG[*R], len(m.trees))
	for i, tree := range m.trees {
		own[i] = tree.Copy()
	}
	m.trees, m.shared = own, false
}

// find finds the row with a row's key; nil when there is none.
func (m *memoryTable[R]) find(key *R) *R { return m.findBy(byKey, key) }

// findBy finds the row that is equal in an order; nil when there is none.
func (m *memoryTable[R]) findBy(order int, like *R) *R {
	row, _ := m.trees[order].Get(like)
	return row
}

// put writes a row, in place of the one with its key.
func (m *memoryTable[R]) put(row *R) {
	m.unshare()
	old, replaced := m.trees[0].Set(row)
	for i, tree := range m.trees[1:] {
		wants := m.wants[i+1]
		if replaced && (wants == nil || wants(old)) {
			tree.Delete(old)
		}
		if wants == nil || wants(row) {
			tree.Set(row)
		}
	}
}

// remove deletes the row with a row's key, and says whether there was one.
func (m *memoryTable[R]) remove(key *R) bool {
	if m.find(key) == nil {
		return false
	}
	m.unshare()
	old, _ := m.trees[0].Delete(key)
	for i, tree := range m.trees[1:] {
		if wants := m.wants[i+1]; wants == nil || wants(old) {
			tree.Delete(old)
		}
	}
	return true
}

// removeAll deletes rows of this table.
func (m *memoryTable[R]) removeAll(rows []*R) {
	for _, row := range rows {
		m.remove(row)
	}
}

// from are the rows from one on, in an order.
func (m *memoryTable[R]) from(order int, first *R) iter.Seq[*R] {
	return func(yield func(*R) bool) { m.trees[order].Ascend(first, yield) }
}

// downFrom are the rows from one down, in an order.
func (m *memoryTable[R]) downFrom(order int, last *R) iter.Seq[*R] {
	return func(yield func(*R) bool) { m.trees[order].Descend(last, yield) }
}

// allBy are the rows in an order.
func (m *memoryTable[R]) allBy(order int) iter.Seq[*R] {
	return func(yield func(*R) bool) { m.trees[order].Scan(yield) }
}

// allDown are the rows by their keys, the last first.
func (m *memoryTable[R]) allDown() iter.Seq[*R] {
	return func(yield func(*R) bool) { m.trees[0].Reverse(yield) }
}

// takeWhile are the rows until the first that isn't wanted.
func takeWhile[R any](rows iter.Seq[*R], wanted func(*R) bool) iter.Seq[*R] {
	return func(yield func(*R) bool) {
		for row := range rows {
			if !wanted(row) || !yield(row) {
				return
			}
		}
	}
}

// firstOf is the first of rows; nil when there is none.
func firstOf[R any](rows iter.Seq[*R]) *R {
	for row := range rows {
		return row
	}
	return nil
}

// storedTime is a time as it comes back from a database.
func storedTime(t time.Time) time.Time { return fromMicros(toMicros(t)) }

func compareTimes(a, b time.Time) int { return cmp.Compare(toMicros(a), toMicros(b)) }

// copyPayload is a payload that nobody else changes; an empty one is nil.
func copyPayload[T ~[]byte](data T) T {
	if len(data) == 0 {
		return nil
	}
	return append(T(nil), data...)
}
