// Package github is the forge driver for GitHub and GitHub Enterprise Server,
// over the REST API with a token. It is the only place, with its file in
// webhooks, that knows go-github.
//
// It translates and nothing more: no retries (the engine has a queue for that),
// no decisions, no memory beyond conditional requests, the token's own login and
// the hooks whose secret it has set. Its invariant: what comes back is what
// GitHub said, in the neutral words of package forge, and every error says what
// was being done and of which kind it is.
package github
