package strictyaml

import (
	"strings"
)

// Nearest is the candidate that a person who wrote word probably meant; "" when
// none is near. Case does not count.
func Nearest(word string, candidates []string) string {
	w := strings.ToLower(word)
	best, bestDistance := "", len(w)/3+1
	for _, c := range candidates {
		lower := strings.ToLower(c)
		// "environments" for "env": a shortened or lengthened key.
		extends := strings.HasPrefix(lower, w) || strings.HasPrefix(w, lower) && len(lower) >= 3
		if len(w) >= 3 && extends && best == "" {
			best = c
			continue
		}
		if d := editDistance(w, lower, bestDistance); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean is `; did you mean "x"?` for a near candidate, otherwise "".
func DidYouMean(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

// editDistance is the number of single-character edits between a and b, or limit+1 when it is more
// than limit. That keeps it cheap for a key of a megabyte.
func editDistance(a, b string, limit int) int {
	ra, rb := []rune(a), []rune(b)
	if len(ra)-len(rb) > limit || len(rb)-len(ra) > limit {
		return limit + 1
	}
	previous := make([]int, len(rb)+1)
	current := make([]int, len(rb)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		current[0] = i
		for j := 1; j <= len(rb); j++ {
			replaced := previous[j-1]
			if ra[i-1] != rb[j-1] {
				replaced++
			}
			current[j] = min(previous[j]+1, current[j-1]+1, replaced)
		}
		previous, current = current, previous
	}
	return min(previous[len(rb)], limit+1)
}
