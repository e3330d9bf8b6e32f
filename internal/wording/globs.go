package wording

import (
	"fmt"
	"math"
	"strings"
)

// maxAlternatives bounds the ways in which a glob's braces can be read.
const maxAlternatives = 250

// CheckGlob says that a glob from outside would take too long to match. The libraries for forges'
// and Argo CD's globs try one way of reading its braces after the other, and nothing stops them.
// Thirty times {a,aa} are a billion ways. It counts at least as many ways as there are, however the
// braces are nested or quoted.
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
