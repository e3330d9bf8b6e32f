package webhooks

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// slowBody is a connection that brings bytes at its own pace. Each read brings the next chunk after
// a while, and fails once the deadline has passed by then.
type slowBody struct {
	*httptest.ResponseRecorder
	clock    *testClock
	deadline time.Time
	chunk    []byte
	every    time.Duration
	left     int // chunks; then it stalls
}

func (s *slowBody) SetReadDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *slowBody) Read(p []byte) (int, error) {
	at := s.clock.now.Add(s.every)
	if s.left == 0 || at.After(s.deadline) {
		if s.clock.now.Before(s.deadline) {
			s.clock.now = s.deadline
		}
		return 0, os.ErrDeadlineExceeded
	}
	s.clock.now = at
	s.left--
	return copy(p, s.chunk), nil
}

func TestSlowBodiesAreCut(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunk  int
		every  time.Duration
		chunks int
		after  time.Duration // when it is cut
	}{
		{"nothing comes", 0, 0, 0, StallTimeout},
		{"it stalls after 8 kB", 1 << 10, time.Millisecond, 8, StallTimeout + 500*time.Millisecond},
		{"it stalls after 80 kB", 1 << 10, time.Millisecond, 80, StallTimeout + 5*time.Second},
		{"a byte a second", 1, time.Second, 1000, StallTimeout + 3*time.Second/MinRate},
		{"half of the rate", MinRate / 20, time.Second / 10, 1000, 6 * time.Second},
		{"the rate, and no end", MinRate / 10, time.Second / 10, 10_000, ReadTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newTestClock()
			start := clock.now
			w := newRecordedHandler(t, GitHub, secret)
			w.receiver.budget = newTestBudget(t, BudgetOptions{Now: clock.read})
			in := &slowBody{ResponseRecorder: httptest.NewRecorder(), clock: clock, chunk: bytes.Repeat([]byte(" "), c.chunk), every: c.every, left: c.chunks}
			req := newDelivery(GitHub, "push", secret, nil)
			req.Body, req.ContentLength = io.NopCloser(in), MaxBody
			w.handler.ServeHTTP(in, req)
			if in.Code != http.StatusRequestTimeout || w.outcomes[0] != OutcomeSlow || in.Header().Get("Connection") != "close" {
				t.Errorf("status %d, outcome %v, Connection: %q", in.Code, w.outcomes, in.Header().Get("Connection"))
			}
			if got := clock.now.Sub(start); got < c.after-600*time.Millisecond || got > c.after+200*time.Millisecond {
				t.Errorf("it is cut after %s, want about %s", got, c.after)
			}
			if want := clock.now.Add(RefusalTimeout); !in.deadline.Equal(want) {
				t.Errorf("the rest is waited for until %s, want %s", in.deadline, want)
			}
			w.receiver.budget.checkEmpty(t)
		})
	}
}

// TestSteadyBodyIsRead holds that a slow but steady line is no reason to refuse, and
// that what is done with the body has no deadline.
func TestSteadyBodyIsRead(t *testing.T) {
	clock := newTestClock()
	w := newRecordedHandler(t, GitHub, secret)
	w.receiver.budget = newTestBudget(t, BudgetOptions{Now: clock.read})
	body := []byte(`{"zen":"` + strings.Repeat("a", 8*MinRate) + `"}`)
	in := &slowBody{ResponseRecorder: httptest.NewRecorder(), clock: clock, chunk: []byte("a"), every: time.Second, left: 8}
	req := newDelivery(GitHub, "ping", secret, body)
	parts := []io.Reader{}
	for rest := body; len(rest) > 0; {
		n := min(len(rest), MinRate)
		parts = append(parts, io.MultiReader(bytes.NewReader(rest[:n]), &pause{in}))
		rest = rest[n:]
	}
	req.Body = io.NopCloser(io.MultiReader(parts...))
	w.handler.ServeHTTP(in, req)
	if in.Code != http.StatusOK || !in.deadline.IsZero() {
		t.Errorf("status %d (%s), deadline %s", in.Code, in.Body, in.deadline)
	}
}

// pause lets time pass and brings nothing.
type pause struct{ body *slowBody }

func (p *pause) Read([]byte) (int, error) {
	if _, err := p.body.Read(make([]byte, 1)); err != nil && p.body.left > 0 {
		return 0, err
	}
	return 0, io.EOF
}

// TestStalledConnections goes through a real server. A client that stalls is answered and cut, and
// so is one that is refused without having sent its body. A later client is read.
func TestStalledConnections(t *testing.T) {
	w := newRecordedHandler(t, GitHub, secret)
	var late atomic.Int64 // how much later it is than it seems
	w.receiver.budget = newTestBudget(t, BudgetOptions{SmallRoom: MinSmallRoom, Now: func() time.Time { return time.Now().Add(-time.Duration(late.Load())) }})
	server := httptest.NewServer(w.handler)
	defer server.Close()
	open := func(signature string, announced int) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n{", announced, signature)
		return c
	}
	status := func(c net.Conn) int {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if !res.Close {
			t.Error("the connection is kept")
		}
		return res.StatusCode
	}
	signature := "X-Hub-Signature-256: sha256=" + sign("guess", nil) + "\r\n"
	if got := status(open("", 1000)); got != http.StatusUnauthorized {
		t.Errorf("without a signature: %d", got)
	}
	displaced := open(signature, 1000)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w.receiver.budget.mu.Lock()
		n := w.receiver.budget.small.members.Len()
		w.receiver.budget.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the body isn't begun")
		}
	}
	hog := w.receiver.budget.admitFrom("127.0.0.1")
	w.receiver.budget.reserve(hog, MinSmallRoom/2, false)
	if got := status(displaced); got != http.StatusServiceUnavailable {
		t.Errorf("who gave way: %d", got)
	}
	hog.release()
	late.Store(int64(StallTimeout - 50*time.Millisecond))
	if got := status(open(signature, 1000)); got != http.StatusRequestTimeout {
		t.Errorf("who stalls: %d", got)
	}
}

// TestBuffersAreUsedAgain holds that what one delivery brought shows in no other, and
// that the sizes that buffers grow through are the ones that are kept.
func TestBuffersAreUsedAgain(t *testing.T) {
	w := newRecordedHandler(t, GitHub, secret)
	for i := range 20 {
		size := 100 << (i % 10)
		body := fmt.Appendf(nil, `{"action":"a%d","number":%d,"x":%q,"sender":{"login":"u%d"}}`, i, i+1, strings.Repeat("x", size), i)
		if rec := w.serve(newDelivery(GitHub, "pull_request", secret, body)); rec.Code != http.StatusOK {
			t.Fatalf("delivery %d: %d %s", i, rec.Code, rec.Body)
		}
	}
	for i, e := range w.events {
		if e.Action != fmt.Sprintf("a%d", i) || e.Number != i+1 || e.Sender != fmt.Sprintf("u%d", i) {
			t.Errorf("delivery %d became %+v", i, e)
		}
	}
	var pools bufferPools
	for size := firstReadSize; size <= SmallBody; size *= 2 {
		if pools.poolOf(size) == nil {
			t.Errorf("buffers of %d bytes aren't kept", size)
		}
	}
	if pools.poolOf(2*SmallBody) != nil || pools.poolOf(0) != nil {
		t.Error("other buffers are kept")
	}
}
