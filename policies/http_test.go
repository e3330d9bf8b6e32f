package policies

import (
	"testing"
	"time"
)

func newHTTP() HTTP {
	h := HTTP{Endpoint: "board"}
	h.SetDefaults()
	return h
}

func TestHTTP(t *testing.T) {
	now := promotionFacts().Now
	next := now.Add(time.Minute)
	said := func(o Outcome, ago time.Duration) EndpointReading {
		return EndpointReading{Answered: true, Outcome: o, Reason: "CHG-7", At: now.Add(-ago), NextAt: next}
	}
	with := func(r EndpointReading, change func(*EndpointReading)) EndpointReading { change(&r); return r }
	for name, c := range map[string]struct {
		reading EndpointReading
		want    Outcome
		reason  string
		until   time.Time
	}{
		"pass":                        {said(Pass, time.Minute), Pass, "board says pass: CHG-7", next},
		"pass without a word":         {with(said(Pass, 0), func(r *EndpointReading) { r.Reason = "" }), Pass, "board says pass", next},
		"a pass that expires first":   {said(Pass, 9*time.Minute+30*time.Second), Pass, "board says pass: CHG-7", now.Add(30 * time.Second)},
		"a pass that isn't renewed":   {with(said(Pass, time.Minute), func(r *EndpointReading) { r.NextAt = time.Time{} }), Pass, "board says pass: CHG-7", now.Add(9 * time.Minute)},
		"a pass that has expired":     {said(Pass, 10*time.Minute), Wait, "board said pass at Mon 2026-11-23 10:20 UTC, which counts for 10m; it is asked again", next},
		"a pass, and it's away":       {with(said(Pass, 0), func(r *EndpointReading) { r.Err = "it answers 503" }), Wait, "board can't be asked: it answers 503", next},
		"a pass of a moment from now": {said(Pass, -MaxClockAhead), Pass, "board says pass: CHG-7", next},
		"a pass of tomorrow":          {said(Pass, -24*time.Hour), Wait, "board said pass at Tue 2026-11-24 10:30 UTC, by a clock that was ahead; it is asked again", next},
		"wait":                        {said(Wait, 0), Wait, "board says wait: CHG-7", next},
		"wait, by a clock ahead":      {said(Wait, -24*time.Hour), Wait, "board says wait: CHG-7", next},
		"wait until a time":           {with(said(Wait, 0), func(r *EndpointReading) { r.Until = now.Add(time.Hour) }), Wait, "board says wait: CHG-7, until Mon 2026-11-23 11:30 UTC", next},
		"wait until what is over":     {with(said(Wait, 0), func(r *EndpointReading) { r.Until = now }), Wait, "board says wait: CHG-7", next},
		"fail":                        {said(Fail, 0), Fail, "board says fail: CHG-7", time.Time{}},
		"fail of long ago, and away":  {with(said(Fail, time.Hour), func(r *EndpointReading) { r.Err = "x" }), Fail, "board says fail: CHG-7", time.Time{}},
		"undecided":                   {said("", 0), Wait, "board hasn't decided yet", next},
		"a word that nobody knows":    {said("maybe", 0), Wait, "board hasn't decided yet", next},
		"not asked":                   {with(said(Pass, 0), func(r *EndpointReading) { r.Answered = false }), Wait, "board hasn't been asked yet", next},
		"another endpoint's":          {with(said(Pass, 0), func(r *EndpointReading) { r.Endpoint = "x" }), Wait, "board hasn't been asked yet", time.Time{}},
		"the same's at another place": {with(said(Pass, 0), func(r *EndpointReading) { r.Path = "/x" }), Wait, "board hasn't been asked yet", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := newHTTP()
			if c.reading.Endpoint == "" {
				c.reading.Endpoint = "board"
			}
			facts := Facts{Now: now, Endpoints: []EndpointReading{c.reading}}
			got := (&Gate{HTTP: &gate}).Evaluate(facts)
			again := got.Next
			if !got.Until.IsZero() && (again.IsZero() || got.Until.Before(again)) {
				again = got.Until
			}
			if got.Gate != "http" || got.Outcome != c.want || got.Reason != c.reason || !again.Equal(c.until) {
				t.Errorf("it says %+v, want %s: %s until %s", got, c.want, c.reason, c.until)
			}
			facts.Now = time.Time{}
			if got := (&Gate{HTTP: &gate}).Evaluate(facts); got.Outcome != Wait {
				t.Errorf("without a time it says %+v", got)
			}
		})
	}
}

func TestHTTPIsValidated(t *testing.T) {
	for want, change := range map[string]func(*HTTP){
		"http.endpoint: who is asked is missing: its name in the server's file, under endpoints": func(h *HTTP) { h.Endpoint = "" },
		`http.path: "/../x" is not a path like /change/approve`:                                  func(h *HTTP) { h.Path = "/../x" },
		`http.path: "//x" is not a path like /change/approve`:                                    func(h *HTTP) { h.Path = "//x" },
		`http.path: "/x?y" is not a path like /change/approve`:                                   func(h *HTTP) { h.Path = "/x?y" },
		`http.path: "x" is not a path like /change/approve`:                                      func(h *HTTP) { h.Path = "x" },
		`http.path: "/%2e%2e" is not a path like /change/approve`:                                func(h *HTTP) { h.Path = "/%2e%2e" },
		"http.every: must be from 10s to 1h; it is 1s":                                           func(h *HTTP) { h.Every = time.Second },
		"http.timeout: must be from 1s to 30s; it is 1m":                                         func(h *HTTP) { h.Timeout = time.Minute },
		"http.maxAge: must be from every, 1m, to 24h; it is 30s":                                 func(h *HTTP) { h.MaxAge = 30 * time.Second },
		"http.maxAge: must be from every, 1m, to 24h; it is 25h":                                 func(h *HTTP) { h.MaxAge = 25 * time.Hour },
	} {
		h := newHTTP()
		change(&h)
		if err := (&Gate{HTTP: &h}).Validate(); err == nil || err.Error() != want {
			t.Errorf("it says  %v\nwant     %s", err, want)
		}
	}
	h := newHTTP()
	h.Path = "/change/v1.0"
	if err := (&Gate{HTTP: &h}).Validate(); err != nil {
		t.Error(err)
	}
	if got := (&Gate{HTTP: &h}).Describe(); got != "board/change/v1.0 says pass" {
		t.Error(got)
	}
}
