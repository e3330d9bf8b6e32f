package notify

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// minSecret is the shortest part of an address, in bytes, that is taken for a secret of its
// own: shorter ones are in many texts.
const minSecret = 6

// redacted stands for a text that shows a part of the receiver's address.
const redacted = "(a text that shows the receiver's address, which is a secret)"

// listAddressSecrets lists the parts of an address that give write access: its path and the parts
// of that, its query's values, and its user. They are as written, decoded and as they are sent. All
// are in small letters.
func listAddressSecrets(address string) []string {
	var out []string
	add := func(least int, texts ...string) {
		for _, t := range texts {
			if t = strings.ToLower(t); len(t) >= least && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	add(minSecret, address)
	u, err := url.Parse(address)
	if err != nil {
		return out
	}
	add(2, u.EscapedPath(), u.Path)
	for _, part := range strings.Split(u.EscapedPath(), "/") {
		add(minSecret, part)
		if plain, err := url.PathUnescape(part); err == nil {
			add(minSecret, plain)
		}
	}
	add(1, u.RawQuery)
	for _, part := range strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, _ := strings.Cut(part, "=")
		add(minSecret, part, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			add(minSecret, plain)
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(1, password)
		add(minSecret, u.User.Username(), u.User.String())
		add(minSecret, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	return out
}

// redact is a text for people, without the receiver's address: a receiver, or a proxy
// before it, may answer with what was sent to it.
func (p poster) redact(text string) string {
	small := strings.ToLower(text)
	if slices.ContainsFunc(p.secrets, func(s string) bool { return strings.Contains(small, s) }) {
		return redacted
	}
	return text
}
