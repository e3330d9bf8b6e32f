package login

import (
	"context"
	"errors"

	"github.com/coreos/go-oidc/v3/oidc"
)

// publicKeyAlgorithms are the algorithms with a public key that go-oidc knows: whatever a
// provider says, its ID tokens are signed by one of them.
var publicKeyAlgorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
	oidc.PS512, oidc.EdDSA}

// keySet are a provider's keys for one ID token. Its verifier says of a signature only that it
// isn't good; this remembers whether that was as the keys couldn't be fetched.
type keySet struct {
	oidc.KeySet
	unreachable error // nil: they could, or nobody wanted them
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	// oidc.RemoteKeySet wraps the error of a fetch, and that of a signature is its own.
	if cause := errors.Unwrap(err); cause != nil {
		k.unreachable = cause
	}
	return payload, err
}

// verify checks an ID token. Its errors: *RefusedError, or ErrUnreachable.
func (p *Provider) verify(ctx context.Context, m *metadata, raw string) (*oidc.IDToken, error) {
	keys := &keySet{KeySet: oidc.NewRemoteKeySet(ctx, m.keys)}
	config := &oidc.Config{ClientID: p.opts.ClientID, Now: p.opts.Now, SupportedSigningAlgs: m.algorithms}
	id, err := oidc.NewVerifier(p.opts.Issuer, keys, config).Verify(ctx, raw)
	switch {
	case keys.unreachable != nil:
		return nil, p.noteUnreachable("fetch the keys of "+p.opts.Issuer+" at "+m.keys, keys.unreachable)
	case err != nil:
		return nil, newRefusal("the ID token is not good: %s", oneLine(err.Error(), maxErrorText))
	}
	return id, nil
}
