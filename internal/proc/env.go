package proc

import (
	"os"
	"slices"
	"strings"
)

// inheritedVars are the variables of our own environment that every program may
// see: where programs and temporary files are, and how to reach the network.
// Anything else may carry a secret or change behaviour (GIT_*, LD_*).
var inheritedVars = []string{
	"PATH", "TMPDIR", "TZ",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SYSTEMROOT", "TEMP", "TMP", // Windows programs don't start without
}

// commandEnviron is the program's whole environment. Messages are in English (LC_ALL
// is C), because callers tell failures apart by them.
func commandEnviron(c Command) []string {
	if c.OnlyEnv {
		return append([]string{}, c.Env...) // not nil, which would be ours
	}
	env := []string{"LC_ALL=C"}
	for _, name := range append(slices.Clone(inheritedVars), c.Inherit...) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	// exec keeps the last of two entries with the same key.
	return append(env, c.Env...)
}

// environSecrets are parts of inherited variables that must not be printed:
// the passwords of proxies.
func environSecrets() []string {
	var secrets []string
	for _, name := range inheritedVars {
		v := os.Getenv(name)
		if !strings.HasSuffix(strings.ToLower(name), "_proxy") || !strings.Contains(v, "@") {
			continue
		}
		if _, rest, ok := strings.Cut(v, "://"); ok {
			v = rest
		}
		at := strings.LastIndex(v, "@")
		if at < 0 {
			continue
		}
		if _, password, ok := strings.Cut(v[:at], ":"); ok {
			secrets = append(secrets, password)
		}
	}
	return secrets
}
