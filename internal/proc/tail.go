package proc

import (
	"strings"
	"sync"
)

// tail keeps the last max bytes. It may be read while it is written.
type tail struct {
	mu      sync.Mutex
	buf     []byte
	max     int
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
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
