package rest

import (
	"fmt"
	"net/url"
)

// ParseServerURL reads a forge's address from the server's file: a host, and maybe a path
// behind it. The error shows no password.
func ParseServerURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || !IsServerURL(base) {
		shown := "(unreadable)"
		if base != nil {
			shown = base.Redacted()
		}
		return nil, fmt.Errorf("forge url %q is not a server's address: write https://HOST", shown)
	}
	return base, nil
}

// IsServerURL says that an address is one of HTTP that tells where a server is, and nothing else.
func IsServerURL(u *url.URL) bool {
	isHTTP := u.Scheme == "https" || u.Scheme == "http"
	isBare := u.User == nil && u.RawQuery == "" && u.Fragment == ""
	return isHTTP && isBare && u.Host != ""
}
