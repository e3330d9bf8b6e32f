// Package plan says which promotions would open now, and why the others don't,
// from a repository's files and history alone: no server, no forge, no Argo CD.
//
// It is the controller: the same facts, gathered from a mirror that holds the
// checkout's branches, a forge without pull requests and a store that has seen
// nothing, and the same decision. It decides nothing itself and opens nothing.
//
// What Git can't tell is assumed, and said once: that every release is healthy
// where it is and was, that no pull request of Liftlock's is open or was closed by
// a person, and that commits with Liftlock's trailers are Liftlock's. So a plan may
// promise more than the server does, never another thing.
package plan
