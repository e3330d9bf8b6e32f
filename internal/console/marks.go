package console

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"html/template"
	"strconv"
	"time"
)

// marks stand in a rendered page for what is filled in or taken out when it is sent: how
// long ago things were, so that a part that hasn't changed is the same a minute later; and
// where the parts begin and end that are sent again by themselves when they have. They
// hold a secret, so that nothing from outside can be taken for one.
type marks struct{ begin []byte }

// The kinds of marks.
const (
	markAge      = 'a' // with the time in seconds
	markPart     = 'p' // with the element's id
	markPartEnd  = 'P'
	markItems    = 'l' // with the id of the element whose children are items
	markItemsEnd = 'L'
	markItem     = 'i' // with the item's id; it ends with the next, or with the items
	markCell     = 'c' // a piece of an item that is sent by itself; it ends with the next or the item
)

// markEnd ends a mark.
const markEnd = '\x01'

func newMarks() marks { return marks{[]byte("\x01" + rand.Text())} }

func (m marks) render(kind byte, payload string) template.HTML {
	return template.HTML(string(m.begin) + string(kind) + payload + string(rune(markEnd)))
}

func (m marks) age(t time.Time) template.HTML {
	return m.render(markAge, strconv.FormatInt(t.Unix(), 10))
}
func (m marks) part(id string) template.HTML { return m.render(markPart, id) }
func (m marks) endPart() template.HTML       { return m.render(markPartEnd, "") }
func (m marks) list(id string) template.HTML { return m.render(markItems, id) }
func (m marks) endList() template.HTML       { return m.render(markItemsEnd, "") }
func (m marks) item(id string) template.HTML { return m.render(markItem, id) }
func (m marks) cell() template.HTML          { return m.render(markCell, "") }

// next finds the first mark: what is before it, its kind and payload, and what is behind
// it. A kind of 0: there is none.
func (m marks) next(body []byte) (before []byte, kind byte, payload string, rest []byte) {
	before, after, ok := bytes.Cut(body, m.begin)
	if !ok || len(after) == 0 {
		return body, 0, "", nil
	}
	text, rest, _ := bytes.Cut(after[1:], []byte{markEnd})
	return before, after[0], string(text), rest
}

// finish makes of a rendered page, or a piece of one, what is sent.
func (m marks) finish(body []byte, now time.Time) []byte {
	out := make([]byte, 0, len(body))
	for len(body) > 0 {
		before, kind, payload, rest := m.next(body)
		out = append(out, before...)
		if kind == markAge {
			if sec, err := strconv.ParseInt(payload, 10, 64); err == nil {
				out = append(out, formatAge(now, time.Unix(sec, 0))...)
			}
		}
		body = rest
	}
	return out
}

// livePage is what of a rendered page is sent again when it changes.
type livePage struct {
	shape string // the ids of its parts and lists in their order
	parts []livePart
	lists []liveList
}

type livePart struct {
	id   string
	body []byte
}

type liveList struct {
	id    string
	items []liveItem
}

// liveItem is one of a list, in pieces: the first begins the element.
type liveItem struct {
	id     string
	pieces [][]byte
}

// split finds the parts and lists of a rendered page. Lists are in no part.
func (m marks) split(body []byte) *livePage {
	p := &livePage{}
	var shape []byte
	var part *livePart
	var list *liveList
	start := len(body) // of the piece that is being read, from the end
	whole := body
	piece := func(end int) []byte { return whole[len(whole)-start : len(whole)-end] }
	closePiece := func(end int) {
		if list != nil && len(list.items) > 0 {
			it := &list.items[len(list.items)-1]
			it.pieces = append(it.pieces, piece(end))
		}
	}
	for {
		_, kind, payload, rest := m.next(body)
		if kind == 0 {
			p.shape = string(shape)
			return p
		}
		end := len(rest) + len(m.begin) + 1 + len(payload) + 1 // where the mark begins, from the end
		switch kind {
		case markPart:
			p.parts = append(p.parts, livePart{id: payload})
			part, start = &p.parts[len(p.parts)-1], len(rest)
			shape = fmt.Appendf(shape, "part %s\n", payload)
		case markPartEnd:
			if part != nil {
				part.body, part = piece(end), nil
			}
		case markItems:
			p.lists = append(p.lists, liveList{id: payload})
			list, start = &p.lists[len(p.lists)-1], len(rest)
			shape = fmt.Appendf(shape, "list %s\n", payload)
		case markItem:
			closePiece(end)
			if list != nil {
				list.items = append(list.items, liveItem{id: payload})
			}
			start = len(rest)
		case markCell:
			closePiece(end)
			start = len(rest)
		case markItemsEnd:
			closePiece(end)
			list = nil
		}
		body = rest
	}
}

// hashSeed is for telling whether a part has changed.
var hashSeed = maphash.MakeSeed()

func hashBytes(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }
