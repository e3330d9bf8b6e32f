package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/manifest/render"
)

// hostGuard asks no other hosts than those that are listed, also where a redirect leads, and bounds
// answers.
type hostGuard struct {
	next  http.RoundTripper
	hosts map[string]bool
}

func (h *hostGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if host := strings.ToLower(req.URL.Host); !h.hosts[host] && !h.hosts[strings.TrimSuffix(host, ":443")] {
		return nil, fmt.Errorf("it sends to %s, which isn't listed: list it under charts[].hosts in the server's file", host)
	}
	res, err := h.next.RoundTrip(req)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, maxIndex)
	}
	return res, err
}

// get reads what an address gives.
func (h *host) get(ctx context.Context, address string, most int64) ([]byte, error) {
	data, _, err := h.getChanged(ctx, address, "", most)
	return data, err
}

// errUnchanged says that an address gives what its tag is of.
var errUnchanged = errors.New("it is as it was")

// getChanged reads what an address gives, and by which tag it is known again. errUnchanged: it is what the given tag is of.
func (h *host) getChanged(ctx context.Context, address, known string, most int64) (data []byte, etag string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("User-Agent", "liftlock")
	if known != "" {
		req.Header.Set("If-None-Match", known)
	}
	if own, err := url.Parse(h.address); h.Username != "" && err == nil && own.Host == req.URL.Host && own.Scheme == req.URL.Scheme {
		req.SetBasicAuth(h.Username, h.Password)
	}
	res, err := h.client.Do(req)
	if err != nil {
		return nil, "", withoutAddress(err)
	}
	defer res.Body.Close()
	switch {
	case isRefusal(res.StatusCode):
		return nil, "", fmt.Errorf("%w: %s answers %s", ErrRefused, req.URL.Host, res.Status)
	case res.StatusCode == http.StatusNotModified && known != "":
		return nil, known, errUnchanged
	case res.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("%s answers %s", req.URL.Host, res.Status)
	}
	if data, err = io.ReadAll(io.LimitReader(res.Body, most+1)); err != nil {
		return nil, "", err
	}
	if int64(len(data)) > most {
		return nil, "", fmt.Errorf("%s answers with more than %d bytes", req.URL.Host, most)
	}
	return data, res.Header.Get("ETag"), nil
}

// withoutAddress leaves the address out of an error, which may hold a signature.
func withoutAddress(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

// findInIndex finds a chart in the repository's index.
func (f *Fetcher) findInIndex(ctx context.Context, h *host, e render.External) (render.ChartVersion, error) {
	h.indexMu.Lock()
	defer h.indexMu.Unlock()
	index, err := f.readIndex(ctx, h)
	if err != nil {
		return render.ChartVersion{}, err
	}
	return f.find(ctx, index, e.Chart, e.Revision)
}

// indexFile is where the index of a repository is kept.
func (f *Fetcher) indexFile(h *host) string {
	sum := sha256.Sum256([]byte(h.address))
	return filepath.Join(f.store.dir, "index-"+hex.EncodeToString(sum[:8])+".yaml")
}

// readIndex gives the repository's index, which is fetched anew after a while. The caller has its lock.
func (f *Fetcher) readIndex(ctx context.Context, h *host) ([]byte, error) {
	if err := f.refreshIndex(ctx, h, indexAge); err != nil {
		return nil, err
	}
	index, err := os.ReadFile(f.indexFile(h))
	if err != nil {
		return nil, fmt.Errorf("read the index of %s: %w", h.address, err)
	}
	return index, nil
}

// refreshIndex fetches the index where it is older than it may be. The caller has its lock.
func (f *Fetcher) refreshIndex(ctx context.Context, h *host, maxAge time.Duration) error {
	if !h.indexTime.IsZero() && f.now().Before(h.indexTime.Add(maxAge)) {
		return nil
	}
	known := h.indexETag
	if _, err := os.Stat(f.indexFile(h)); err != nil {
		known = "" // somebody removed it
	}
	data, etag, err := h.getChanged(ctx, h.address+"/index.yaml", known, maxIndex)
	if errors.Is(err, errUnchanged) {
		h.indexTime = f.now()
		return nil
	}
	if err != nil {
		return err
	}
	if err := writeFile(f.indexFile(h), data); err != nil {
		return fmt.Errorf("keep the index of %s: %w", h.address, err)
	}
	h.indexTime, h.indexETag, h.listed = f.now(), etag, map[string][]string{}
	return nil
}

// ListVersions lists the versions of a chart of a listed Helm repository, whose index is no older than maxAge. The error is
// of a repository that isn't listed, or doesn't give its index.
func (f *Fetcher) ListVersions(ctx context.Context, repoURL, chart string, maxAge time.Duration) ([]string, error) {
	h := f.findHost(repoURL)
	if h == nil || h.isOCI || f.list == nil {
		return nil, errNotListed
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	h.indexMu.Lock()
	defer h.indexMu.Unlock()
	if err := f.refreshIndex(ctx, h, maxAge); err != nil {
		return nil, err
	}
	if known, ok := h.listed[chart]; ok {
		return known, nil
	}
	index, err := os.ReadFile(f.indexFile(h))
	if err != nil {
		return nil, fmt.Errorf("read the index of %s: %w", h.address, err)
	}
	versions, err := f.list(ctx, index, chart)
	if err != nil {
		return nil, err
	}
	h.listed[chart] = versions
	return versions, nil
}

// fetchPacked fetches a packed chart from where the index says.
func (f *Fetcher) fetchPacked(ctx context.Context, h *host, e render.External, v render.ChartVersion) ([]byte, error) {
	if strings.HasPrefix(v.URL, ociScheme) {
		return f.fetchListedArtifact(ctx, e, v)
	}
	base, err := url.Parse(h.address + "/")
	if err != nil {
		return nil, err
	}
	at, err := base.Parse(v.URL)
	if err != nil {
		return nil, fmt.Errorf("its index has an address that is none: %w", err)
	}
	if at.Scheme != "https" && at.Scheme != base.Scheme {
		return nil, fmt.Errorf("its index leads to %s://, and only https is followed", at.Scheme)
	}
	return h.get(ctx, at.String(), render.MaxFileBytes)
}
