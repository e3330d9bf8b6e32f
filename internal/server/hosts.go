package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hostCheck answers only requests that call the server by a name that it has. Another site's web
// page can have its own name lead to our address (DNS rebinding), and would then read everything
// with its visitor's browser. But the browser still sends that name. DNS can't have changed an
// address in place of a name.
type hostCheck struct{ names map[string]bool }

func newHostCheck(names []string) hostCheck {
	h := hostCheck{names: map[string]bool{"localhost": true}}
	for _, n := range names {
		h.names[n] = true
	}
	return h
}

// isOurs says whether a Host header names this server. None at all comes from no browser.
func (h hostCheck) isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || h.names[host]
}

// require refuses requests to other names.
func (h hostCheck) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.isOurs(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		text := fmt.Sprintf("this server is not called %.100q; if it should be, make that its externalURL or add it to hosts in the "+
			"server's file", r.Host)
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusMisdirectedRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // a reader that left is no failure of ours
	})
}
