// Package doctor checks an installation before something fails in it. It checks the machine, the
// server's file, the forges' credentials, the repositories with their rules and webhooks, the Argo
// CDs, and the pipelines with their gates. It says of each whether it works and, where it doesn't,
// what to change.
//
// Small interfaces read the facts, and each check judges them: facts in, findings out. The
// invariants: nothing is changed (a probe's objects, where one is wanted, it removes again), and no
// part waits longer than its time for a silent peer. Whatever can't be read is unknown and never
// OK, and no finding repeats a secret.
package doctor
