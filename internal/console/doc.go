// Package console is what people and programs see of a running Liftlock: the
// pages, the JSON API (its shapes are in console/api, its Go client in
// console/client) and the stream of events. Templates, styles and scripts are
// embedded.
//
// It reads the store and decides nothing. A command that comes in over the API
// is authenticated and checked for its form here; whether it is allowed, and
// what it does, is the business of the Command that it is handed to, the same
// that serves comments in pull requests.
//
// What holds everywhere: reading is open or needs
// a token, as the server's file says, and writing always needs one; nothing from
// outside is rendered unescaped, read without a bound or kept in a cookie; and
// a page works without its script, which only makes it live.
package console
