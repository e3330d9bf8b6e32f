package facts

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

var endpointNoon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func endpointAnswer(minute int, o policies.Outcome) policies.EndpointAnswer {
	return policies.EndpointAnswer{ID: "a", Outcome: o, Reason: string(o), At: endpointNoon.Add(time.Duration(minute) * time.Minute)}
}

// TestEndpointState holds what counts of what is answered and called back, in whatever
// order it comes.
func TestEndpointState(t *testing.T) {
	type step struct {
		callback bool
		minute   int
		outcome  policies.Outcome
		failed   bool // there was no answer
		err      error
	}
	answer := func(minute int, o policies.Outcome) step { return step{minute: minute, outcome: o} }
	call := func(minute int, o policies.Outcome) step {
		return step{callback: true, minute: minute, outcome: o}
	}
	refused := func(s step, err error) step { s.err = err; return s }
	const pass, wait, fail = policies.Pass, policies.Wait, policies.Fail
	for name, c := range map[string]struct {
		steps []step
		want  policies.Outcome
		at    int // in minutes
	}{
		"it answers":                              {[]step{answer(1, wait), answer(2, pass)}, pass, 2},
		"it takes a pass back":                    {[]step{answer(1, pass), answer(2, wait)}, wait, 2},
		"it has to think again":                   {[]step{answer(1, pass), answer(2, "")}, "", 2},
		"it is away":                              {[]step{answer(1, wait), {minute: 2, failed: true}}, wait, 1},
		"a fail is final":                         {[]step{answer(1, fail), answer(2, pass)}, fail, 1},
		"an older answer comes late":              {[]step{answer(2, wait), answer(1, pass)}, wait, 2},
		"it answered a clock that was ahead":      {[]step{answer(600, pass), answer(1, wait)}, wait, 1},
		"it called back, and the clock was ahead": {[]step{call(600, pass), answer(1, "")}, "", 1},
		"it failed while the clock was ahead":     {[]step{answer(600, fail), answer(1, pass)}, fail, 600},
		"another's clock is a moment ahead":       {[]step{answer(5, wait), answer(1, pass)}, wait, 5},
		"it calls back":                           {[]step{answer(1, ""), call(2, pass)}, pass, 2},
		"it is still alive after":                 {[]step{answer(1, ""), call(2, pass), answer(3, "")}, pass, 2},
		"it answers otherwise after":              {[]step{answer(1, ""), call(2, pass), answer(3, wait)}, wait, 3},
		"it called back while it was asked":       {[]step{call(2, wait), answer(1, pass)}, wait, 2},
		"it calls back otherwise":                 {[]step{call(1, pass), call(2, wait)}, wait, 2},
		"the same callback twice":                 {[]step{call(1, pass), call(1, pass)}, pass, 1},
		"two in the same second":                  {[]step{call(1, wait), refused(call(1, pass), ErrStaleCallback)}, wait, 1},
		"an older callback":                       {[]step{call(2, wait), refused(call(1, pass), ErrStaleCallback)}, wait, 2},
		"a callback that an answer has overtaken": {[]step{answer(2, wait), refused(call(1, pass), ErrStaleCallback)}, wait, 2},
		"one that was overtaken, again":           {[]step{call(1, pass), answer(2, wait), refused(call(1, pass), ErrStaleCallback)}, wait, 2},
		"a callback after a fail":                 {[]step{answer(1, fail), refused(call(2, pass), ErrFinal)}, fail, 1},
		"a fail by callback":                      {[]step{call(1, fail), answer(2, pass), refused(call(3, pass), ErrFinal)}, fail, 1},
		"a fail by callback twice":                {[]step{call(1, fail), call(1, fail)}, fail, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := endpointState{ID: "a"}
			calls := 0
			for _, x := range c.steps {
				a := endpointAnswer(x.minute, x.outcome)
				if !x.callback {
					calls++
					s.applyAnswer(a, a.At.Add(time.Minute), x.failed)
					continue
				}
				if _, err := s.applyCallback(a); !errors.Is(err, x.err) {
					t.Errorf("the callback of minute %d: %v, want %v", x.minute, err, x.err)
				}
			}
			if want := endpointNoon.Add(time.Duration(c.at) * time.Minute); s.Outcome != c.want || !s.At.Equal(want) || s.Attempts != calls {
				t.Errorf("it is %+v, want %q of %s", s, c.want, want)
			}
		})
	}
}

func TestNextEndpointCall(t *testing.T) {
	at := func(d time.Duration) time.Time { return endpointNoon.Add(d) }
	for name, c := range map[string]struct {
		outcome policies.Outcome
		until   time.Time
		pause   time.Time
		want    time.Duration
	}{
		"as the gate says":     {policies.Pass, time.Time{}, time.Time{}, time.Minute},
		"as it wishes":         {"", time.Time{}, at(10 * time.Minute), 10 * time.Minute},
		"not earlier":          {"", time.Time{}, at(time.Second), time.Minute},
		"when it may change":   {policies.Wait, at(20 * time.Minute), time.Time{}, 20 * time.Minute},
		"a pass's end is none": {policies.Pass, at(20 * time.Minute), time.Time{}, time.Minute},
		"not next year":        {policies.Wait, at(9000 * time.Hour), at(2 * time.Hour), time.Hour},
	} {
		if got := nextEndpointCall(policies.EndpointAnswer{Outcome: c.outcome, Until: c.until, At: endpointNoon}, c.pause, time.Minute); !got.Equal(at(c.want)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestEndpointIDs holds that a request is another for another head, release, environment
// and place, and the same for the same.
func TestEndpointIDs(t *testing.T) {
	u := promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}
	p := promotion.Pull{Number: 1, Head: "h1", Release: "r1"}
	h := policies.HTTP{Endpoint: "board"}
	first := endpointID(u, "qa", &p, &h)
	if endpointID(u, "qa", &p, &h) != first || len(first) != 32 {
		t.Errorf("it is %s", first)
	}
	seen := map[string]bool{first: true}
	for name, change := range map[string]func(u *promotion.Unit, env *string, p *promotion.Pull, h *policies.HTTP){
		"a repository":   func(u *promotion.Unit, _ *string, _ *promotion.Pull, _ *policies.HTTP) { u.Repo = "x" },
		"a pipeline":     func(u *promotion.Unit, _ *string, _ *promotion.Pull, _ *policies.HTTP) { u.Pipeline = "x" },
		"a component":    func(u *promotion.Unit, _ *string, _ *promotion.Pull, _ *policies.HTTP) { u.Component = "x" },
		"an environment": func(_ *promotion.Unit, env *string, _ *promotion.Pull, _ *policies.HTTP) { *env = "x" },
		"a number":       func(_ *promotion.Unit, _ *string, p *promotion.Pull, _ *policies.HTTP) { p.Number = 2 },
		"a head":         func(_ *promotion.Unit, _ *string, p *promotion.Pull, _ *policies.HTTP) { p.Head = "x" },
		"a release":      func(_ *promotion.Unit, _ *string, p *promotion.Pull, _ *policies.HTTP) { p.Release = "x" },
		"an endpoint":    func(_ *promotion.Unit, _ *string, _ *promotion.Pull, h *policies.HTTP) { h.Endpoint = "x" },
		"a path":         func(_ *promotion.Unit, _ *string, _ *promotion.Pull, h *policies.HTTP) { h.Path = "/x" },
	} {
		u, env, p, h := u, "qa", p, h
		change(&u, &env, &p, &h)
		id := endpointID(u, env, &p, &h)
		if seen[id] {
			t.Errorf("with another %s it is the same", name)
		}
		seen[id] = true
	}
	records := storedRecords{endpointStates.Key("a"): `{"id":"b","outcome":"pass"}`}
	if s, found, err := readEndpointState(t.Context(), records, "a"); s.Outcome != "" || s.ID != "a" || found || err != nil {
		t.Errorf("another request's is read: %+v, %v", s, err)
	}
}
