package config

import "testing"

// Browsers keep a session's cookie by TLS, and on this machine.
func TestKeepsSessions(t *testing.T) {
	for _, c := range []struct {
		listen, external string
		want             bool
	}{
		{"127.0.0.1:8080", "", true},
		{"localhost:8080", "", true},
		{"0.0.0.0:8080", "", false},
		{"0.0.0.0:8080", "https://liftlock.example.com/ops", true},
		{"0.0.0.0:8080", "http://localhost:8080", true},
		{"0.0.0.0:8080", "http://127.0.0.1", true},
		{"127.0.0.1:8080", "http://liftlock.example.com", false},
	} {
		if got := (&Config{Listen: c.listen, ExternalURL: c.external}).KeepsSessions(); got != c.want {
			t.Errorf("%s as %q: %t, want %t", c.listen, c.external, got, c.want)
		}
	}
}
