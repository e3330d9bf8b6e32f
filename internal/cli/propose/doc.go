// Package propose infers a pipeline from the targets that a repository deploys. It finds which of
// the generators' parameters are component and environment, in which order the environments are,
// and which fields a release is made of. It writes the pipeline file that says so, with the
// evidence in comments.
//
// It is pure: targets, trees and a history come in, values and a text come out. Whether the text
// holds is for the caller to prove, by the same code that validates and plans.
//
// The invariant: the same files and the same history give the same proposal, byte for byte. A
// question that the files don't settle is a *ChoiceError, never a guess.
package propose
