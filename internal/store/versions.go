package store

import "context"

// A look reads much of a component's history, which changes seldom. So the history has a version,
// which a cache compares. It is raised with every change, and is never below the time in
// microseconds at which it was raised. So it isn't the same again in a database that was lost and
// made anew.

// arrivalsScope and pastPullsScope name what has a version. Two that have one name by
// chance are only read again more often.
func arrivalsScope(unit string) string { return "arrivals " + unit }

func pastPullsScope(repo, pipeline, component string) string {
	return "past " + repo + " " + pipeline + " " + component
}

// upsertVersion raises the versions of the scopes that a SELECT gives; WHERE tells SQLite
// that ON CONFLICT isn't a join's.
func upsertVersion(selectScopes string) string {
	return `INSERT INTO history_versions (scope, version) SELECT scope, liftlock_now() FROM (` + selectScopes + `) AS s WHERE true
		ON CONFLICT (scope) DO UPDATE SET version = CASE WHEN excluded.version > history_versions.version THEN excluded.version ELSE history_versions.version + 1 END`
}

func (t *Tx) raiseVersion(ctx context.Context, scope string) error {
	_, err := t.db.exec(ctx, upsertVersion(`SELECT CAST($1 AS TEXT) AS scope`), scope)
	return err
}

// forgetPast forgets what a pull request moved.
func (t *Tx) forgetPast(ctx context.Context, repo string, number int) error {
	// In the order of the names: two that wait for each other would both wait for good.
	n, err := t.db.exec(ctx, upsertVersion(`SELECT DISTINCT 'past ' || repo || ' ' || pipeline || ' ' || component AS scope
		FROM past_pulls WHERE repo = $1 AND number = $2 ORDER BY scope`), repo, number)
	if err == nil && n > 0 {
		_, err = t.db.exec(ctx, `DELETE FROM past_pulls WHERE repo = $1 AND number = $2`, repo, number)
	}
	return err
}

func (q queries) readVersion(ctx context.Context, scope string) (int64, error) {
	version, _, err := queryOne(ctx, q.db, oneColumn[int64], `SELECT version FROM history_versions WHERE scope = $1`, scope)
	return version, wrapError(err, "read the version of what is kept of %s", scope)
}

// ArrivalsVersion is 0 where nothing ever arrived. As long as it is the same, so are the unit's
// Arrivals and its OlderArrivals, but for those that were pruned with the unit.
func (q queries) ArrivalsVersion(ctx context.Context, unit string) (int64, error) {
	return q.readVersion(ctx, arrivalsScope(unit))
}

// PastPullsVersion is 0 where no pull request ever closed; as long as it is the same,
// so is what NewestPastPulls, RestrainingPulls and MergedPulls answer of the component.
func (q queries) PastPullsVersion(ctx context.Context, repo, pipeline, component string) (int64, error) {
	return q.readVersion(ctx, pastPullsScope(repo, pipeline, component))
}
