package config

import (
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hostPattern is a host's name as a browser sends it, without a port.
var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// HostNames are the names, besides localhost, under which the console and the API
// are reached.
func (c *Config) HostNames() []string {
	var names []string
	for _, address := range []string{c.ExternalURL, c.Webhooks.ExternalURL} {
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			names = append(names, strings.ToLower(u.Hostname()))
		}
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		names = append(names, strings.ToLower(host))
	}
	return append(names, c.Hosts...)
}

// ProxyRanges are the trusted proxies' addresses.
func (c *Config) ProxyRanges() []netip.Prefix {
	var ranges []netip.Prefix
	for _, p := range c.TrustedProxies {
		if r, ok := parseRange(p); ok {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// parseRange reads a range of addresses, or one address.
func parseRange(text string) (netip.Prefix, bool) {
	if r, err := netip.ParsePrefix(text); err == nil {
		return r, true
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// isLoopback says whether only programs on the same machine reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// KeepsSessions says whether browsers keep the cookie of who has logged in: they do by TLS, and on this
// machine.
func (c *Config) KeepsSessions() bool {
	if c.ExternalURL == "" {
		return isLoopback(c.Listen)
	}
	u, err := url.Parse(c.ExternalURL)
	return err == nil && (u.Scheme == "https" || isLoopback(u.Host) || isLoopback(u.Host+":80"))
}

// fillListeners fills in what listeners have by default.
func (c *checker) fillListeners(config *Config) {
	config.ExternalURL = strings.TrimRight(config.ExternalURL, "/")
	config.Webhooks.ExternalURL = strings.TrimRight(config.Webhooks.ExternalURL, "/")
	if !c.Doc.Has("webhooks.externalURL") {
		config.Webhooks.ExternalURL = config.ExternalURL
	}
	if !c.Doc.Has("readAccess") {
		config.ReadAccess = ReadToken
		if isLoopback(config.Listen) {
			config.ReadAccess = ReadOpen
		}
	}
	for _, file := range []*string{&config.TLS.CertFile, &config.TLS.KeyFile} {
		if *file != "" {
			*file = c.resolvePath(*file)
		}
	}
	for i, h := range config.Hosts {
		config.Hosts[i] = strings.ToLower(h)
	}
}

func (c *checker) checkListeners(config *Config) {
	c.checkListen("listen", config.Listen, "externalURL", config.ExternalURL)
	if c.Doc.Has("webhooks.listen") {
		c.checkListen("webhooks.listen", config.Webhooks.Listen, "externalURL", config.Webhooks.ExternalURL)
		if config.Webhooks.Listen == config.Listen && config.Listen != "" && !strings.HasSuffix(config.Listen, ":0") {
			c.Errorf("webhooks.listen", "is the same as listen; without it, webhooks come in there")
		}
	}
	for _, at := range []struct{ key, address string }{{"externalURL", config.ExternalURL},
		{"webhooks.externalURL", config.Webhooks.ExternalURL}} {
		if c.Doc.Has(at.key) {
			c.checkHTTPURL(at.key, at.address)
		}
	}
	c.checkTLS(config.TLS)
	for i, h := range config.Hosts {
		if _, err := netip.ParseAddr(h); err == nil {
			c.Errorf(entryOf("hosts", i), "%q is an address; those are always answered", h)
		} else if !hostPattern.MatchString(h) {
			c.Errorf(entryOf("hosts", i), "%q is not a host's name; write it without https:// and port", h)
		}
	}
	for i, p := range config.TrustedProxies {
		if _, ok := parseRange(p); !ok {
			c.Errorf(entryOf("trustedProxies", i), "%q is neither an IP address nor a range like 10.0.0.0/8", p)
		}
	}
	c.OneOf("readAccess", config.ReadAccess, ReadOpen, ReadToken)
}

// entryOf is an entry of a list in messages.
func entryOf(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func (c *checker) checkListen(key, address, urlKey, externalURL string) {
	if _, port, err := net.SplitHostPort(address); err != nil {
		c.Errorf(key, "%q is not an address; write it like 127.0.0.1:8080", address)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		c.Errorf(key, "%q is not a port; it is a number up to 65535", port)
	} else if n == 0 && externalURL != "" {
		c.Errorf(key, "with port 0 any free port is taken, which %s can't lead to; give a port", urlKey)
	}
}

// checkTLS tries the certificate, as the server will. The error doesn't show the key.
func (c *checker) checkTLS(files TLS) {
	if !c.Doc.Has("tls") {
		return
	}
	if files.CertFile == "" || files.KeyFile == "" {
		c.Errorf("tls", "needs both certFile and keyFile")
		return
	}
	for _, file := range []struct{ key, path string }{{"tls.certFile", files.CertFile}, {"tls.keyFile", files.KeyFile}} {
		if _, err := c.readSecretFile(file.path); err != nil {
			c.Errorf(file.key, "%s", err)
			return
		}
	}
	if _, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile); err != nil {
		c.Errorf("tls", "the certificate can't be used: %s", err)
	}
}
