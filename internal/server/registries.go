package server

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/registry"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/server/config"
)

// newImages makes what looks into the images of the server's file's registries, and lists their tags.
func (s *Server) newImages() (*registry.Images, error) {
	hosts, err := registryHosts(s.o.Config)
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		s.metrics.registries.countAnswers(&hosts[i])
	}
	return registry.New(hosts, s.o.Clock.Now, &s.caches), nil
}

// registryHosts are the registries of the server's file with their logins. Registries of charts are among them, each with
// the login of its first entry.
func registryHosts(c *config.Config) ([]registry.Host, error) {
	var all []registry.Host
	listed := map[string]bool{}
	for i := range c.Registries {
		g := &c.Registries[i]
		host, err := registryHost(g.Host, &g.TLS)
		if err != nil {
			return nil, fmt.Errorf("the registry %s: %w", g.Host, err)
		}
		host.Username, host.Password, host.PlainHTTP = g.Username, g.Password.Reveal(), g.PlainHTTP
		if g.DockerConfig != "" {
			if err := fillCredentials(&host, g.DockerConfig); err != nil {
				return nil, fmt.Errorf("the registry %s: dockerConfig: %w", g.Host, err)
			}
		}
		all, listed[strings.ToLower(g.Host)] = append(all, host), true
	}
	for i := range c.Charts {
		g := &c.Charts[i]
		rest, isOCI := strings.CutPrefix(g.URL, "oci://")
		name, _, _ := strings.Cut(rest, "/")
		if !isOCI || listed[strings.ToLower(name)] {
			continue
		}
		host, err := registryHost(name, &g.TLS)
		if err != nil {
			return nil, fmt.Errorf("the chart repository %s: %w", g.URL, err)
		}
		host.Username, host.Password = g.Username, g.Password.Reveal()
		all, listed[strings.ToLower(name)] = append(all, host), true
	}
	return all, nil
}

// registryHost is a registry without its login.
func registryHost(name string, t *config.CallTLS) (registry.Host, error) {
	known, err := readCallTLS(t)
	if err != nil {
		return registry.Host{}, err
	}
	transport, err := gateclient.NewTransport(known)
	return registry.Host{Name: name, Transport: transport}, err
}

// listedHosts are the registries and chart repositories of the server's file, by what images' names and charts' addresses
// begin with.
func listedHosts(c *config.Config) []string {
	var out []string
	for i := range c.Registries {
		out = append(out, c.Registries[i].Host)
	}
	for i := range c.Charts {
		rest, isOCI := strings.CutPrefix(c.Charts[i].URL, "oci://")
		if isOCI {
			rest, _, _ = strings.Cut(rest, "/")
		}
		out = append(out, rest)
	}
	return out
}

// fillCredentials takes a registry's credentials from a file as docker login writes it.
func fillCredentials(host *registry.Host, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > registry.MaxDockerConfig {
		return fmt.Errorf("%s has more than %d bytes", file, registry.MaxDockerConfig)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, err := registry.ParseDockerConfig(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	found, ok := registry.CredentialsOf(all, host.Name)
	if !ok {
		return fmt.Errorf("%s has no credentials of %s itself; what a program keeps (credsStore, credHelpers) isn't read", file, host.Name)
	}
	host.Username, host.Password, host.IdentityToken = found.Username, found.Password, found.IdentityToken
	return nil
}

// imageSource is what looks into images; nil where no registry may be read.
func (s *Server) imageSource() people.ImageSource {
	if len(s.o.Config.Registries) == 0 {
		return nil
	}
	return s.images
}

// versionSource lists the tags and versions of the registries and chart repositories of the server's file.
type versionSource struct {
	images *registry.Images
	charts *charts.Fetcher // nil: none is listed
	maxAge time.Duration   // of lists
	hosts  []string        // as listedHosts has them
	// onList is told of each list, by the host that it is of and how it ended; nil: nobody is.
	onList func(host string, err error)
}

// newVersionSource is one whose lists are counted.
func (s *Server) newVersionSource(charts *charts.Fetcher, maxAge time.Duration) *versionSource {
	return &versionSource{s.images, charts, maxAge, listedHosts(s.o.Config), func(host string, err error) {
		s.metrics.registries.listed(host, s.o.Clock.Now(), err)
	}}
}

// ListTags lists the tags of an image.
func (v *versionSource) ListTags(ctx context.Context, image string) ([]string, error) {
	tags, err := v.images.ListTags(ctx, image, v.maxAge)
	v.count(ctx, image, err)
	return tags, err
}

// count tells of a list, unless it is we who gave up.
func (v *versionSource) count(ctx context.Context, name string, err error) {
	if v.onList != nil && ctx.Err() == nil {
		v.onList(registryOf(v.hosts, name), err)
	}
}

// ReadDetails looks into tags of an image.
func (v *versionSource) ReadDetails(ctx context.Context, image string, tags []string) (map[string]discover.Details, bool, error) {
	return v.images.ReadDetails(ctx, image, tags)
}

// ReadDigest gives the digest that a tag has now.
func (v *versionSource) ReadDigest(ctx context.Context, image, tag string) (string, error) {
	return v.images.ReadDigest(ctx, image, tag)
}

// VerifySignatures says whether a digest of an image is signed as a policy wants.
func (v *versionSource) VerifySignatures(ctx context.Context, image, digest string, p *signature.Policy) (discover.Signature, error) {
	return v.images.VerifySignatures(ctx, image, digest, p)
}

// ListVersions lists the versions of a chart.
func (v *versionSource) ListVersions(ctx context.Context, chart string) ([]string, error) {
	versions, err := v.listVersions(ctx, chart)
	v.count(ctx, chart, err)
	return versions, err
}

func (v *versionSource) listVersions(ctx context.Context, chart string) ([]string, error) {
	repository, name, isOCI, ok := pipeline.SplitChart(chart)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no chart", chart)
	case isOCI:
		return v.images.ListVersions(ctx, repository+"/"+name, v.maxAge)
	case v.charts == nil:
		return nil, fmt.Errorf("%s isn't listed under charts in the server's file", repository)
	}
	return v.charts.ListVersions(ctx, repository, name, v.maxAge)
}
