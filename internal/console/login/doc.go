// Package login finds out who somebody is from an OpenID Connect provider: the code flow with PKCE,
// a state and a nonce. It knows nothing of cookies, sessions or roles; those are the console's. It
// is the only package that imports go-oidc and oauth2.
//
// The invariant: an Identity comes only out of an ID token that the provider signed for this client
// and for the very Attempt that the browser began, or out of the provider's userinfo endpoint,
// reached with that login's token. That is reached with the token of that login.
package login
