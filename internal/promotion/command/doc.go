// Package command is what people may tell Liftlock: one grammar, one table of who
// may, one canonical form for the audit trail, whether a command comes from a
// pull request's comment, the API or the command line.
//
// A verb is declared once, in verbs.go, with all that other rooms need of it: what may
// stand behind it, who may give it, its lines of help, where the API, the pages and the
// command line have it, and their words. A test holds that no other room spells a verb.
//
// What lives here: reading commands out of comments, checking them, deciding who
// may give them, and limiting how often a reader is answered. What doesn't: what
// a command does (controller), who somebody is on a forge (the controller finds out).
//
// The invariant: a comment's text becomes a command only where its author plainly
// wrote one (see Parse), and a command that isn't wholly understood is refused
// with the reason, never carried out in part.
package command
