package webhooks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// maxDepth is how deep a payload's objects and arrays may be nested; forges' are
// less than ten deep.
const maxDepth = 200

// fieldSet are the fields of a JSON object, or of every object of an array, that are
// kept. Its names are matched exactly.
type fieldSet struct{ fields map[string]keptField }

// keptField is kept as it is, or, with a set, only in part where it is an object or
// an array of objects.
type keptField struct {
	index int // in its object, below 64
	part  *fieldSet
}

// fieldsOf lists the fields that encoding/json would fill of a type that consists of
// structs, slices and plain values and names all its fields.
func fieldsOf(t reflect.Type) *fieldSet {
	for t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]() {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	s := &fieldSet{fields: map[string]keptField{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		s.fields[name] = keptField{index: i, part: fieldsOf(t.Field(i).Type)}
	}
	return s
}

// pruneObject returns the JSON object with nothing but the fields of the set. The whole document is
// checked. It is refused where encoding/json would refuse it, and where it is nested too deep. It
// is refused, too, where a kept field is there twice, because then it is open which one counts.
//
// A payload of 25 kB has 200 bytes that are read; encoding/json took four fifths of a delivery's
// time to walk over the rest twice. JSON libraries that skip faster don't check what they skip, or
// follow any depth on the stack.
func pruneObject(body []byte, keep *fieldSet) ([]byte, error) {
	p := &pruner{in: body, out: make([]byte, 0, 1024)}
	p.skipSpace()
	isObject := p.peek() == '{'
	ok := p.copyValue(keep)
	p.skipSpace()
	switch {
	case p.failure != nil:
		return nil, p.failure
	case !ok || p.pos != len(p.in):
		return nil, fmt.Errorf("the payload is not JSON (byte %d)", p.pos)
	case !isObject:
		return nil, errors.New("the payload is not a JSON object")
	}
	return p.out, nil
}

// pruner walks over a document once. Its methods are false where it isn't JSON, with
// pos near the place, or where failure says what else is wrong.
type pruner struct {
	in      []byte
	pos     int
	depth   int
	out     []byte
	failure error
}

// peek is the next byte; 0 at the end, which is no byte of JSON outside of strings.
func (p *pruner) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *pruner) skipSpace() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

// skipByte steps over one byte that must be there, after white space.
func (p *pruner) skipByte(c byte) bool {
	p.skipSpace()
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

// copyValue keeps a value; of objects only the fields of the set, unless it is nil.
func (p *pruner) copyValue(keep *fieldSet) bool {
	p.skipSpace()
	c := p.peek()
	if keep == nil || c != '{' && c != '[' {
		start := p.pos
		ok := p.skipValue()
		p.out = append(p.out, p.in[start:p.pos]...)
		return ok
	}
	p.out = append(p.out, c)
	if c == '{' {
		var seen uint64
		return p.eachMember('{', '}', func(bool) bool { return p.copyMember(keep, &seen) })
	}
	return p.eachMember('[', ']', func(first bool) bool {
		if !first {
			p.out = append(p.out, ',')
		}
		return p.copyValue(keep)
	})
}

// eachMember walks over an object's or array's members and keeps its end.
func (p *pruner) eachMember(begin, end byte, member func(first bool) bool) bool {
	ok := p.skipMembers(begin, end, member)
	p.out = append(p.out, end)
	return ok
}

// copyMember keeps a field that is in the set, and skips any other.
func (p *pruner) copyMember(keep *fieldSet, seen *uint64) bool {
	p.skipSpace()
	start := p.pos
	if !p.skipString() {
		return false
	}
	raw := p.in[start:p.pos]
	if !p.skipByte(':') {
		return false
	}
	field, kept := keep.find(raw)
	if !kept {
		p.skipSpace()
		return p.skipValue()
	}
	if *seen&(1<<field.index) != 0 {
		p.failure = fmt.Errorf("the payload has a field twice (byte %d)", start)
		return false
	}
	*seen |= 1 << field.index
	if p.out[len(p.out)-1] != '{' {
		p.out = append(p.out, ',')
	}
	p.out = append(append(p.out, raw...), ':')
	return p.copyValue(field.part)
}

// find looks a field up by its name as it stands in the document, in quotes.
func (fs *fieldSet) find(raw []byte) (keptField, bool) {
	f, ok := fs.fields[string(raw[1:len(raw)-1])]
	if !ok && bytes.IndexByte(raw, '\\') >= 0 {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			f, ok = fs.fields[name]
		}
	}
	return f, ok
}

// skipValue steps over a value and checks it.
func (p *pruner) skipValue() bool {
	switch c := p.peek(); c {
	case '"':
		return p.skipString()
	case '{':
		return p.skipMembers('{', '}', func(bool) bool {
			p.skipSpace()
			if !p.skipString() || !p.skipByte(':') {
				return false
			}
			p.skipSpace()
			return p.skipValue()
		})
	case '[':
		return p.skipMembers('[', ']', func(bool) bool {
			p.skipSpace()
			return p.skipValue()
		})
	case 't':
		return p.skipWord("true")
	case 'f':
		return p.skipWord("false")
	case 'n':
		return p.skipWord("null")
	default:
		return p.skipNumber()
	}
}

// skipMembers steps over an object or array whose members the function steps over.
func (p *pruner) skipMembers(begin, end byte, member func(first bool) bool) bool {
	if p.depth++; p.depth > maxDepth {
		p.failure = fmt.Errorf("the payload is nested more than %d deep", maxDepth)
		return false
	}
	if !p.skipByte(begin) {
		return false
	}
	for first := true; ; first = false {
		p.skipSpace()
		if first && p.peek() == end {
			break
		}
		if !member(first) {
			return false
		}
		p.skipSpace()
		if p.peek() != ',' {
			break
		}
		p.pos++
	}
	p.depth--
	return p.skipByte(end)
}

func (p *pruner) skipWord(word string) bool {
	if string(p.in[p.pos:min(p.pos+len(word), len(p.in))]) != word {
		return false
	}
	p.pos += len(word)
	return true
}

// skipString steps over a string. As encoding/json does, it takes bytes that aren't
// UTF-8; what is kept of them is checked later.
func (p *pruner) skipString() bool {
	if p.peek() != '"' {
		return false
	}
	for p.pos++; ; {
		n := plainLength(p.in[p.pos:])
		p.pos += n
		switch p.peek() {
		case '"':
			p.pos++
			return true
		case '\\':
			n := escapeLength(p.in[p.pos+1:])
			if n == 0 {
				return false
			}
			p.pos += 1 + n
		default: // a control character, or the end
			return false
		}
	}
}

// plainLength is how many bytes of a string stand in front of its next quote, backslash
// or control character. It looks at eight at once: strings are most of a payload
// ("Bit Twiddling Hacks", "Determine if a word has a byte less than n").
func plainLength(in []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(in); i += 8 {
		w := binary.LittleEndian.Uint64(in[i:])
		quotes, backslashes := w^(ones*'"'), w^(ones*'\\')
		found := ((w - ones*' ') | (quotes - ones) | (backslashes - ones)) & highs
		// A byte from 0x80 on is none of these; one that borrowed from it may be a false
		// find, which the bytes themselves settle.
		if found &^= w & highs; found != 0 {
			break
		}
	}
	for ; i < len(in) && in[i] != '"' && in[i] != '\\' && in[i] >= ' '; i++ {
	}
	return i
}

// escapeLength is how many bytes belong to the backslash in front of them; 0 when it is no escape.
func escapeLength(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(rest) < 5 {
			return 0
		}
		for _, c := range rest[1:5] {
			switch {
			case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
			default:
				return 0
			}
		}
		return 5
	}
	return 0
}

// skipNumber steps over a number in JSON's grammar.
func (p *pruner) skipNumber() bool {
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.skipDigits() {
		return false
	}
	if p.peek() == '.' {
		p.pos++
		if !p.skipDigits() {
			return false
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		return p.skipDigits()
	}
	return true
}

func (p *pruner) skipDigits() bool {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}
