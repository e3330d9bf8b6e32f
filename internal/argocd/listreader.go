package argocd

import (
	"encoding/json"
	"fmt"
	"io"
)

// maxEmptyReads is how often nothing may be read in a row, as with bufio.
const maxEmptyReads = 100

// firstBuffer is what a valueReader begins with, which holds most Applications.
const firstBuffer = 64 << 10

// valueReader takes JSON apart into its values without decoding them. An encoding/json Decoder goes
// over each of them four times first, and lists have 170 MB. It holds one value at a time, of at
// most maxObject bytes.
type valueReader struct {
	src     *allowance
	buf     []byte
	at, end int // what of buf is read and not taken yet
	// unchecked has objects taken that end as they should and needn't be valid: their reader checks
	// them.
	unchecked bool
}

func newValueReader(r io.Reader) *valueReader {
	return &valueReader{src: &allowance{r: r}, buf: make([]byte, firstBuffer)}
}

// fill reads more behind what is there, from the value's start on. It returns by how much
// that moved to the front.
func (v *valueReader) fill(start int) (moved int, err error) {
	if v.end == len(v.buf) {
		if start > 0 {
			moved = start
			copy(v.buf, v.buf[start:v.end])
			v.at, v.end = v.at-start, v.end-start
		} else {
			v.buf = append(v.buf, make([]byte, len(v.buf))...)
		}
	}
	for range maxEmptyReads {
		n, err := v.src.Read(v.buf[v.end:])
		v.end += n
		if n > 0 || err != nil {
			if n > 0 {
				err = nil // what is wrong comes again
			}
			return moved, noEOF(err)
		}
	}
	return moved, io.ErrNoProgress
}

// peek is the next character that isn't a space.
func (v *valueReader) peek() (byte, error) {
	for {
		for ; v.at < v.end; v.at++ {
			switch c := v.buf[v.at]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if _, err := v.fill(v.at); err != nil {
			return 0, err
		}
	}
}

// endsWord says that a number or a word can't go on with a character.
func endsWord(c byte) bool {
	switch c {
	case ',', ':', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// expect takes a character.
func (v *valueReader) expect(want byte) error {
	got, err := v.peek()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("want %c, got %c", want, got)
	}
	v.at++
	return nil
}

// take takes the next value, which is valid JSON (but for unchecked) and good until the next
// call. Nothing that is read is a number or a word at the very end.
func (v *valueReader) take() ([]byte, error) {
	v.src.renew()
	if _, err := v.peek(); err != nil {
		return nil, err
	}
	start, depth, inString := v.at, 0, false
	for i := v.at; ; i++ {
		if i == v.end {
			moved, err := v.fill(start)
			start, i = start-moved, i-moved
			if err != nil {
				return nil, err
			}
		}
		switch c := v.buf[i]; {
		case inString && c == '\\':
			if i+1 == v.end { // whatever comes next is skipped, when it is there
				moved, err := v.fill(start)
				if err != nil {
					return nil, err
				}
				start, i = start-moved, i-moved
			}
			i++
			continue
		case inString:
			if c != '"' {
				continue
			}
			inString = false
		case c == '"':
			inString = true
			continue
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			if depth--; depth < 0 { // what a number or a word is in ends
				return v.finish(start, i)
			}
		case depth > 0 || !endsWord(c):
			continue
		default:
			return v.finish(start, i)
		}
		if depth == 0 {
			return v.finish(start, i+1)
		}
	}
}

// finish takes what is between two places as a value.
func (v *valueReader) finish(start, end int) ([]byte, error) {
	v.at = end
	if raw := v.buf[start:end]; v.unchecked && len(raw) > 0 && raw[0] == '{' || json.Valid(raw) {
		return raw, nil
	}
	return nil, fmt.Errorf("what begins with %.40q is not JSON", v.buf[start:end])
}

// each takes what is between two brackets, a value at a time: next takes it.
func (v *valueReader) each(open, end byte, next func() error) error {
	if err := v.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		v.src.renew()
		c, err := v.peek()
		switch {
		case err != nil:
			return err
		case c == end:
			v.at++
			return nil
		case !first:
			if err := v.expect(','); err != nil {
				return err
			}
		}
		if err := next(); err != nil {
			return err
		}
	}
}

// readList reads a list and hands each object to item, whose argument is only valid
// during the call. It holds one object at a time.
func readList(r io.Reader, item func(raw []byte)) (listMeta, error) {
	return newValueReader(r).readList(item)
}

func (v *valueReader) readList(item func(raw []byte)) (listMeta, error) {
	v.src.renew()
	var meta listMeta
	err := v.each('{', '}', func() error {
		raw, err := v.take()
		if err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(raw, &key); err != nil {
			return err
		}
		if err := v.expect(':'); err != nil {
			return fmt.Errorf("read the list's %.40s: %w", key, err)
		}
		switch key {
		case "metadata":
			if raw, err = v.take(); err == nil {
				err = json.Unmarshal(raw, &meta)
			}
		case "items":
			err = v.readItems(item)
		default:
			_, err = v.take()
		}
		if err != nil {
			return fmt.Errorf("read the list's %.40s: %w", key, err)
		}
		return nil
	})
	return meta, err
}

func (v *valueReader) readItems(item func([]byte)) error {
	c, err := v.peek()
	if err != nil {
		return err
	}
	if c != '[' {
		raw, err := v.take()
		if err == nil && string(raw) != "null" { // null: no items
			err = fmt.Errorf("want a list, got %.40q", raw)
		}
		return err
	}
	return v.each('[', ']', func() error {
		raw, err := v.take()
		if err == nil {
			item(raw)
		}
		return err
	})
}
