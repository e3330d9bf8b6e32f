package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/discover"
)

const (
	// pageSize is how many tags are asked for at once; registries may give fewer.
	pageSize = 1000
	// maxPages bounds the pages of a list, for registries that give few tags at once.
	maxPages = 2000
	// maxBarren bounds the pages in a row that have no new tag: where tags are deleted meanwhile, one may repeat the last.
	maxBarren = 3
	// listTimeout bounds a list, all its pages together.
	listTimeout = time.Minute
	// pageTimeout bounds each page: a registry that hangs keeps nobody for longer.
	pageTimeout = 15 * time.Second
	// maxLists and maxListBytes bound the lists that are remembered.
	maxLists     = 10_000
	maxListBytes = 48 << 20
	// boundaryAge is after which time a last page that may be full is read again, whatever is said of it: a registry's ETag
	// may be that of the tags alone, and the next page begins behind them.
	boundaryAge = time.Hour
	// tagBytes is about what a tag takes besides its text.
	tagBytes = 24
)

// tagList is a repository's tags as they were listed last, page by page.
type tagList struct {
	call  http.RoundTripper // with the login
	pages []tagPage
	at    time.Time // when it was listed; zero: it wasn't
	tags  []string
}

// tagPage is one answer, and by what the registry knows it again.
type tagPage struct {
	address      string
	etag         string
	lastModified string
	tags         []string
	next         string    // empty: it is the last one
	readAt       time.Time // when it was given in full
}

// mayEnd says that what is known of the last page can be relied on: there is no page behind it of which nothing is said.
func (tp *tagPage) mayEnd(all []tagPage, now time.Time) bool {
	switch n := len(tp.tags); {
	case n == pageSize, len(all) > 1 && n == len(all[0].tags):
		return false // it is full
	case len(all) == 1 && n > 0 && n%10 == 0: // as large as registries make their pages
		return now.Sub(tp.readAt) < boundaryAge
	}
	return true
}

func newLists(group *cache.Group) *cache.Cache[string, *tagList] {
	return cache.New(group, cache.Options[string, *tagList]{Name: "tag_lists", Entries: maxLists, Bytes: maxListBytes,
		Size: func(key string, l *tagList) int64 {
			size := len(key) + 200
			for i := range l.pages {
				for _, tag := range l.pages[i].tags {
					size += len(tag) + tagBytes
				}
			}
			return int64(2 * size) // the joined list has as many
		}})
}

// ListTags lists the tags of a repository, given as image names have it. A list that was made no
// longer ago than maxAge is given again. Else each page is asked for by what the registry knows it
// again, where it gave such a thing. The list is shared: no caller changes it. The error is one of
// this package's, [discover.ErrTooMany], or the context's. With it there is no part of a list.
func (i *Images) ListTags(ctx context.Context, repository string, maxAge time.Duration) ([]string, error) {
	repo, h, err := i.findRepository(repository)
	if err != nil {
		return nil, err
	}
	unlock, err := i.listing.Lock(ctx, repo.Name())
	if err != nil {
		return nil, err
	}
	defer unlock()
	known, _ := i.lists.Get(repo.Name())
	now := i.now()
	if known != nil && !known.at.IsZero() && now.Sub(known.at) <= maxAge {
		return known.tags, nil
	}
	if err := h.awayError(now); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := h.list(within, repo, known, now)
	switch {
	case errors.Is(err, discover.ErrTooMany):
		return nil, err
	case err != nil:
		if err = i.failed(ctx, h, err); err == ErrUnread {
			err = ErrUnlisted
		}
		return nil, err
	}
	listed.at = now
	i.lists.Put(repo.Name(), listed)
	return listed.tags, nil
}

// ListVersions lists the versions of a chart in a registry, as ListTags lists tags: those have no plus (helm: pkg/registry).
func (i *Images) ListVersions(ctx context.Context, repository string, maxAge time.Duration) ([]string, error) {
	tags, err := i.ListTags(ctx, repository, maxAge)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(tags))
	for k, tag := range tags {
		out[k] = strings.ReplaceAll(tag, "_", "+")
	}
	return out, nil
}

// findRepository reads a repository's name, and finds its registry. It leads nowhere else than it says: some registries
// follow dots.
func (i *Images) findRepository(repository string) (name.Repository, *host, error) {
	for part := range strings.SplitSeq(repository, "/") {
		if part == "." || part == ".." {
			return name.Repository{}, nil, ErrMissing
		}
	}
	repo, err := name.NewRepository(repository)
	if err != nil {
		return repo, nil, ErrMissing
	}
	h := i.hostNamed(repo.RegistryStr())
	if h == nil {
		return repo, nil, ErrRefused
	}
	repo, err = name.NewRepository(repository, h.names...)
	return repo, h, err
}

// list reads all pages, those that are as they were from what is known.
func (h *host) list(ctx context.Context, repo name.Repository, known *tagList, now time.Time) (*tagList, error) {
	out := &tagList{}
	var before []tagPage
	if known != nil {
		out.call, before = known.call, known.pages
	}
	if out.call == nil {
		var err error
		if out.call, err = transport.NewWithContext(ctx, repo.Registry, h.auth, transport.NewUserAgent(h.transport, userAgent),
			[]string{repo.Scope(transport.PullScope)}); err != nil {
			return nil, err
		}
	}
	first := url.URL{Scheme: repo.Scheme(), Host: repo.RegistryStr(), Path: "/v2/" + repo.RepositoryStr() + "/tags/list",
		RawQuery: fmt.Sprintf("n=%d", pageSize)}
	seen, visited := map[string]bool{}, map[string]bool{}
	barren := 0
	for address := first.String(); address != ""; {
		if visited[address] {
			return nil, fmt.Errorf("%s lists its tags in a circle", repo.RegistryStr())
		}
		visited[address] = true
		last := findPage(before, address)
		if last != nil && last.next == "" && !last.mayEnd(before, now) {
			last = nil
		}
		page, err := readPage(ctx, out.call, address, last, now)
		if err != nil {
			return nil, err
		}
		isBarren := true
		for _, tag := range page.tags {
			if !seen[tag] {
				seen[tag], isBarren = true, false
				out.tags = append(out.tags, tag)
			}
		}
		if barren++; !isBarren {
			barren = 0
		}
		if out.pages = append(out.pages, page); len(out.tags) > discover.MaxTags || len(out.pages) > maxPages {
			return nil, discover.ErrTooMany
		}
		if barren > maxBarren {
			return nil, fmt.Errorf("%s lists the same tags again and again", repo.RegistryStr())
		}
		address = page.next
	}
	return out, nil
}

func findPage(all []tagPage, address string) *tagPage {
	for i := range all {
		if all[i].address == address {
			return &all[i]
		}
	}
	return nil
}

// readPage reads one page. What the registry says is as it was is the known one.
func readPage(ctx context.Context, call http.RoundTripper, address string, known *tagPage, now time.Time) (tagPage, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return tagPage{}, err
	}
	req.Header.Set("Accept", "application/json")
	if known != nil && known.etag != "" {
		req.Header.Set("If-None-Match", known.etag)
	} else if known != nil && known.lastModified != "" {
		req.Header.Set("If-Modified-Since", known.lastModified)
	}
	client := http.Client{Transport: call, CheckRedirect: stayOnHost}
	res, err := client.Do(req)
	if err != nil {
		return tagPage{}, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified && known != nil {
		return *known, nil
	}
	if err := transport.CheckError(res, http.StatusOK); err != nil {
		return tagPage{}, err
	}
	var answer struct {
		Tags []string `json:"tags"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return tagPage{}, fmt.Errorf("read the tags: %w", err)
	}
	next, err := nextPage(res)
	return tagPage{address: address, etag: res.Header.Get("ETag"), lastModified: res.Header.Get("Last-Modified"), tags: answer.Tags,
		next: next, readAt: now}, err
}

// stayOnHost follows redirects on the registry's own host alone.
func stayOnHost(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return errors.New("the registry sends to another place for its tags")
	}
	return nil
}

// nextPage is the address of the next page (distribution-spec: "Listing Tags"); empty: there is none.
func nextPage(res *http.Response) (string, error) {
	link := res.Header.Get("Link")
	if link == "" {
		return "", nil
	}
	start, end := strings.IndexByte(link, '<'), strings.IndexByte(link, '>')
	if start != 0 || end < 0 {
		return "", errors.New("the registry names its next page in a way that can't be read")
	}
	next, err := url.Parse(link[1:end])
	if err != nil {
		return "", errors.New("the registry names its next page by an address that is none")
	}
	next = res.Request.URL.ResolveReference(next)
	if next.Host != res.Request.URL.Host || next.Path != res.Request.URL.Path {
		return "", errors.New("the registry names another place as its next page")
	}
	next.Scheme = res.Request.URL.Scheme // behind a proxy that ends TLS it may say http
	return next.String(), nil
}
