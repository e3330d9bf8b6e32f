// Package local is what the commands do that need no server: they open a
// checkout, find its pipelines or its ApplicationSets, and say what these come
// to, as it is committed or as it lies on disk.
//
// It composes gitrepo, pipeline, fleet and evaluate; what a checkout holds is
// known there, and how an answer is printed in package cli. It neither writes
// to the checkout nor talks to the network.
//
// The invariant: a set's answer here is what the server computes from the same
// files, and where a checkout isn't enough to know, a [fleet.Problem] says so.
package local
