// Package github is the forge driver for GitHub, its hosting for enterprises and GitHub Enterprise
// Server. It uses the REST API, and GraphQL where REST has no call. A Driver works with an
// account's token, an App as a GitHub App in many organisations. It is the only place, with its
// file in webhooks, that knows go-github.
//
// It translates and nothing more: no retries (the engine has a queue for that) and no decisions. It
// remembers only conditional requests, its own account, where the App is installed, its tokens, and
// the hooks whose secret it has set. Its invariant: it returns what GitHub said, in the neutral
// words of package forge, and every error says which operation failed and of which kind it is.
//
// An App's tokens are this package's own. ghinstallation, the usual library, signs by the local
// clock alone, so it gets no token where that clock is wrong, and it gives up on the first 401. It
// has one scope for all repositories of an installation and one key for ever, and would bring a
// second go-github. Without it only a few calls of go-github's are needed, and jwt to sign.
package github
