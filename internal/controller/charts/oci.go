package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/liftlock/liftlock/internal/manifest/render"
)

// chartLayer is the media type of a packed chart (helm: ChartLayerMediaType in pkg/registry).
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

func (h *host) options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(h.client.Transport), remote.WithAuth(h.auth()),
		remote.WithUserAgent("liftlock"),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryStatusCodes()}
}

// isExactVersion says that a version is named in full.
func isExactVersion(text string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	return err == nil
}

// findTag finds a chart's version among a registry's tags; one that is named in full isn't looked for.
func (h *host) findTag(ctx context.Context, e render.External) (string, error) {
	if isExactVersion(e.Revision) {
		return e.Revision, nil
	}
	wanted := e.Revision
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return e.Revision, nil // a tag that is no version
	}
	repository, err := parseRepository(chartRepository(e))
	if err != nil {
		return "", err
	}
	tags, err := remote.List(repository, h.options(ctx)...)
	if err != nil {
		return "", withoutAddress(err)
	}
	for i, tag := range tags {
		tags[i] = strings.ReplaceAll(tag, "_", "+") // helm: tags have no plus
	}
	newest := render.NewestVersion(constraint, tags)
	if newest == "" {
		return "", fmt.Errorf("no version of it fits %s", wanted)
	}
	return newest, nil
}

// chartRepository is a chart's name in its registry.
func chartRepository(e render.External) string {
	return strings.TrimPrefix(cleanAddress(e.RepoURL), ociScheme) + "/" + e.Chart
}

// parseRepository reads a repository's name. It leads nowhere else than it says: what is listed is compared
// by how the name begins, and a registry may follow dots.
func parseRepository(text string) (name.Repository, error) {
	for part := range strings.SplitSeq(text, "/") {
		if part == "." || part == ".." {
			return name.Repository{}, fmt.Errorf("%q is no name of a registry's repository", text)
		}
	}
	return name.NewRepository(text)
}

// fetchArtifact fetches a chart of a registry.
func (f *Fetcher) fetchArtifact(ctx context.Context, h *host, e render.External, v render.ChartVersion) ([]byte, error) {
	return h.pull(ctx, chartRepository(e), v.Version)
}

// fetchListedArtifact fetches a chart to which a repository's index leads in a registry, which has
// to be listed, too.
func (f *Fetcher) fetchListedArtifact(ctx context.Context, e render.External, v render.ChartVersion) ([]byte, error) {
	repository := strings.TrimPrefix(v.URL, ociScheme)
	tag := v.Version
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:i], repository[i+1:]
	}
	h := f.findHost(ociScheme + repository)
	if h == nil || !h.isOCI {
		return nil, fmt.Errorf("its index leads to %s%s, which isn't listed: list it under charts in the server's file",
			ociScheme, repository)
	}
	return h.pull(ctx, repository, tag)
}

// pull reads a chart's layer, whose checksum the library compares.
func (h *host) pull(ctx context.Context, repository, version string) ([]byte, error) {
	named, err := parseRepository(repository)
	if err != nil {
		return nil, err
	}
	ref, err := name.ParseReference(named.Name() + ":" + strings.ReplaceAll(version, "+", "_"))
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(ref, h.options(ctx)...)
	if err != nil {
		return nil, withoutAddress(err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, withoutAddress(err)
	}
	for _, layer := range layers {
		kind, err := layer.MediaType()
		if err != nil || kind != chartLayer {
			continue
		}
		packed, err := layer.Compressed()
		if err != nil {
			return nil, withoutAddress(err)
		}
		data, err := io.ReadAll(io.LimitReader(packed, render.MaxFileBytes+1))
		if err = errors.Join(err, packed.Close()); err != nil {
			return nil, withoutAddress(err)
		}
		if len(data) > render.MaxFileBytes {
			return nil, fmt.Errorf("it has more than %d bytes", render.MaxFileBytes)
		}
		return data, nil
	}
	return nil, errors.New("what the registry has under this name is no chart")
}
