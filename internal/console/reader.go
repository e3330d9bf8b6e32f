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

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// readTime bounds a read that many requests may be waiting for.
const readTime = 20 * time.Second

// reader reads the store for the console. Requests that come at the same moment
// share one read, and a unit that hasn't changed isn't decoded again.
type reader struct {
	store  *store.Store
	health func(context.Context) []api.Trouble
	shared singleflight.Group

	mu      sync.Mutex
	decoded map[string]decoded // by the unit's key
	bases   map[string]string  // by repository: what its pull requests' addresses begin with
	names   map[string]string  // by a release's identity: what people call it
	repos   map[string]string  // by pipeline: its repository; empty where several have one of the name
}

type decoded struct {
	digest string
	at     time.Time
	view   *view
}

// snapshot is everything that is shown, as of one moment. It is read only.
type snapshot struct {
	views    []*view // sorted by pipeline, component and repository
	troubles []api.Trouble
	digest   [sha256.Size]byte // equal: nothing that is shown has changed
}

func newReader(s *store.Store, health func(context.Context) []api.Trouble) *reader {
	return &reader{store: s, health: health, decoded: map[string]decoded{}, bases: map[string]string{}, names: map[string]string{}}
}

// snapshot reads everything anew, or joins a read that is under way.
func (r *reader) snapshot(ctx context.Context) (*snapshot, error) {
	ch := r.shared.DoChan("", func() (any, error) {
		// Others may be waiting for it when the first one leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		return r.look(ctx)
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

func (r *reader) look(ctx context.Context) (*snapshot, error) {
	rows, err := r.store.Units(ctx, store.UnitFilter{})
	if err != nil {
		return nil, err
	}
	s := &snapshot{views: make([]*view, 0, len(rows)), troubles: r.health(ctx)}
	sum := sha256.New()
	kept := make(map[string]decoded, len(rows))
	r.mu.Lock()
	old := r.decoded
	r.mu.Unlock()
	for _, row := range rows {
		fmt.Fprintf(sum, "%q %q %d\n", row.Key, row.Digest, row.UpdatedAt.UnixMicro())
		d, ok := old[row.Key]
		if !ok || d.digest != row.Digest || !d.at.Equal(row.UpdatedAt) {
			v := &view{}
			if err := json.Unmarshal(row.Data, v); err != nil {
				s.troubles = append(s.troubles, api.Trouble{Part: row.Pipeline + "/" + row.Component, Message: "what was last judged of it can't be read; it is written again at its next change"})
				continue
			}
			d = decoded{row.Digest, row.UpdatedAt, v}
		}
		kept[row.Key] = d
		s.views = append(s.views, d.view)
	}
	s.troubles = withBroken(s.troubles, s.views)
	for _, t := range s.troubles {
		fmt.Fprintf(sum, "%q %q %d\n", t.Part, t.Message, t.Since.UnixMicro())
	}
	sum.Sum(s.digest[:0])
	r.remember(kept, s.views)
	r.learnAddresses(ctx, s.views)
	return s, nil
}

// withBroken adds the broken pipeline files that units tell of, once each,
// where the health doesn't tell already.
func withBroken(troubles []api.Trouble, views []*view) []api.Trouble {
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

// maxNames bounds the memory of what releases are called.
const maxNames = 20_000

func (r *reader) remember(kept map[string]decoded, views []*view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decoded, r.repos = kept, map[string]string{}
	for _, v := range views {
		repo := v.Unit.Repo
		if other, ok := r.repos[v.Unit.Pipeline]; ok && other != repo {
			repo = ""
		}
		r.repos[v.Unit.Pipeline] = repo
	}
	if len(r.names) > maxNames {
		clear(r.names)
	}
	for _, v := range views {
		for i := range v.Decision.Envs {
			e := &v.Decision.Envs[i]
			if e.Release != "" && e.Name != "" {
				r.names[e.Release] = e.Name
			}
			if e.Candidate != "" && e.Coming != "" {
				r.names[e.Candidate] = e.Coming
			}
		}
	}
}

// learnAddresses finds out where a repository's pull requests are for people:
// every forge numbers them under one address, so one of them says it for all.
func (r *reader) learnAddresses(ctx context.Context, views []*view) {
	for _, v := range views {
		repo := v.Unit.Repo
		for i := range v.Decision.Envs {
			e := &v.Decision.Envs[i]
			for _, n := range []int{e.Pull, e.Undo, e.LandedPull} {
				if n == 0 || r.base(repo) != "" {
					continue
				}
				if b := r.booked(ctx, repo, n); b != nil {
					r.learnAddress(repo, n, b.PR.URL)
				}
			}
		}
	}
}

// booked reads one pull request; nil when the store has none that can be read.
func (r *reader) booked(ctx context.Context, repo string, number int) *booked {
	row, ok, err := r.store.Pull(ctx, repo, number)
	if err != nil || !ok {
		return nil
	}
	var b booked
	if json.Unmarshal(row.Data, &b) != nil {
		return nil
	}
	return &b
}

func (r *reader) base(repo string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bases[repo]
}

func (r *reader) learnAddress(repo string, number int, address string) {
	base, ok := strings.CutSuffix(address, "/"+strconv.Itoa(number))
	if !ok || webAddress(address) == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bases[repo] = base
}

// webAddress is the address if a browser may be sent there, else "".
func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return s
}

// pull is a pull request with its address where that is known; nil for 0.
func (r *reader) pull(repo string, number int) *api.Pull {
	if number == 0 {
		return nil
	}
	p := &api.Pull{Number: number}
	if base := r.base(repo); base != "" {
		p.URL = base + "/" + strconv.Itoa(number)
	}
	return p
}

// name is what people call a release, "" when that isn't known.
func (r *reader) name(release string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[release]
}

// twice says whether several repositories have a pipeline of this name.
func (r *reader) twice(pipeline string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	repo, ok := r.repos[pipeline]
	return ok && repo == ""
}
