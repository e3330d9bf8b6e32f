// Package imageregistry is a registry of container images in this process, on loopback: that of
// go-containerregistry, which keeps them in memory. Demos and tests push to it what Liftlock then
// discovers. It knows no accounts, and is never in serve.
package imageregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// headerTimeout bounds how long a client may take for a request's headers.
const headerTimeout = 10 * time.Second

// Registry is one that runs.
type Registry struct {
	// Host is what the names of its images begin with: 127.0.0.1:41234. It is spoken to without TLS.
	Host   string
	server *http.Server
	ended  chan error
}

// Source is what an image was built from: a repository's address for people, and a commit there.
type Source struct{ Repository, Commit string }

// Start starts one that is empty. The caller closes it.
func Start() (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	r := &Registry{Host: l.Addr().String(), ended: make(chan error, 1), server: &http.Server{
		Handler: registry.New(registry.Logger(quiet)), ReadHeaderTimeout: headerTimeout, ErrorLog: quiet}}
	go func() { r.ended <- r.server.Serve(l) }()
	return r, nil
}

// Close ends it, and forgets its images.
func (r *Registry) Close() error {
	err := r.server.Close()
	if ended := <-r.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Push pushes an image of a repository under a tag; it has no layers, and the labels that say what it was built from.
// What the tag named before is replaced.
func (r *Registry) Push(ctx context.Context, repository, tag string, from Source) error {
	ref, err := name.NewTag(r.Host+"/"+repository+":"+tag, name.Insecure)
	if err != nil {
		return err
	}
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"org.opencontainers.image.version": tag,
		"org.opencontainers.image.source": from.Repository, "org.opencontainers.image.revision": from.Commit}
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return err
	}
	return remote.Write(ref, image, remote.WithContext(ctx))
}
