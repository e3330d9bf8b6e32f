// Package client speaks to a server's API. The command line's status, why, promote, hold, unhold,
// retry, revert and skip are made of it, and it prints their answers. It decides nothing; what a
// command means is the server's business.
package client
