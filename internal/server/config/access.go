package config

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Access names the readers of some repositories: whoever no entry of a repository names doesn't
// read it. What no entry names, every reader reads.
type Access struct {
	Repositories []string `yaml:"repositories"` // globs on owner/name, or on forge:owner/name
	Groups       []string `yaml:"groups"`       // of the identity provider; AnyGroup is everybody who has logged in
	Tokens       []string `yaml:"tokens"`       // API tokens, by name
	// Forge: whoever may read the repository on its forge, by the account that oidc.accounts knows.
	Forge bool `yaml:"forge"`
}

// names says whether an entry's glob names a repository, whatever the case.
func namesRepository(glob string, r *Repository) bool {
	glob, name := strings.ToLower(glob), strings.ToLower(r.Name)
	return doublestar.MatchUnvalidated(glob, name) || doublestar.MatchUnvalidated(glob, strings.ToLower(r.Forge)+":"+name)
}

func (c *checker) checkAccess(config *Config) {
	for i := range config.Access {
		a, at := &config.Access[i], entryOf("access", i)
		c.NotEmpty(at+".repositories", len(a.Repositories), "glob on repositories' names")
		for j, glob := range a.Repositories {
			entry := entryOf(at+".repositories", j)
			if glob == "" || !doublestar.ValidatePattern(glob) {
				c.Errorf(entry, "%q is no glob", glob)
			} else if !slices.ContainsFunc(config.Repositories, func(r Repository) bool { return namesRepository(glob, &r) }) {
				c.Errorf(entry, "%q names none of the repositories in this file, so that it keeps nobody out; write it like acme/fleet, "+
					"acme/* or acme/** for groups in groups", glob)
			}
		}
		if len(a.Groups)+len(a.Tokens) == 0 && !a.Forge {
			c.Errorf(at, "names no reader: groups, tokens or forge: true is missing")
		}
		c.checkAccessReaders(config, a, at)
	}
}

// checkAccessReaders checks whom an entry names.
func (c *checker) checkAccessReaders(config *Config, a *Access, at string) {
	for j, name := range a.Tokens {
		if !slices.ContainsFunc(config.API.Tokens, func(t Token) bool { return t.Name == name }) {
			c.Errorf(entryOf(at+".tokens", j), "there is no token %q under api.tokens", name)
		}
	}
	for j, g := range a.Groups {
		if strings.TrimSpace(g) == "" {
			c.Errorf(entryOf(at+".groups", j), "the group's name is missing")
		}
	}
	if len(a.Groups) > 0 && config.OIDC == nil {
		c.Errorf(at+".groups", "nobody logs in: oidc is missing")
	}
	if !a.Forge {
		return
	}
	if config.OIDC == nil || len(config.OIDC.Accounts) == 0 {
		c.Errorf(at+".forge", "nobody's account is known: oidc.accounts is missing")
		return
	}
	for i := range config.Repositories {
		r := &config.Repositories[i]
		named := slices.ContainsFunc(a.Repositories, func(glob string) bool { return namesRepository(glob, r) })
		if named && config.OIDC.Accounts[r.Forge] == "" {
			c.Errorf(at+".forge", "nobody's account on %s is known, where %s is: oidc.accounts.%s is missing", r.Forge, r.Name, r.Forge)
			return
		}
	}
}
