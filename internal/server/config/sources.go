package config

import (
	"fmt"
	"strings"
)

// ociScheme begins the address of a registry's charts.
const ociScheme = "oci://"

// checkSources checks the repositories that renderings may read.
func (c *checker) checkSources(all []GitSource) {
	first := map[string]int{}
	for i := range all {
		s := &all[i]
		at := fmt.Sprintf("sources[%d]", i)
		c.checkHTTPURL(at+".url", s.URL)
		c.checkOnce(at, "sources", strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s.URL), "/"), ".git"), i, first)
		c.checkLogin(at, s.Username)
		if s.CAFile == "" && c.Doc.Has(at+".caFile") {
			c.Errorf(at+".caFile", "the path of a file is missing")
		}
	}
}

// checkCharts checks the chart repositories.
func (c *checker) checkCharts(all []ChartHost) {
	first := map[string]int{}
	for i := range all {
		h := &all[i]
		at := fmt.Sprintf("charts[%d]", i)
		if rest, is := strings.CutPrefix(h.URL, ociScheme); !is {
			c.checkHTTPURL(at+".url", h.URL)
		} else if host, _, _ := strings.Cut(rest, "/"); !registryHost.MatchString(host) {
			c.Errorf(at+".url", "%q is no registry's host; write oci:// and the host as image names have it, like "+
				"oci://ghcr.io/acme/charts", host)
		}
		c.checkOnce(at, "charts", strings.TrimSuffix(strings.ToLower(h.URL), "/"), i, first)
		for j, host := range h.Hosts {
			if !registryHost.MatchString(host) {
				c.Errorf(fmt.Sprintf("%s.hosts[%d]", at, j), "%q is no host; write it like objects.example.com, maybe with a port", host)
			}
		}
		c.checkCallTLS(at+".tls", &h.TLS)
		c.checkLogin(at, h.Username)
	}
}

// checkOnce refuses an address that an earlier entry of the list has.
func (c *checker) checkOnce(at, list, address string, i int, first map[string]int) {
	if other, twice := first[address]; twice {
		c.Errorf(at+".url", "is there twice: %s[%d] has it too", list, other)
		return
	}
	first[address] = i
}

// checkLogin refuses a user's name without a password, and the other way round.
func (c *checker) checkLogin(at, username string) {
	if hasPassword := c.Doc.Has(at+".password") || c.Doc.Has(at+".passwordFile"); hasPassword != (username != "") {
		c.Errorf(at, "username and password belong to each other; one of them is missing")
	}
}
