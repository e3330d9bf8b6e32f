package console

import (
	"slices"
	"strings"
	"time"
)

// pagePatch is what of a page has changed, as the page's script is sent it.
type pagePatch struct {
	AsOf  time.Time         `json:"asOf"`
	Title string            `json:"title"`
	Parts map[string]string `json:"parts,omitempty"` // an element's new content by its id
	Lists []listPatch       `json:"lists,omitempty"`
}

// listPatch is what has changed of an element's children.
type listPatch struct {
	ID   string      `json:"id"`
	Gone []string    `json:"gone,omitempty"`
	Put  []itemPatch `json:"put,omitempty"` // in the order in which they are put
}

// itemPatch is one child, all of it or only the pieces that have changed.
type itemPatch struct {
	ID    string         `json:"id"`
	After string         `json:"after"` // behind which it stands; empty: it is the first
	Whole string         `json:"whole,omitempty"`
	Cells map[int]string `json:"cells,omitempty"` // by the number of the element's child
}

func (p *pagePatch) isEmpty() bool { return len(p.Parts) == 0 && len(p.Lists) == 0 }

// pageState is what was last sent of a page.
type pageState struct {
	shape string
	parts map[string]uint64
	lists map[string]*listState
}

type listState struct {
	order  []string
	pieces map[string][]uint64 // by the item's id
}

func newPageState(p *livePage) *pageState {
	s := &pageState{shape: p.shape, parts: make(map[string]uint64, len(p.parts)), lists: make(map[string]*listState, len(p.lists))}
	for i := range p.parts {
		s.parts[p.parts[i].id] = hashBytes(p.parts[i].body)
	}
	for i := range p.lists {
		l := &listState{pieces: make(map[string][]uint64, len(p.lists[i].items))}
		for k := range p.lists[i].items {
			it := &p.lists[i].items[k]
			l.order = append(l.order, it.id)
			hashes := make([]uint64, len(it.pieces))
			for n, b := range it.pieces {
				hashes[n] = hashBytes(b)
			}
			l.pieces[it.id] = hashes
		}
		s.lists[p.lists[i].id] = l
	}
	return s
}

// diff says what has changed of a page since the old state; false where it has another
// shape, and must be fetched.
func (ps *pageState) diff(old *pageState, p *livePage, finish func([]byte) string) (patch pagePatch, sameShape bool) {
	if ps.shape != old.shape {
		return patch, false
	}
	for i := range p.parts {
		if id := p.parts[i].id; ps.parts[id] != old.parts[id] {
			if patch.Parts == nil {
				patch.Parts = map[string]string{}
			}
			patch.Parts[id] = finish(p.parts[i].body)
		}
	}
	for i := range p.lists {
		l := &p.lists[i]
		if d := ps.lists[l.id].diff(old.lists[l.id], l, finish); len(d.Gone)+len(d.Put) > 0 {
			patch.Lists = append(patch.Lists, d)
		}
	}
	return patch, true
}

func (ls *listState) diff(old *listState, l *liveList, finish func([]byte) string) listPatch {
	d := listPatch{ID: l.id}
	var kept []string // of the old order
	for _, id := range old.order {
		if _, still := ls.pieces[id]; still {
			kept = append(kept, id)
		} else {
			d.Gone = append(d.Gone, id)
		}
	}
	moved := movedItems(kept, ls.order)
	after := ""
	for k := range l.items {
		it := &l.items[k]
		was, now := old.pieces[it.id], ls.pieces[it.id]
		put := itemPatch{ID: it.id, After: after}
		after = it.id
		switch {
		case slices.Equal(was, now) && !moved[it.id]:
			continue
		case slices.Equal(was, now):
			// It only moves.
		case len(was) == len(now) && len(now) > 1 && was[0] == now[0]:
			put.Cells = map[int]string{}
			for n := 1; n < len(now); n++ {
				if was[n] != now[n] {
					put.Cells[n] = finish(it.pieces[n])
				}
			}
		default:
			var b strings.Builder
			for _, piece := range it.pieces {
				b.WriteString(finish(piece))
			}
			put.Whole = b.String()
		}
		d.Put = append(d.Put, put)
	}
	return d
}

// movedItems are those of the new order that are put somewhere else for the old order to
// become it, few of them: those that aren't in the longest run that stays in its order.
func movedItems(old, order []string) map[string]bool {
	at := make(map[string]int, len(old))
	for i, id := range old {
		at[id] = i
	}
	// Patience sorting: tails[n] is the item that ends the best run of n+1.
	var tails []int
	previous := make([]int, len(order))
	for i, id := range order {
		previous[i] = -1
		place, known := at[id]
		if !known {
			continue
		}
		n, _ := slices.BinarySearchFunc(tails, place, func(k, place int) int { return at[order[k]] - place })
		if n > 0 {
			previous[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	moved := make(map[string]bool, len(order))
	for _, id := range order {
		moved[id] = true
	}
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = previous[i] {
			delete(moved, order[i])
		}
	}
	return moved
}
