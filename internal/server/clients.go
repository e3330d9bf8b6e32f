package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxForwarded is how many addresses of X-Forwarded-For are read: no chain of proxies is as long.
const maxForwarded = 16

// clientResolver says whose request it is: the address that the connection comes
// from or, where that is a trusted proxy's, the one that the proxy names.
type clientResolver struct{ proxies []netip.Prefix }

// isProxy says whether an address is a trusted proxy's.
func (c clientResolver) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// clientOf names a request's client. X-Forwarded-For is read from its end, which the nearest proxy
// wrote, up to the first address that is no trusted proxy's. Anybody can have made up the addresses
// before that.
func (c clientResolver) clientOf(r *http.Request) string {
	peer, ok := addressOf(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if !c.isProxy(peer) {
		return groupAddress(peer)
	}
	client := peer
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i, n := len(forwarded)-1, 0; i >= 0 && n < maxForwarded; i, n = i-1, n+1 {
		a, ok := addressOf(strings.TrimSpace(forwarded[i]))
		if !ok {
			break
		}
		client = a
		if !c.isProxy(a) {
			break
		}
	}
	return groupAddress(client)
}

// addressOf reads an address, with or without a port.
func addressOf(text string) (netip.Addr, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}

// groupAddress names all addresses that one customer of a network gets: of IPv6 that
// is a /64 at least (RFC 6177).
func groupAddress(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
