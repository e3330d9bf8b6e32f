package config

import (
	"fmt"
	"io"
)

// redacted is what stands in a secret's place wherever it is printed.
const redacted = "[secret]"

// Secret is a value that must not be seen in logs, errors or JSON: whatever
// prints it prints "[secret]". Only Reveal gives it.
type Secret string

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String is "[secret]".
func (Secret) String() string { return redacted }

// GoString is "[secret]".
func (Secret) GoString() string { return redacted }

// Format prints "[secret]" for every verb; without it, %x and %d would show the
// bytes.
func (Secret) Format(f fmt.State, _ rune) {
	// A failing writer is the caller's to notice, as with any Formatter.
	_, _ = io.WriteString(f, redacted)
}

// MarshalText writes "[secret]"; JSON, YAML and zap's reflection use it.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON writes "[secret]".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
