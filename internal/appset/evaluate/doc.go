// Package evaluate says what a tree of files stands for: which targets the
// pipelines' ApplicationSets generate from it, and which of them read the files
// that a change touches. It does so in this process, for trees that are trusted, or
// in a worker process that can be given up, for those that are not: a pull request's
// head is written by whoever opened it.
//
// It composes appset and manifest/deps and knows neither forges nor what is done with
// the answer.
//
// The invariant: both ways give the same answer, and the rules (pipelines,
// clusters, projects) are always the caller's, never the tree's.
package evaluate
