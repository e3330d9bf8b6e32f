// Package isolation says what an edit does to targets: what it changes of the
// manifests of those that it is for, and whether any other target depends on
// what it changes.
//
// A field belongs to an environment when editing it changes no target outside.
// That is shown, not guessed: the specs of all targets are compared, and every
// other target that reads an edited file is rendered from the tree before and
// from the tree after. What can't be shown is refused, by name.
//
// Trees, targets and readers are given; Git, forges and pipelines are not its
// business. Trees are our own edits on the tracked branch, which whoever may
// merge there is trusted with, so they are rendered in this process.
package isolation
