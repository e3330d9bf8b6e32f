package appset

import (
	"net/url"
	"regexp"
	"strings"
)

// scpForm is git's user@host:path; a scheme or a drive letter doesn't match.
var scpForm = regexp.MustCompile(`^(?:[^@/\s]+@)?([A-Za-z0-9.\-_]{2,}):([^/].*|/[^/].*)$`)

// SameRepository reports whether two URLs name one repository: scheme,
// credentials, a default port, letter case, a trailing slash and .git don't
// count. Argo CD compares in lower case too, and every supported forge treats
// owner and name so.
func SameRepository(a, b string) bool {
	na, nb := normalURL(a), normalURL(b)
	return na != "" && na == nb
}

// normalURL is host/path in lower case, or "" for what can't be a repository's URL.
func normalURL(raw string) string {
	s := strings.TrimSpace(raw)
	if !strings.Contains(s, "://") {
		if m := scpForm.FindStringSubmatch(s); m != nil {
			s = "ssh://" + m[1] + "/" + strings.TrimLeft(m[2], "/")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	switch port := u.Port(); {
	case port == "",
		u.Scheme == "https" && port == "443",
		u.Scheme == "http" && port == "80",
		u.Scheme == "ssh" && port == "22",
		u.Scheme == "git" && port == "9418":
	default:
		host += ":" + port
	}
	p := strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	if p == "" {
		return ""
	}
	return strings.ToLower(host + "/" + strings.TrimRight(p, "/"))
}

// WithoutCredentials is the URL as it may be shown.
func WithoutCredentials(raw string) string { return withoutCredentials(raw) }

func withoutCredentials(raw string) string {
	if !strings.Contains(raw, "@") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	if _, secret := u.User.Password(); secret || u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil
	}
	return u.String()
}
