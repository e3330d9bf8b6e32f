package rest

import (
	"fmt"
	"net/url"
)

// ParseServerURL reads a forge's address from the server's file: a host, and maybe a path
// behind it. The error shows no password.
func ParseServerURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || (base.Scheme != "https" && base.Scheme != "http") || base.Host == "" || base.User != nil || base.RawQuery != "" ||
		base.Fragment != "" {
		shown := "(unreadable)"
		if base != nil {
			shown = base.Redacted()
		}
		return nil, fmt.Errorf("forge url %q is not a server's address: write https://HOST", shown)
	}
	return base, nil
}
