// Package console shows people and programs a running Liftlock, with the pages, the JSON API (its
// shapes are in console/api, its Go client in console/client) and the stream of events. Templates,
// styles and scripts are embedded.
//
// It reads the store and decides nothing. It checks the form of a command that comes in over the
// API, with a token, or from a page, by a logged-in user (console/login identifies users). The
// Command that it is handed to, the same that serves comments in pull requests, decides whether it
// is allowed and does it.
//
// Some rules hold everywhere. Reading is open or needs a token or a login, as the server's file
// says, and writing always needs one. A page's part for all is rendered once for all, so one user's
// data is on pages of its own. Nothing from outside is rendered unescaped or read without a bound.
// A page works without its script, which only makes it live.
package console
