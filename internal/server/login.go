package server

import (
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/server/config"
)

// newLogin makes how people log in to the console: at an identity provider, with the API tokens, or
// both; nil where neither is there, or browsers wouldn't keep a session. Nothing is called yet: an
// identity provider that is away keeps no server from starting.
func newLogin(c *config.Config, hasTokens bool, now func() time.Time) (*console.Login, error) {
	o := c.OIDC
	if o == nil {
		if !hasTokens || !c.KeepsSessions() {
			return nil, nil
		}
		lasts := config.DefaultSessions()
		return &console.Login{Idle: lasts.Idle, Lifetime: lasts.Lifetime}, nil
	}
	known, err := readCallTLS(&o.TLS)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	transport, err := gateclient.NewTransport(known)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	p, err := login.New(login.Options{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(),
		RedirectURL: c.ExternalURL + "/login/callback",
		Scopes:      append([]string{"openid", "profile", "email"}, o.Scopes...), GroupsClaim: o.GroupsClaim, NameClaim: o.NameClaim,
		AccountClaims: o.Accounts,
		Secrets:       attemptSecrets(c), Transport: transport, Now: now})
	if err != nil {
		return nil, err
	}
	return &console.Login{Provider: p, Accounts: o.Accounts, Roles: o.Roles.ByRole(), Idle: o.Sessions.Idle,
		Lifetime: o.Sessions.Lifetime}, nil
}

// attemptSecrets are what logins' cookies are signed with: what every replica has in its file.
// A public client has no secret of its own; there it is those of the webhooks.
func attemptSecrets(c *config.Config) []string {
	if secret := c.OIDC.ClientSecret.Reveal(); secret != "" {
		return []string{secret}
	}
	var out []string
	for i := range c.Forges {
		for _, secret := range c.Forges[i].WebhookSecrets {
			out = append(out, secret.Reveal())
		}
	}
	return out
}
