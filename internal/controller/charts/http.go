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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "liftlock")
	if own, err := url.Parse(h.address); h.Username != "" && err == nil && own.Host == req.URL.Host && own.Scheme == req.URL.Scheme {
		req.SetBasicAuth(h.Username, h.Password)
	}
	res, err := h.client.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer res.Body.Close()
	switch {
	case isRefusal(res.StatusCode):
		return nil, fmt.Errorf("%w: %s answers %s", ErrRefused, req.URL.Host, res.Status)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", req.URL.Host, res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s answers with more than %d bytes", req.URL.Host, most)
	}
	return data, nil
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
	sum := sha256.Sum256([]byte(h.address))
	file := filepath.Join(f.store.dir, "index-"+hex.EncodeToString(sum[:8])+".yaml")
	if h.indexTime.IsZero() || !f.now().Before(h.indexTime.Add(indexAge)) {
		data, err := h.get(ctx, h.address+"/index.yaml", maxIndex)
		if err != nil {
			return render.ChartVersion{}, err
		}
		if err := writeFile(file, data); err != nil {
			return render.ChartVersion{}, fmt.Errorf("keep the index of %s: %w", h.address, err)
		}
		h.indexTime = f.now()
	}
	index, err := os.ReadFile(file)
	if err != nil {
		return render.ChartVersion{}, fmt.Errorf("read the index of %s: %w", h.address, err)
	}
	return f.find(ctx, index, e.Chart, e.Revision)
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
