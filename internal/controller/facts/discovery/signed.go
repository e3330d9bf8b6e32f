package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
)

// Unsigned is a tag that would come in, if it were signed as it has to be.
type Unsigned struct {
	Tag, Digest string
	Why         string
	Pending     bool // it was found a moment ago, so that a signature may follow
}

// Reason is why a version comes in, for people: with whose signature of which digest, where one has to be.
func (v *Version) Reason() string {
	if v.Choice.Signer == "" {
		return v.Name + ": " + v.Choice.Why
	}
	return fmt.Sprintf("%s: %s, signed with %s, is %s", v.Name, v.Choice.Digest, v.Choice.Signer,
		strings.TrimPrefix(v.Choice.Why, v.Choice.Digest+", "))
}

// HasMoved says which tag is another image by now than the one of which the signature was verified, right before it is
// committed; empty: none. Where the digest is written, the tag may move. The error is the source's.
func (f *Found) HasMoved(ctx context.Context, source Source) (tag string, err error) {
	for i := range f.Versions {
		v := &f.Versions[i]
		if v.Err != "" || v.Pinned || v.Choice.Tag == "" || v.Choice.Signer == "" {
			continue
		}
		digest, err := source.ReadDigest(ctx, v.repository, registryTag(v.Choice.Tag))
		if err != nil {
			return "", fmt.Errorf("read again what %s:%s is: %w", v.Name, v.Choice.Tag, err)
		}
		if digest != v.Choice.Digest {
			return v.Name + ":" + v.Choice.Tag, nil
		}
	}
	return "", nil
}

// registryTag is a tag as registries have it: a chart's version has a plus there (helm: pkg/registry).
func registryTag(tag string) string { return strings.ReplaceAll(tag, "+", "_") }

// repository is where the version's tags are, as image names have it.
func (c *chosen) repository() string {
	return c.version.Image + strings.TrimPrefix(c.version.Chart, "oci://")
}

// readPolicy reads whose signatures count, and says why that can't be known. A key's file lies beside the pipeline file.
func (c *chosen) readPolicy(rules fs.FS) string {
	verify := c.entry.Verify
	if verify == nil || verify.Cosign == nil {
		return ""
	}
	text, name := []byte(verify.Cosign.Key), ""
	if !signature.IsText(verify.Cosign.Key) {
		var err error
		if name, text, err = verify.Cosign.Key, nil, fs.ErrNotExist; rules != nil {
			text, err = readKey(rules, name)
		}
		if err != nil {
			return fmt.Sprintf("the key %s of verify can't be read beside the pipeline file, so nothing counts as signed: %v", name,
				pathless(err))
		}
	}
	key, err := signature.ParseKey(name, text)
	if err != nil {
		return fmt.Sprintf("the key %s of verify can't be taken, so nothing counts as signed: %v", name, err)
	}
	c.policy = &signature.Policy{Key: key, SignedAs: verify.Cosign.SignedAs}
	return ""
}

// readKey reads a key's file.
func readKey(rules fs.FS, name string) ([]byte, error) {
	f, err := rules.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return io.ReadAll(io.LimitReader(f, signature.MaxKey+1))
}

// pathless is an error without the path that is named anyway.
func pathless(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// verify looks up whether what a tag is now is signed. All else that is said of the tag has to be of the same image, which
// may have been pushed over since it was looked into.
func (c *chosen) verify(ctx context.Context, source Source, tag string, q *discover.Query) error {
	digest := q.Details[tag].Digest
	if !c.follows() {
		var err error
		if digest, err = source.ReadDigest(ctx, c.repository(), registryTag(tag)); err != nil {
			return err
		}
		if known, is := q.Details[tag]; is && known.Digest != digest {
			found, _, err := source.ReadDetails(ctx, c.repository(), []string{digest})
			if err != nil {
				return err
			}
			q.Details[tag] = found[digest]
		}
	}
	found, err := source.VerifySignatures(ctx, c.repository(), digest, c.policy)
	q.Signatures[tag] = found
	return err
}

// unsignedOf are the tags that only a signature keeps out.
func unsignedOf(choice *discover.Choice, q *discover.Query) []Unsigned {
	var out []Unsigned
	for _, r := range choice.Rejected {
		for tag, s := range q.Signatures {
			if s.By == "" && (r.Tag == tag || r.Tag == s.Digest) {
				out = append(out, Unsigned{Tag: tag, Digest: s.Digest, Why: r.Why, Pending: s.Pending})
			}
		}
	}
	return slices.Compact(out)
}
