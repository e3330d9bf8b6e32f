// Package plan says which promotions would open now, and why the others don't,
// from a repository's files and history alone: no server, no forge, no Argo CD.
//
// It gathers what Git tells (releases, who brought them, holds, reverts on
// record), has promotion.Decide (or DecideBatch) judge it, and shows what the
// promotions that it opens would change. It decides nothing itself and writes
// nothing.
//
// What Git can't tell is assumed, and said once: that every release is healthy
// where it is, that no pull request of Liftlock's is open or was closed by a
// person, and that commits with Liftlock's trailers are Liftlock's. So a plan may
// promise more than the server does, never another thing: composing an edit and
// proving whom it changes are the server's own.
package plan
