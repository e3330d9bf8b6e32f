// Package git keeps bare mirrors of remote repositories through the git command line. It fetches,
// reads a commit as an fs.FS, lists files, finds ancestry, makes commits without a work tree and
// pushes with a lease. It also reads a checkout that a person has on disk, uncommitted edits
// included, for the commands that need no server. It is the only package that runs git. Beside
// git's programs there is a remote in memory with mirrors of it, for tests and simulations, that
// answers the same.
//
// Callers decide what the files mean, which branch a change belongs to, when to fetch or push, and
// where credentials come from.
//
// The invariants: a mirror is a cache that can be thrown away, so a damaged one is made anew.
// Nothing of the remote changes but by a push that names the expected state. Writes to one mirror
// happen one at a time, and being killed during one leaves nothing that stops the next. Credentials
// are in the environment of the one process that needs them and nowhere else. A person's checkout
// is never written, and nothing that its configuration names is run.
package git
