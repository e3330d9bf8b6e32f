// Package prtext is everything that Liftlock writes into a pull request: titles, bodies, the one
// comment that is kept up to date, and labels. It also has the commit status, commit and merge
// messages, and the answers to people's commands.
//
// It has the words, and how they are laid out. It doesn't know which facts are true (promotion
// decides that), or when something is written (controller/act). Every function is pure and may be
// called concurrently.
//
// Two invariants hold for every text. It is the same, byte for byte, when only Input.Now differs:
// times are absolute, so that a look without news edits nothing. And text from outside (names,
// values, Argo CD's messages, logins, reasons) can't become markup. It makes no mention, link,
// reference, closing keyword, table cell, HTML or hidden mark, and its length is bounded; escape.go
// is the only way in.
package prtext
