package store

import (
	"context"
	"time"
)

// PendingCommand is a person's command that waits to take effect.
type PendingCommand struct {
	ID          int64 // given by the store
	Unit        string
	Environment string
	Verb        string
	Release     string
	By          string // login
	ByID        int64  // of the account; 0: not known
	Reason      string
	Source      string // where it was said (a comment, a request), unique in the world; empty: none
	At          time.Time
	DoneAt      time.Time // zero: open
	Outcome     string
}

// PutPendingCommand writes a command down once: when its Source is known already, nothing
// changes and the first one's ID is returned.
func (t *Tx) PutPendingCommand(ctx context.Context, a PendingCommand) (id int64, err error) {
	if err := checkNames("its unit", a.Unit, "its environment", a.Environment, "its verb", a.Verb,
		"its release", a.Release, "its author", a.By, "its source", a.Source); err != nil {
		return 0, wrapError(err, "store the command %.80q", a.Verb)
	}
	if a.At.IsZero() {
		a.At = t.now()
	}
	a.Reason, a.Outcome = limitText(a.Reason), limitText(a.Outcome)
	id, fresh, err := queryOne(ctx, t.db, oneColumn[int64], `INSERT INTO pending_commands
			(unit, environment, verb, release_id, by_login, by_id, reason, source, at, done_at, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING RETURNING id`,
		a.Unit, a.Environment, a.Verb, a.Release, a.By, a.ByID, a.Reason, a.Source, toMicros(a.At), toMicros(a.DoneAt), a.Outcome)
	if err == nil && !fresh {
		id, _, err = queryOne(ctx, t.db, oneColumn[int64], `SELECT id FROM pending_commands WHERE source = $1`, a.Source)
	}
	return id, wrapError(err, "store the command %s for %s", a.Verb, a.Unit)
}

// FinishPendingCommand says that the command has taken effect, or why it won't. The first
// outcome stays.
func (t *Tx) FinishPendingCommand(ctx context.Context, id int64, outcome string) error {
	_, err := t.db.exec(ctx, `UPDATE pending_commands SET done_at = $1, outcome = $2 WHERE id = $3 AND done_at = 0`,
		toMicros(t.now()), limitText(outcome), id)
	return wrapError(err, "store the outcome of the command %d", id)
}

// BindPendingCommand says which release the command has become about: it stays open, and in
// force for that release, until FinishPendingCommand.
func (t *Tx) BindPendingCommand(ctx context.Context, id int64, release string) error {
	if err := checkNames("its release", release); err != nil {
		return wrapError(err, "bind the command %d", id)
	}
	_, err := t.db.exec(ctx, `UPDATE pending_commands SET release_id = $1 WHERE id = $2 AND done_at = 0`, release, id)
	return wrapError(err, "bind the command %d to a release", id)
}

const pendingCommandColumns = `id, unit, environment, verb, release_id, by_login, by_id, reason, source, at, done_at, outcome`

func (p *PendingCommand) columns() []any {
	return []any{&p.ID, &p.Unit, &p.Environment, &p.Verb, &p.Release, &p.By, &p.ByID, &p.Reason, &p.Source, timeColumn{&p.At},
		timeColumn{&p.DoneAt}, &p.Outcome}
}

// PendingCommands are the unit's commands that wait, in the order they were given.
func (q queries) PendingCommands(ctx context.Context, unit string) ([]PendingCommand, error) {
	all, err := queryAll(ctx, q.db, (*PendingCommand).columns, `SELECT `+pendingCommandColumns+
		` FROM pending_commands WHERE unit = $1 AND done_at = 0 ORDER BY id`, unit)
	return all, wrapError(err, "read the commands that wait for %s", unit)
}
