package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/registry"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// versionFlags say how a command reaches registries and chart repositories.
type versionFlags struct {
	dockerConfig string
	plainHTTP    []string
	caFile       string
}

func (v *versionFlags) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&v.dockerConfig, "docker-config", "", "a file with the registries' credentials, as docker login writes it "+
		"(default: config.json in $DOCKER_CONFIG or ~/.docker, if it is there)")
	c.Flags().StringArrayVar(&v.plainHTTP, "plain-http", nil, "a registry, as image names have it, or a chart repository's host that "+
		"is asked without TLS; may be repeated")
	c.Flags().StringVar(&v.caFile, "ca-file", "", "the authorities of the registries' certificates, in PEM, besides the system's")
}

// listMaxAge is how long a list counts within one run of the command.
const listMaxAge = time.Hour

// registryVersions lists what registries and chart repositories have, with the user's credentials.
type registryVersions struct {
	images    *registry.Images
	transport http.RoundTripper
	plainHTTP []string
	dir       string
	charts    map[string]*charts.Fetcher // by repository
}

// open makes it; it asks nobody yet. dir is a folder for indexes.
func (v *versionFlags) open(dir string) (*registryVersions, error) {
	credentials, err := readDockerConfig(v.dockerConfig)
	if err != nil {
		return nil, err
	}
	known := gateclient.TLS{}
	if v.caFile != "" {
		if known.CA, err = readBounded(v.caFile, maxManifest); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	transport, err := gateclient.NewTransport(known)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	images := registry.New(nil, time.Now, &cache.Group{})
	images.Open = func(name string) registry.Host {
		login, _ := registry.CredentialsOf(credentials, name)
		return registry.Host{Name: name, Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken,
			PlainHTTP: slices.Contains(v.plainHTTP, name), Transport: transport}
	}
	return &registryVersions{images: images, transport: transport, plainHTTP: v.plainHTTP, dir: dir,
		charts: map[string]*charts.Fetcher{}}, nil
}

// readDockerConfig reads the credentials of a file, or of the usual one if it is there.
func readDockerConfig(file string) (map[string]registry.Credentials, error) {
	isNamed := file != ""
	if !isNamed {
		dir := os.Getenv("DOCKER_CONFIG")
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, nil // nobody has logged in
			}
			dir = filepath.Join(home, ".docker")
		}
		file = filepath.Join(dir, "config.json")
	}
	data, err := readBounded(file, registry.MaxDockerConfig)
	if !isNamed && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--docker-config: %w", err)
	}
	out, err := registry.ParseDockerConfig(data)
	if err != nil {
		return nil, fmt.Errorf("--docker-config %s: %w", file, err)
	}
	return out, nil
}

// ListTags lists the tags of an image.
func (r *registryVersions) ListTags(ctx context.Context, image string) ([]string, error) {
	return r.images.ListTags(ctx, image, listMaxAge)
}

// ReadDetails looks into tags of an image.
func (r *registryVersions) ReadDetails(ctx context.Context, image string, tags []string) (map[string]discover.Details, bool, error) {
	all := map[string]discover.Details{}
	for {
		found, complete, err := r.images.ReadDetails(ctx, image, tags)
		if err != nil {
			return nil, false, err
		}
		for tag, d := range found {
			all[tag] = d
		}
		if complete {
			return all, true, nil
		}
		tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { _, is := all[tag]; return is })
	}
}

// ReadDigest gives the digest that a tag has now.
func (r *registryVersions) ReadDigest(ctx context.Context, image, tag string) (string, error) {
	return r.images.ReadDigest(ctx, image, tag)
}

// VerifySignatures says whether a digest of an image is signed as a policy wants.
func (r *registryVersions) VerifySignatures(ctx context.Context, image, digest string, p *signature.Policy) (discover.Signature, error) {
	return r.images.VerifySignatures(ctx, image, digest, p)
}

// ListVersions lists the versions of a chart.
func (r *registryVersions) ListVersions(ctx context.Context, chart string) ([]string, error) {
	repository, name, isOCI, ok := pipeline.SplitChart(chart)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no chart", chart)
	case isOCI:
		return r.images.ListVersions(ctx, repository+"/"+name, listMaxAge)
	}
	if rest, is := strings.CutPrefix(repository, "http://"); is {
		host, _, _ := strings.Cut(rest, "/")
		if !slices.Contains(r.plainHTTP, host) {
			return nil, fmt.Errorf("%s is asked without TLS only with --plain-http %s", repository, host)
		}
	}
	f := r.charts[repository]
	if f == nil {
		var err error
		f, err = charts.New(charts.Options{Hosts: []charts.Host{{URL: repository, Transport: r.transport}}, Dir: r.dir, Now: time.Now,
			List: func(_ context.Context, index []byte, chart string) ([]string, error) {
				return render.ListChart(index, chart)
			}})
		if err != nil {
			return nil, err
		}
		r.charts[repository] = f
	}
	return f.ListVersions(ctx, repository, name, listMaxAge)
}
