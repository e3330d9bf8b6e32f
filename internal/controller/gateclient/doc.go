// Package gateclient asks the outside for what gates wait for: the Prometheus servers and the
// endpoints that the server's file names.
//
// Only those are reached, by the file's own addresses and credentials; a redirect isn't followed.
// Answers are bounded and are believed no further than their form. Every call has a time, every
// server a budget of calls, and a server that fails is left alone for a while. Its memory only
// keeps it from asking twice at once: callers keep in the store what a gate depends on.
package gateclient
