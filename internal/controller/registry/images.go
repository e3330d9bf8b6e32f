package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/cache/lock"
)

const (
	// lookTimeout bounds a look at an image, all its calls together.
	lookTimeout = 5 * time.Second
	// maxAnswer bounds each answer of a registry: manifests and configurations have some
	// kilobytes, and what is larger says nothing that is worth its time.
	maxAnswer = 4 << 20
	// maxText bounds what is taken of an annotation.
	maxText = 1000
	// maxRemembered bounds the images that are remembered, tagAge and digestAge for how long:
	// what a digest names doesn't change.
	maxRemembered = 10_000
	tagAge        = time.Hour
	digestAge     = 24 * time.Hour
	failedAge     = 5 * time.Minute
	// awayDelay is for how long a registry is left alone that didn't answer.
	awayDelay = time.Minute
)

// The failures that are told apart. Their words are the same each time, as they are shown.
var (
	ErrAway    error = awayError{}
	ErrRefused       = errors.New("the registry refuses to show it; check its credentials in the server's file")
	ErrMissing       = errors.New("the registry has no such image, or doesn't show it")
	ErrUnread        = errors.New("the registry answers what can't be read as an image")
	// ErrUnlisted is of lists of tags.
	ErrUnlisted  = errors.New("the registry's list of tags can't be read, or repeats itself")
	ErrPlainHTTP = errors.New("the registry speaks no TLS; plainHTTP: true in the server's file lets it be read all the same")
)

// awayError is of a registry that is asked again.
type awayError struct{}

func (awayError) Error() string { return "the registry can't answer now; it is asked again" }

// IsPassing is true: nobody has to see to it.
func (awayError) IsPassing() bool { return true }

// waitError is of a registry that wants to be left alone until a time. It is an [ErrAway].
type waitError struct{ until time.Time }

func (w waitError) Error() string {
	return "the registry's limit of requests is reached; it is asked again at " + w.until.UTC().Format("2006-01-02 15:04 UTC")
}

// Is says that it is an ErrAway.
func (waitError) Is(target error) bool { return target == ErrAway }

// IsPassing is true: nobody has to see to it.
func (waitError) IsPassing() bool { return true }

// IsLimited says that an error is of a registry whose limit of requests is reached.
func IsLimited(err error) bool {
	var wait waitError
	return errors.As(err, &wait)
}

// built is what an image says that it was built from; empty where it doesn't say.
type built struct {
	source   string // org.opencontainers.image.source: an address
	revision string // org.opencontainers.image.revision
}

func (b built) isWhole() bool { return b.source != "" && b.revision != "" }

// Images looks into images, and lists their tags. It may be used concurrently.
type Images struct {
	now func() time.Time
	// Open gives the registries that New wasn't given, by their names as the library has them; nil: they aren't read.
	// It is set before anything is read.
	Open func(registry string) Host

	hostsMu  sync.Mutex
	hosts    map[string]*host
	known    *cache.Cache[string, lookResult]
	lists    *cache.Cache[string, *tagList]
	details  *cache.Cache[string, readDetails]
	verified *cache.Cache[string, foundSignatures]
	listing  lock.Keyed[string] // by repository: one listing at a time
}

// lookResult is what was found, and until when that is taken for true.
type lookResult struct {
	built
	err   error
	until time.Time
}

// New makes it; it doesn't dial.
func New(hosts []Host, now func() time.Time, group *cache.Group) *Images {
	i := &Images{now: now, hosts: map[string]*host{}, lists: newLists(group), verified: newVerified(group),
		known:   cache.New(group, cache.Options[string, lookResult]{Name: "image_sources", Entries: maxRemembered}),
		details: cache.New(group, cache.Options[string, readDetails]{Name: "image_details", Entries: maxDetails})}
	for _, h := range hosts {
		i.hosts[hostOf(h.Name)] = newHost(h, now)
	}
	return i
}

// CanRead says whether an image is in a registry that may be read.
func (i *Images) CanRead(image string) bool {
	ref, err := name.ParseReference(image)
	return err == nil && i.hostNamed(ref.Context().RegistryStr()) != nil
}

// hostNamed is a registry that may be read, by its name as the library has it; nil: it may not be.
func (i *Images) hostNamed(registry string) *host {
	i.hostsMu.Lock()
	defer i.hostsMu.Unlock()
	h := i.hosts[registry]
	if h == nil && i.Open != nil {
		h = newHost(i.Open(registry), i.now)
		i.hosts[registry] = h
	}
	return h
}

// Source looks into an image, a name with a tag or a digest, for the source that it names. That is
// an address and a revision there, each empty where the image doesn't name it. In an image for
// several platforms the first one speaks, Linux on amd64 before others. The error is one of this
// package's, or the context's.
func (i *Images) Source(ctx context.Context, image string) (source, revision string, err error) {
	b, err := i.lookInto(ctx, image)
	return b.source, b.revision, err
}

func (i *Images) lookInto(ctx context.Context, image string) (built, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return built{}, ErrMissing
	}
	h, now := i.hostNamed(ref.Context().RegistryStr()), i.now()
	if h == nil {
		return built{}, ErrRefused
	}
	if ref, err = name.ParseReference(image, h.names...); err != nil {
		return built{}, ErrMissing
	}
	key := ref.Name()
	if known, ok := i.known.Get(key); ok && now.Before(known.until) {
		return known.built, known.err
	}
	if err := h.awayError(now); err != nil {
		return built{}, err
	}
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found := lookResult{}
	found.built, err = h.read(within, ref)
	if ctx.Err() != nil {
		return built{}, ctx.Err() // it is we who gave up
	}
	age := tagAge
	if _, is := ref.(name.Digest); is {
		age = digestAge
	}
	if err != nil {
		found.err, age = kindOf(err), failedAge
	}
	if found.err == ErrAway {
		h.leaveAlone(now, now.Add(awayDelay), false)
		return built{}, ErrAway
	}
	found.until = now.Add(age)
	i.known.Put(key, found)
	return found.built, found.err
}

// kindOf is which of this package's failures one is.
func kindOf(err error) error {
	var answer *transport.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return ErrUnread
	case errors.Is(err, ErrPlainHTTP):
		return ErrPlainHTTP
	case !errors.As(err, &answer):
		if isNetwork(err) {
			return ErrAway
		}
		return ErrUnread
	}
	switch s := answer.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return ErrRefused
	case s == http.StatusNotFound:
		return ErrMissing
	case s == http.StatusTooManyRequests, s >= 500:
		return ErrAway
	}
	return ErrUnread
}

// isNetwork says that a call got no whole answer.
func isNetwork(err error) bool {
	var address *url.Error
	var network net.Error
	return errors.As(err, &address) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// read looks into the annotations of the index, those of the manifest, and the labels of the
// configuration, until one says both.
func (h *host) read(ctx context.Context, ref name.Reference) (built, error) {
	options := append([]remote.Option{remote.WithContext(ctx)}, h.options...)
	found, err := remote.Get(ref, options...)
	if err != nil {
		return built{}, err
	}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			return built{}, err
		}
		all, err := index.IndexManifest()
		if err != nil {
			return built{}, err
		}
		if b := builtFrom(all.Annotations); b.isWhole() {
			return b, nil
		}
		child := choosePlatform(all.Manifests)
		if child == nil {
			return built{}, nil
		}
		if found, err = remote.Get(ref.Context().Digest(child.Digest.String()), options...); err != nil {
			return built{}, err
		}
	}
	if !found.MediaType.IsImage() {
		return built{}, nil
	}
	image, err := found.Image()
	if err != nil {
		return built{}, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return built{}, err
	}
	if b := builtFrom(manifest.Annotations); b.isWhole() || manifest.Config.Size > maxAnswer {
		return b, nil
	}
	config, err := image.ConfigFile()
	if err != nil {
		return built{}, err
	}
	return builtFrom(config.Config.Labels), nil
}

// choosePlatform chooses what speaks for all platforms: attestations, which builders put
// beside the images, are for none.
func choosePlatform(all []v1.Descriptor) *v1.Descriptor {
	var first *v1.Descriptor
	for i := range all {
		d := &all[i]
		if !d.MediaType.IsImage() || d.Platform != nil && d.Platform.OS == "unknown" {
			continue
		}
		if d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64" {
			return d
		}
		if first == nil {
			first = d
		}
	}
	return first
}

func builtFrom(said map[string]string) built {
	text := func(key string) string {
		if v := strings.TrimSpace(said["org.opencontainers.image."+key]); len(v) <= maxText {
			return v
		}
		return ""
	}
	return built{source: text("source"), revision: text("revision")}
}
