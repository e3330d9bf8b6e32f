// Package evaluate evaluates a tree of files: which targets the pipelines' ApplicationSets generate
// from it, and which of them read the files that a change touches. Trusted trees are evaluated in
// this process. Trees that aren't trusted are evaluated in a worker process that can be given up:
// anybody may have written a pull request's head.
//
// It composes appset and manifest/deps. It knows neither forges nor what its callers do with the
// answer.
//
// The invariant: both ways give the same answer, and the rules (pipelines, clusters, projects) are
// always the caller's, never the tree's.
package evaluate
