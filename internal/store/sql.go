package store

import "time"

// queries are the reads of a database. They are the store's and, inside a transaction, the
// transaction's, which sees its own writes.
type queries struct {
	db  session
	now func() time.Time // that all processes share
}

// dialect are pieces of SQL; empty where a database needs none.
type dialect struct {
	skipLocked string // appended to a SELECT: lock its rows, pass over those that others hold
	forUpdate  string // appended to a SELECT: lock its rows
	lockEvents string // a statement: one transaction at a time appends events, so that seq rises in the order of commits
	notify     string // a statement: tell the other processes about $1, a subject, once this commits
}
