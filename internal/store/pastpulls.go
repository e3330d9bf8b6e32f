package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// PastKind is how a pull request that is no longer open ended.
type PastKind int

// The ways. A superseded one is not kept: it neither restrains nor tells anything. Neither does a promotion
// that was merged into another branch than its environment's.
const (
	PastMerged              PastKind = iota // a promotion that was merged
	PastRevert                              // a revert that was merged
	PastRefused                             // a promotion that a person closed
	PastRefusedRevert                       // a revert that a person closed
	PastRefusedUnknown                      // a promotion that a person closed, of a release that isn't known
	PastRevertOnOtherBranch                 // a revert that was merged into another branch than its environment's
	PastSuperseded                          // never stored
	pastKinds               = PastSuperseded
)

// PastPull is what a pull request that is no longer open did, or was to do, for one
// component.
type PastPull struct {
	Repo        string
	Number      int
	Component   string
	Pipeline    string
	Environment string
	BranchOf    string // the component that its branch names
	Kind        PastKind
	Release     string // of the component; of a revert maybe only its short form; empty: unknown
	Short       string // of Release
	Whole       string // short, of all that it moved
	At          time.Time
	Commit      string // that it was merged as
	By          string
	Rules       string // by which this was worked out
	Version     int64  // of the Pull, which is settled as long as this is there
}

// SettlePull writes down what a closed pull request moved, as worked out by rules from
// a version of it. One that was written since stays unsettled.
func (t *Tx) SettlePull(ctx context.Context, p Pull, rules string, moved ...PastPull) error {
	settled, err := t.markSettled(ctx, p, rules)
	if err != nil || !settled {
		return wrapError(err, "settle the pull request %s#%d", p.Repo, p.Number)
	}
	for _, m := range moved {
		if m.Kind >= pastKinds {
			continue
		}
		err := cmp.Or(checkKey("its component", m.Component), checkNames("its pipeline", m.Pipeline, "its environment", m.Environment,
			"its branch's component", m.BranchOf,
			"its release", m.Release, "its commit", m.Commit, "who merged it", m.By, "its rules", rules))
		if err == nil {
			m.Repo, m.Number, m.Rules, m.Version = p.Repo, p.Number, rules, p.Version
			err = t.writePastPull(ctx, m)
		}
		if err != nil {
			return wrapError(err, "store what the pull request %s#%d moved", p.Repo, p.Number)
		}
	}
	return nil
}

// markSettled also forgets what was known to be moved; writePastPull adds what was.
func (t *Tx) markSettled(ctx context.Context, p Pull, rules string) (settled bool, err error) {
	n, err := t.db.exec(ctx, `UPDATE pulls SET rules = $1 WHERE repo = $2 AND number = $3 AND version = $4`, rules, p.Repo,
		p.Number, p.Version)
	if err == nil && n > 0 {
		err = t.forgetPast(ctx, p.Repo, p.Number)
	}
	return n > 0, err
}

func (t *Tx) writePastPull(ctx context.Context, m PastPull) error {
	_, err := t.db.exec(ctx,
		`INSERT INTO past_pulls (repo, number, component, pipeline, environment, branch_of, kind, release_id, short_release, batch_release, at, commit_id, by_login, rules, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		m.Repo, m.Number, m.Component, m.Pipeline, m.Environment, m.BranchOf, int64(m.Kind), m.Release, m.Short, m.Whole, toMicros(m.At),
		m.Commit, m.By, m.Rules, m.Version)
	if err == nil {
		err = t.raiseVersion(ctx, pastPullsScope(m.Repo, m.Pipeline, m.Component))
	}
	return err
}

// pastColumns are what a PastPlace doesn't say already.
const pastColumns = `n.number, n.environment, n.branch_of, n.kind, n.release_id, n.short_release, n.batch_release, n.at, n.commit_id, n.by_login, n.rules, n.version`

func (p *PastPull) columns() []any {
	return []any{&p.Number, &p.Environment, &p.BranchOf, &p.Kind, &p.Release, &p.Short, &p.Whole, timeColumn{&p.At}, &p.Commit, &p.By,
		&p.Rules, &p.Version}
}

// PastPlace is where closed pull requests are asked for: those that moved a component
// of a pipeline, as worked out by one of the rules.
type PastPlace struct {
	Repo, Pipeline, Component string
	Rules                     []string
}

func (p PastPlace) where(table string) *whereClause {
	var w whereClause
	w.addCondition(table+".repo = $%d AND "+table+".pipeline = $%d AND "+table+".component = $%d", p.Repo, p.Pipeline, p.Component)
	addIn(&w, table+".rules", p.Rules)
	return &w
}

// NewestPastPulls are, of each kind and in each of the environments, the newest one.
func (q queries) NewestPastPulls(ctx context.Context, at PastPlace, environments ...string) ([]PastPull, error) {
	if len(environments) == 0 {
		return nil, nil
	}
	w := at.where("p")
	var places []string
	for _, environment := range environments {
		w.args = append(w.args, environment)
		places = append(places, "("+w.lastPlaceholder()+")")
	}
	// One step into the index for each, however many rows there are.
	all, err := queryAll(ctx, q.db, (*PastPull).columns, `WITH e(environment) AS (VALUES `+strings.Join(places, ", ")+
		`), k(kind) AS (VALUES (0), (1), (2), (3), (4), (5))
		SELECT `+pastColumns+` FROM e CROSS JOIN k CROSS JOIN past_pulls n WHERE n.repo = $1 AND n.component = $3 AND n.number =
			(SELECT p.number FROM past_pulls p`+w.String()+` AND p.environment = e.environment AND p.kind = k.kind ORDER BY p.at DESC LIMIT 1)`, w.args...)
	at.completePastPulls(all)
	return all, wrapError(err, "read the newest closed pull requests of %s in %s of %s", at.Component, at.Pipeline, at.Repo)
}

// RestrainingPulls are the reverts, and the promotions that a person closed, of which
// the release in short is one of those given; "" is one that isn't known.
func (q queries) RestrainingPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error) {
	return q.pastPullsOf(ctx, at, "n.kind > 0", shorts)
}

// MergedPulls are the merged promotions of which the release in short is one of those given.
func (q queries) MergedPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error) {
	return q.pastPullsOf(ctx, at, "n.kind = 0", shorts)
}

func (q queries) pastPullsOf(ctx context.Context, at PastPlace, kinds string, shorts []string) ([]PastPull, error) {
	if len(shorts) == 0 {
		return nil, nil
	}
	w := at.where("n")
	w.addCondition(kinds)
	addIn(w, "n.short_release", shorts)
	all, err := queryAll(ctx, q.db, (*PastPull).columns, `SELECT `+pastColumns+` FROM past_pulls n`+w.String(), w.args...)
	at.completePastPulls(all)
	return all, wrapError(err, "read the closed pull requests of %s in %s of %s", at.Component, at.Pipeline, at.Repo)
}

// completePastPulls fills in what the rows that were asked for have in common.
func (p PastPlace) completePastPulls(all []PastPull) {
	for i := range all {
		all[i].Repo, all[i].Pipeline, all[i].Component = p.Repo, p.Pipeline, p.Component
	}
	sortNewestFirst(all)
}

// sortNewestFirst sorts here what the databases would otherwise look for by another index.
func sortNewestFirst(all []PastPull) {
	slices.SortFunc(all, func(a, b PastPull) int { return cmp.Compare(b.Number, a.Number) })
}

// PullThatMoved is the newest merged promotion below a number on a branch of a component in an
// environment whose whole content, in short, is the given one. It is false when none is known.
func (q queries) PullThatMoved(ctx context.Context, repo, pipeline, branchOf, environment, whole string, below int) (int, bool, error) {
	n, ok, err := queryOne(ctx, q.db, oneColumn[int],
		`SELECT number FROM past_pulls WHERE repo = $1 AND pipeline = $2 AND branch_of = $3 AND environment = $4
		AND batch_release = $5 AND kind = 0 AND number < $6 ORDER BY number DESC LIMIT 1`, repo, pipeline, branchOf, environment, whole, below)
	return n, ok, wrapError(err, "look for the promotion of %s to %s in %s of %s", whole, environment, pipeline, repo)
}
