// Package proc starts programs: an argument vector without a shell, an
// environment built from an allow list, a process group that ends with its
// context, bounded output and, on Linux, resource limits.
//
// What a program is for, which arguments it takes and what its exit codes mean
// belongs to its caller (gitrepo, render).
//
// The invariant: no run outlives its context by more than its grace, keeps
// more output than it was allowed, sees a variable of our environment that is
// not on the list, or puts a declared secret into an error.
package proc
