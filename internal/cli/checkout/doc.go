// Package checkout is the work of the commands that need no server. They open a checkout, find its
// pipelines or its ApplicationSets, and say what targets these make, as it is committed or as it
// lies on disk.
//
// It composes gitrepo, pipeline, fleet, evaluate and impact. It doesn't write to the checkout, and
// it doesn't talk to the network but to an Argo CD that it is told to ask.
//
// The invariant: a set's answer here is what the server computes from the same files, and where a
// checkout isn't enough to know, a [fleet.Problem] says so.
package checkout
