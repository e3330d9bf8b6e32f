// Package deps says which files of a commit each reader depends on, and so what a change touches. A
// reader is anything with source folders: it knows the layouts of kustomize, Helm and plain folders
// of manifests, and nothing of Argo CD, pipelines or releases.
//
// The invariant: if changing, creating or deleting a file can change what a reader renders, the
// file is among what the reader reads. Where that can't be told exactly (an unknown layout, a
// broken kustomization, a chart that reads arbitrary files), everything below the folder counts.
// Too many readers cost a refused edit, too few an edit in the wrong environment.
//
// An [Index] is a graph. Its nodes are readers, folders and files that are parsed. Each knows the
// files that it reads by itself and the nodes that it uses. A walker follows each and records every
// look at a file. These records make [Index.Update] right: following a node that reads none of the
// changed files would give the same result.
package deps
