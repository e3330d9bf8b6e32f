package rest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// sharedRows are what processes tell each other.
type sharedRows struct {
	rows map[string][]byte
	err  error
}

// of is the exchange of one process.
func (s *sharedRows) of(process string) forge.Exchange {
	return func(_ context.Context, identity string, own []byte) ([][]byte, error) {
		if s.err != nil {
			return nil, s.err
		}
		s.rows[identity+process] = own
		others := maps.Clone(s.rows)
		delete(others, identity+process)
		return slices.Collect(maps.Values(others)), nil
	}
}

// processes are clients of one identity in several processes.
func (lf *limitedForge) processes(rows *sharedRows, limits []Limit, names ...string) []*http.Client {
	var all []*http.Client
	for _, name := range names {
		budget := NewBudget(func() time.Time { return lf.now }, limits, nil)
		if rows != nil {
			budget.Share("token", rows.of(name))
		}
		c := lf.client(limits, nil)
		c.Transport.(*roundTripper).Budget = budget
		all = append(all, c)
	}
	return all
}

// alternating makes one call after the other with another client.
type alternating struct {
	clients []*http.Client
	next    int
}

func (a *alternating) RoundTrip(r *http.Request) (*http.Response, error) {
	a.next++
	return a.clients[a.next%len(a.clients)].Transport.RoundTrip(r)
}

// TestProcessesShareLimits: three processes together keep to what is published for one identity,
// and don't where they know nothing of each other.
func TestProcessesShareLimits(t *testing.T) {
	for _, shared := range []bool{true, false} {
		f := &limitedForge{now: start, limits: githubLimits(1), hourly: 5000}
		rows := &sharedRows{rows: map[string][]byte{}}
		if !shared {
			rows = nil
		}
		all := f.processes(rows, githubLimits(1), "a", "b", "c")
		_, ended := runAll(t, f, &http.Client{Transport: &alternating{clients: all}}, 120, promotionSteps)
		if (f.refused == 0) != shared {
			t.Errorf("sharing %v: %d calls were refused, all ended after %s", shared, f.refused, ended)
		}
	}
}

// TestRefusalsAreShared holds that one process's refusal keeps the others from calling. A process
// that makes no calls any more leaves its part to the others.
func TestRefusalsAreShared(t *testing.T) {
	f := &limitedForge{now: start, limits: githubLimits(1)}
	rows := &sharedRows{rows: map[string][]byte{}}
	all := f.processes(rows, githubLimits(1), "a", "b")
	for _, c := range all {
		if status, refused := call(t, c, forge.PriorityUrgent, "GET pulls/1"); status != 200 {
			t.Fatal(refused)
		}
	}
	f.answer = func() *http.Response { return answerOf(429, "Retry-After", "300") }
	if status, _ := call(t, all[0], forge.PriorityUrgent, "GET pulls/1"); status != 429 {
		t.Fatal(status)
	}
	f.answer = nil
	f.now = f.now.Add(exchangeInterval)
	n := len(f.calls)
	if _, refused := call(t, all[1], forge.PriorityUrgent, "GET pulls/1"); refused == nil || !refused.Until.Equal(start.Add(5*time.Minute)) || len(f.calls) != n {
		t.Errorf("the other one: %v, %d calls", refused, len(f.calls)-n)
	}

	f.now = start.Add(10 * time.Minute)
	if status, refused := call(t, all[1], forge.PriorityUrgent, "GET pulls/1"); status != 200 {
		t.Fatal(refused)
	}
	f.now = f.now.Add(10 * time.Minute) // to save up for
	burst := func() (n int) {
		for {
			if _, refused := call(t, all[1], forge.PriorityNormal, "POST pulls"); refused != nil {
				return n
			}
			n++
		}
	}
	if n := burst(); n != 10 {
		t.Errorf("alone, %d are opened at once", n)
	}
	f.now = f.now.Add(time.Hour)
	if status, _ := call(t, all[0], forge.PriorityUrgent, "GET pulls/1"); status != 200 {
		t.Error("it calls nothing any more")
	}
	if n := burst(); n != 5 {
		t.Errorf("with another one, %d are opened at once", n)
	}
	rows.err = errors.New("the database is away")
	f.now = f.now.Add(time.Hour)
	if n := burst(); n != 5 {
		t.Errorf("without their word, %d are opened at once", n)
	}
}
