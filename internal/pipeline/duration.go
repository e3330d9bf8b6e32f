package pipeline

import (
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// Duration is a time.Duration that is written as "1h30m", in the pipeline file
// and in JSON.
type Duration time.Duration

// AsDuration is the duration as the standard library knows it.
func (d Duration) AsDuration() time.Duration { return time.Duration(d) }

// String is "1h30m", without the trailing zero units of the standard library.
func (d Duration) String() string {
	s := d.AsDuration().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads "90s", "15m" or "1h30m".
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := strictyaml.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}
