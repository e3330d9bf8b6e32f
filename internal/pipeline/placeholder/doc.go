// Package placeholder is what {{environment}} and {{component}} mean in what a
// pipeline carries: which texts have them, how they are filled in, and how a
// file's name is found again in the pattern that picked it.
//
// What fills them in is taken literally: in a glob its special characters are
// escaped, and it never crosses into another part of a file's path.
package placeholder
