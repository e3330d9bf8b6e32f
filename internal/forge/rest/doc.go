// Package rest is what the drivers share, whatever their forge: how to reach one (Options), and how
// a call goes out and what its answer may be (New). It also makes errors of refusals (Dialect,
// Wrap) and reads a list to its end (List).
//
// A call gets the credentials and bounds on its time and on the size of its answer. It is made
// conditionally where its answer was seen before, told to an observer, and kept to the forge's
// limits. An answer that refuses is an error before any SDK sees it, so that there is one table of
// errors and not one for each driver. An SDK passes an error of its transport on as it is.
//
// It knows no forge's API: what differs is the driver's Protocol and Dialect. Its invariant: the
// credentials leave for the forge's own scheme, host and port only, whatever an answer says, and no
// answer is held in memory beyond its limit.
package rest
