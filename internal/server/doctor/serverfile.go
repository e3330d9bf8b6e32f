package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
)

const whereFile = "server's file"

// InvalidFile is the report for a server's file that can't be used: nothing else can be checked.
func InvalidFile(err error) *Report {
	var found findings
	each := []error{err}
	var wrong strictyaml.Errors
	if errors.As(err, &wrong) {
		each = nil
		for _, w := range wrong {
			each = append(each, w)
		}
	}
	for _, e := range each {
		found.add("file-invalid", whereFile, e.Error(), "correct it; liftlock validate checks it too")
	}
	return &Report{Findings: found}
}

// checkFile checks what is valid in the server's file, and most likely not what is meant.
func (d *doctor) checkFile(context.Context) (found findings) {
	c := d.Config
	if c.ReadAccess == config.ReadToken && len(c.API.Tokens) == 0 && c.OIDC == nil {
		found.add("readers-missing", whereFile, "reading the console and the API takes a token or a login, and neither is configured: "+
			"only the password of admin does, which the first start printed", "add a token under api.tokens, let people log in (oidc), or "+
			"set readAccess: open")
	}
	for _, a := range []struct{ key, address string }{{"externalURL", c.ExternalURL}, {"webhooks.externalURL", c.Webhooks.ExternalURL}} {
		if a.address == "" || a.key == "webhooks.externalURL" && a.address == c.ExternalURL {
			continue
		}
		u, err := url.Parse(a.address)
		if err != nil {
			continue // the file's own check has refused it
		}
		switch local := isLocal(u.Hostname()); {
		case local && d.hasRemoteForge():
			found.add("address-local", whereFile, fmt.Sprintf("%s is %s, which means another machine to everybody else", a.key,
				u.Redacted()), "give it the name by which people and the forge reach the server; without one, leave it out, and polling "+
				"finds everything later")
		case !local && u.Scheme == "http":
			found.add("address-plain", whereFile, fmt.Sprintf("%s is http: tokens, and what deliveries say, can be read on the way", a.key),
				"have TLS end at the server (tls) or at a proxy before it, and write https://")
		}
	}
	found.addOK(0, CodeFile, whereFile, fmt.Sprintf("it is valid: %s, %s, %s", wording.Count(len(c.Forges), "forge"),
		wording.Plural(len(c.Repositories), "repository", "repositories"), wording.Count(len(c.ArgoCD), "Argo CD")))
	return found
}

// hasRemoteForge says whether a forge is on another machine, as far as its address tells.
func (d *doctor) hasRemoteForge() bool {
	for i := range d.Config.Forges {
		u, err := url.Parse(d.Config.Forges[i].URL)
		if d.Config.Forges[i].URL == "" || err == nil && !isLocal(u.Hostname()) {
			return true
		}
	}
	return false
}

// isLocal says whether a name means the machine that uses it.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// redactURL is an address that can be shown: somebody may have put credentials in.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that can't be read)"
	}
	u.RawQuery = ""
	return u.Redacted()
}
