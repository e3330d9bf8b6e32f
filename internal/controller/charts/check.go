package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// ErrRefused says that a chart repository answered, and gives nothing: it isn't there, or not for this account.
var ErrRefused = errors.New("nothing is given")

// Check asks a listed chart repository by its address: a Helm repository for its index, a registry
// whether it takes the login. A registry shows which charts it gives only when one is asked for.
// The error is an [ErrRefused], or of an address that isn't listed or doesn't answer.
func (f *Fetcher) Check(ctx context.Context, repoURL string) error {
	h := f.findHost(repoURL)
	if h == nil {
		return errNotListed
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if !h.isOCI {
		_, err := h.get(ctx, h.address+"/index.yaml", maxIndex)
		return err
	}
	first, _, _ := strings.Cut(h.address, "/")
	registry, err := name.NewRegistry(first)
	if err != nil {
		return err
	}
	_, err = transport.NewWithContext(ctx, registry, h.auth(), h.client.Transport, nil)
	var answer *transport.Error
	if errors.As(err, &answer) && isRefusal(answer.StatusCode) {
		return fmt.Errorf("%w: %s answers %d", ErrRefused, first, answer.StatusCode)
	}
	return withoutAddress(err)
}

func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound
}

func (h *host) auth() authn.Authenticator {
	if h.Username == "" {
		return authn.Anonymous
	}
	return &authn.Basic{Username: h.Username, Password: h.Password}
}
