package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// readTimeout bounds a read that many requests may be waiting for.
const readTimeout = 20 * time.Second

// reader reads the store for the console. Requests that come at the same moment
// share one read, and a unit that hasn't changed isn't decoded again.
type reader struct {
	store    *store.Store
	health   func(context.Context) []api.Trouble
	inFlight singleflight.Group

	releaseNames *cache.Cache[string, string] // by a release's identity: what people call it

	mu             sync.Mutex
	decoded        map[string]decodedUnit // by the unit's key
	pullBaseURLs   map[string]string      // by repository: what its pull requests' addresses begin with
	repoByPipeline map[string]string      // by pipeline: its repository; empty where several have one of the name
}

type decodedUnit struct {
	digest string
	at     time.Time
	record *unitRecord
}

// snapshot is everything that is shown, as of one moment. It is read only.
type snapshot struct {
	units    []*unitRecord // sorted by pipeline, component and repository
	troubles []api.Trouble
	digest   [sha256.Size]byte // equal: nothing that is shown has changed
}

// findUnit finds a unit's record by its key; nil where there is none.
func (s *snapshot) findUnit(key string) *unitRecord {
	for _, v := range s.units {
		if unitKey(v.Unit) == key {
			return v
		}
	}
	return nil
}

func newReader(s *store.Store, health func(context.Context) []api.Trouble, caches *cache.Group) *reader {
	return &reader{store: s, health: health, decoded: map[string]decodedUnit{}, pullBaseURLs: map[string]string{},
		releaseNames: cache.New(caches, cache.Options[string, string]{Name: "console-release-names", Entries: maxReleaseNames})}
}

// sharedSnapshot reads everything anew, or joins a read that is under way.
func (r *reader) sharedSnapshot(ctx context.Context) (*snapshot, error) {
	ch := r.inFlight.DoChan("", func() (any, error) {
		// Others may be waiting for it when the first one leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return r.readSnapshot(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("read what is shown: %w", ctx.Err())
	case res := <-ch:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*snapshot), nil
	}
}

func (r *reader) readSnapshot(ctx context.Context) (*snapshot, error) {
	rows, err := r.store.Units(ctx, store.UnitFilter{})
	if err != nil {
		return nil, err
	}
	s := &snapshot{units: make([]*unitRecord, 0, len(rows)), troubles: r.health(ctx)}
	sum := sha256.New()
	kept := make(map[string]decodedUnit, len(rows))
	r.mu.Lock()
	old := r.decoded
	r.mu.Unlock()
	for _, row := range rows {
		fmt.Fprintf(sum, "%q %q %d\n", row.Key, row.Digest, row.UpdatedAt.UnixMicro())
		d, ok := old[row.Key]
		if !ok || d.digest != row.Digest || !d.at.Equal(row.UpdatedAt) {
			v := &unitRecord{}
			if err := json.Unmarshal(row.Data, v); err != nil {
				s.troubles = append(s.troubles, api.Trouble{Part: row.Pipeline + "/" + row.Component, Message: "what was last judged of it can't be read; it is written again at its next change"})
				continue
			}
			d = decodedUnit{row.Digest, row.UpdatedAt, v}
		}
		kept[row.Key] = d
		s.units = append(s.units, d.record)
	}
	s.troubles = addBrokenPipelines(s.troubles, s.units)
	for _, t := range s.troubles {
		fmt.Fprintf(sum, "%q %q %d\n", t.Part, t.Message, t.Since.UnixMicro())
	}
	sum.Sum(s.digest[:0])
	r.rememberUnits(kept, s.units)
	r.learnPullURLs(ctx, s.units)
	return s, nil
}

// addBrokenPipelines adds the broken pipeline files that units tell of, once each,
// where the health doesn't tell already.
func addBrokenPipelines(troubles []api.Trouble, views []*unitRecord) []api.Trouble {
	for _, v := range views {
		if v.Broken == "" {
			continue
		}
		known := false
		for _, t := range troubles {
			known = known || strings.Contains(t.Message, v.Broken)
		}
		if !known {
			troubles = append(troubles, api.Trouble{Part: "pipeline file of " + v.Unit.Repo, Message: v.Broken})
		}
	}
	return troubles
}

// maxReleaseNames bounds the memory of what releases are called.
const maxReleaseNames = 20_000

func (r *reader) rememberUnits(kept map[string]decodedUnit, views []*unitRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decoded, r.repoByPipeline = kept, map[string]string{}
	for _, v := range views {
		repo := v.Unit.Repo
		if other, ok := r.repoByPipeline[v.Unit.Pipeline]; ok && other != repo {
			repo = ""
		}
		r.repoByPipeline[v.Unit.Pipeline] = repo
	}
	for _, v := range views {
		for i := range v.Decision.Envs {
			e := &v.Decision.Envs[i]
			if e.Release != "" && e.Name != "" {
				r.releaseNames.Put(e.Release, e.Name)
			}
			if e.Candidate != "" && e.CandidateName != "" {
				r.releaseNames.Put(e.Candidate, e.CandidateName)
			}
		}
	}
}

// learnPullURLs finds out where a repository's pull requests are for people:
// every forge numbers them under one address, so one of them says it for all.
func (r *reader) learnPullURLs(ctx context.Context, views []*unitRecord) {
	for _, v := range views {
		repo := v.Unit.Repo
		for i := range v.Decision.Envs {
			e := &v.Decision.Envs[i]
			for _, n := range []int{e.Pull, e.Revert, e.LandedPull} {
				if n == 0 || r.pullBaseURL(repo) != "" {
					continue
				}
				if b := r.readPull(ctx, repo, n); b != nil {
					r.learnPullURL(repo, n, b.PR.URL)
				}
			}
		}
	}
}

// readPull reads one pull request; nil when the store has none that can be read.
func (r *reader) readPull(ctx context.Context, repo string, number int) *pullRecord {
	row, ok, err := r.store.Pull(ctx, repo, number)
	if err != nil || !ok {
		return nil
	}
	var b pullRecord
	if json.Unmarshal(row.Data, &b) != nil {
		return nil
	}
	return &b
}

func (r *reader) pullBaseURL(repo string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pullBaseURLs[repo]
}

func (r *reader) learnPullURL(repo string, number int, address string) {
	base, ok := strings.CutSuffix(address, "/"+strconv.Itoa(number))
	if !ok || webAddress(address) == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pullBaseURLs[repo] = base
}

// webAddress is the address if a browser may be sent there, else "".
func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return s
}

// buildPull is a pull request with its address where that is known; nil for 0.
func (r *reader) buildPull(repo string, number int) *api.Pull {
	if number == 0 {
		return nil
	}
	p := &api.Pull{Number: number}
	if base := r.pullBaseURL(repo); base != "" {
		p.URL = base + "/" + strconv.Itoa(number)
	}
	return p
}

// releaseName is what people call a release, "" when that isn't known.
func (r *reader) releaseName(release string) string {
	name, _ := r.releaseNames.Get(release)
	return name
}

// isAmbiguous says whether several repositories have a pipeline of this name.
func (r *reader) isAmbiguous(pipeline string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	repo, ok := r.repoByPipeline[pipeline]
	return ok && repo == ""
}
