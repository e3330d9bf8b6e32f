package console

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/stored"
)

// readTimeout bounds a read that many requests may be waiting for.
const readTimeout = 20 * time.Second

// reader reads the store for the console. Requests that come at the same moment
// share one read, and a unit that hasn't changed isn't decoded again.
type reader struct {
	store  *readableStore
	health func(context.Context) []api.Trouble
	shared sharedReads[*snapshot]

	releaseNames *cache.Cache[string, string] // by a release's identity: what people call it

	commitURL      func(repository, base, commit string) string
	applicationURL func(argocd, application string) string // of an Application's page; empty: not known

	mu             sync.Mutex
	decoded        map[string]*shownUnit // by the unit's key
	pullBaseURLs   map[string]string     // by repository: what its pull requests' addresses begin with
	learnedURLs    int                   // how many of these were learned
	repoByPipeline map[string]string     // by pipeline: its repository; empty where several have one of the name
}

func newReader(o *Options, records *readableStore) *reader {
	return &reader{store: records, health: o.Health, shared: sharedReads[*snapshot]{operation: "read what is shown", timeout: readTimeout,
		log: o.Log}, commitURL: o.CommitURL, applicationURL: o.ApplicationURL, decoded: map[string]*shownUnit{},
		pullBaseURLs: map[string]string{},
		releaseNames: cache.New(o.Caches, cache.Options[string, string]{Name: "console-release-names", Entries: maxReleaseNames})}
}

// maxURLTries is how many pull requests of a repository are looked up at once for their address.
const maxURLTries = 4

// learnPullURLs finds out where a repository's pull requests are for people:
// every forge numbers them under one address, so one of them says it for all.
func (r *reader) learnPullURLs(ctx context.Context, units []*shownUnit) {
	tries := map[string]int{}
	for _, u := range units {
		v := u.record
		repo := v.Unit.Repo
		for i := range v.Decision.Envs {
			e := &v.Decision.Envs[i]
			for _, n := range []int{e.Pull, e.Revert, e.LandedPull} {
				if n == 0 || tries[repo] == maxURLTries || r.pullBaseURL(repo) != "" {
					continue
				}
				tries[repo]++
				if b := r.readPull(ctx, repo, n); b != nil {
					r.learnPullURL(repo, n, b.PR.URL)
				}
			}
		}
	}
}

// readPull reads one pull request; nil when the store has none that can be read.
func (r *reader) readPull(ctx context.Context, repo string, number int) *stored.Pull {
	row, ok, err := r.store.Pull(ctx, repo, number)
	if err != nil || !ok {
		return nil
	}
	var b stored.Pull
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
	if r.pullBaseURLs[repo] != base {
		r.pullBaseURLs[repo] = base
		r.learnedURLs++
	}
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
	// Where not everybody reads all, links always name the repository: that they do must not tell
	// of another one.
	return len(r.store.access.rules) > 0 || ok && repo == ""
}
