package fieldpath

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// bracket reads one [...] with its brackets.
func bracket(s string) (Segment, int, error) {
	n := 1 + spaces(s[1:])
	filter := strings.HasPrefix(s[n:], "?")
	parens := false
	if filter {
		n += 1 + spaces(s[n+1:])
		if parens = strings.HasPrefix(s[n:], "("); parens {
			n += 1 + spaces(s[n+1:])
		}
	} else if seg, k, ok, err := element(s[n:]); err != nil || ok {
		return seg, n + k, err
	}
	b := selection{filter: filter, parens: parens}
	for {
		k, err := b.condition(s, n)
		if err != nil {
			return Segment{}, 0, err
		}
		if n = k; !b.another(s[n:]) {
			break
		}
		n += len(b.separator())
		n += spaces(s[n:])
	}
	if parens {
		if !strings.HasPrefix(s[n:], ")") {
			return Segment{}, 0, fmt.Errorf("%q: only conditions like (@.name=='web' && @.env=='qa') are known", s)
		}
		n += 1 + spaces(s[n+1:])
	}
	if n >= len(s) || s[n] != ']' {
		return Segment{}, 0, fmt.Errorf("%q has no closing ]", s)
	}
	seg, err := b.segment()
	return seg, n + 1, err
}

// selection collects the conditions of one bracket.
type selection struct {
	filter, parens bool
	conditions     []Condition
	wild           []bool // a condition is key=*
}

// separator is what stands between two conditions.
func (b *selection) separator() string {
	if b.filter {
		return "&&"
	}
	return ","
}

// another says that a further condition follows.
func (b *selection) another(s string) bool {
	rest, ok := strings.CutPrefix(s, b.separator())
	return ok && (b.filter || begins(rest))
}

// begins says that a condition begins here, rather than that a value with a
// comma in it goes on.
func begins(s string) bool {
	s = s[spaces(s):]
	_, n, err := keyPath(s, ".=], \t")
	return err == nil && n < len(s) && s[n] == '='
}

// condition reads key=value at s[n:] and the blanks behind it.
func (b *selection) condition(s string, n int) (end int, err error) {
	stop := ".=] \t"
	if b.filter {
		stop += ")!<>~"
		if strings.HasPrefix(s[n:], "@.") {
			n += 2
		} else if strings.HasPrefix(s[n:], "@[") {
			return 0, fmt.Errorf("%q: write the key as @.\"key\"", s)
		}
	}
	if n == len(s) {
		return 0, fmt.Errorf("%q has no closing ]", s)
	}
	keys, k, err := keyPath(s[n:], stop)
	if err != nil {
		return 0, err
	}
	n += k
	switch {
	case n == len(s):
		return 0, fmt.Errorf("%q has no closing ]", s)
	case s[n] != '=' && b.filter:
		return 0, fmt.Errorf("%q: only conditions like [?(@.name=='web')] are known", s)
	case s[n] != '=':
		return 0, fmt.Errorf("%s is neither an index from 0, nor key=value, nor a quoted key", s[:min(n+1, len(s))])
	}
	if n++; strings.HasPrefix(s[n:], "=") {
		n++
	}
	text, quotes, k, err := b.value(s[n:])
	if err != nil {
		return 0, err
	}
	wild := text == "*" && !quotes
	if wild {
		text = ""
	}
	b.conditions = append(b.conditions, Condition{In: keys, Value: text})
	b.wild = append(b.wild, wild)
	return n + k, nil
}

// segment is what the conditions pick. A key=* comes first in it.
func (b *selection) segment() (Segment, error) {
	first := 0
	for i, c := range b.conditions {
		if b.wild[i] && b.wild[first] && i != first {
			return Segment{}, errors.New("two conditions are *: items are told apart by one key")
		}
		if b.wild[i] {
			first = i
		}
		same := func(o Condition) bool { return slices.Equal(o.In, c.In) }
		if slices.ContainsFunc(b.conditions[:i], same) {
			return Segment{}, fmt.Errorf("two conditions are about %s", keysText(c.In))
		}
	}
	seg := Segment{Kind: Match, In: b.conditions[first].In, Value: b.conditions[first].Value}
	if b.wild[first] {
		seg.Kind = Each
	}
	if len(b.conditions) > 1 {
		seg.And = slices.Delete(b.conditions, first, first+1)
	}
	return seg, nil
}

// keyPath reads the keys before the equals sign of a bracket; one of the stop
// bytes ends a key that isn't quoted.
func keyPath(s, stop string) (keys []string, n int, err error) {
	for {
		var key string
		var k int
		if n < len(s) && (s[n] == '"' || s[n] == '\'') {
			key, k, err = quotedText(s[n:])
			if err == nil && n+k < len(s) && strings.IndexByte(stop, s[n+k]) < 0 {
				err = fmt.Errorf("%q: a quoted key is followed by ] or =", s)
			}
		} else {
			key, _, k, err = bareKey(s[n:], stop)
			if err == nil && key == "" {
				err = fmt.Errorf("%q has no key before =", "["+s)
			}
		}
		if err != nil {
			return nil, 0, err
		}
		keys = append(keys, key)
		n += k
		n += spaces(s[n:])
		if n == len(s) || s[n] != '.' {
			return keys, n, nil
		}
		n++
	}
}

// value reads what follows the equals sign of a condition, and blanks.
func (b *selection) value(s string) (text string, quotes bool, n int, err error) {
	n = spaces(s)
	if n < len(s) && (s[n] == '"' || s[n] == '\'') {
		text, k, err := quotedText(s[n:])
		n += k
		return text, true, n + spaces(s[n:]), err
	}
	end := n
	for ; end < len(s); end++ {
		if s[end] == ']' && !b.parens || s[end] == ')' && b.parens || b.another(s[end:]) {
			break
		}
	}
	return strings.TrimRight(s[n:end], " \t"), false, end, nil
}
