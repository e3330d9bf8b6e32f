// Package doctor checks an installation before something fails in it: the machine, the server's
// file, the forges' credentials, the repositories with their rules and webhooks, the Argo CDs,
// and the pipelines with their gates. It says of each whether it is well and, where it isn't,
// what to change.
//
// What is read comes through small interfaces, and each check judges what was read: facts in,
// findings out. The invariants: nothing is changed (what a probe makes, where one is wanted,
// it removes again), no part waits longer than its time for what doesn't answer, what can't be
// read is unknown and never well, and no finding repeats a secret.
package doctor
