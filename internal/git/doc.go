// Package git keeps bare mirrors of remote repositories through the git
// command line: fetch, a commit as an fs.FS, file lists, ancestry, commits
// without a work tree and pushes with a lease. It also reads a checkout that
// a person has on disk, uncommitted edits included, for the commands that need
// no server. It is the only package that runs git. Beside git's programs there is a
// remote in memory with mirrors of it, for tests and simulations, that answers the same.
//
// What the files mean, which branch a change belongs to and when to fetch or
// push is decided elsewhere; so is where credentials come from.
//
// The invariants: a mirror is a cache that can be thrown away, so a damaged
// one is made anew; nothing of the remote is changed but by a push that names
// what must be there; writes to one mirror happen one at a time, and being
// killed during one leaves nothing that stops the next; credentials are in the
// environment of the one process that needs them and nowhere else; a person's
// checkout is never written, and nothing that its configuration names is run.
package git
