// Package history says what a repository's tracked branch and its history say
// of a pipeline's components, from Git alone: since when the pipeline is in
// force, which of its components a broken ApplicationSet concerns, which commit
// brought a release, which reverts are recorded in commits, and what is on hold.
//
// The server's observer adds to it what the forge, Argo CD and the store know;
// the command line has nothing else. Neither decides anything here.
//
// The invariant: what is written in Git restrains, and never loosens. A hold's
// file that can't be read holds, and a commit's trailers are at most a claim.
package history
