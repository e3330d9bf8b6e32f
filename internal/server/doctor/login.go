package doctor

import "context"

// Login is the OpenID Connect provider at which people log in to the console.
type Login interface {
	// Discover reads what the provider calls itself, which its tokens say too.
	Discover(ctx context.Context) (issuer string, err error)
}

// checkLogin checks that the provider answers, and by the name that the server's file has: tokens
// of another issuer are refused.
func (d *doctor) checkLogin(ctx context.Context) (found findings) {
	wanted := d.Config.OIDC.Issuer
	where := "login at " + redactURL(wanted)
	ctx, cancel := d.limit(ctx)
	defer cancel()
	issuer, err := d.Login.Discover(ctx)
	switch {
	case err != nil:
		found.add("login-unreachable", where, err.Error(), "check that this machine reaches oidc.issuer with "+
			"/.well-known/openid-configuration after it, and oidc.tls; nobody can log in to the console until then")
	case issuer != wanted:
		found.add("login-issuer", where, "the provider calls itself "+redactURL(issuer)+": no login is accepted",
			"write that as oidc.issuer, letter for letter and with or without a slash at the end, if it is the provider that is meant")
	default:
		found.add(CodeLogin, where, "it answers; whether it knows oidc.clientID shows at a login only", "")
	}
	return found
}
