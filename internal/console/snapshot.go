package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

// shownUnit is a unit with what is worked out of it once, when it has changed. It is read
// only, but for the rows.
type shownUnit struct {
	digest      string
	at          time.Time
	learnedURLs int // the reader's, when component was made
	record      *stored.Unit
	available   map[string]stored.Available // by environment: what registries have besides
	component   api.Component

	urgency api.Urgency
	names   string   // what it is found by besides its environments, in lower case
	texts   []string // likewise, by environment
	labels  []string // of its targets' Applications, each once, as key=value
	rows    rowCache
}

// snapshot is everything that is shown, as of one moment. It is read only.
type snapshot struct {
	units    []*shownUnit // sorted by pipeline, component and repository
	byKey    map[string]*shownUnit
	troubles []api.Trouble
	newest   int64  // the newest event's number
	version  string // the same: nothing that is shown has changed; also on another replica that is as well
}

// findUnit finds a unit by its key; nil where there is none.
func (s *snapshot) findUnit(key string) *shownUnit { return s.byKey[key] }

// newSnapshot reads everything anew, and joins no read that may have begun before a change.
func (r *reader) newSnapshot(ctx context.Context) (*snapshot, error) {
	r.shared.forget("")
	return r.sharedSnapshot(ctx)
}

// sharedSnapshot reads everything that may be read anew, or joins a read that is under way.
func (r *reader) sharedSnapshot(ctx context.Context) (*snapshot, error) {
	s, err := r.shared.do(ctx, "", r.readSnapshot)
	if err != nil {
		return nil, err
	}
	return s.readable(ctx, r.store.access), nil
}

func (r *reader) readSnapshot(ctx context.Context) (*snapshot, error) {
	ctx = withReading(ctx, r.store.access.allReading()) // it is read for all that wait for it
	// First, so that what is read with the version is never older than it says.
	events, err := r.store.all.Events(ctx, store.EventFilter{Newest: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	old := r.decoded
	r.mu.Unlock()
	rows, err := store.ChangedUnits(ctx, r.store.all, func(row *store.Unit) bool { return old[row.Key].isOf(row) })
	if err != nil {
		return nil, err
	}
	available, err := r.readAvailable(ctx)
	if err != nil {
		return nil, err
	}
	s := &snapshot{units: make([]*shownUnit, 0, len(rows)), byKey: make(map[string]*shownUnit, len(rows)), troubles: r.health(ctx)}
	sum := sha256.New()
	for i := range rows {
		row := &rows[i]
		fmt.Fprintf(sum, "%s %s %d\n", row.Key, row.Digest, row.UpdatedAt.UnixMicro())
		u := old[row.Key]
		if !u.isOf(row) {
			u = &shownUnit{digest: row.Digest, at: row.UpdatedAt, record: &stored.Unit{}, learnedURLs: -1}
			if err := json.Unmarshal(row.Data, u.record); err != nil {
				s.troubles = append(s.troubles, api.Trouble{Repository: repositoryOfUnit(row.Key), Part: row.Pipeline + "/" + row.Component,
					Message: "what was last judged of it can't be read; it is written again at its next change"})
				continue
			}
		}
		if now := available[row.Key]; !maps.EqualFunc(u.available, now, isSameAvailable) {
			u = &shownUnit{digest: u.digest, at: u.at, record: u.record, available: now, learnedURLs: -1}
		}
		writeAvailable(sum, u.available)
		s.units = append(s.units, u)
	}
	s.troubles = addBrokenPipelines(s.troubles, s.units)
	for _, t := range s.troubles {
		fmt.Fprintf(sum, "%q %q %d\n", t.Part, t.Message, t.Since.UnixMicro())
	}
	if len(events) > 0 {
		s.newest = events[0].Seq
	}
	s.version = strconv.FormatInt(s.newest, 10) + "-" + hex.EncodeToString(sum.Sum(nil)[:12])
	r.learnPullURLs(ctx, s.units)
	r.rememberUnits(s)
	return s, nil
}

// isOf says whether a unit is what a row has.
func (s *shownUnit) isOf(row *store.Unit) bool {
	return s != nil && s.digest == row.Digest && s.at.Equal(row.UpdatedAt)
}

// addBrokenPipelines adds the broken pipeline files that units tell of, once each,
// where the health doesn't tell already.
func addBrokenPipelines(troubles []api.Trouble, units []*shownUnit) []api.Trouble {
	for _, u := range units {
		v := u.record
		if v.Broken == "" {
			continue
		}
		known := false
		for _, t := range troubles {
			known = known || strings.Contains(t.Message, v.Broken)
		}
		if !known {
			troubles = append(troubles, api.Trouble{Repository: v.Unit.Repo, Part: "pipeline file of " + v.Unit.Repo, Message: v.Broken})
		}
	}
	return troubles
}

// maxReleaseNames bounds the memory of what releases are called.
const maxReleaseNames = 20_000

// rememberUnits works out what is shown of the units that have changed, and keeps them all.
func (r *reader) rememberUnits(s *snapshot) {
	r.mu.Lock()
	learned := r.learnedURLs
	r.mu.Unlock()
	repos := map[string]string{}
	for i, u := range s.units {
		v := u.record
		if u.learnedURLs != learned {
			u = r.newShownUnit(u, learned)
			s.units[i] = u
		}
		s.byKey[unitKey(v.Unit)] = u
		repo := v.Unit.Repo
		if other, ok := repos[v.Unit.Pipeline]; ok && other != repo {
			repo = ""
		}
		repos[v.Unit.Pipeline] = repo
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decoded, r.repoByPipeline = s.byKey, repos
}

// newShownUnit is a unit with what is shown of it. Another snapshot may have the old one.
func (r *reader) newShownUnit(old *shownUnit, learnedURLs int) *shownUnit {
	u := &shownUnit{digest: old.digest, at: old.at, record: old.record, available: old.available, learnedURLs: learnedURLs,
		component: r.buildComponent(old.record)}
	c := &u.component
	addAvailable(c, u.available, r.wordsOf(c.Repository))
	u.urgency = c.Urgency()
	u.labels = labelsOf(c)
	u.names = strings.ToLower(c.Component + "\n" + c.Pipeline + "\n" + c.Repository)
	for i := range c.Environments {
		e := &c.Environments[i]
		text := []string{e.Name, e.State, e.Release}
		if e.Incoming != nil {
			text = append(text, e.Incoming.Name, e.Incoming.State)
		}
		for j := range e.Targets {
			text = append(text, joinLabels(e.Targets[j].Labels)...)
		}
		for j := range e.Available {
			text = append(text, e.Available[j].Version)
		}
		u.texts = append(u.texts, strings.ToLower(strings.Join(text, "\n")))
	}
	for i := range u.record.Decision.Envs {
		e := &u.record.Decision.Envs[i]
		if e.Release != "" && e.Name != "" {
			r.releaseNames.Put(e.Release, e.Name)
		}
		if e.Candidate != "" && e.CandidateName != "" {
			r.releaseNames.Put(e.Candidate, e.CandidateName)
		}
	}
	return u
}

// unitKey is the unit's key in the store.
func unitKey(u promotion.Unit) string { return u.Repo + "|" + u.Pipeline + "|" + u.Component }
