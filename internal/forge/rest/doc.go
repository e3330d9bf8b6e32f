// Package rest is what the drivers share, whatever their forge: how one is reached (Options), how
// a call goes out and what its answer is allowed to be (New), what is made of a refusal (Dialect,
// Wrap), and how a list is read to its end (List).
//
// A call is given the credentials, bounded in time and in the size of its answer, made
// conditionally where its answer was seen before, told to an observer, and kept to the forge's
// limits. An answer that refuses is an error before any SDK sees it, so that there is one table of
// them and not one a driver; an SDK gives an error of its transport on as it is.
//
// It knows no forge's API: what differs is the driver's Protocol and Dialect. Its invariant: the
// credentials leave for the forge's own scheme, host and port only, whatever an answer says, and
// no answer is held in memory beyond its limit.
package rest
