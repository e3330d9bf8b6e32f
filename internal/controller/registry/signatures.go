package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
)

const (
	// signaturesTimeout bounds the look for an image's signatures, all its calls together.
	signaturesTimeout = 30 * time.Second
	// maxSignatures bounds the signatures of an image that are looked at; what lies beside it is put there by anybody who
	// may push.
	maxSignatures = 50
	// maxVerified bounds the images of which the signatures are remembered, verifiedAge for how long those that count. What a
	// digest names and what was signed doesn't change, but whoever removes a signature may mean it.
	maxVerified = 20_000
	verifiedAge = 24 * time.Hour
	// signingTime is for how long after an image was found first a signature may follow: build jobs push, and sign then.
	signingTime = 10 * time.Minute
)

const (
	// signatureTag ends the tags under which cosign puts an image's signatures; simpleSigning is their media type, and
	// signatureAnnotation has each signature itself (cosign: specs/SIGNATURE_SPEC.md).
	signatureTag        = ".sig"
	simpleSigning       = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	// signatureArtifact is the type of what refers to an image with the same (cosign: WriteSignaturesExperimentalOCI).
	signatureArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json"
	// predicateAnnotation says what a bundle attests (cosign: WriteAttestationNewBundleFormat). Anybody may write it.
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
)

// foundSignatures is what is remembered of an image's signatures.
type foundSignatures struct {
	discover.Signature
	since time.Time // when the image was found first, without one that counts
	until time.Time // that it is taken for true
}

func newVerified(group *cache.Group) *cache.Cache[string, foundSignatures] {
	return cache.New(group, cache.Options[string, foundSignatures]{Name: "image_signatures", Entries: maxVerified})
}

// VerifySignatures looks among what lies beside an image for a signature that counts by a policy. The image is given by
// its repository and its digest. What isn't signed is no error: the answer says why. The error is one of this package's,
// or the context's; then nothing is known.
func (i *Images) VerifySignatures(ctx context.Context, repository, digest string, p *signature.Policy) (discover.Signature, error) {
	repo, h, err := i.findRepository(repository)
	if err != nil {
		return discover.Signature{}, err
	}
	hash, err := v1.NewHash(digest)
	if err != nil || hash.Algorithm != "sha256" {
		return discover.Signature{}, ErrUnread
	}
	key := repo.Name() + "@" + digest + " " + p.ID()
	known, is := i.verified.Get(key)
	now := i.now()
	if is && now.Before(known.until) {
		return known.Signature, nil
	}
	if err := h.awayError(now); err != nil {
		return discover.Signature{}, err
	}
	within, cancel := context.WithTimeout(ctx, signaturesTimeout)
	defer cancel()
	v := verifier{host: h, image: repo.Digest(digest), policy: p,
		options: append([]remote.Option{remote.WithContext(within)}, h.options...)}
	if err := v.verify(); err != nil {
		return discover.Signature{}, i.failed(ctx, h, err)
	}
	found := foundSignatures{Signature: discover.Signature{Digest: digest}, since: now, until: now.Add(verifiedAge)}
	if is {
		found.since = known.since
	}
	if v.counts {
		found.By = p.String()
	} else {
		found.Why, found.until = v.why(), now.Add(failedAge)
		if now.Before(found.since.Add(signingTime)) {
			found.Pending, found.until = true, now // it is looked for each time, as it may come any moment
		}
	}
	i.verified.Put(key, found)
	return found.Signature, nil
}

// verifier looks for one image's signatures until one counts.
type verifier struct {
	host    *host
	image   name.Digest
	policy  *signature.Policy
	options []remote.Option

	counts  bool
	seen    int
	refusal *signature.Refusal // of the signature that is closest to one that counts
}

// of is the image, as signatures name it.
func (v *verifier) of() signature.Image {
	return signature.Image{Repository: v.image.Context().Name(), Digest: v.image.DigestStr()}
}

// why says why no signature counts.
func (v *verifier) why() string {
	short := v.image.DigestStr()[:19]
	switch {
	case v.refusal == nil:
		return fmt.Sprintf("there is no signature of %s in its repository", short)
	case v.seen > 1:
		return fmt.Sprintf("of %d signatures of %s none counts: %s", v.seen, short, v.refusal.Text)
	}
	return fmt.Sprintf("%s: %s", short, v.refusal.Text)
}

// take takes in what is said of one signature.
func (v *verifier) take(err error) {
	v.seen++
	var refusal *signature.Refusal
	switch {
	case err == nil:
		v.counts = true
	case errors.As(err, &refusal) && (v.refusal == nil || refusal.Rank > v.refusal.Rank):
		v.refusal = refusal
	}
}

// isDone says that nothing more has to be looked at.
func (v *verifier) isDone() bool { return v.counts || v.seen >= maxSignatures }

// verify looks at the tag that cosign makes for an image's signatures, and then at what refers to the image. The error is
// of a registry of which isn't known what it has.
func (v *verifier) verify() error {
	if err := v.readManifest(v.image.Context().Tag(strings.Replace(v.image.DigestStr(), ":", "-", 1) + signatureTag)); err != nil {
		return err
	}
	if v.isDone() {
		return nil
	}
	referrers, err := v.listReferrers()
	if err != nil {
		return err
	}
	for i := range referrers {
		if v.isDone() {
			return nil
		}
		if err := v.readManifest(v.image.Context().Digest(referrers[i].Digest.String())); err != nil {
			return err
		}
	}
	return nil
}

// listReferrers lists what refers to the image and may be a signature.
func (v *verifier) listReferrers() ([]v1.Descriptor, error) {
	index, err := remote.Referrers(v.image, v.options...)
	if err != nil && lacksReferrers(err) {
		// The library takes fewer answers for "there is no such call" than registries give (distribution-spec: "Referrers Tag
		// Schema").
		var found *remote.Descriptor
		found, err = remote.Get(v.image.Context().Tag(strings.Replace(v.image.DigestStr(), ":", "-", 1)), v.options...)
		if kindOf(err) == ErrMissing {
			return nil, nil
		}
		if err == nil {
			index, err = found.ImageIndex()
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	out := slices.Clone(all.Manifests)
	slices.SortStableFunc(out, func(a, b v1.Descriptor) int { return likelihood(&b) - likelihood(&a) })
	return out[:min(len(out), maxSignatures)], nil
}

// lacksReferrers says that a registry may have no call for what refers to an image.
func lacksReferrers(err error) bool {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// likelihood is higher for what refers to an image and more likely is a signature of it. Nothing is left out for its type:
// what cosign writes has that of its empty configuration in some registries (cosign: WriteReferrer).
func likelihood(d *v1.Descriptor) int {
	switch {
	case d.Annotations[predicateAnnotation] == signature.SignPredicate:
		return 2
	case d.ArtifactType == signatureArtifact, strings.HasPrefix(d.ArtifactType, signature.BundleType):
		return 1
	}
	return 0
}

// readManifest reads the signatures that a manifest has. What isn't there has none.
func (v *verifier) readManifest(at name.Reference) error {
	found, err := remote.Get(at, v.options...)
	if err != nil {
		if kindOf(err) == ErrMissing {
			return nil
		}
		return err
	}
	if !found.MediaType.IsImage() {
		return nil
	}
	manifest, err := v1.ParseManifest(strings.NewReader(string(found.Manifest)))
	if err != nil {
		v.take(&signature.Refusal{Text: "a signature can't be read: its manifest is none"})
		return nil
	}
	for i := range manifest.Layers {
		if v.isDone() {
			return nil
		}
		if err := v.readLayer(&manifest.Layers[i]); err != nil {
			return err
		}
	}
	return nil
}

// readLayer reads one signature, or something else that lies there.
func (v *verifier) readLayer(d *v1.Descriptor) error {
	limit, isBundle := int64(signature.MaxPayload), strings.HasPrefix(string(d.MediaType), signature.BundleType)
	switch {
	case isBundle:
		limit = signature.MaxBundle
	case d.MediaType != simpleSigning:
		return nil
	}
	if d.Size > limit {
		v.take(&signature.Refusal{Text: fmt.Sprintf("a signature can't be read: it has more than %d bytes", limit)})
		return nil
	}
	data, err := v.readBlob(d, limit)
	switch {
	case err != nil && kindOf(err) != ErrUnread && kindOf(err) != ErrMissing:
		return err
	case err != nil:
		v.take(&signature.Refusal{Text: "a signature can't be read: the registry doesn't have it as its manifest says"})
	case isBundle:
		v.take(v.policy.CheckBundle(data, v.of()))
	default:
		v.take(v.policy.CheckPayload(data, d.Annotations[signatureAnnotation], v.of()))
	}
	return nil
}

// readBlob reads a blob, which has to be what its digest says.
func (v *verifier) readBlob(d *v1.Descriptor, limit int64) ([]byte, error) {
	layer, err := remote.Layer(v.image.Context().Digest(d.Digest.String()), v.options...)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, err
}
