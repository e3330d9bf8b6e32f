// Package transport is how every driver talks HTTP to its forge: it adds the
// credentials, bounds the time and the size of each answer, asks conditionally
// for what it has seen before, tells an observer about every call, and keeps the
// calls of an identity to the forge's limits.
//
// It knows no forge's API and interprets no answer but what it says of limits. Its invariant: the
// credentials leave for the forge's own scheme, host and port only, whatever an
// answer says, and no answer is held in memory beyond its limit.
package transport
