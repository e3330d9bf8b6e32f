// Package render turns a target's sources into Kubernetes objects, as Argo
// CD's repo server would from the same files, and says what changed between
// two renderings.
//
// It knows the layouts kustomize, Helm and plain folders of manifests, through
// kustomize's and Helm's own libraries; ApplicationSets, pipelines and Git are
// not its business. A commit is an [fs.FS]; nothing else is read and nothing
// is written: no network, no programs, no cluster, no clock, no randomness.
// What would need one of these is an [*Unrenderable] error, which says so.
//
// The invariant: a rendering is a function of its [Input] and of the files
// that [Manifests.Reads] lists. Templates that ask for the time or for random
// values get stand-ins, so that two renderings differ only where the files do.
//
// Bytes from outside are bounded, but a library can burn processor time and
// memory between two checks. Trees that a stranger wrote are therefore only for a
// child process with limits; [Render] itself returns when its context ends, and
// leaves a library call that doesn't notice behind.
//
// # Why the template engine is ours
//
// Helm's own engine in a worker of the sandbox, replaced now and then, would need
// none of the bounds in engine.go and templatefuncs.go. It is not taken, because
// a small chart takes 2.6 to 4.3 times as long there, where 1.5 times was the limit:
// 0.4 to 0.6 ms here, 1.7 to 2.2 ms in a worker, no matter whether it is replaced
// after 100 charts or 500 (BenchmarkWorker). Nearly all of that is asking the parent
// for a tree's files, anew for each commit, so sprig with a few of its functions replaced
// costs as much in a worker. The engines alone take 0.12 ms and, Helm's, 0.09 ms
// (BenchmarkEngines). Helm's also takes no other functions: the time, random values
// and the order of a map's keys would get into a rendering.
package render
