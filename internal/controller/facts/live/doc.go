// Package live says how targets are: the verdicts about what landed, also of hydrated
// manifests and of the Applications below a target, how targets were before a merge, and
// which resources are unhealthy, here and elsewhere. It returns what it found; who
// evaluates takes it in.
package live
