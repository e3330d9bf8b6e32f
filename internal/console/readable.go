package console

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// readableStore is the store as far as the reader may read it: other repositories' records aren't
// there. All that is shown comes through it; whose rights count is in the context.
type readableStore struct {
	all    *store.Store
	access *accessRules
}

const (
	// maxScanned bounds the rows that are looked through for one answer.
	maxScanned = 5000
	// mostEvents is the store's own bound on one read.
	mostEvents = 1000
)

// repositoryOfUnit is the repository in a unit's key.
func repositoryOfUnit(key string) string {
	repo, _, _ := strings.Cut(key, "|")
	return repo
}

func (rs *readableStore) mayRead(ctx context.Context, repo string) bool {
	return rs.access.reading(ctx).mayRead(ctx, repo)
}

// keepReadable drops rows of repositories that may not be read.
func keepReadable[T any](ctx context.Context, s *readableStore, rows []T, repository func(*T) string) []T {
	r := s.access.reading(ctx)
	if r.readsAll() {
		return rows
	}
	var repos []string
	for i := range rows {
		repos = append(repos, repository(&rows[i]))
	}
	slices.Sort(repos)
	may := r.mayReadEach(ctx, slices.Compact(repos))
	var out []T
	for i := range rows {
		if may[repository(&rows[i])] {
			out = append(out, rows[i])
		}
	}
	return out
}

// Promotion is one promotion.
func (rs *readableStore) Promotion(ctx context.Context, id int64) (store.Promotion, bool, error) {
	p, ok, err := rs.all.Promotion(ctx, id)
	if err != nil || !ok || !rs.mayRead(ctx, p.Repo) {
		return store.Promotion{}, false, err
	}
	return p, true, nil
}

// PromotionByPull is the promotion of a unit that has a pull request.
func (rs *readableStore) PromotionByPull(ctx context.Context, unit, repo string, number int) (store.Promotion, bool, error) {
	if !rs.mayRead(ctx, repo) {
		return store.Promotion{}, false, nil
	}
	return rs.all.PromotionByPull(ctx, unit, repo, number)
}

// Promotions lists promotions, newest first. next is where an answer goes on that looked through
// as many rows as it may; 0: it is whole, as far as its limit goes.
func (rs *readableStore) Promotions(ctx context.Context, f store.PromotionFilter) (out []store.Promotion, next int64, err error) {
	limit := f.Limit
	for scanned := 0; ; {
		rows, err := rs.all.Promotions(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, keepReadable(ctx, rs, rows, func(p *store.Promotion) string { return p.Repo })...)
		scanned += len(rows)
		switch {
		case limit > 0 && len(out) >= limit:
			return out[:limit], 0, nil
		case limit == 0 || len(rows) < limit:
			return out, 0, nil
		case scanned >= maxScanned:
			return out, rows[len(rows)-1].ID, nil
		}
		f.Before = rows[len(rows)-1].ID
	}
}

// Events lists events; of the newest, those among the last mostEvents. scanned is the number of the
// last event that was read, more that there are others behind it.
func (rs *readableStore) Events(ctx context.Context, f store.EventFilter) (out []store.Event, scanned int64, more bool, err error) {
	limit := f.Limit
	if f.Newest && f.Repo == "" && !rs.access.reading(ctx).readsAll() {
		f.Limit = mostEvents
	}
	rows, err := rs.all.Events(ctx, f)
	if err != nil || len(rows) == 0 {
		return nil, f.After, false, err
	}
	out = keepReadable(ctx, rs, rows, func(e *store.Event) string { return e.Repo })
	if f.Newest {
		out = out[:min(len(out), limit)]
	}
	return out, rows[len(rows)-1].Seq, len(rows) == f.Limit, nil
}

// AuditTrail lists entries of the audit trail, newest first; next is as Promotions has it. Entries
// about no repository are logins and logouts, and for every reader.
func (rs *readableStore) AuditTrail(ctx context.Context, f store.AuditFilter, limit int) (out []store.Audit, next int64, err error) {
	r := rs.access.reading(ctx)
	for scanned := 0; ; {
		rows, err := rs.all.AuditTrail(ctx, f, limit)
		if err != nil {
			return nil, 0, err
		}
		for i := range rows {
			if rs.isReadableEntry(ctx, r, &rows[i]) {
				out = append(out, rows[i])
			}
		}
		scanned += len(rows)
		switch {
		case len(out) >= limit:
			return out[:limit], 0, nil
		case len(rows) < limit:
			return out, 0, nil
		case scanned >= maxScanned:
			return out, rows[len(rows)-1].ID, nil
		}
		f.Before = rows[len(rows)-1].ID
	}
}

func (rs *readableStore) isReadableEntry(ctx context.Context, r *reading, a *store.Audit) bool {
	if r.readsAll() || a.Verb == auditLogin || a.Verb == auditLogout {
		return true
	}
	about, ok := parseAuditSubject(a.Subject)
	return ok && r.mayRead(ctx, about.repository)
}

// Arrivals are what came into a unit's environments.
func (rs *readableStore) Arrivals(ctx context.Context, unit string) ([]store.Arrival, error) {
	if !rs.mayRead(ctx, repositoryOfUnit(unit)) {
		return nil, nil
	}
	return rs.all.Arrivals(ctx, unit)
}

// Observations are what verifications remember of a unit's targets.
func (rs *readableStore) Observations(ctx context.Context, unit string) ([]store.Observation, error) {
	if !rs.mayRead(ctx, repositoryOfUnit(unit)) {
		return nil, nil
	}
	return rs.all.Observations(ctx, unit)
}

// Pull is a pull request.
func (rs *readableStore) Pull(ctx context.Context, repo string, number int) (store.Pull, bool, error) {
	if !rs.mayRead(ctx, repo) {
		return store.Pull{}, false, nil
	}
	return rs.all.Pull(ctx, repo, number)
}

// Record is a record about a repository.
func (rs *readableStore) Record(ctx context.Context, key store.RecordKey) ([]byte, bool, error) {
	if !rs.mayRead(ctx, key.Repo) {
		return nil, false, nil
	}
	return rs.all.Record(ctx, key)
}

// readable is a snapshot of what may be read in a context.
func (s *snapshot) readable(ctx context.Context, access *accessRules) *snapshot {
	r := access.reading(ctx)
	if r.readsAll() {
		return s
	}
	var repos []string
	for _, u := range s.units {
		repos = append(repos, u.record.Unit.Repo)
	}
	for i := range s.troubles {
		repos = append(repos, s.troubles[i].Repository)
	}
	slices.Sort(repos)
	may := r.mayReadEach(ctx, slices.Compact(repos))
	out := &snapshot{byKey: map[string]*shownUnit{}, version: s.versionFor(r)}
	for _, u := range s.units {
		if repo := u.record.Unit.Repo; may[repo] {
			out.units = append(out.units, u)
			out.byKey[unitKey(u.record.Unit)] = u
		}
	}
	out.troubles = slices.DeleteFunc(slices.Clone(s.troubles), func(t api.Trouble) bool {
		return !t.General && (t.Repository == "" || !may[t.Repository])
	})
	return out
}

// versionFor is the version as one reader is told it: of what others read it tells nothing but that
// another one is another.
func (s *snapshot) versionFor(r *reading) string {
	if r.readsAll() {
		return s.version
	}
	return hashID("v", s.version, r.key)
}
