// Package reads says which files of a commit each reader depends on, and so
// what a change touches. A reader is anything with source folders: it knows
// the layouts of kustomize, Helm and plain folders of manifests, and nothing
// of Argo CD, pipelines or releases.
//
// The invariant: if changing, creating or deleting a file can change what a
// reader renders, the file is among what the reader reads. Where that can't
// be told exactly (an unknown layout, a broken kustomization, a chart that
// reads arbitrary files), everything below the folder counts: too many
// readers cost a refused edit, too few an edit in the wrong environment.
package reads
