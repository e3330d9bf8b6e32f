package config

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/policies"
)

// FloorApprovals are the approvals that the floor asks for in an environment, in the
// file's order; none where it asks for none.
func (c *Config) FloorApprovals(environment string) []*policies.Approvals {
	var out []*policies.Approvals
	for _, f := range c.Floor {
		if f.Approvals != nil && matchesAny(f.Environments, environment) {
			out = append(out, f.Approvals)
		}
	}
	return out
}

// FreezesOf are the freezes of an environment, in the file's order, as gates have them.
func (c *Config) FreezesOf(environment string) []*policies.Freeze {
	var out []*policies.Freeze
	for i := range c.Freezes {
		if f := &c.Freezes[i]; matchesAny(f.Environments, environment) {
			out = append(out, f.Gate())
		}
	}
	return out
}

// matchesAny says whether one of some valid globs matches a name.
func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return doublestar.MatchUnvalidated(glob, name) })
}

// checkUniqueName checks the name of a list's entry.
func (c *checker) checkUniqueName(list string, i int, name string, first map[string]int) {
	at := fmt.Sprintf("%s[%d].name", list, i)
	if name == "" {
		c.Errorf(at, "a name is missing")
		return
	}
	if len(name) > maxNameLength || !namePattern.MatchString(name) {
		c.Errorf(at, "%q is not a name; use at most %d lower-case letters, digits and hyphens, and no hyphen first", name, maxNameLength)
		return
	}
	if j, duplicate := first[name]; duplicate {
		c.Errorf(at, "%q is already %s[%d]", name, list, j)
		return
	}
	first[name] = i
}

func (c *checker) checkInterval(at string, d time.Duration) {
	if d < minInterval {
		c.Errorf(at, "must be at least %s; it is %s", minInterval, d)
	}
}

// checkHTTPURL checks an address without showing it: credentials may have been put
// into it, which is the first thing that is refused.
func (c *checker) checkHTTPURL(at, address string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.Errorf(at, "must be an address like https://liftlock.example.com")
	case u.User != nil:
		c.Errorf(at, "holds a user name or password; give credentials under their own keys")
	case u.RawQuery != "" || u.Fragment != "":
		c.Errorf(at, "must not have a ? or # part")
	}
}
