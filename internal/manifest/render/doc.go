// Package render turns a target's sources into Kubernetes objects, as Argo CD's repo server would
// from the same files, and says what changed between two renderings.
//
// It knows the layouts kustomize, Helm and plain folders of manifests, through kustomize's and
// Helm's own libraries; ApplicationSets, pipelines and Git are not its business. A commit is an
// [fs.FS]; nothing else is read and nothing is written: no network, no programs, no cluster, no
// clock, no randomness. A source that would need one of these is an [*Unrenderable] error, which
// says so.
//
// The invariant: a rendering is a function of its [Input] and of the files that [Manifests.Reads]
// lists. Templates that ask for the time or for random values get stand-ins, so that two renderings
// differ only where the files do.
//
// Bytes from outside are bounded, but a library can burn processor time and memory between two
// checks, and a template can end the process. So a server renders in worker processes that may die
// ([Renderer]), and strangers' trees in separate ones. [Render] itself returns when its context
// ends, and leaves a library call that doesn't notice behind.
//
// # Why the template engine is ours
//
// Helm's own engine takes no context, bounds nothing but include, and lets no functions be
// replaced. The time, random values and the order of a map's keys would get into a rendering.
package render
