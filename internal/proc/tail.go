package proc

import (
	"strings"
	"sync"
)

// tail keeps the last max bytes, and the first few as well: programs end with
// what went wrong, but those that crash begin with it. It may be read while it
// is written.
type tail struct {
	mu      sync.Mutex
	first   []byte
	buf     []byte
	max     int
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.first = append(t.first, p[:min(n, maxFirst-len(t.first))]...)
	if n > t.max {
		t.buf, p, t.dropped = t.buf[:0], p[n-t.max:], true
	}
	if over := len(t.buf) + len(p) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.dropped = true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// beginning is the first bytes, whole lines only where there are more.
func (t *tail) beginning(secrets []string) string {
	t.mu.Lock()
	s := string(t.first)
	t.mu.Unlock()
	cut := len(s) == maxFirst
	if cut {
		s = withoutCutSecret(s, secrets)
	}
	s = Redact(strings.ToValidUTF8(s, "\uFFFD"), secrets)
	if i := strings.LastIndexByte(s, '\n'); cut && i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// withoutCutSecret drops the beginning of a secret at the end of s, which no
// replacement would find.
func withoutCutSecret(s string, secrets []string) string {
	shortest := s
	for _, secret := range append(environSecrets(), secrets...) {
		for n := len(secret) - 1; n > 0; n-- {
			if rest, ok := strings.CutSuffix(s, secret[:n]); ok {
				if len(rest) < len(shortest) {
					shortest = rest
				}
				break
			}
		}
	}
	return shortest
}

func (t *tail) text() (s string, dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf), t.dropped
}

// redactTail is what may be shown of a tail. Where its beginning was dropped,
// the end of a secret may stand there, which no replacement would find: it
// goes, and so does the rest of that first line.
func redactTail(t *tail, secrets []string) string {
	s, dropped := t.text()
	s = Redact(strings.ToValidUTF8(s, "\uFFFD"), secrets)
	if !dropped {
		return s
	}
	for _, secret := range append(environSecrets(), secrets...) {
		for from := 1; from < len(secret); from++ {
			if rest, ok := strings.CutPrefix(s, secret[from:]); ok {
				s = rest
				break
			}
		}
	}
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}
