package proc

import (
	"strings"
	"sync"
)

// tailBuffer keeps the last max bytes, and the first few as well: programs end with
// what went wrong, but those that crash begin with it. It may be read while it
// is written.
type tailBuffer struct {
	mu      sync.Mutex
	head    []byte
	buf     []byte
	max     int
	dropped bool
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.head = append(t.head, p[:min(n, maxStderrHead-len(t.head))]...)
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

// firstText is the first bytes, whole lines only where there are more.
func (t *tailBuffer) firstText(secrets []string) string {
	t.mu.Lock()
	s := string(t.head)
	t.mu.Unlock()
	cut := len(s) == maxStderrHead
	if cut {
		s = trimPartialSecret(s, secrets)
	}
	s = Redact(strings.ToValidUTF8(s, "\uFFFD"), secrets)
	if i := strings.LastIndexByte(s, '\n'); cut && i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// trimPartialSecret drops the beginning of a secret at the end of s, which no
// replacement would find.
func trimPartialSecret(s string, secrets []string) string {
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

func (t *tailBuffer) lastText() (s string, dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf), t.dropped
}

// redactTail is what may be shown of a tail. Where its beginning was dropped, the end of a secret
// may stand there, which no replacement would find. So it goes, and so does the rest of that first
// line.
func redactTail(t *tailBuffer, secrets []string) string {
	s, dropped := t.lastText()
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
