// Package onboard decides about the one pull request that proposes a pipeline file to a repository
// without one. It is pure: what the forge and Git say comes in, and what to do goes out.
//
// It also has the form in which a proposal comes from the process that makes it. It doesn't know how
// one is made (that is liftlock init), how it is written (prtext), or how it is opened (act).
//
// Two invariants hold. A person's "no" is final: after one of ours was closed or merged, no other is
// opened. And a branch with a commit that isn't proven to be Liftlock's is never written over.
package onboard
