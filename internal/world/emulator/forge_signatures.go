package emulator

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// objectID is how Git writes an id in full.
var objectID = regexp.MustCompile(`^[0-9a-f]{40}$`)

const (
	pgpBegin = "-----BEGIN PGP SIGNATURE-----"
	pgpEnd   = "-----END PGP SIGNATURE-----"
	sshBegin = "-----BEGIN SSH SIGNATURE-----"
	// signatureHeader is a commit's line that its signature begins with.
	signatureHeader = "\ngpgsig "
)

// verification is what GitHub says of a commit's signature. Its reasons are those of the REST API.
type verification struct {
	Verified   bool    `json:"verified"`
	Reason     string  `json:"reason"`
	Signature  *string `json:"signature"`
	Payload    *string `json:"payload"`
	VerifiedAt *string `json:"verified_at"`
}

// webFlow is who commits what GitHub itself commits.
func (f *Forge) webFlow() gitIdent {
	return gitIdent{Name: "GitHub", Email: webFlowEmail, When: f.now()}
}

// newSigningSecret is what a forge's own signatures are made with: they are no PGP's, but nobody
// else can make them.
func newSigningSecret() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails
	return secret
}

// signOwn is the forge's own signature of a commit's bytes.
func (f *Forge) signOwn(payload string) string {
	mac := hmac.New(sha256.New, f.signingSecret)
	mac.Write([]byte(payload))
	return pgpBegin + "\n\n" + base64.StdEncoding.EncodeToString(mac.Sum(nil)) + "\n" + pgpEnd + "\n"
}

// signByForge makes the same commit with the forge's own signature.
func (f *Forge) signByForge(r *repository, sha string) (string, error) {
	raw, err := r.git.runGit("cat-file", "commit", sha)
	if err != nil {
		return "", err
	}
	header, message, ok := strings.Cut(raw, "\n\n")
	if !ok {
		return "", fmt.Errorf("commit %s has no message", sha)
	}
	signed := header + signatureHeader + strings.ReplaceAll(f.signOwn(raw), "\n", "\n ") + "\n\n" + message
	return r.git.hashObject("commit", []byte(signed))
}

// splitSignature takes a commit's signature out of it; empty: it has none.
func splitSignature(raw string) (payload, signature string) {
	header, message, _ := strings.Cut(raw, "\n\n")
	before, after, ok := strings.Cut(header, signatureHeader)
	if !ok {
		return raw, ""
	}
	var lines, rest []string
	for i, line := range strings.Split(after, "\n") {
		if continued, is := strings.CutPrefix(line, " "); i == 0 || is && rest == nil {
			lines = append(lines, continued)
		} else {
			rest = append(rest, line)
		}
	}
	return strings.Join(append([]string{before}, rest...), "\n") + "\n\n" + message, strings.Join(lines, "\n")
}

// verifyCommit gives the forge's verdict on a commit's signature. It knows its own; an SSH key is
// taken for one of the committer's, whom no App's bot can be. Nobody else's is known.
func (f *Forge) verifyCommit(r *repository, sha string) (verification, error) {
	raw, err := r.git.runGit("cat-file", "commit", sha)
	if err != nil {
		return verification{}, err
	}
	payload, signature := splitSignature(raw)
	if signature == "" {
		return verification{Reason: "unsigned"}, nil
	}
	v := verification{Reason: "unknown_key", Signature: &signature, Payload: &payload}
	switch {
	case hmac.Equal([]byte(signature), []byte(f.signOwn(payload))):
		v.Verified, v.Reason = true, "valid"
	case strings.HasPrefix(signature, sshBegin):
		c, err := r.git.readCommit(sha)
		if err != nil {
			return verification{}, err
		}
		if by := f.accountByEmail(c.Committer.Email); by == nil || by.kind != "Bot" {
			v.Verified, v.Reason = true, "valid"
		}
	}
	return v, nil
}

// areVerified says whether all commits of a pull request are verified.
func (f *Forge) areVerified(p *pull) (bool, error) {
	for _, sha := range p.commits {
		if v, err := f.verifyCommit(p.repo, sha); err != nil || !v.Verified {
			return false, err
		}
	}
	return true, nil
}

// newIndex is an index of its own to make a tree in; done removes it.
func (b *bareRepo) newIndex() (path string, done func(), err error) {
	dir, err := os.MkdirTemp("", "emulator-index-")
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "index"), func() { _ = os.RemoveAll(dir) }, nil
}
