// Package textdiff says where two texts differ: in runs of lines, and written
// as git diff writes them. It is pure and knows nothing of what the texts mean.
package textdiff
