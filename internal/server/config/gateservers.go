package config

import (
	"fmt"
	"regexp"
	"strings"
)

// resolveTLS resolves the paths of certificates.
func (c *checker) resolveTLS(t *CallTLS) {
	for _, file := range []*string{&t.CAFile, &t.CertFile, &t.KeyFile} {
		if *file != "" {
			*file = c.resolvePath(*file)
		}
	}
}

// checkCallTLS checks how a server that is called is known.
func (c *checker) checkCallTLS(at string, t *CallTLS) {
	switch {
	case t.CAFile == "" && c.Doc.Has(at+".caFile"):
		c.Errorf(at+".caFile", "the path of a file is missing")
	case t.CAFile != "" && t.Insecure:
		c.Errorf(at+".insecure", "caFile is given too, which says whose certificates are believed; keep one of them")
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		c.Errorf(at, "certFile and keyFile belong to each other; one of them is missing")
	}
}

func (c *checker) checkPrometheus(all []Prometheus) {
	first := map[string]int{}
	for i := range all {
		p := &all[i]
		at := fmt.Sprintf("prometheus[%d]", i)
		c.checkUniqueName("prometheus", i, p.Name, first)
		c.checkHTTPURL(at+".url", p.URL)
		c.checkCallTLS(at+".tls", &p.TLS)
		hasToken := c.Doc.Has(at+".bearerToken") || c.Doc.Has(at+".bearerTokenFile")
		hasPassword := c.Doc.Has(at+".password") || c.Doc.Has(at+".passwordFile")
		switch {
		case hasToken && (hasPassword || p.Username != ""):
			c.Errorf(at+".username", "bearerToken is given too; keep one way to log in")
		case hasPassword != (p.Username != ""):
			c.Errorf(at, "username and password belong to each other; one of them is missing")
		case p.BearerToken == "" && c.Doc.Has(at+".bearerToken"):
			c.Errorf(at+".bearerToken", "the token is empty")
		case strings.ContainsFunc(p.BearerToken.Reveal(), isUnprintable):
			c.Errorf(at+".bearerToken", "the token holds a space or a character that can't be sent")
		case strings.Contains(p.Username, ":"):
			c.Errorf(at+".username", "must not have a colon")
		}
	}
}

// registryHost is a registry as image names have it: a domain, maybe with a port.
var registryHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)

func (c *checker) checkRegistries(all []Registry) {
	first := map[string]int{}
	for i := range all {
		g := &all[i]
		at := fmt.Sprintf("registries[%d]", i)
		host := strings.ToLower(g.Host)
		other, twice := first[host]
		switch {
		case g.Host == "":
			c.Errorf(at, "host is missing: the registry as image names have it, like ghcr.io")
		case !registryHost.MatchString(g.Host):
			c.Errorf(at+".host", "%q is no registry's host; write it as image names have it, like ghcr.io or registry.example.com:5000",
				g.Host)
		case twice:
			c.Errorf(at+".host", "is there twice: registries[%d] has it too", other)
		default:
			first[host] = i
		}
		c.checkCallTLS(at+".tls", &g.TLS)
		if hasPassword := c.Doc.Has(at+".password") || c.Doc.Has(at+".passwordFile"); hasPassword != (g.Username != "") {
			c.Errorf(at, "username and password belong to each other; one of them is missing")
		}
		if c.Doc.Has(at+".dockerConfig") && (g.Username != "" || g.DockerConfig == "") {
			c.Errorf(at+".dockerConfig", "is a file with the registry's credentials, in place of username and password; give one of them")
		}
		if c.Doc.Has(at+".webhookSecret") && len(g.WebhookSecret) < minWebhookSecretLength {
			c.Errorf(at+".webhookSecret", "the secret is shorter than %d characters", minWebhookSecretLength)
		}
		if g.PlainHTTP && g.TLS != (CallTLS{}) {
			c.Errorf(at+".tls", "does nothing with plainHTTP: remove one of them")
		}
	}
}

func (c *checker) checkEndpoints(all []Endpoint) {
	first := map[string]int{}
	for i := range all {
		p := &all[i]
		at := fmt.Sprintf("endpoints[%d]", i)
		c.checkUniqueName("endpoints", i, p.Name, first)
		c.checkHTTPURL(at+".url", p.URL)
		c.checkCallTLS(at+".tls", &p.TLS)
		switch {
		case p.Secret == "" && c.Doc.Has(at+".secretFile"):
			// Why the file gave none has been said.
		case p.Secret == "" && !c.Doc.Has(at+".secret"):
			c.Errorf(at, "secret or secretFile is missing: what requests and callbacks are signed with")
		case len(p.Secret) < minTokenLength:
			c.Errorf(at+".secret", "the secret is shorter than %d characters; make one with: openssl rand -hex 32", minTokenLength)
		}
		if strings.ContainsAny(p.Authorization.Reveal(), "\r\n\x00") {
			c.Errorf(at+".authorization", "holds a character that can't be sent")
		}
	}
}
