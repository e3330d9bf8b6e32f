package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// OIDC is how people log in to the console: at an OpenID Connect provider.
type OIDC struct {
	Issuer           string  `yaml:"issuer"` // the provider's address, as its tokens have it
	ClientID         string  `yaml:"clientID"`
	ClientSecret     Secret  `yaml:"clientSecret"` // neither this nor the file: a public client
	ClientSecretFile string  `yaml:"clientSecretFile"`
	TLS              CallTLS `yaml:"tls"`
	// Scopes are asked for beside openid, profile and email.
	Scopes      []string `yaml:"scopes"`
	GroupsClaim string   `yaml:"groupsClaim"`
	NameClaim   string   `yaml:"nameClaim"` // what users are called by; empty: what login.Options says
	// Accounts are the claims that have a user's login on each forge, by the forges' names.
	Accounts map[string]string `yaml:"accounts"`
	// Roles are the groups that have each role; of the role viewer AnyGroup is everybody.
	Roles    Roles        `yaml:"roles"`
	Sessions OIDCSessions `yaml:"sessions"`
}

// SetDefaults fills in what may be left out.
func (o *OIDC) SetDefaults() {
	o.GroupsClaim = "groups"
	o.Sessions = DefaultSessions()
}

// DefaultSessions is how long somebody stays logged in where oidc doesn't say so.
func DefaultSessions() OIDCSessions { return OIDCSessions{Idle: time.Hour, Lifetime: 12 * time.Hour} }

// Roles are groups by the role that they have.
type Roles struct {
	Viewer     []string `yaml:"viewer"`
	Operator   []string `yaml:"operator"`
	BreakGlass []string `yaml:"breakglass"`
}

// OIDCSessions is how long somebody stays logged in.
type OIDCSessions struct {
	Idle     time.Duration `yaml:"idle"`     // without using the console
	Lifetime time.Duration `yaml:"lifetime"` // in any case; groups are read at a login only
}

// AnyGroup stands for everybody who can log in.
const AnyGroup = "*"

const (
	minSession = 5 * time.Minute
	maxSession = 30 * 24 * time.Hour
)

// ByRole are the groups by the roles' names.
func (r *Roles) ByRole() map[string][]string {
	return map[string][]string{string(Viewer): r.Viewer, string(Operator): r.Operator, string(BreakGlass): r.BreakGlass}
}

func (c *checker) checkOIDC(config *Config) {
	o := config.OIDC
	if o == nil {
		return
	}
	c.checkHTTPURL("oidc.issuer", o.Issuer)
	c.checkLoginAddress("oidc.issuer", o.Issuer, "ID tokens are believed as they come from there")
	if o.ClientID == "" {
		c.Errorf("oidc", "clientID is missing: what the provider calls Liftlock")
	}
	if o.ClientSecret == "" && c.Doc.Has("oidc.clientSecret") {
		c.Errorf("oidc.clientSecret", "the secret is empty; leave the key out for a public client")
	}
	if config.ExternalURL == "" {
		c.Errorf("oidc", "externalURL is missing: the provider sends browsers back to it, at /login/callback")
	} else {
		c.checkLoginAddress("externalURL", config.ExternalURL, "browsers keep the session's cookie only then")
	}
	if o.GroupsClaim == "" {
		c.Errorf("oidc.groupsClaim", "the claim's name is missing")
	}
	c.checkCallTLS("oidc.tls", &o.TLS)
	for i, s := range o.Scopes {
		if s == "" || strings.ContainsFunc(s, isUnprintable) {
			c.Errorf(entryOf("oidc.scopes", i), "%q is no scope", s)
		}
	}
	for forge, claim := range o.Accounts {
		if !slices.ContainsFunc(config.Forges, func(f Forge) bool { return f.Name == forge }) {
			c.Errorf("oidc.accounts."+forge, "there is no forge %s under forges", forge)
		} else if strings.TrimSpace(claim) == "" {
			c.Errorf("oidc.accounts."+forge, "the claim's name is missing: which one has the login on %s", forge)
		}
	}
	c.checkRoles(&o.Roles)
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"idle", o.Sessions.Idle}, {"lifetime", o.Sessions.Lifetime}} {
		if d.value < minSession || d.value > maxSession {
			c.Errorf("oidc.sessions."+d.key, "must be between %s and %s", minSession, maxSession)
		}
	}
}

// checkLoginAddress wants TLS, but for this machine alone.
func (c *checker) checkLoginAddress(at, address, why string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "http" && !isLoopback(u.Host) && !isLoopback(u.Host+":80") {
		c.Errorf(at, "must begin with https:// where people log in: %s", why)
	}
}

func (c *checker) checkRoles(r *Roles) {
	named := 0
	for role, groups := range r.ByRole() {
		named += len(groups)
		for i, g := range groups {
			at := entryOf("oidc.roles."+role, i)
			switch {
			case strings.TrimSpace(g) == "":
				c.Errorf(at, "the group's name is missing")
			case g == AnyGroup && role != string(Viewer):
				c.Errorf(at, "%q is everybody who can log in; only the role viewer can be everybody's", AnyGroup)
			case slices.Contains(groups[:i], g):
				c.Errorf(at, "is there twice")
			}
		}
	}
	if named == 0 {
		c.Errorf("oidc", "roles is missing: which groups are %s, %s or %s; without any nobody could log in", Viewer, Operator, BreakGlass)
	}
}
