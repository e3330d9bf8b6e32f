// Package deps says which files of a commit each reader depends on, and so
// what a change touches. A reader is anything with source folders: it knows
// the layouts of kustomize, Helm and plain folders of manifests, and nothing
// of Argo CD, pipelines or releases.
//
// The invariant: if changing, creating or deleting a file can change what a
// reader renders, the file is among what the reader reads. Where that can't
// be told exactly (an unknown layout, a broken kustomization, a chart that
// reads arbitrary files), everything below the folder counts: too many
// readers cost a refused edit, too few an edit in the wrong environment.
//
// An [Index] is a graph. Its nodes are readers, folders and files that are
// parsed; each knows the files that it reads by itself and the nodes that it
// uses, and is followed by a walker that records whatever it looks at. That
// every look is recorded is what makes [Index.Update] right: a node that
// reads none of the changed files would be followed to the same result.
package deps
