// Package sandbox runs a handler over trees of files in a child process that can be given up. Its
// memory, its CPU time, its time and its answer have limits. It gets nothing of our environment,
// and no files but those it asks its parent for.
//
// It is for input that a stranger wrote. Parsers and template engines can be made to take all
// memory, to run for ever or to crash. No check in the same process can stop all of these ways. The
// package knows neither the handler's purpose nor what its answer means.
//
// The invariant: a run ends within its limits, in the handler's own answer or in an error that
// names which limit it was. Nothing that the child says is believed further than its form: frames,
// counts and bytes are bounded, and only names inside the trees are looked up.
//
// # Protocol
//
// The child's standard input and output carry frames: a letter, the length of what follows as four
// bytes, and that. The parent sends the task. From then on the child asks about the tree, as many
// questions ahead as it likes, and the parent answers in their order. The child's last frame is its
// answer.
package sandbox
