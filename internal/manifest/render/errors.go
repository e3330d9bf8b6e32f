package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Unrenderable says that a source can't be rendered from the commit's files
// alone. It is no mistake in the files: Argo CD may well render it.
type Unrenderable struct {
	Source string   // the source's path or chart; "" when it isn't about one
	Reason string   // what is missing, for people
	Remote []string // the addresses that would have to be asked, sorted
	// Externals are those with which it could be rendered.
	Externals []External
}

func (u *Unrenderable) Error() string {
	var b strings.Builder
	b.WriteString("can't be rendered")
	if u.Source != "" {
		fmt.Fprintf(&b, " (%s)", u.Source)
	}
	fmt.Fprintf(&b, ": %s", u.Reason)
	if len(u.Remote) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(u.Remote, ", "))
	}
	return b.String()
}

// newUnrenderable makes an Unrenderable; remote addresses lose their credentials.
func newUnrenderable(reason string, remote ...string) *Unrenderable {
	out := make([]string, len(remote))
	for i, r := range remote {
		out[i] = withoutCredentials(r)
	}
	slices.Sort(out)
	return &Unrenderable{Reason: reason, Remote: slices.Compact(out)}
}

// withoutCredentials drops user:password@ from an address.
func withoutCredentials(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + rest[strings.LastIndexByte(host, '@')+1:]
}

// clippedError is an error with a bounded text in valid UTF-8 that wraps the original.
type clippedError struct {
	text string
	err  error
}

func (c *clippedError) Error() string { return c.text }
func (c *clippedError) Unwrap() error { return c.err }

// clipError bounds an error's text: libraries quote what they choke on.
func clipError(err error) error {
	text := err.Error()
	if len(text) <= maxMessageBytes && utf8.ValidString(text) {
		return err
	}
	if len(text) > maxMessageBytes { // a chain of causes has the first one at its end
		text = text[:maxMessageBytes/4] + " … " + text[len(text)-maxMessageBytes*3/4:]
	}
	return &clippedError{text: strings.ToValidUTF8(text, "\uFFFD"), err: err}
}
