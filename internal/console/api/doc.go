// Package api holds the shapes of Liftlock's HTTP API: what the server's JSON
// answers look like and what it takes, shared by the server, the command line's
// client and the console's pages. Nothing here reads or decides. Fields are only
// ever added: a client must ignore those that it doesn't know.
package api
