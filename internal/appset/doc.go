// Package appset turns ApplicationSets into targets: which Argo CD Applications a commit stands
// for, which component and environment each belongs to, and where each reads its manifests.
//
// It is the only package that imports Argo CD's generator packages. It runs the same functions as
// the ApplicationSet controller, over a commit instead of a checkout and over snapshots instead of
// a cluster. It knows neither which files a target's sources pull in (package manifest/deps does)
// nor anything about the live Applications.
//
// The invariant: it returns exactly the targets that the controller would create from the same
// inputs, or a [Problem] that says why not. A set that can only be understood in part yields no
// targets at all.
//
// # Why templates are bounded in this process
//
// Strangers' templates run in a worker of the sandbox (InWorker of package evaluate); those of the
// branches themselves run here, within the limits of templatelimits.go. Taking the library's
// renderer for them, with a worker as the only fence, was measured and is not done. It may take 1.5
// times as long at most:
//   - The library parses every string each time. Two fields take it 160 µs, and 0.5 µs here. With a
//     few functions they take 270 µs, and 20 µs here, of which the limits are 14 µs
//     (BenchmarkTemplate).
//   - A resolver that saw the commit before takes 18 ms for the next one of 1,000 targets. A worker
//     that lives as long, and remembers as much, has to reply with all targets each time. That
//     takes 42 ms more: 3.3 times as long. One that is started for each commit takes 740 ms
//     (BenchmarkEvaluate in package evaluate).
package appset
