// Package facts gathers the facts that promotion.Decide judges. Each source has a
// gatherer of its own, with what it remembers and the few calls that it needs of
// others: targetGatherer (what the newest commits of the tracked branches say),
// releaseReader (what overlays hold), gitGatherer (what history tells), pullGatherer
// and reviewGatherer (the forge), argocdGatherer (verdicts), recordGatherer (the
// store), effectGatherer (what edits do to targets) and changeGatherer (what
// somebody's pull request would do). Gatherer joins them.
//
// It reads and remembers; it changes nothing outside the store, and it decides
// nothing. What it remembers is kept in caches, which may lose any of it at any
// time; since when Applications are unhealthy is the exception.
//
// A Snapshot is everything that one commit of the tracked branch says; it is
// built once a commit. Facts are gathered for one unit at a time.
package facts
