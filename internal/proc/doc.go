// Package proc starts programs with an argument vector without a shell and an environment built
// from an allow list. The process group ends with its context, output is bounded and, on Linux,
// resources are limited.
//
// Its callers (git, the sandbox) know what a program is for, which arguments it takes and what its
// exit codes mean.
//
// The invariant: no run outlives its context by more than its grace, or keeps more output than it
// was allowed. None sees a variable of our environment that is not on the list, or puts a declared
// secret into an error.
package proc
