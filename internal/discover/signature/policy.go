package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// MaxPayload bounds what is signed, in bytes: it is a digest and a name, with a few notes of whoever signed.
const MaxPayload = 256 << 10

// maxShown bounds what is shown of a signature's own words.
const maxShown = 200

// Policy says which signatures count. It may be used concurrently.
type Policy struct {
	Key *Key
	// SignedAs are globs of repositories that a signature may name besides the image's own, such as the one that the image
	// was copied from.
	SignedAs []string
}

// ID is the same for policies that let the same signatures count.
func (p *Policy) ID() string {
	sum := sha256.Sum256([]byte(p.Key.id + "\x00" + strings.Join(p.SignedAs, "\x00")))
	return hex.EncodeToString(sum[:])
}

// String says for people by whom signatures have to be.
func (p *Policy) String() string { return "the key " + p.Key.name }

// Image is what has to be signed.
type Image struct {
	Repository string // with its registry, as image names have it
	Digest     string // sha256:…
}

// Refusal is why a signature doesn't count, for people.
type Refusal struct {
	Text string
	// Rank is higher where more of the signature is as it should be: of several signatures, that one says most.
	Rank int
}

func (r *Refusal) Error() string { return r.Text }

// The ranks of refusals.
const (
	rankUnreadable = iota + 1
	rankOtherKey
	rankOtherImage
)

func refuse(rank int, format string, args ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, args...), Rank: rank}
}

// refuseUnreadable is of what isn't a signature at all.
func refuseUnreadable(what string) error {
	return refuse(rankUnreadable, "a signature can't be read: %s", what)
}

// simpleSigning is what cosign signs (containers/image: containers-signature(5), "JSON data format").
type simpleSigning struct {
	Critical struct {
		Type     string `json:"type"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
	} `json:"critical"`
}

// cosignType is what cosign's payloads have as their type (cosign: specs/SIGNATURE_SPEC.md).
const cosignType = "cosign container image signature"

// CheckPayload says whether a signature of a payload counts for an image; nil: it does. The signature is in base64, as its
// annotation has it. The error is a [Refusal].
func (p *Policy) CheckPayload(payload []byte, encoded string, of Image) error {
	if len(payload) > MaxPayload || len(encoded) > MaxPayload {
		return refuseUnreadable(fmt.Sprintf("it has more than %d bytes", MaxPayload))
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(signature) == 0 {
		return refuseUnreadable("it is no base64")
	}
	// What isn't by the key isn't read: its words are anybody's.
	if !p.Key.Signed(payload, signature) {
		return p.refuseKey()
	}
	var claim simpleSigning
	if json.Unmarshal(payload, &claim) != nil {
		return refuseUnreadable("what is signed is no JSON")
	}
	if claim.Critical.Type != cosignType {
		return refuse(rankOtherImage, "a signature is of another kind than an image's: its type is %q", shown(claim.Critical.Type))
	}
	if claim.Critical.Image.Digest != of.Digest {
		return refuse(rankOtherImage, "a signature is of another digest, %s", shown(claim.Critical.Image.Digest))
	}
	return p.checkRepository(claim.Critical.Identity.Reference, of)
}

func (p *Policy) refuseKey() error {
	return refuse(rankOtherKey, "a signature is not by %s, or what is signed was changed", p)
}

// checkRepository refuses the signature of an image of another repository, which anybody who may push could have copied
// with its image. One that names none is of any.
func (p *Policy) checkRepository(reference string, of Image) error {
	if reference == "" {
		return nil
	}
	named, own := repositoryOf(reference), repositoryOf(of.Repository)
	if named == own {
		return nil
	}
	for _, glob := range p.SignedAs {
		if is, err := doublestar.Match(repositoryOf(glob), named); is && err == nil {
			return nil
		}
	}
	return refuse(rankOtherImage, "a signature is of an image in another repository, %s; if that is where the image comes from, add it "+
		"to signedAs", shown(reference))
}

// repositoryOf is the repository of an image's reference in one spelling: Docker Hub has several (distribution: reference).
func repositoryOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	host, rest, hasHost := strings.Cut(name, "/")
	if strings.ContainsAny(host, ".:") {
		host = strings.ToLower(host)
	}
	isHost := hasHost && (strings.ContainsAny(host, ".:*") || host == "localhost")
	switch {
	case !hasHost:
		return "index.docker.io/library/" + name
	case !isHost:
		return "index.docker.io/" + name
	case host == "docker.io" || host == "registry-1.docker.io":
		host = "index.docker.io"
	}
	if host == "index.docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return host + "/" + rest
}

// shown is a signature's own word, for people.
func shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text), "")
}
