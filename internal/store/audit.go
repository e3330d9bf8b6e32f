package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// Audit is one thing that a person did, or was refused, or a merge.
type Audit struct {
	ID      int64 // given by the store, rising
	At      time.Time
	Actor   string // login, or the API token's name
	Via     string // comment, api or console; of a merge server or forge
	Verb    string
	Subject string // what it was done to
	// Environment is the one that it was about; empty: none, or several.
	Environment string
	Reason      string
	Outcome     string
	Source      string // where it was said, unique in the world; empty: none
	// Data is what else is to be kept of it, such as what a merge was judged by; nil: nothing.
	Data json.RawMessage
}

// AuditFilter chooses entries of the audit trail; an empty field chooses all.
type AuditFilter struct {
	Actor, Via, Verb, Subject, Environment, Source string

	SubjectPrefixes []string  // the subject begins with one of them; none: with anything
	Since, Until    time.Time // from then on; before then
	Before          int64     // only those with a lower ID
}

// AddAudit writes an entry down, once for a Source that isn't empty. A zero At is now.
func (s *Store) AddAudit(ctx context.Context, a Audit) error {
	return s.Tx(ctx, "addAudit", func(tx *Tx) error { return tx.AddAudit(ctx, a) })
}

// AddAudit is Store.AddAudit.
func (t *Tx) AddAudit(ctx context.Context, a Audit) error {
	_, err := t.ClaimAudit(ctx, a)
	return err
}

// ClaimAudit is AddAudit that says whether the entry was written: of several that come with one
// Source, even at the same time, one is.
func (s *Store) ClaimAudit(ctx context.Context, a Audit) (added bool, err error) {
	return txWithResult(ctx, s, "claimAudit", func(tx *Tx) (bool, error) { return tx.ClaimAudit(ctx, a) })
}

// ClaimAudit is Store.ClaimAudit.
func (t *Tx) ClaimAudit(ctx context.Context, a Audit) (added bool, err error) {
	if err := cmp.Or(checkNames("its actor", a.Actor, "its way", a.Via, "its verb", a.Verb, "its subject", a.Subject, "its environment",
		a.Environment, "its source", a.Source), checkJSON(a.Data)); err != nil {
		return false, wrapError(err, "store what %.80q did", a.Actor)
	}
	if a.At.IsZero() {
		a.At = t.now()
	}
	a.Reason, a.Outcome = limitText(a.Reason), limitText(a.Outcome)
	n, err := t.db.exec(ctx, `INSERT INTO audit (at, actor, via, verb, subject, environment, reason, outcome, source, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		toMicros(a.At), a.Actor, a.Via, a.Verb, a.Subject, a.Environment, a.Reason, a.Outcome, a.Source, string(a.Data))
	return n > 0, wrapError(err, "store that %s did %s to %s", a.Actor, a.Verb, a.Subject)
}

// ReplaceAuditOutcome sets what came of the entry with a Source, where that still was what the
// caller has read; false: it wasn't, or there is no such entry.
func (s *Store) ReplaceAuditOutcome(ctx context.Context, source, was, outcome string) (replaced bool, err error) {
	return txWithResult(ctx, s, "replaceAuditOutcome", func(tx *Tx) (bool, error) {
		n, err := tx.db.exec(ctx, `UPDATE audit SET outcome = $1 WHERE source = $2 AND source <> '' AND outcome = $3`,
			limitText(outcome), source, was)
		return n > 0, wrapError(err, "store the outcome of the command %.80q", source)
	})
}

// AuditTrail are the entries that the filter chooses, newest first; limit 0: 100,
// at most 1000.
func (q queries) AuditTrail(ctx context.Context, f AuditFilter, limit int) ([]Audit, error) {
	var w whereClause
	addEquals(&w, "actor", f.Actor)
	addEquals(&w, "via", f.Via)
	addEquals(&w, "verb", f.Verb)
	addEquals(&w, "subject", f.Subject)
	addEquals(&w, "environment", f.Environment)
	if f.Source != "" {
		w.addCondition("source = $%d AND source <> ''", f.Source) // the index has only those
	}
	w.addPrefix("subject", f.SubjectPrefixes...)
	if !f.Since.IsZero() {
		w.addCondition("at >= $%d", toMicros(f.Since))
	}
	if !f.Until.IsZero() {
		w.addCondition("at < $%d", toMicros(f.Until))
	}
	if f.Before > 0 {
		w.addCondition("id < $%d", f.Before)
	}
	w.args = append(w.args, clampLimit(limit))
	all, err := queryAll(ctx, q.db, func(a *Audit) []any {
		return []any{&a.ID, timeColumn{&a.At}, &a.Actor, &a.Via, &a.Verb, &a.Subject, &a.Environment, &a.Reason, &a.Outcome, &a.Source,
			payloadColumn{&a.Data}}
	}, `SELECT id, at, actor, via, verb, subject, environment, reason, outcome, source, data FROM audit`+
		w.String()+` ORDER BY id DESC`+limitTo(w.lastPlaceholder()), w.args...)
	return all, wrapError(err, "read the audit trail")
}
