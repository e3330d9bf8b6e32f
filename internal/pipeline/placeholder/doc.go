// Package placeholder is the meaning of {{environment}} and {{component}} in carry entries. It says
// which texts have them, how they are filled in, and how a file's name is found again in the
// pattern that picked it.
//
// Their values are taken literally: in a glob their special characters are escaped, and they never
// cross into another part of a file's path.
package placeholder
