// Package prtext is everything that Liftlock writes into a pull request:
// titles, bodies, the one comment that is kept up to date, labels, the commit
// status, commit and merge messages, and the answers to people's commands.
//
// What lives here: words, and how they are laid out. What doesn't: what is true
// (promotion decides that), and when something is written (controller/act). Every
// function is pure and may be called concurrently.
//
// Two invariants hold for every text. It is the same, byte for byte, when only
// Input.Now differs: times are absolute, so that a look that finds nothing new
// edits nothing. And whatever comes from outside (names, values, Argo CD's
// messages, logins, reasons) can't become markup: no mention, link, reference,
// closing keyword, table cell, HTML or hidden mark is made by it, and its length
// is bounded; escape.go is the only way in.
package prtext
