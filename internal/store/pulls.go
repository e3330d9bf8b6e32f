package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Pull is a pull request as it was last read from the forge, with the columns that find it. For a
// stranger's branch Pipeline, Environment and Component are empty.
type Pull struct {
	Repo        string
	Number      int
	Branch      string // head branch
	State       string
	Pipeline    string
	Environment string
	Component   string // that its branch names
	Revert      bool
	Author      string
	Head        string
	MergeCommit string
	CreatedAt   time.Time
	ClosedAt    time.Time // also when merged; zero: it is open
	UpdatedAt   time.Time // by the forge
	Data        json.RawMessage

	Version int64  // given by the store, rising: SettlePull knows an overtaken reading by it
	Rules   string // by which what it moved was worked out; empty: it wasn't since it was last written
}

// PutPulls writes pull requests down. One that was updated later than what is given stays as it is,
// so that an answer that was overtaken does no harm. The effect of a pull request has to be worked
// out again after that.
func (s *Store) PutPulls(ctx context.Context, pulls ...Pull) error {
	return s.Tx(ctx, "putPulls", func(tx *Tx) error { return tx.PutPulls(ctx, pulls...) })
}

// PutPullSince writes a pull request down that was read from the forge after its row had a
// version; seen is 0 where there was none. It returns the new version, or 0: another
// answer was written meanwhile that isn't older by the forge's time, or the row is newer
// by it. Forges stamp whole seconds, so which of two answers of one second is the newer
// one only a new question tells.
func (s *Store) PutPullSince(ctx context.Context, p Pull, seen int64) (version int64, err error) {
	return txWithResult(ctx, s, "putPull", func(tx *Tx) (int64, error) {
		version, err := tx.putPull(ctx, p, seen)
		return version, wrapError(err, "store the pull request %s#%d", p.Repo, p.Number)
	})
}

// PutPulls is Store.PutPulls.
func (t *Tx) PutPulls(ctx context.Context, pulls ...Pull) error {
	for _, p := range pulls {
		if _, err := t.putPull(ctx, p, anyVersion); err != nil {
			return wrapError(err, "store the pull request %s#%d", p.Repo, p.Number)
		}
	}
	return nil
}

// anyVersion is that of an answer of which it isn't known what it was read after.
const anyVersion = -1

// putPull returns no version where what is there is newer, or, with another version than the
// one that was seen, as new.
func (t *Tx) putPull(ctx context.Context, p Pull, seen int64) (version int64, err error) {
	if err := cmp.Or(checkKey("its repository", p.Repo), checkJSON(p.Data)); err != nil {
		return 0, err
	}
	// A stranger's branch may have any name; the columns only find ours, so a
	// cut one does no harm, and refusing it would stop the repository.
	for _, s := range []*string{&p.Branch, &p.Pipeline, &p.Environment, &p.Component, &p.Author, &p.Head, &p.MergeCommit} {
		*s = truncateText(*s, maxKey)
	}
	p.State = limitText(p.State)
	version, written, err := queryOne(ctx, t.db, oneColumn[int64],
		`INSERT INTO pulls (repo, number, branch, state, pipeline, environment, component, revert, author, head, merge_commit,
			created_at, closed_at, updated_at, data, version, rules)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 1, '')
		ON CONFLICT (repo, number) DO UPDATE SET branch = excluded.branch, state = excluded.state, pipeline = excluded.pipeline,
			environment = excluded.environment, component = excluded.component, revert = excluded.revert, author = excluded.author,
			head = excluded.head, merge_commit = excluded.merge_commit, created_at = excluded.created_at, closed_at = excluded.closed_at,
			updated_at = excluded.updated_at, data = excluded.data, version = pulls.version + 1, rules = ''
		WHERE excluded.updated_at > pulls.updated_at OR excluded.updated_at = pulls.updated_at AND CAST($16 AS BIGINT) IN (-1, pulls.version) RETURNING version`,
		p.Repo, p.Number, p.Branch, p.State, p.Pipeline, p.Environment, p.Component, boolNumber(p.Revert), p.Author,
		p.Head, p.MergeCommit, toMicros(p.CreatedAt), toMicros(p.ClosedAt), toMicros(p.UpdatedAt), string(p.Data), seen)
	if err == nil && written {
		err = t.forgetPast(ctx, p.Repo, p.Number)
	}
	return version, err
}

func boolNumber(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// SetPullCursor remembers how far the repository's list of pull requests was read.
func (t *Tx) SetPullCursor(ctx context.Context, repo string, cursor time.Time) error {
	_, err := t.db.exec(ctx, `INSERT INTO pull_cursors (repo, read_to) VALUES ($1, $2)
		ON CONFLICT (repo) DO UPDATE SET read_to = excluded.read_to`, repo, toMicros(cursor))
	return wrapError(err, "store how far the pull requests of %s were read", repo)
}

// PullCursor is how far the repository's list of pull requests was read; zero
// when it never was.
func (q queries) PullCursor(ctx context.Context, repo string) (time.Time, error) {
	us, _, err := queryOne(ctx, q.db, oneColumn[int64], `SELECT read_to FROM pull_cursors WHERE repo = $1`, repo)
	return fromMicros(us), wrapError(err, "read how far the pull requests of %s were read", repo)
}

const pullColumns = `repo, number, branch, state, pipeline, environment, component, revert = 1, author, head, merge_commit, created_at, closed_at, updated_at, version, rules, data`

func (p *Pull) columns() []any {
	return []any{&p.Repo, &p.Number, &p.Branch, &p.State, &p.Pipeline, &p.Environment, &p.Component, &p.Revert, &p.Author, &p.Head,
		&p.MergeCommit,
		timeColumn{&p.CreatedAt}, timeColumn{&p.ClosedAt}, timeColumn{&p.UpdatedAt}, &p.Version, &p.Rules, payloadColumn{&p.Data}}
}

// Pull is one pull request; false when it isn't known.
func (q queries) Pull(ctx context.Context, repo string, number int) (Pull, bool, error) {
	p, ok, err := queryOne(ctx, q.db, (*Pull).columns, `SELECT `+pullColumns+` FROM pulls WHERE repo = $1 AND number = $2`, repo, number)
	return p, ok, wrapError(err, "read the pull request %s#%d", repo, number)
}

// OpenPulls are the repository's open pull requests whose branch begins with the
// prefix, the newest number first.
func (q queries) OpenPulls(ctx context.Context, repo, branchPrefix string) ([]Pull, error) {
	var w whereClause
	w.addCondition("closed_at = 0 AND repo = $%d", repo)
	w.addPrefix("branch", branchPrefix)
	pulls, err := queryAll(ctx, q.db, (*Pull).columns, `SELECT `+pullColumns+` FROM pulls`+w.String()+` ORDER BY number DESC`, w.args...)
	return pulls, wrapError(err, "read the open pull requests of %s", repo)
}

// PullsByRules are the pull requests on branches that name a component, as far as their effect was worked
// out by rules.
type PullsByRules struct{ Component, Rules string }

// unsettledAtOnce is how many components one query is about: a look is at a component, and at what it shares
// with others.
const unsettledAtOnce = 2

// UnsettledPulls are the pull requests on branches that name a component that are open, or whose
// effect was not worked out by its rules. They are the newest first.
func (q queries) UnsettledPulls(ctx context.Context, repo, pipeline string, of ...PullsByRules) ([]Pull, error) {
	var all []Pull
	for some := range slices.Chunk(of, unsettledAtOnce) {
		var ranges []string
		args := []any{repo, pipeline}
		for _, c := range some {
			// Two ranges of one index: what is settled isn't touched.
			args = append(args, c.Component, c.Rules)
			at := fmt.Sprintf(`SELECT `+pullColumns+` FROM pulls
				WHERE repo = $1 AND pipeline = $2 AND component = $%d AND rules `, len(args)-1)
			ranges = append(ranges, fmt.Sprintf(`%s< $%d`, at, len(args)), fmt.Sprintf(`%s> $%d`, at, len(args)))
		}
		pulls, err := queryAll(ctx, q.db, (*Pull).columns, strings.Join(ranges, ` UNION ALL `), args...)
		if err != nil {
			return nil, wrapError(err, "read the unsettled pull requests of %s in %s of %s", some[0].Component, pipeline, repo)
		}
		all = append(all, pulls...)
	}
	slices.SortFunc(all, func(a, b Pull) int { return b.Number - a.Number })
	return all, nil
}

// PullsAt are the pull requests with a head, of every state, the newest first.
func (q queries) PullsAt(ctx context.Context, repo, head string) ([]Pull, error) {
	pulls, err := queryAll(ctx, q.db, (*Pull).columns, `SELECT `+pullColumns+
		` FROM pulls WHERE repo = $1 AND head = $2 ORDER BY number DESC`, repo, head)
	return pulls, wrapError(err, "read the pull requests of %s with the head %s", repo, head)
}

// PullsMergedAs are the pull requests that were merged as a commit.
func (q queries) PullsMergedAs(ctx context.Context, repo, commit string) ([]Pull, error) {
	if commit == "" {
		return nil, nil
	}
	pulls, err := queryAll(ctx, q.db, (*Pull).columns, `SELECT `+pullColumns+
		` FROM pulls WHERE repo = $1 AND merge_commit = $2 AND merge_commit <> '' ORDER BY number DESC`, repo, commit)
	return pulls, wrapError(err, "read the pull requests of %s that were merged as %s", repo, commit)
}

// RevertPulls are the pull requests of a pipeline's reverts, of every state, that were
// opened at or after a time.
func (q queries) RevertPulls(ctx context.Context, repo, pipeline string, since time.Time) ([]Pull, error) {
	pulls, err := queryAll(ctx, q.db, (*Pull).columns, `SELECT `+pullColumns+` FROM pulls
		WHERE repo = $1 AND pipeline = $2 AND revert = 1 AND created_at >= $3 ORDER BY number DESC`, repo, pipeline, toMicros(since))
	return pulls, wrapError(err, "read the reverts of %s in %s", pipeline, repo)
}

// PullUsage is how much of a pipeline's limits an author's promotions take.
type PullUsage struct {
	OpenByEnv   map[string]int // of other components than the one that was asked for
	Merged      int            // since the time that was asked for
	OldestMerge time.Time      // of those; zero: none
}

// PullUsage counts the promotions of an author in a pipeline: those of other
// components that are open, and all that were merged after a time.
func (q queries) PullUsage(ctx context.Context, repo, pipeline, author, component, branchPrefix string,
	since time.Time) (PullUsage, error) {
	out := PullUsage{OpenByEnv: map[string]int{}}
	type count struct {
		environment string
		n           int
	}
	open, err := queryAll(ctx, q.db, func(c *count) []any { return []any{&c.environment, &c.n} }, `SELECT environment, count(*) FROM pulls
		WHERE closed_at = 0 AND repo = $1 AND branch >= $2 AND branch < $3 AND author = $4 AND component <> $5 AND component <> '' GROUP BY environment`,
		repo, branchPrefix, branchPrefix+"\U0010FFFF", author, component)
	if err != nil {
		return out, wrapError(err, "count the open pull requests of %s in %s", pipeline, repo)
	}
	for _, c := range open {
		out.OpenByEnv[c.environment] = c.n
	}
	_, _, err = queryOne(ctx, q.db, func(*struct{}) []any { return []any{&out.Merged, timeColumn{&out.OldestMerge}} },
		`SELECT count(*), coalesce(min(closed_at), 0) FROM pulls
		WHERE repo = $1 AND pipeline = $2 AND closed_at > $3 AND merge_commit <> '' AND revert = 0 AND author = $4`,
		repo, pipeline, toMicros(since), author)
	return out, wrapError(err, "count the merges of %s in %s", pipeline, repo)
}
