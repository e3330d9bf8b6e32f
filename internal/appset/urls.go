package appset

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// scpForm is git's user@host:path; a scheme or a drive letter doesn't match.
var scpForm = regexp.MustCompile(`^(?:[^@/\s]+@)?([A-Za-z0-9.\-_]{2,}):([^/].*|/[^/].*)$`)

// otherHosts are other names of forges' hosts. Some take SSH on the port of HTTPS (docs.github.com
// "Using SSH over the HTTPS port", about.gitlab.com "altssh.gitlab.com", Bitbucket's likewise);
// others are redirected.
var otherHosts = map[string]string{
	"ssh.github.com:443":       "github.com",
	"altssh.gitlab.com:443":    "gitlab.com",
	"altssh.bitbucket.org:443": "bitbucket.org",
	"www.github.com":           "github.com",
}

// SameRepository reports whether two URLs name one repository. Scheme, credentials, a default port,
// letter case, a trailing slash and .git don't count, nor do a forge's several hosts. Argo CD
// compares in lower case too, and every supported forge treats owner and name so.
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
	if known, there := otherHosts[strings.ToLower(host)]; there {
		host = known
	}
	p := strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	if p == "" {
		return ""
	}
	return strings.ToLower(host + "/" + strings.TrimRight(p, "/"))
}

// checkVisible refuses a URL with an invisible character, such as the zero-width space that comes
// along with a copy from a page. No server has such a repository, and readers take the URL for
// another one.
func checkVisible(url string) error {
	for _, r := range strings.TrimSpace(url) {
		if r != ' ' && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs, unicode.Zl, unicode.Zp) {
			return fmt.Errorf("the repository's address %+q has the invisible character %U, and no server has such a repository: write "+
				"it anew", withoutCredentials(url), r)
		}
	}
	return nil
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
