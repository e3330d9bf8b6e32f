// Package api holds the shapes of Liftlock's HTTP API, those of the server's JSON answers and those
// of its input. The server, the command line's client and the console's pages share them. Nothing
// here reads or decides. Fields are only ever added: a client must ignore those that it doesn't
// know.
package api
