// Package server is the composition root: it builds the parts from the server's
// file and runs them. There is no logic here; what a part does is in its room.
package server
