// Package console is what people and programs see of a running Liftlock: the
// pages, the JSON API (its shapes are in console/api, its Go client in
// console/client) and the stream of events. Templates, styles and scripts are
// embedded.
//
// It reads the store and decides nothing. A command that comes in over the API,
// with a token, or from a page, by who has logged in (console/login finds out who
// that is), is checked for its form here; whether it is allowed, and
// what it does, is the business of the Command that it is handed to, the same
// that serves comments in pull requests.
//
// What holds everywhere: reading is open or needs a token or a login, as the
// server's file says, and writing always needs one; what a page shows to all is
// rendered once for all, so what is one user's is on pages of its own; nothing
// from outside is rendered unescaped or read without a bound; and a page works
// without its script, which only makes it live.
package console
