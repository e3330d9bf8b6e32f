// Package github is the forge driver for GitHub, what it hosts for enterprises and GitHub
// Enterprise Server, over the REST API, and over GraphQL what that has no call for: a Driver
// works with an account's token, an App as a GitHub App in many organisations. It is the only
// place, with its file in webhooks, that knows go-github.
//
// It translates and nothing more: no retries (the engine has a queue for that),
// no decisions, no memory beyond conditional requests, who we are, where the App is installed,
// its tokens, and the hooks whose secret it has set. Its invariant: what comes back is what
// GitHub said, in the neutral words of package forge, and every error says what
// was being done and of which kind it is.
//
// An App's tokens are this package's own. ghinstallation, the usual library, signs by the local
// clock alone and refuses nothing to a clock that is wrong, gives up on the first 401, has one
// scope for all repositories of an installation and one key for ever; and it would bring a
// second go-github. What is left without it is a few calls of go-github's, and jwt to sign.
package github
