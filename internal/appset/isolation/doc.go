// Package isolation says what an edit does to targets: what it changes in the manifests of its own
// targets, and whether any other target depends on the change.
//
// A field belongs to an environment when editing it changes no target outside. That is shown, not
// guessed. All targets' specs are compared. Every other target that reads an edited file is
// rendered from the tree before and from the tree after. An edit that can't be shown to be isolated
// is refused, by name.
//
// Trees, targets and readers are given; Git, forges and pipelines don't belong here. Trees are our
// own edits on the tracked branch, and everybody who may merge there is trusted with it, so they
// are rendered in this process.
package isolation
