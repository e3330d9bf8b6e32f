// Package facts gathers the facts that promotion.Decide judges. Each source has a gatherer of its
// own, with what it remembers and the few calls that it needs of others. Package branch has what
// the branches say: targets, releases and history. Package people says who made, owns and reviewed
// what. Package effects says what edits do to targets, and package live how targets are. Here are
// pullGatherer (the forge's pull requests) and recordGatherer (the store). Gatherer joins them.
//
// It reads and remembers; it changes nothing outside the store, and it decides nothing. Its memory
// is in caches, which may lose any of it at any time; since when Applications are unhealthy is the
// exception.
//
// Facts are gathered for one unit at a time.
package facts
