// Package impact compares the targets of two trees, and says what a change does: which targets it
// creates, changes and deletes in which environment, how, and what can't be told.
//
// It is pure: the resolutions come from package evaluate, which files changed from git. How a pull
// request shows it is not known here.
//
// The invariant: a target that is not in a report is the same in both resolutions and reads none of
// the changed files. A target that could not be resolved on one of the sides is reported as
// unknown, never as created or deleted.
package impact
