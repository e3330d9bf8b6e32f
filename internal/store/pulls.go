package store

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// Pull is a pull request as it was last read from the forge.
type Pull struct {
	Repo      string
	Number    int
	Branch    string // head branch
	State     string
	UpdatedAt time.Time // by the forge
	Data      json.RawMessage
}

// PutPulls writes pull requests down. One that was updated later than what is
// given stays as it is, so that an answer that was overtaken does no harm.
func (s *Store) PutPulls(ctx context.Context, pulls ...Pull) error {
	return s.Tx(ctx, "putPulls", func(tx *Tx) error { return tx.PutPulls(ctx, pulls...) })
}

// PutPulls is Store.PutPulls.
func (t *Tx) PutPulls(ctx context.Context, pulls ...Pull) error {
	for _, p := range pulls {
		if err := t.putPull(ctx, p); err != nil {
			return wrapError(err, "store the pull request %s#%d", p.Repo, p.Number)
		}
	}
	return nil
}

func (t *Tx) putPull(ctx context.Context, p Pull) error {
	if err := cmp.Or(checkKey("its repository", p.Repo), checkJSON(p.Data)); err != nil {
		return err
	}
	// A stranger's branch may have any name; the column only finds ours, so a
	// cut one does no harm, and refusing it would stop the repository.
	_, err := t.db.exec(ctx, `INSERT INTO pulls (repo, number, branch, state, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (repo, number) DO UPDATE SET branch = excluded.branch, state = excluded.state,
			updated_at = excluded.updated_at, data = excluded.data
		WHERE excluded.updated_at >= pulls.updated_at`,
		p.Repo, p.Number, truncateText(p.Branch, maxKey), limitText(p.State), toMicros(p.UpdatedAt), string(p.Data))
	return err
}

// SetPullCursor remembers how far the repository's list of pull requests was read.
func (t *Tx) SetPullCursor(ctx context.Context, repo string, cursor time.Time) error {
	_, err := t.db.exec(ctx, `INSERT INTO pull_cursors (repo, read_to) VALUES ($1, $2)
		ON CONFLICT (repo) DO UPDATE SET read_to = excluded.read_to`, repo, toMicros(cursor))
	return wrapError(err, "store how far the pull requests of %s were read", repo)
}

// PullCursor is how far the repository's list of pull requests was read; zero
// when it never was.
func (r queries) PullCursor(ctx context.Context, repo string) (time.Time, error) {
	us, _, err := queryOne(ctx, r.db, oneColumn[int64], `SELECT read_to FROM pull_cursors WHERE repo = $1`, repo)
	return fromMicros(us), wrapError(err, "read how far the pull requests of %s were read", repo)
}

const pullColumns = `repo, number, branch, state, updated_at, data`

func (p *Pull) columns() []any {
	return []any{&p.Repo, &p.Number, &p.Branch, &p.State, timeColumn{&p.UpdatedAt}, payloadColumn{&p.Data}}
}

// Pulls are the repository's pull requests whose branch begins with the prefix
// (empty: all), of every state, the newest number first.
func (r queries) Pulls(ctx context.Context, repo, branchPrefix string) ([]Pull, error) {
	var w whereClause
	w.addCondition("repo = $%d", repo)
	w.addPrefix("branch", branchPrefix)
	pulls, err := queryAll(ctx, r.db, (*Pull).columns, `SELECT `+pullColumns+` FROM pulls`+w.String()+` ORDER BY number DESC`, w.args...)
	return pulls, wrapError(err, "read the pull requests of %s", repo)
}

// Pull is one pull request; false when it isn't known.
func (r queries) Pull(ctx context.Context, repo string, number int) (Pull, bool, error) {
	p, ok, err := queryOne(ctx, r.db, (*Pull).columns, `SELECT `+pullColumns+` FROM pulls WHERE repo = $1 AND number = $2`, repo, number)
	return p, ok, wrapError(err, "read the pull request %s#%d", repo, number)
}
