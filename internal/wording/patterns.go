package wording

import "regexp/syntax"

// maxPatternSize is where PatternSize stops counting.
const maxPatternSize = 1 << 20

// PatternSize is about how many instructions a regular expression compiles to, with its repeats
// written out: a{1000} is as good as a thousand characters. Compiling or matching one can't be
// stopped. It compiles nothing. The error says why it isn't a pattern.
func PatternSize(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return countInstructions(parsed), nil
}

// countInstructions recurses as deep as syntax.Parse lets a pattern be.
func countInstructions(r *syntax.Regexp) int {
	n := 1 + len(r.Rune)/2
	for _, sub := range r.Sub {
		n += countInstructions(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= max(r.Min, r.Max, 1)
	}
	return min(n, maxPatternSize)
}
