// Package history reads from Git alone what a repository's tracked branch and its history say of a
// pipeline's components. It finds since when the pipeline is in force, which of its components a
// broken ApplicationSet concerns and which commit brought a release. It also finds the reverts that
// commits record, and the holds.
//
// The server's observer adds to it what the forge, Argo CD and the store know; the command line has
// nothing else. Neither decides anything here.
//
// The invariant: records in Git restrain, and never loosen. A hold's file that can't be read holds,
// and a commit's trailers are at most a claim.
package history
