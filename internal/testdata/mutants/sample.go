// Package mutants is code for the tests of the mutants themselves.
package mutants

import (
	"errors"
	"time"
)

const most = 3 > 2

// countToZero has a loop that never ends when its condition is changed.
func countToZero(left int) (steps int) {
	for left != 0 {
		if left > 0 {
			left--
		} else {
			left++
		}
		steps++
	}
	return steps
}

// either has an operand that no test needs.
func either(a, b bool) bool {
	if a || b {
		return most
	}
	return false
}

// Choose is noticed by nobody but who uses it.
func Choose(at, now time.Time, ready bool) (string, error) {
	switch {
	case !ready:
		return "", errors.New("not ready")
	case at.Before(now):
		return "late", nil
	}
	return func() (string, error) { return "early", nil }()
}
