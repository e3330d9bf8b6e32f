// Package store holds Liftlock's records: deliveries, wakes, observations and decisions, people's
// commands, the history and the audit trail. They are in SQLite (embedded, the default; for tests
// and simulations also in memory, by OpenMemory) or PostgreSQL (for several replicas). It is the
// only package with SQL. Its users know the meaning of a record's data: payloads are opaque here,
// and nothing is decided here.
//
// The heart of it is the queue of wakes, a row a key. A wake says "look at this key again", now or
// at a time. A runner claims keys that are due, works, and finishes them. Three promises hold, also
// over kill -9:
//
//   - one run a key at a time;
//   - every acknowledged wake is followed by a run that began after it, so an event during a run
//     causes another run;
//   - the earliest time asked for wins, and a key that is held back (Outcome.NotBefore) stays back
//     until then, however often it is woken.
//
// Everything here can be lost: Liftlock finds what is in flight again from Git, the forge and Argo
// CD. So a deleted database is a fresh start, not a failure.
//
// Every write runs in a named transaction; Options.OnCommit sees each just before and just after
// its commit. On SQLite one connection writes, and the transactions that wait for it at the same
// moment are committed together, with one fsync. A caller has its answer only when that is done.
// Reads of a file go to other connections and never wait for a writer.
//
// Time comes from Options.Now. PostgreSQL judges what is due, and whose lease has ended, by its own
// clock: only distances in time cross the border, so the replicas' clocks need not agree.
package store
