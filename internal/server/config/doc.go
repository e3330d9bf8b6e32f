// Package config is the server's file: its types, defaults and rules, and how it is read.
//
// ${NAME} in a value is replaced by that environment variable; one that isn't set is an error. $${
// is a literal ${. Every secret can instead be given as the path of a file that holds it, under its
// key with File at the end. So there are token or tokenFile, readWebhookSecrets or
// webhookSecretsFile (one a line), store or storeFile. Such a file's trailing white space is not
// part of the secret. Relative paths of secrets and kubeconfigs start at the folder of the server's
// file; dataDir and a sqlite store start where the server is started.
//
// The file is read once, at the start. The result is complete and valid; its users find out whether
// the forges accept the tokens. The invariant: a secret is a [Secret], which no log, error or JSON
// shows.
package config
