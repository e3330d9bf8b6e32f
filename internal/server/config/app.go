package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// checkApp checks that a forge's App can be one: what its keys are good for shows when the
// server starts.
func (c *checker) checkApp(at string, f *Forge) {
	a := f.Auth.App
	if a == nil {
		c.Errorf(at+".app", "id (or clientID) and privateKeyFile are missing")
		return
	}
	if f.Type != GitHub {
		c.Errorf(at+".app", "only a forge of the type github has Apps; give a token")
	}
	if c.Doc.Has(at+".token") || c.Doc.Has(at+".tokenFile") {
		c.Errorf(at+".app", "a token is given too; keep one of them")
	}
	at += ".app"
	switch {
	case a.ID != 0 && a.ClientID != "":
		c.Errorf(at+".clientID", "id is given too; keep one of them")
	case a.ID == 0 && a.ClientID == "":
		c.Errorf(at, "id or clientID is missing: the App's page has both")
	case a.ID < 0 || strings.ContainsFunc(a.ClientID, isUnprintable):
		c.Errorf(at, "id is a number, and clientID one word; the App's page has both")
	}
	if a.InstallationID < 0 {
		c.Errorf(at+".installationID", "is a number, the last part of the installation's address")
	}
	if a.InstallationID != 0 && len(a.Installations) > 0 {
		c.Errorf(at+".installations", "installationID is given too, which is the only one that is used; keep one of them")
	}
	for i, owner := range a.Installations {
		if owner == "" || strings.ContainsAny(owner, "/ ") {
			c.Errorf(fmt.Sprintf("%s.installations[%d]", at, i), "%q is not the name of an organisation or a user", owner)
		}
	}
	if a.PrivateKeyFile == "" {
		c.Errorf(at, "privateKeyFile is missing: the private key that the App's page gives once")
		return
	}
	if _, err := readFile(a.PrivateKeyFile, maxSecretFile); err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		c.Errorf(at+".privateKeyFile", "can't read %s: %s", a.PrivateKeyFile, err)
	}
}

// checkAppHooks checks that an App's webhook can be pointed somewhere.
func (c *checker) checkAppHooks(config *Config) {
	for i, f := range config.Forges {
		if f.Auth.App != nil && f.Auth.App.ManageWebhook && config.Webhooks.ExternalURL == "" {
			c.Errorf(fmt.Sprintf("forges[%d].auth.app.manageWebhook", i), "needs externalURL, the address that the forge sends events to")
		}
	}
}

// checkAppRepository checks a repository where Liftlock works as an App.
func (c *checker) checkAppRepository(at string, r *Repository, a *App) {
	owner, _ := r.Split()
	if len(a.Installations) > 0 && !slices.ContainsFunc(a.Installations, func(o string) bool { return strings.EqualFold(o, owner) }) {
		c.Errorf(at+".name", "%s isn't among the installations of the forge's App", owner)
	}
	if r.ManageWebhooks {
		c.Errorf(at+".manageWebhooks", "the forge's App has one webhook for all repositories; write manageWebhook: true in its auth.app, "+
			"or set it on the App's page")
	}
}
