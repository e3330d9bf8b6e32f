package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/liftlock/liftlock/internal/discover"
)

const (
	// maxDetails bounds the tags of which details are remembered, detailsAge for how long. A tag that is pushed again is
	// no new one.
	maxDetails = 50_000
	detailsAge = 24 * time.Hour
	// maxReads bounds the tags that one call looks into: the rest is for the next one.
	maxReads = 200
	// readsAtOnce bounds those at a time.
	readsAtOnce = 4
)

// readDetails is what was found, and until when that is taken for true.
type readDetails struct {
	discover.Details
	until time.Time
}

// ReadDetails looks into tags or digests of a repository, at most so many that aren't known yet. complete says that those
// are all. The error is of a registry that gives nothing now, or the context's.
func (i *Images) ReadDetails(ctx context.Context, repository string, tags []string) (out map[string]discover.Details, complete bool,
	err error) {
	repo, h, err := i.findRepository(repository)
	if err != nil {
		return nil, false, err
	}
	out = map[string]discover.Details{}
	var missing []string
	for _, tag := range tags {
		if known, ok := i.details.Get(referenceTo(repo, tag).Name()); ok && i.now().Before(known.until) {
			out[tag] = known.Details
			continue
		}
		missing = append(missing, tag)
	}
	complete = len(missing) <= maxReads
	missing = missing[:min(len(missing), maxReads)]
	found := make([]discover.Details, len(missing))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for k, tag := range missing {
		group.Go(func() error {
			var err error
			found[k], err = i.readTag(within, h, referenceTo(repo, tag))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		return nil, false, err
	}
	for k, tag := range missing {
		out[tag] = found[k]
	}
	return out, complete, nil
}

// ReadDigest gives the digest that a tag has now. The error is one of this package's, or the context's.
func (i *Images) ReadDigest(ctx context.Context, repository, tag string) (string, error) {
	repo, h, err := i.findRepository(repository)
	if err != nil {
		return "", err
	}
	if err := h.awayError(i.now()); err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := remote.Head(repo.Tag(tag), append([]remote.Option{remote.WithContext(within)}, h.options...)...)
	if err != nil {
		return "", i.failed(ctx, h, err)
	}
	return found.Digest.String(), nil
}

// referenceTo is a tag or a digest of a repository.
func referenceTo(repo name.Repository, tag string) name.Reference {
	if strings.Contains(tag, ":") {
		return repo.Digest(tag)
	}
	return repo.Tag(tag)
}

// failed is how a failed call is told.
func (i *Images) failed(ctx context.Context, h *host, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind, now := kindOf(err), i.now()
	if kind == ErrAway {
		h.leaveAlone(now, now.Add(awayDelay), false)
		return cmp.Or(h.awayError(now), kind)
	}
	return kind
}

// readTag looks into one tag, and remembers what it says. The error is of a registry that can't be asked now.
func (i *Images) readTag(ctx context.Context, h *host, tag name.Reference) (discover.Details, error) {
	if err := h.awayError(i.now()); err != nil {
		return discover.Details{}, err
	}
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := h.describe(within, tag)
	age := detailsAge
	if err != nil {
		err = i.failed(ctx, h, err)
		if err != ErrUnread && err != ErrMissing {
			return discover.Details{}, err
		}
		found, age = discover.Details{Err: err.Error()}, failedAge
	}
	i.details.Put(tag.Name(), readDetails{Details: found, until: i.now().Add(age)})
	return found, nil
}

// describe reads the manifest of a tag and, of an image, its configuration.
func (h *host) describe(ctx context.Context, tag name.Reference) (discover.Details, error) {
	options := append([]remote.Option{remote.WithContext(ctx)}, h.options...)
	found, err := remote.Get(tag, options...)
	if err != nil {
		return discover.Details{}, err
	}
	out := discover.Details{Digest: found.Digest.String()}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			return discover.Details{}, err
		}
		all, err := index.IndexManifest()
		if err != nil {
			return discover.Details{}, err
		}
		out.Platforms, out.Created = platformsOf(all.Manifests), parseCreated(all.Annotations)
		child := choosePlatform(all.Manifests)
		if child == nil || !out.Created.IsZero() {
			return out, nil
		}
		if found, err = remote.Get(tag.Context().Digest(child.Digest.String()), options...); err != nil {
			return discover.Details{}, err
		}
	}
	if !found.MediaType.IsImage() {
		return out, nil
	}
	image, err := found.Image()
	if err != nil {
		return discover.Details{}, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return discover.Details{}, err
	}
	if out.Created = parseCreated(manifest.Annotations); manifest.Config.Size > maxAnswer || !manifest.Config.MediaType.IsConfig() {
		return out, nil
	}
	config, err := image.ConfigFile()
	if err != nil {
		return discover.Details{}, err
	}
	if out.Created.IsZero() {
		out.Created = config.Created.Time
	}
	if out.Platforms == nil {
		out.Platforms = []string{platformName(&v1.Platform{OS: cmp.Or(config.OS, "linux"), Architecture: config.Architecture,
			Variant: config.Variant})}
	}
	return out, nil
}

// platformsOf are the platforms of an index; attestations have none.
func platformsOf(all []v1.Descriptor) []string {
	out := []string{}
	for i := range all {
		if p := all[i].Platform; p != nil && p.OS != "unknown" && p.OS != "" {
			out = append(out, platformName(p))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func platformName(p *v1.Platform) string {
	return strings.TrimRight(strings.Join([]string{p.OS, p.Architecture, p.Variant}, "/"), "/")
}

// parseCreated is when an image was made, as an annotation says; zero: none does.
func parseCreated(annotations map[string]string) time.Time {
	at, err := time.Parse(time.RFC3339, annotations["org.opencontainers.image.created"])
	if err != nil {
		return time.Time{}
	}
	return at
}
