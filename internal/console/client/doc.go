// Package client speaks to a server's API: it is what the command line's
// status, why, promote, hold, unhold, retry, revert and skip are made of, and
// how their answers are printed. It decides nothing; what a command means is the
// server's business.
package client
