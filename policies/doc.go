// Package policies is what must hold before a promotion merges: the gates of a pipeline file and
// their evaluation over plain facts.
//
// A gate answers pass, wait (for whom, until when) or fail, always with a reason that a person
// understands. Gates block the merge of a pull request, never its opening. All of them are
// evaluated every time, so that a reader sees everything that is still missing.
//
// There is no input or output here and no clock: the caller gathers the [Facts], the time included,
// so any answer can be replayed. A fact that could not be gathered says so and makes a gate wait.
// The invariant is that nothing passes on doubt.
//
// The package is public: it can judge a pipeline's gates in other programs. It says nothing about
// whether a pull request can be merged otherwise (conflicts, required checks of the forge, holds).
package policies
