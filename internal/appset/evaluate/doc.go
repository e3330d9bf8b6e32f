// Package evaluate says what a tree of files stands for: which targets the
// pipelines' ApplicationSets generate from it, and which of them read the files
// that a change touches. It does so here, for trees that are trusted, or in a
// child process that can be given up, for those that are not: a pull request's
// head is written by whoever opened it.
//
// It composes fleet and reads and knows neither forges nor what is done with
// the answer.
//
// The invariant: both ways give the same answer, and the rules (pipelines,
// clusters, projects) are always the caller's, never the tree's.
package evaluate
