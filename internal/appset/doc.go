// Package appset turns ApplicationSets into targets: which Argo CD Applications
// a commit stands for, which component and environment each belongs to, and
// where each reads its manifests.
//
// It is the only package that imports Argo CD's generator packages, and it
// runs the same functions as the ApplicationSet controller does, over a commit
// instead of a checkout and over snapshots instead of a cluster. Which files a
// target's sources pull in is not known here (package manifest/deps knows), nor is
// anything about the live Applications.
//
// The invariant: what is returned is what the controller would create from
// the same inputs, or there is a [Problem] that says why not. A set that can
// only be understood in part yields no targets at all.
//
// # Why templates are bounded in this process
//
// Strangers' templates run in a worker of the sandbox (InWorker of package evaluate); those of
// the branches themselves run here, within the limits of templatelimits.go. Taking
// the library's renderer for them, with a worker as the only fence, was measured and
// is not done, because it may take 1.5 times as long at most:
//   - The library parses every string each time: 160 µs for two fields, 0.5 µs here; with
//     a few functions 270 µs, 20 µs here, of which the limits are 14 µs (BenchmarkTemplate).
//   - A resolver that saw the commit before takes 18 ms for the next one of 1,000 targets.
//     A worker that lives as long, and remembers as much, has to reply with all
//     targets each time, which takes 42 ms more: 3.3 times as long. One that is started for
//     each commit takes 740 ms (BenchmarkEvaluate in package evaluate).
package appset
