// Package facts gathers the facts that promotion.Decide judges: from Git (the
// tracked branch, our branches, the holds), from the ApplicationSets (targets),
// from the forge (our pull requests) and from Argo CD (verdicts). It reads and
// remembers; it changes nothing outside the store, and it decides nothing.
//
// A Snapshot is everything that one commit of the tracked branch says; it is
// built once a commit. Facts are gathered for one unit at a time.
package facts
