package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store/record"
)

// adminName is whom commands are by that are given with the generated password.
const adminName = "admin"

// adminPassword is the digest of the generated password, in hexadecimal. The password is 26 random letters and
// digits, so that a plain digest can't be searched for it.
var adminPassword = record.Declare[record.Named, string](record.Declaration{
	Name: "admin-password", Owner: "server", Lifetime: record.Lasting, Strict: true,
	Doc: "The digest of the password that was generated where neither tokens nor a login are configured.",
})

// consoleTokens are who may give commands to the API and log in to the console: the configured tokens, or,
// where nothing is configured, the holder of a generated password.
func (s *Server) consoleTokens(ctx context.Context) ([]console.Token, error) {
	c := s.o.Config
	tokens := make([]console.Token, 0, len(c.API.Tokens))
	for _, t := range c.API.Tokens {
		tokens = append(tokens, console.Token{Name: t.Name, Role: string(t.Role), Secret: t.Token.Reveal()})
	}
	if len(tokens) > 0 || c.OIDC != nil || s.o.Announce == nil {
		return tokens, nil
	}
	digest, err := s.readAdminPassword(ctx)
	if err != nil {
		return nil, fmt.Errorf("the generated password: %w", err)
	}
	return []console.Token{{Name: adminName, Role: string(config.Operator), Digest: digest}}, nil
}

// readAdminPassword gives the digest of the generated password. The first start generates it and prints it; of
// several processes on one database, one does.
func (s *Server) readAdminPassword(ctx context.Context) (digest []byte, err error) {
	if s.o.ResetAdmin {
		if err := adminPassword.Drop(ctx, s.store, adminName); err != nil {
			return nil, err
		}
	}
	secret := rand.Text()
	sum := sha256.Sum256([]byte(secret))
	added, err := adminPassword.Add(ctx, s.store, adminName, hex.EncodeToString(sum[:]))
	if err != nil {
		return nil, err
	}
	if added {
		s.o.Announce(s.describeAdmin(secret))
		return sum[:], nil
	}
	stored, _, err := adminPassword.Get(ctx, s.store, adminName)
	if err != nil {
		return nil, err
	}
	if digest, err = hex.DecodeString(stored); err == nil && len(digest) != sha256.Size {
		err = fmt.Errorf("its digest has %d bytes, not %d", len(digest), sha256.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start once with --reset-admin-password", err)
	}
	return digest, nil
}

// describeAdmin tells people of a password that was just generated.
func (s *Server) describeAdmin(secret string) string {
	use := "Log in with it at /login/token of the console"
	if !s.o.Config.KeepsSessions() {
		use = "The console takes it from a browser that shows a password prompt, as any user's; its login form needs an externalURL " +
			"that begins with https://"
	}
	return fmt.Sprintf("Neither api.tokens nor oidc is configured, so there is a generated password for %s, with the role operator:\n\n"+
		"    %s\n\n%s, or give it to programs as an API token. It is shown only this time, and counts until api.tokens or\n"+
		"oidc is configured. Lost? Start once with --reset-admin-password.\n", adminName, secret, use)
}
