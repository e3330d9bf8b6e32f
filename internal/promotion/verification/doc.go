// Package verification answers one question about one target: has it taken this
// commit, and is it well? It is pure: an Application's state, what was expected,
// what was remembered and the time go in; a verdict and the new memory come out.
// It does not know Kubernetes, Git or the forge, and it never compares the
// cluster's clock with anybody else's.
package verification
