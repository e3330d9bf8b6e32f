package fieldpath

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a path; a longer one is a mistake, not an address.
const (
	maxLength   = 1024
	maxSegments = 64
)

// Kind is what a segment picks.
type Kind int

// The kinds of segments. Any and Each pick several values, so that they are in
// patterns only.
const (
	Key   Kind = iota // a mapping's key
	Index             // a list's item, from 0
	Match             // the list item in which keys have values
	Token             // of a JSON Pointer: a key in a mapping, an index in a list
	Any               // every key of a mapping, every item of a list
	Each              // every item of a list (in which keys have values), told apart by a key
)

// Segment is one step of a path.
type Segment struct {
	Kind    Kind
	Key     string      // Key and Token
	Index   int         // Index
	KeyPath []string    // Match and Each: the keys that lead from the item to the value that picks it
	Value   string      // Match: that value
	And     []Condition // Match and Each: what else must hold of the item; nil: nothing
}

// Condition is that keys lead from a list's item to a value.
type Condition struct {
	KeyPath []string
	Value   string
}

// Equal says that two segments are the same.
func (s Segment) Equal(o Segment) bool {
	if s.Kind != o.Kind || s.Key != o.Key || s.Index != o.Index || s.Value != o.Value {
		return false
	}
	return slices.Equal(s.KeyPath, o.KeyPath) && slices.EqualFunc(s.And, o.And, Condition.equal)
}

func (c Condition) equal(o Condition) bool {
	return slices.Equal(c.KeyPath, o.KeyPath) && c.Value == o.Value
}

// Conditions are all that must hold of the item that a Match picks; of those
// that an Each picks, all but that the key which tells them apart is there.
func (s Segment) Conditions() []Condition {
	if s.Kind == Match {
		return append([]Condition{{KeyPath: s.KeyPath, Value: s.Value}}, s.And...)
	}
	return s.And
}

// Path is the address of one value in a document. The zero Path addresses
// nothing; make one with Parse.
type Path struct {
	segs    []Segment
	pointer bool
}

// Pattern is a path that may have wildcards.
type Pattern struct{ path Path }

// New is the path of these segments, none of which may be Any or Each; a JSON
// Pointer where all are tokens.
func New(segs ...Segment) Path {
	pointer := len(segs) > 0 && !slices.ContainsFunc(segs, func(s Segment) bool { return s.Kind != Token })
	return Path{segs: segs, pointer: pointer}
}

// Segments are the path's steps; they are not to be changed.
func (p Path) Segments() []Segment { return p.segs }

// Segments are the pattern's steps; they are not to be changed.
func (p Pattern) Segments() []Segment { return p.path.segs }

// Parse reads the address of one value:
//
//	image.tag                              keys
//	hosts[0].name                          an item by its place, from 0
//	containers[name=web].image             an item by what it has; also [?name=web],
//	items[metadata.name=web].spec          also deeper in it
//	list[name=web,env=qa].tag              an item by several things that it has
//	annotations["a.b/c"]                   a key with dots; also annotations.a\.b/c
//	/spec/template/0                       a JSON Pointer (RFC 6901)
//	$.images[?(@.name=='web')]['newTag']   the part of JSONPath that picks one value; && joins conditions
//
// In a file of several documents a path that starts with a bracket picks the
// document: [metadata.name=web].spec. The error names the segment that can't
// be read.
func Parse(s string) (Path, error) {
	p, err := ParsePattern(s)
	if err != nil {
		return Path{}, err
	}
	one, ok := p.Path()
	if !ok {
		return Path{}, fmt.Errorf("path %q: a wildcard picks several values: name one", s)
	}
	return one, nil
}

// ParsePattern reads a path in which * (or [*]) stands for every key of a mapping or item of a
// list. [key=*] stands for every item of a list, told apart by that key. [env=qa,key=*] is every
// item with that env.
func ParsePattern(s string) (Pattern, error) {
	if s != "" && s[0] == '/' {
		p, err := parsePointer(s)
		if err == nil {
			err = checkCanonicalLength(p, s)
		}
		return Pattern{p}, err
	}
	p, n, err := parseDotted(s, false)
	if err == nil && n < len(s) {
		err = fmt.Errorf("path %q: %q follows it", s, s[n:])
	}
	if err == nil {
		err = checkCanonicalLength(p, s)
	}
	return Pattern{p}, err
}

// ParseAssignment reads PATH=VALUE: the path is as Parse reads it, the value
// what follows the first equals sign outside of brackets, taken as it is. A
// JSON Pointer ends at its first equals sign.
func ParseAssignment(s string) (Path, string, error) {
	var p Path
	var n int
	var err error
	if s != "" && s[0] == '/' {
		if n = strings.IndexByte(s, '='); n < 0 {
			n = len(s)
		}
		p, err = parsePointer(s[:n])
	} else {
		p, n, err = parseDotted(s, true)
	}
	switch {
	case err != nil:
		return Path{}, "", err
	case n >= len(s) || s[n] != '=':
		return Path{}, "", fmt.Errorf("%q isn't PATH=VALUE, such as image.tag=1.4.2", s)
	}
	if err := checkCanonicalLength(p, s[:n]); err != nil {
		return Path{}, "", err
	}
	one, ok := Pattern{p}.Path()
	if !ok {
		return Path{}, "", fmt.Errorf("path %q: a wildcard picks several values: name one", s[:n])
	}
	return one, s[n+1:], nil
}

// Path is the pattern as a path; ok is false where it has wildcards.
func (p Pattern) Path() (one Path, ok bool) {
	for _, s := range p.path.segs {
		if s.Kind == Any || s.Kind == Each {
			return Path{}, false
		}
	}
	return p.path, true
}

// Fill is the pattern with fill called on its keys and on the values of its selections. fill's
// result is taken as it is, whatever characters it has.
func (p Pattern) Fill(fill func(string) string) Pattern {
	segs := make([]Segment, len(p.path.segs))
	for i, s := range p.path.segs {
		s.Key, s.Value = fill(s.Key), fill(s.Value)
		and := s.And
		s.And = nil
		for _, c := range and {
			s.And = append(s.And, Condition{KeyPath: c.KeyPath, Value: fill(c.Value)})
		}
		segs[i] = s
	}
	return Pattern{Path{segs: segs, pointer: p.path.pointer}}
}

// Matches says that the pattern picks a path. Segment by segment they are the same, where Any takes
// each but a token, and Each an item by its key.
func (p Pattern) Matches(q Path) bool {
	if len(p.path.segs) != len(q.segs) || p.path.pointer != q.pointer {
		return false
	}
	for i, s := range p.path.segs {
		o := q.segs[i]
		switch s.Kind {
		case Any:
			if o.Kind == Token {
				return false
			}
		case Each:
			if o.Kind != Match || !slices.Equal(s.KeyPath, o.KeyPath) || !slices.EqualFunc(s.And, o.And, Condition.equal) {
				return false
			}
		default:
			if !s.Equal(o) {
				return false
			}
		}
	}
	return true
}
