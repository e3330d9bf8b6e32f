// Package discover decides which tag of an image, or which version of a chart, comes into a source
// environment by itself, and says of every other one why it doesn't.
//
// It is pure: lists and rules come in, a choice comes out. It knows no registry, no file and no
// clock. Who calls it lists the tags, and looks up those details that a rule needs: when an image
// was made, its digest, its platforms.
//
// The invariant: nothing older than what is there is chosen, unless the rule says so. What a person
// replaced by something older stays out, and so does all that can't be compared.
package discover
