// Package command is the commands that people give Liftlock. It has one grammar, one table of who
// may and one canonical form for the audit trail, for commands from a pull request's comment, the
// API and the command line.
//
// A verb is declared once, in verbs.go, with all that other rooms need of it. That is what may
// stand behind it, who may give it and its lines of help. It is also where the API, the pages and
// the command line have it, and their words. A test holds that no other room spells a verb.
//
// This package reads commands out of comments, checks them, decides who may give them, and limits
// how often a reader is answered. It doesn't know what a command does (controller), or who a person
// is on a forge (the controller finds out).
//
// The invariant: a comment's text becomes a command only where its author plainly wrote one (see
// Parse). A command that isn't wholly understood is refused with the reason, never carried out in
// part.
package command
