package fieldpath

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parseBracket reads one [...] with its brackets.
func parseBracket(s string) (Segment, int, error) {
	n := 1 + countSpaces(s[1:])
	filter := strings.HasPrefix(s[n:], "?")
	parens := false
	if filter {
		n += 1 + countSpaces(s[n+1:])
		if parens = strings.HasPrefix(s[n:], "("); parens {
			n += 1 + countSpaces(s[n+1:])
		}
	} else if seg, k, ok, err := parseBracketElement(s[n:]); err != nil || ok {
		return seg, n + k, err
	}
	b := bracketParser{filter: filter, parens: parens}
	for {
		k, err := b.parseCondition(s, n)
		if err != nil {
			return Segment{}, 0, err
		}
		if n = k; !b.hasNextCondition(s[n:]) {
			break
		}
		n += len(b.conditionSeparator())
		n += countSpaces(s[n:])
	}
	if parens {
		if !strings.HasPrefix(s[n:], ")") {
			return Segment{}, 0, fmt.Errorf("%q: only conditions like (@.name=='web' && @.env=='qa') are known", s)
		}
		n += 1 + countSpaces(s[n+1:])
	}
	if n >= len(s) || s[n] != ']' {
		return Segment{}, 0, fmt.Errorf("%q has no closing ]", s)
	}
	seg, err := b.buildSegment()
	return seg, n + 1, err
}

// bracketParser collects the conditions of one bracket.
type bracketParser struct {
	filter, parens bool
	conditions     []Condition
	wild           []bool // a condition is key=*
}

// conditionSeparator is what stands between two conditions.
func (b *bracketParser) conditionSeparator() string {
	if b.filter {
		return "&&"
	}
	return ","
}

// hasNextCondition says that a further condition follows.
func (b *bracketParser) hasNextCondition(s string) bool {
	rest, ok := strings.CutPrefix(s, b.conditionSeparator())
	return ok && (b.filter || startsCondition(rest))
}

// startsCondition says that a condition begins here, rather than that a value with a
// comma in it goes on.
func startsCondition(s string) bool {
	s = s[countSpaces(s):]
	_, n, err := parseKeyPath(s, ".=], \t")
	return err == nil && n < len(s) && s[n] == '='
}

// parseCondition reads key=value at s[n:] and the blanks behind it.
func (b *bracketParser) parseCondition(s string, n int) (end int, err error) {
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
	keys, k, err := parseKeyPath(s[n:], stop)
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
	text, quotes, k, err := b.parseValue(s[n:])
	if err != nil {
		return 0, err
	}
	wild := text == "*" && !quotes
	if wild {
		text = ""
	}
	b.conditions = append(b.conditions, Condition{KeyPath: keys, Value: text})
	b.wild = append(b.wild, wild)
	return n + k, nil
}

// buildSegment is what the conditions pick. A key=* comes first in it.
func (b *bracketParser) buildSegment() (Segment, error) {
	first := 0
	for i, c := range b.conditions {
		if b.wild[i] && b.wild[first] && i != first {
			return Segment{}, errors.New("two conditions are *: items are told apart by one key")
		}
		if b.wild[i] {
			first = i
		}
		same := func(o Condition) bool { return slices.Equal(o.KeyPath, c.KeyPath) }
		if slices.ContainsFunc(b.conditions[:i], same) {
			return Segment{}, fmt.Errorf("two conditions are about %s", keysText(c.KeyPath))
		}
	}
	seg := Segment{Kind: Match, KeyPath: b.conditions[first].KeyPath, Value: b.conditions[first].Value}
	if b.wild[first] {
		seg.Kind = Each
	}
	if len(b.conditions) > 1 {
		seg.And = slices.Delete(b.conditions, first, first+1)
	}
	return seg, nil
}

// parseKeyPath reads the keys before the equals sign of a bracket; one of the stop
// bytes ends a key that isn't quoted.
func parseKeyPath(s, stop string) (keys []string, n int, err error) {
	for {
		var key string
		var k int
		if n < len(s) && (s[n] == '"' || s[n] == '\'') {
			key, k, err = parseQuotedText(s[n:])
			if err == nil && n+k < len(s) && strings.IndexByte(stop, s[n+k]) < 0 {
				err = fmt.Errorf("%q: a quoted key is followed by ] or =", s)
			}
		} else {
			key, _, k, err = parseBareKey(s[n:], stop)
			if err == nil && key == "" {
				err = fmt.Errorf("%q has no key before =", "["+s)
			}
		}
		if err != nil {
			return nil, 0, err
		}
		keys = append(keys, key)
		n += k
		n += countSpaces(s[n:])
		if n == len(s) || s[n] != '.' {
			return keys, n, nil
		}
		n++
	}
}

// parseValue reads what follows the equals sign of a condition, and blanks.
func (b *bracketParser) parseValue(s string) (text string, quotes bool, n int, err error) {
	n = countSpaces(s)
	if n < len(s) && (s[n] == '"' || s[n] == '\'') {
		text, k, err := parseQuotedText(s[n:])
		n += k
		return text, true, n + countSpaces(s[n:]), err
	}
	end, closer := n, byte(']')
	if b.parens {
		closer = ')'
	}
	for ; end < len(s); end++ {
		if s[end] == closer || b.hasNextCondition(s[end:]) {
			break
		}
	}
	return strings.TrimRight(s[n:end], " \t"), false, end, nil
}
