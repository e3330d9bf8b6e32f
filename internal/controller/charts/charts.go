package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/manifest/render"
)

const (
	// fetchTimeout bounds the calls for one chart, all together.
	fetchTimeout = 30 * time.Second
	// maxIndex bounds an index; a packed chart is bounded as each file of a rendering.
	maxIndex = 31 << 20 // what a sandboxed process takes of one file
	// indexAge is how long an index, and what a range of versions comes to, is taken for true.
	indexAge = 5 * time.Minute
	// failedAge is how long what can't be had isn't asked for again.
	failedAge = time.Minute
	// maxFetched bounds what is remembered of charts.
	maxFetched = 5000
	ociScheme  = "oci://"
)

// Host is a Helm repository, or a part of a registry.
type Host struct {
	URL       string   // https://charts.example.com/stable, or oci://registry.example.com/charts
	Hosts     []string // that may be asked, too
	Username  string   // empty: nobody logs in
	Password  string
	Transport http.RoundTripper // nil: the default one
}

// FindVersion finds a chart's newest version that a constraint allows in a repository's index.
type FindVersion func(ctx context.Context, index []byte, chart, constraint string) (render.ChartVersion, error)

// ListVersions lists a chart's versions in a repository's index.
type ListVersions func(ctx context.Context, index []byte, chart string) ([]string, error)

// Options are what a Fetcher needs.
type Options struct {
	Hosts    []Host
	Dir      string // of packed charts; it is made
	MaxBytes int64  // of packed charts in Dir; 0: 256 MiB
	Find     FindVersion
	List     ListVersions // nil: nobody lists
	Now      func() time.Time
}

// Fetcher gives charts. It is safe for concurrent use.
type Fetcher struct {
	hosts []*host
	store *store
	find  FindVersion
	list  ListVersions
	now   func() time.Time

	mu      sync.Mutex
	fetched map[render.External]*fetchedChart
}

// fetchedChart is what came of asking for a chart.
type fetchedChart struct {
	mu      sync.Mutex // held while it is asked for
	version string     // that it came to; its bytes are in the folder alone
	err     error
	expires time.Time // zero: it wasn't asked for
}

type host struct {
	Host
	address string // without scheme for a registry
	isOCI   bool
	client  *http.Client

	indexMu   sync.Mutex
	indexTime time.Time           // when the index in the folder was fetched; zero: by another process, or never
	indexETag string              // by which the repository knows that index again; empty: it gave nothing
	listed    map[string][]string // the charts' versions in that index, as far as they were listed
}

// New makes a Fetcher; it asks nobody yet.
func New(o Options) (*Fetcher, error) {
	store, err := openStore(o.Dir, o.MaxBytes, o.Now)
	if err != nil {
		return nil, err
	}
	f := &Fetcher{store: store, find: o.Find, list: o.List, now: o.Now, fetched: map[render.External]*fetchedChart{}}
	for _, h := range o.Hosts {
		next := h.Transport
		if next == nil {
			next = http.DefaultTransport
		}
		address, isOCI := strings.CutPrefix(cleanAddress(h.URL), ociScheme)
		first := address
		if !isOCI {
			u, err := url.Parse(address)
			if err != nil {
				return nil, fmt.Errorf("the chart repository %s: %w", h.URL, err)
			}
			first = u.Host
		}
		first, _, _ = strings.Cut(first, "/")
		guarded := &hostGuard{next: next, hosts: map[string]bool{strings.ToLower(first): true}}
		for _, also := range h.Hosts {
			guarded.hosts[strings.ToLower(also)] = true
		}
		f.hosts = append(f.hosts, &host{Host: h, address: address, isOCI: isOCI,
			client: &http.Client{Transport: guarded, Timeout: fetchTimeout}})
	}
	return f, nil
}

func cleanAddress(url string) string { return strings.TrimSuffix(url, "/") }

// errNotListed says that a chart's repository isn't asked.
var errNotListed = errors.New("its repository isn't listed: list it under charts in the server's file")

// Open gives a chart's tree, as [render.OpenExternal] has it.
func (f *Fetcher) Open(ctx context.Context, e render.External) (render.Tree, error) {
	h := f.findHost(e.RepoURL)
	if h == nil {
		return render.Tree{}, errNotListed
	}
	f.mu.Lock()
	a := f.fetched[e]
	if a == nil {
		if len(f.fetched) >= maxFetched {
			clear(f.fetched)
		}
		a = &fetchedChart{}
		f.fetched[e] = a
	}
	f.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.now().Before(a.expires) {
		if a.err != nil {
			return render.Tree{}, a.err
		}
		if data, is := f.store.read(keyOf(h, e, a.version)); is {
			return render.NewChartTree(data, a.version), nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	tree, isExact, err := f.get(limited, h, e)
	if ctx.Err() != nil {
		return render.Tree{}, ctx.Err()
	}
	age := indexAge
	switch {
	case err != nil:
		age = failedAge
	case isExact:
		age = 24 * time.Hour
	}
	if err != nil && a.version != "" && !isExact { // a range's newest is what it was, while nobody answers
		if data, is := f.store.read(keyOf(h, e, a.version)); is {
			tree, err = render.NewChartTree(data, a.version), nil
		}
	}
	if err == nil {
		a.version = tree.Revision
	}
	a.err, a.expires = err, f.now().Add(age)
	return tree, err
}

// findHost finds who has a repository.
func (f *Fetcher) findHost(repoURL string) *host {
	address := cleanAddress(repoURL)
	plain := strings.TrimPrefix(address, ociScheme)
	for _, h := range f.hosts {
		switch {
		case !h.isOCI && h.address == address:
			return h
		case h.isOCI && (h.address == plain || strings.HasPrefix(plain, h.address+"/")):
			return h
		}
	}
	return nil
}

// get gives a chart from the folder, or fetches it. isExact says that the version is named in full.
func (f *Fetcher) get(ctx context.Context, h *host, e render.External) (tree render.Tree, isExact bool, err error) {
	version := render.ChartVersion{Version: e.Revision}
	if isExact = isExactVersion(e.Revision); isExact {
		if data, is := f.store.read(keyOf(h, e, e.Revision)); is {
			return render.NewChartTree(data, e.Revision), true, nil
		}
	}
	fetch := f.fetchPacked
	if h.isOCI {
		fetch = f.fetchArtifact
	}
	if h.isOCI {
		version.Version, err = h.findTag(ctx, e)
	} else {
		version, err = f.findInIndex(ctx, h, e)
	}
	if err != nil {
		return tree, isExact, fmt.Errorf("%s %s isn't kept here, and can't be looked for now: %w", e.Chart, e.Revision, err)
	}
	key := keyOf(h, e, version.Version)
	if data, is := f.store.read(key); is {
		return render.NewChartTree(data, version.Version), isExact, nil
	}
	data, err := fetch(ctx, h, e, version)
	if err != nil {
		return tree, isExact, fmt.Errorf("%s %s can't be fetched: %w", e.Chart, version.Version, err)
	}
	sum := sha256.Sum256(data)
	if digest := strings.TrimPrefix(version.Digest, "sha256:"); digest != "" && !strings.EqualFold(digest, hex.EncodeToString(sum[:])) {
		return tree, isExact, fmt.Errorf("%s %s has the checksum %x, and its index says %s", e.Chart, version.Version, sum, digest)
	}
	if err := f.store.write(key, data); err != nil {
		return tree, isExact, err
	}
	return render.NewChartTree(data, version.Version), isExact, nil
}

// keyOf names a version of a chart in the folder's records.
func keyOf(h *host, e render.External, version string) string {
	repository := h.address
	if h.isOCI {
		repository = strings.TrimPrefix(cleanAddress(e.RepoURL), ociScheme)
	}
	return repository + " " + e.Chart + " " + version
}
