// Package cli is the command line: cobra commands that read flags, call a room
// and print what it says. There is no logic here.
package cli
