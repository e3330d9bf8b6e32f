package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// maxSecretFile bounds a secret's file; private keys take a few kilobytes.
const maxSecretFile = 64 << 10

// readSecrets reads the secrets that are given as files, and checks that each is
// given once.
func (c *checker) readSecrets(config *Config) {
	c.readSecret("", "store", &config.Store, config.StoreFile)
	for i := range config.Forges {
		f := &config.Forges[i]
		at := fmt.Sprintf("forges[%d]", i)
		c.readSecret(at+".auth.", "token", &f.Auth.Token, f.Auth.TokenFile)
		c.readWebhookSecrets(at, f)
	}
	for i := range config.ArgoCD {
		if a := config.ArgoCD[i].API; a != nil {
			c.readSecret(fmt.Sprintf("argocd[%d].api.", i), "token", &a.Token, a.TokenFile)
		}
	}
	for i := range config.Prometheus {
		p := &config.Prometheus[i]
		at := fmt.Sprintf("prometheus[%d].", i)
		c.readSecret(at, "bearerToken", &p.BearerToken, p.BearerTokenFile)
		c.readSecret(at, "password", &p.Password, p.PasswordFile)
	}
	for i := range config.Registries {
		g := &config.Registries[i]
		at := fmt.Sprintf("registries[%d].", i)
		c.readSecret(at, "password", &g.Password, g.PasswordFile)
		c.readSecret(at, "webhookSecret", &g.WebhookSecret, g.WebhookSecretFile)
	}
	for i := range config.Sources {
		g := &config.Sources[i]
		c.readSecret(fmt.Sprintf("sources[%d].", i), "password", &g.Password, g.PasswordFile)
	}
	for i := range config.Charts {
		g := &config.Charts[i]
		c.readSecret(fmt.Sprintf("charts[%d].", i), "password", &g.Password, g.PasswordFile)
	}
	for i := range config.Endpoints {
		p := &config.Endpoints[i]
		at := fmt.Sprintf("endpoints[%d].", i)
		c.readSecret(at, "secret", &p.Secret, p.SecretFile)
		c.readSecret(at, "authorization", &p.Authorization, p.AuthorizationFile)
	}
	for i := range config.Channels {
		n := &config.Channels[i]
		at := fmt.Sprintf("channels[%d].", i)
		c.readSecret(at, "url", &n.URL, n.URLFile)
		c.readSecret(at, "secret", &n.Secret, n.SecretFile)
	}
	if o := config.OIDC; o != nil {
		c.readSecret("oidc.", "clientSecret", &o.ClientSecret, o.ClientSecretFile)
	}
	for i := range config.API.Tokens {
		t := &config.API.Tokens[i]
		c.readSecret(fmt.Sprintf("api.tokens[%d].", i), "token", &t.Token, t.TokenFile)
	}
}

// readSecret reads into value the file that stands for the key, where there is one.
func (c *checker) readSecret(prefix, key string, value *Secret, file string) {
	at := prefix + key + "File"
	if !c.Doc.Has(at) {
		c.warnOfClearText(prefix + key)
		return
	}
	if c.Doc.Has(prefix + key) {
		c.Errorf(at, "%s is given too; keep one of them", key)
		return
	}
	content, err := c.readSecretFile(file)
	switch {
	case err != nil:
		c.Errorf(at, "%s", err)
	case strings.ContainsAny(content, "\r\n"):
		c.Errorf(at, "the file holds more than one line")
	default:
		*value = Secret(content)
	}
}

// warnOfClearText warns of a secret that stands in the server's file itself. The store's address seldom has one.
func (c *checker) warnOfClearText(at string) {
	if text := c.Doc.Text(at); text != "" && !strings.Contains(text, "${") && at != "store" {
		c.warnings = append(c.warnings, c.Doc.Errorf(at, "the secret stands here in clear: write ${NAME}, and set that variable; or name "+
			"a file that holds it"))
	}
}

// readWebhookSecrets reads a forge's secrets from a file, one a line.
func (c *checker) readWebhookSecrets(at string, f *Forge) {
	for i := range f.WebhookSecrets {
		c.warnOfClearText(fmt.Sprintf("%s.webhookSecrets[%d]", at, i))
	}
	at += ".webhookSecretsFile"
	if !c.Doc.Has(at) {
		return
	}
	if f.WebhookSecrets != nil {
		c.Errorf(at, "webhookSecrets is given too; keep one of them")
		return
	}
	content, err := c.readSecretFile(f.WebhookSecretsFile)
	if err != nil {
		c.Errorf(at, "%s", err)
		return
	}
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" {
			f.WebhookSecrets = append(f.WebhookSecrets, Secret(line))
		}
	}
}

// readSecretFile reads a secret. Its errors never show what is in the file.
func (c *checker) readSecretFile(file string) (string, error) {
	if file == "" {
		return "", errors.New("the path of a file is missing")
	}
	data, err := readFile(c.resolvePath(file), maxSecretFile)
	if err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return "", fmt.Errorf("can't read %s: %w", c.resolvePath(file), err)
	}
	if len(data) > maxSecretFile {
		return "", fmt.Errorf("%s is larger than %d bytes; is it the right file?", c.resolvePath(file), maxSecretFile)
	}
	content := strings.TrimSpace(string(data))
	if content == "" {
		return "", fmt.Errorf("%s is empty", c.resolvePath(file))
	}
	return content, nil
}

// resolvePath resolves a path against the folder of the server's file.
func (c *checker) resolvePath(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(c.folder, file)
}
