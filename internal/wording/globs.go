package wording

import (
	"fmt"
	"math"
	"strings"
)

// maxAlternatives bounds the ways in which a glob's braces can be read.
const maxAlternatives = 250

// CheckGlob says of a glob from outside that it would take too long to match: the libraries that forges' and Argo CD's
// globs are matched with try one way of reading its braces after the other, and nothing stops them. Thirty times {a,aa} are
// a billion ways. What it counts is at least as many as there are, however the braces are nested or quoted.
func CheckGlob(glob string) error {
	groups := float64(strings.Count(glob, "{"))
	if groups == 0 {
		return nil
	}
	// The product is the largest where all groups have the same number of alternatives.
	each := (float64(strings.Count(glob, ",")) + groups) / groups
	if groups*math.Log(each) > math.Log(maxAlternatives) {
		return fmt.Errorf("the glob %q has too many alternatives; write several, or a *", Clip(glob, 100))
	}
	return nil
}
