package pipeline

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/wording"
)

// How what is discovered comes into a source environment.
const (
	DeliverCommit      = "commit"
	DeliverPullRequest = "pull-request"
)

// Discovery is one entry of what comes in by itself. Exactly one of image and chart is set.
type Discovery struct {
	// An image by the name that a carried field has, without tag, or a glob of such names: registry.example/*.
	Image string `yaml:"image" json:"image,omitempty" jsonschema:"minLength=1"`
	// A chart that a carried field has: oci://registry.example/charts/web, or https://charts.example#web.
	Chart string `yaml:"chart" json:"chart,omitempty" jsonschema:"minLength=1"`
	// Which of its tags, or versions, comes in.
	Choose discover.Choose `yaml:"choose" json:"choose" jsonschema:"required"`
	// Platforms that an image must have: linux/amd64. Not set: any.
	Platforms []string `yaml:"platforms" json:"platforms,omitempty" jsonschema:"minItems=1"`
	// What comes in must be signed so.
	Verify *VerifySignature `yaml:"verify" json:"verify,omitempty"`
	// digest: it is written beside the tag.
	Pin string `yaml:"pin" json:"pin,omitempty" jsonschema:"enum=digest"`
}

// VerifySignature says whose signatures count.
type VerifySignature struct {
	// As by cosign sign --key.
	Cosign *CosignKey `yaml:"cosign" json:"cosign,omitempty" jsonschema:"required"`
}

// CosignKey is a key by which images are signed.
type CosignKey struct {
	// A public key in PEM, or a file with one, from the repository's root.
	Key string `yaml:"key" json:"key" jsonschema:"required,minLength=1"`
	// Globs of image names that a signature may have besides the image's own.
	SignedAs []string `yaml:"signedAs" json:"signedAs,omitempty" jsonschema:"minItems=1"`
}

// unsupportedKeys are those that are refused by name, with the reason.
var unsupportedKeys = map[string]string{
	"spec.environments[].discover[].verify.keyless": "it takes certificates and a transparency log, and half of that proves nothing; " +
		"sign with a key, as cosign sign --key does, and write cosign: {key: …}",
}

// PinDigest is the only value of pin.
const PinDigest = "digest"

// Pins says that the digest is written, too.
func (d *Discovery) Pins() bool { return d.Pin == PinDigest }

// Name is what the entry is about, as the file has it.
func (d *Discovery) Name() string { return d.Image + d.Chart }

// MatchesImage says that the entry is about an image, given by its name without tag.
func (d *Discovery) MatchesImage(image string) bool {
	if d.Image == "" {
		return false
	}
	is, err := doublestar.Match(d.Image, image)
	return is && err == nil || d.Image == image
}

// MatchesChart says that the entry is about a chart, given as [ChartAddress] has it.
func (d *Discovery) MatchesChart(chart string) bool {
	return d.Chart != "" && strings.TrimSuffix(d.Chart, "/") == strings.TrimSuffix(chart, "/")
}

const (
	ociScheme = "oci://"
	// maxPlatforms bounds the platforms of an entry.
	maxPlatforms = 20
	// maxImageName bounds an image's name (distribution's reference: NameTotalLengthMax).
	maxImageName = 255
)

// ChartAddress names a chart as entries of discover do, by the address of its repository as Applications and
// kustomizations have it, with or without oci://.
func ChartAddress(repository, chart string) string {
	repository = strings.TrimSuffix(repository, "/")
	switch {
	case strings.HasPrefix(repository, ociScheme):
		return repository + "/" + chart
	case strings.Contains(repository, "://"):
		return repository + "#" + chart
	}
	return ociScheme + repository + "/" + chart // argo-cd: an OCI repository's URL has no scheme
}

// SplitChart takes a chart's address apart; false where it is none. A registry's repository has no scheme then.
func SplitChart(address string) (repository, chart string, isOCI, ok bool) {
	if rest, is := strings.CutPrefix(strings.TrimSuffix(address, "/"), ociScheme); is {
		i := strings.LastIndexByte(rest, '/')
		if i <= 0 || i == len(rest)-1 || strings.ContainsAny(rest, " #?@") {
			return "", "", true, false
		}
		return rest[:i], rest[i+1:], true, true
	}
	repository, chart, ok = strings.Cut(address, "#")
	is := strings.HasPrefix(repository, "https://") || strings.HasPrefix(repository, "http://")
	return strings.TrimSuffix(repository, "/"), chart, false, ok && is && chartName.MatchString(chart)
}

var (
	chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`)
	// platform is an operating system, a processor and maybe its variant, as image indexes name them.
	platform = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9.]+)?$`)
)

// checkDiscovery checks what comes into an environment by itself.
func (c *checker) checkDiscovery(at string, e *Environment) {
	if !e.IsSource() {
		for _, key := range []string{"discover", "deliver"} {
			if c.Doc.Has(at + "." + key) {
				c.Errorf(at+"."+key, "is for source environments; releases come to %s from %s: remove it, or remove `after`", e.Name,
					wording.JoinFew(e.After, 3))
			}
		}
		return
	}
	if c.Doc.Has(at + ".deliver") {
		c.checkDeliver(at+".deliver", e)
	}
	if c.Doc.Has(at + ".discover") {
		c.NotEmpty(at+".discover", len(e.Discover), "entry that says what comes in")
	}
	for i := range e.Discover {
		c.checkDiscoveryEntry(fmt.Sprintf("%s.discover[%d]", at, i), &e.Discover[i])
		c.checkDiscoveredOnce(at, i, e.Discover)
	}
}

func (c *checker) checkDeliver(at string, e *Environment) {
	switch {
	case len(e.Discover) == 0:
		c.Errorf(at, "does nothing without discover, which says what comes in: remove it")
	default:
		c.OneOf(at, e.Deliver, DeliverCommit, DeliverPullRequest)
	}
}

func (c *checker) checkDiscoveryEntry(at string, d *Discovery) {
	hasImage, hasChart := c.Doc.Has(at+".image"), c.Doc.Has(at+".chart")
	switch {
	case hasImage == hasChart:
		c.Errorf(at, "exactly one of image and chart is needed; this entry has %s",
			map[bool]string{true: "both", false: "neither"}[hasImage])
	case hasImage:
		c.checkImageGlob(at+".image", d.Image)
	default:
		c.checkChartAddress(at+".chart", d)
	}
	if !c.Doc.Has(at + ".choose") {
		c.Errorf(at, "choose is missing: which tag comes in, like choose: {semver: \">=1.0.0\"}")
	} else {
		for _, p := range d.Choose.Problems() {
			path := at + ".choose"
			if p.Key != "" {
				path += "." + p.Key
			}
			c.Errorf(path, "%s", p.Message)
		}
	}
	if c.Doc.Has(at + ".verify") {
		c.checkVerifySignature(at+".verify", d)
	}
	if c.Doc.Has(at + ".pin") {
		if c.OneOf(at+".pin", d.Pin, PinDigest); hasChart {
			c.Errorf(at+".pin", "charts are carried by their version, which has no digest: remove it")
		}
	}
	c.checkAtMost(at+".platforms", len(d.Platforms), maxPlatforms)
	if hasChart && len(d.Platforms) > 0 {
		c.Errorf(at+".platforms", "charts have no platforms: remove it")
	}
	for i, p := range d.Platforms {
		if !platform.MatchString(p) {
			c.Errorf(fmt.Sprintf("%s.platforms[%d]", at, i), "%q is no platform; write it like linux/amd64 or linux/arm/v7", p)
		}
	}
}

// maxSignedAs bounds the names that signatures may have.
const maxSignedAs = 20

// checkVerifySignature checks whose signatures count.
func (c *checker) checkVerifySignature(at string, d *Discovery) {
	v := d.Verify
	switch {
	case v == nil || v.Cosign == nil:
		c.Errorf(at, "cosign is missing: whose signatures count, like cosign: {key: keys/web.pub}")
		return
	case strings.HasPrefix(d.Chart, "http"):
		c.Errorf(at, "charts of %s have no signatures that are looked at; take one in a registry, oci://…", d.Chart)
	}
	key := v.Cosign.Key
	switch {
	case key == "":
		c.Errorf(at+".cosign", "key is missing: a public key in PEM, or the path of a file with one, like keys/web.pub")
	case signature.IsText(key):
		if _, err := signature.ParseKey("", []byte(key)); err != nil {
			c.Errorf(at+".cosign.key", "%v", err)
		}
	case !fs.ValidPath(key) || key == ".":
		c.Errorf(at+".cosign.key", "%q is neither a public key in PEM nor the path of a file in this repository, like keys/web.pub",
			wording.Clip(key, maxNameLength))
	}
	c.checkAtMost(at+".cosign.signedAs", len(v.Cosign.SignedAs), maxSignedAs)
	for i, glob := range v.Cosign.SignedAs {
		c.checkImageGlob(fmt.Sprintf("%s.cosign.signedAs[%d]", at, i), glob)
	}
}

// checkImageGlob checks an image's name, which may be a glob.
func (c *checker) checkImageGlob(at, image string) {
	last := image[strings.LastIndexByte(image, '/')+1:]
	switch {
	case image == "" || len(image) > maxImageName || strings.ContainsAny(image, " \t\r\n"):
		c.Errorf(at, "%q is no image's name; write it like registry.example/web, or a glob like registry.example/*", image)
	case strings.Contains(image, "://"):
		c.Errorf(at, "%q is an address; write the image's name as a carried field has it, like registry.example/web", image)
	case strings.Contains(image, "@") || strings.Contains(last, ":"):
		c.Errorf(at, "%q has a tag or a digest; write the name alone, and which tags come in under choose", image)
	case !doublestar.ValidatePattern(image):
		c.Errorf(at, "%q is not a valid glob on image names", image)
	default:
		if err := wording.CheckGlob(image); err != nil {
			c.Errorf(at, "%v", err)
		}
	}
}

func (c *checker) checkChartAddress(at string, d *Discovery) {
	if _, _, _, ok := SplitChart(d.Chart); !ok {
		c.Errorf(at, "%q is no chart; write it like oci://registry.example/charts/web or https://charts.example#web", d.Chart)
	}
	const instead = "is for images; charts are carried by their version: use semver, or newest by number or alphabet"
	if d.Choose.Digest != nil {
		c.Errorf(at, "choose: {digest: …} %s", instead)
	}
	if n := d.Choose.Newest; n != nil && n.By == discover.ByCreated {
		c.Errorf(at, "choose: {newest: {by: created}} %s", instead)
	}
}

// checkDiscoveredOnce refuses an entry that is about the same as an earlier one, as far as the file tells.
func (c *checker) checkDiscoveredOnce(at string, i int, all []Discovery) {
	d := &all[i]
	for j := range all[:i] {
		other := &all[j]
		isSame := d.Name() != "" && d.Name() == other.Name()
		if isSame || d.Image != "" && (other.MatchesImage(d.Image) || d.MatchesImage(other.Image)) {
			c.Errorf(fmt.Sprintf("%s.discover[%d]", at, i), "%s and discover[%d] (%s) are about the same, and each could choose another "+
				"tag: keep one of them, or write globs that don't overlap", d.Name(), j, other.Name())
			return
		}
	}
}
