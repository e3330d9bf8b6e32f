package policies

import (
	"fmt"
	"regexp"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// HTTP asks your own server about the pull request's head. It answers pass, wait or fail.
type HTTP struct {
	// The endpoint's name in the server's file.
	Endpoint string `yaml:"endpoint" json:"endpoint" jsonschema:"required"`
	// Added to the endpoint's address: /change/approve.
	Path string `yaml:"path" json:"path,omitempty"`
	// How often to ask, from 10s to 1h.
	Every time.Duration `yaml:"every" json:"every,omitempty" jsonschema:"default=1m"`
	// The timeout of an answer, up to 30s.
	Timeout time.Duration `yaml:"timeout" json:"timeout,omitempty" jsonschema:"default=10s"`
	// How long a pass counts, from every to 24h.
	MaxAge time.Duration `yaml:"maxAge" json:"maxAge,omitempty" jsonschema:"default=10m"`
}

// SetDefaults fills in what the gate may leave out.
func (h *HTTP) SetDefaults() {
	h.Every, h.Timeout, h.MaxAge = time.Minute, 10*time.Second, 10*time.Minute
}

// EndpointReading is what an endpoint said of a promotion.
type EndpointReading struct {
	Endpoint string    `json:"endpoint"`
	Path     string    `json:"path,omitempty"`
	Answered bool      `json:"answered,omitempty"` // it answered at least once
	Outcome  Outcome   `json:"outcome,omitempty"`  // empty: it hasn't decided
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at,omitzero"`     // when it said so
	Until    time.Time `json:"until,omitzero"`  // until when it thinks to say so; zero: it doesn't say
	Err      string    `json:"err,omitempty"`   // why it can't be asked now; empty: it can
	NextAt   time.Time `json:"nextAt,omitzero"` // when it is asked again; zero: not by itself
}

// Bounds on the settings of an HTTP gate, and on what is shown of an answer.
const (
	minHTTPEvery   = 10 * time.Second
	maxHTTPEvery   = time.Hour
	minHTTPTimeout = time.Second
	maxHTTPTimeout = 30 * time.Second
	maxHTTPAge     = 24 * time.Hour
	maxHTTPPath    = 200
	maxHTTPReason  = 400
)

// httpPath is a path of plain segments: nothing that leads elsewhere once it is joined.
var httpPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

var _ evaluator = (*HTTP)(nil)

func (*HTTP) kindName() GateName { return GateHTTP }

func (h *HTTP) describe() string { return fmt.Sprintf("%s%s says pass", h.Endpoint, h.Path) }

func (h *HTTP) validate() []Problem {
	var problems []Problem
	add := func(key, format string, args ...any) {
		problems = append(problems, Problem{Path: "http." + key, Message: fmt.Sprintf(format, args...)})
	}
	if h.Endpoint == "" {
		add("endpoint", "who is asked is missing: its name in the server's file, under endpoints")
	}
	if h.Path != "" && (len(h.Path) > maxHTTPPath || !httpPath.MatchString(h.Path)) {
		add("path", "%q is not a path like /change/approve", wording.ClipLine(h.Path, maxHTTPPath))
	}
	if h.Every < minHTTPEvery || h.Every > maxHTTPEvery {
		add("every", "must be from %s to %s; it is %s", formatDuration(minHTTPEvery), formatDuration(maxHTTPEvery), formatDuration(h.Every))
	}
	if h.Timeout < minHTTPTimeout || h.Timeout > maxHTTPTimeout {
		add("timeout", "must be from %s to %s; it is %s", formatDuration(minHTTPTimeout), formatDuration(maxHTTPTimeout),
			formatDuration(h.Timeout))
	}
	if h.MaxAge < h.Every || h.MaxAge > maxHTTPAge {
		add("maxAge", "must be from every, %s, to %s; it is %s", formatDuration(h.Every), formatDuration(maxHTTPAge),
			formatDuration(h.MaxAge))
	}
	return problems
}

func (h *HTTP) evaluate(f Facts) Result {
	r := Result{Gate: h.kindName(), Outcome: Wait}
	if f.Now.IsZero() {
		r.Reason = "what time it is isn't known"
		return r
	}
	var reading *EndpointReading
	for i := range f.Endpoints {
		if x := &f.Endpoints[i]; x.Endpoint == h.Endpoint && x.Path == h.Path {
			reading = x
		}
	}
	if reading == nil {
		r.Reason = h.Endpoint + " hasn't been asked yet"
		return r
	}
	r.Next = reading.NextAt
	reason := wording.ClipLine(reading.Reason, maxHTTPReason)
	says := func(what string) string {
		if reason == "" {
			return h.Endpoint + " says " + what
		}
		return fmt.Sprintf("%s says %s: %s", h.Endpoint, what, reason)
	}
	expires := reading.At.Add(h.MaxAge)
	switch {
	case reading.Outcome == Fail: // final: whatever is of it now
		r.Outcome, r.Reason, r.Next = Fail, says("fail"), time.Time{}
	case reading.Err != "":
		r.Reason = fmt.Sprintf("%s can't be asked: %s", h.Endpoint, wording.ClipLine(reading.Err, maxHTTPReason))
	case !reading.Answered:
		r.Reason = h.Endpoint + " hasn't been asked yet"
	case reading.Outcome == Pass && isAhead(reading.At, f.Now):
		r.Reason = fmt.Sprintf("%s said pass at %s, by a clock that was ahead; it is asked again", h.Endpoint,
			formatInstant(reading.At, time.UTC))
	case reading.Outcome == Pass && !f.Now.Before(expires):
		r.Reason = fmt.Sprintf("%s said pass at %s, which counts for %s; it is asked again", h.Endpoint,
			formatInstant(reading.At, time.UTC), formatDuration(h.MaxAge))
	case reading.Outcome == Pass:
		r.Outcome, r.Reason, r.Until = Pass, says("pass"), expires
	case reading.Outcome == Wait:
		r.Reason = says("wait")
		if reading.Until.After(f.Now) {
			r.Until = reading.Until
			r.Reason += ", until " + formatInstant(reading.Until, time.UTC)
		}
	default:
		r.Reason = h.Endpoint + " hasn't decided yet"
	}
	return r
}
