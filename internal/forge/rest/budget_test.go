package rest

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// limitedForge answers at once, by a clock that only the test moves, and refuses what is past
// its limits, each counted over every stretch of time so long.
type limitedForge struct {
	now    time.Time
	limits []Limit

	hourly  int
	used    int
	reset   time.Time
	past    [][]time.Time
	refused int
	calls   []string
	answer  func() *http.Response // instead; nil: as above
}

func (lf *limitedForge) RoundTrip(r *http.Request) (*http.Response, error) {
	endpoint := Endpoint(r.Method, "/", r.URL.Path)
	lf.calls = append(lf.calls, endpoint)
	if lf.answer != nil {
		return lf.answer(), nil
	}
	resp := answerOf(200, "Date", lf.now.UTC().Format(http.TimeFormat))
	if lf.hourly > 0 {
		if !lf.now.Before(lf.reset) {
			lf.used, lf.reset = 0, lf.now.Add(time.Hour).Truncate(time.Second)
		}
		lf.used++
		resp.Header.Set("X-RateLimit-Limit", strconv.Itoa(lf.hourly))
		resp.Header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, lf.hourly-lf.used)))
		resp.Header.Set("X-RateLimit-Reset", strconv.FormatInt(lf.reset.Unix(), 10))
		if lf.used > lf.hourly {
			lf.refused++
			resp.StatusCode = 403
			return resp, nil
		}
	}
	if lf.past == nil {
		lf.past = make([][]time.Time, len(lf.limits))
	}
	for i, l := range lf.limits {
		for len(lf.past[i]) > 0 && lf.now.Sub(lf.past[i][0]) >= l.Every {
			lf.past[i] = lf.past[i][1:]
		}
		for range l.Cost(endpoint) {
			lf.past[i] = append(lf.past[i], lf.now)
		}
		if len(lf.past[i]) > l.Calls {
			lf.refused++
			resp.StatusCode = 429
			resp.Header.Set("Retry-After", "60")
			return resp, nil
		}
	}
	return resp, nil
}

func answerOf(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("{}"))}
}

func (lf *limitedForge) client(limits []Limit, onLimited func(time.Time, string)) *http.Client {
	client, _ := lf.clientAndBudget(limits, onLimited)
	return client
}

func (lf *limitedForge) clientAndBudget(limits []Limit, onLimited func(time.Time, string)) (*http.Client, *Budget) {
	return New(Protocol{Options: Options{HTTPClient: &http.Client{Transport: lf}, OnLimited: onLimited, Now: func() time.Time { return lf.now }}, Base: &url.URL{Scheme: "https", Host: "forge.example", Path: "/"}, Limits: limits})
}

func call(t *testing.T, c *http.Client, p forge.Priority, endpoint string) (status int, refused *RefusedError) {
	t.Helper()
	method, path, _ := strings.Cut(endpoint, " ")
	req, err := http.NewRequestWithContext(forge.WithPriority(t.Context(), p), method, "https://forge.example/repos/acme/fleet/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if errors.As(err, &refused) {
		return 0, refused
	}
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestNoCallAfterRefusal asserts on the wire that a refusal closes the whole identity until
// the time that it names, for what is urgent too.
func TestNoCallAfterRefusal(t *testing.T) {
	ahead := start.Add(time.Hour) // the forge's clock
	for _, c := range []struct {
		name   string
		answer *http.Response
		until  time.Duration
	}{
		{"seconds", answerOf(429, "Retry-After", "90"), 90 * time.Second},
		{"a date, by the forge's clock", answerOf(429, "Date", ahead.Format(http.TimeFormat), "Retry-After", ahead.Add(2*time.Minute).Format(http.TimeFormat)), 2 * time.Minute},
		{"nothing left, by the forge's clock", answerOf(403, "Date", ahead.Format(http.TimeFormat), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(ahead.Add(20*time.Minute).Unix(), 10)), 20 * time.Minute},
		{"GitLab", answerOf(429, "RateLimit-Remaining", "0", "RateLimit-Reset", strconv.FormatInt(start.Add(40*time.Second).Unix(), 10)), 40 * time.Second},
		{"no time", answerOf(429), time.Minute},
		{"less than nothing", answerOf(429, "Retry-After", "-90"), time.Minute},
		{"a time without bound", answerOf(429, "Retry-After", "999999999"), 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			reported := 0
			f := &limitedForge{now: start, answer: func() *http.Response { return c.answer }}
			client := f.client(nil, func(time.Time, string) { reported++ })
			if status, _ := call(t, client, forge.PriorityNormal, "GET pulls"); status != c.answer.StatusCode {
				t.Fatalf("the refusal is %d", status)
			}
			f.answer = nil
			for _, p := range []forge.Priority{forge.PriorityUrgent, forge.PriorityNormal, forge.PriorityComment, forge.PriorityBackground} {
				for _, at := range []time.Duration{0, c.until - time.Second} {
					f.now = start.Add(at)
					if _, refused := call(t, client, p, "GET pulls"); refused == nil || refused.Until.Before(start.Add(c.until)) || p == forge.PriorityUrgent && !refused.Until.Equal(start.Add(c.until)) || refused.Others != (p != forge.PriorityUrgent) {
						t.Fatalf("after %s: %v", at, refused)
					}
				}
			}
			if len(f.calls) != 1 || reported != 1 {
				t.Fatalf("%d calls, told %d times", len(f.calls), reported)
			}
			f.now = start.Add(c.until)
			_, later := call(t, client, forge.PriorityBackground, "GET pulls")
			if later == nil || !later.Others {
				t.Fatalf("a sweep is back as soon as what is urgent: %v", later)
			}
			if _, refused := call(t, client, forge.PriorityUrgent, "GET pulls"); refused != nil {
				t.Fatal(refused)
			}
			f.now = later.Until
			if _, refused := call(t, client, forge.PriorityBackground, "GET pulls"); refused != nil {
				t.Fatal(refused)
			}
		})
	}
}

// TestOtherForbiddenCloseNothing: a missing permission isn't a limit.
func TestOtherForbiddenCloseNothing(t *testing.T) {
	f := &limitedForge{now: start, answer: func() *http.Response { return answerOf(403) }}
	client := f.client(nil, nil)
	for range 3 {
		if status, refused := call(t, client, forge.PriorityNormal, "GET pulls"); status != 403 {
			t.Fatal(status, refused)
		}
	}
}

// TestRepeatedRefusalsWaitLonger: a refusal within the hour of the last doubles the wait.
func TestRepeatedRefusalsWaitLonger(t *testing.T) {
	f := &limitedForge{now: start, answer: func() *http.Response { return answerOf(429, "Retry-After", "5") }}
	client := f.client(nil, nil)
	for i, want := range []time.Duration{5 * time.Second, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		call(t, client, forge.PriorityUrgent, "GET pulls")
		_, refused := call(t, client, forge.PriorityUrgent, "GET pulls")
		if refused == nil || refused.Until.Sub(f.now) != want {
			t.Fatalf("refusal %d: %v", i, refused)
		}
		f.now = refused.Until
	}
	f.now = f.now.Add(time.Hour)
	call(t, client, forge.PriorityUrgent, "GET pulls")
	if _, refused := call(t, client, forge.PriorityUrgent, "GET pulls"); refused == nil || refused.Until.Sub(f.now) != 5*time.Second {
		t.Fatal(refused)
	}
}

// TestRefusalsOfOneEndpoint: where a refusal is about calls of one kind, the others go on.
func TestRefusalsOfOneEndpoint(t *testing.T) {
	var limits []string
	f := &limitedForge{now: start, answer: func() *http.Response { return answerOf(429) }}
	client, _ := New(Protocol{Base: &url.URL{Scheme: "https", Host: "forge.example", Path: "/"}, IsOfEndpoint: func(*http.Response, []byte) bool { return true },
		Options: Options{HTTPClient: &http.Client{Transport: f}, Now: func() time.Time { return f.now }, OnLimited: func(until time.Time, endpoint string) {
			limits = append(limits, fmt.Sprint(until.Sub(start), " ", endpoint))
		}}})
	for range 2 {
		call(t, client, forge.PriorityUrgent, "GET pulls")
	}
	f.answer = func() *http.Response { return answerOf(200) }
	if _, refused := call(t, client, forge.PriorityUrgent, "GET pulls"); refused == nil || refused.Until.Sub(start) != time.Minute || !refused.Others {
		t.Errorf("the same kind: %v", refused)
	}
	if status, refused := call(t, client, forge.PriorityBackground, "GET statuses"); status != 200 {
		t.Errorf("another kind: %d %v", status, refused)
	}
	f.now = start.Add(time.Minute)
	if status, refused := call(t, client, forge.PriorityUrgent, "GET pulls"); status != 200 {
		t.Errorf("a minute later: %d %v", status, refused)
	}
	if len(limits) != 1 || limits[0] != "1m0s GET pulls" || len(f.calls) != 3 {
		t.Errorf("limits %q; called %q", limits, f.calls)
	}
}

// TestReserves: of what the forge says is left, each priority leaves a share to those above.
func TestReserves(t *testing.T) {
	all := []forge.Priority{forge.PriorityUrgent, forge.PriorityNormal, forge.PriorityComment, forge.PriorityBackground}
	for _, c := range []struct{ left, allowed int }{{301, 4}, {299, 3}, {151, 3}, {149, 2}, {51, 2}, {49, 1}, {1, 1}, {0, 0}} {
		for i, p := range all {
			f := &limitedForge{now: start, answer: func() *http.Response {
				return answerOf(200, "X-RateLimit-Limit", "1000", "X-RateLimit-Remaining", strconv.Itoa(c.left), "X-RateLimit-Reset", strconv.FormatInt(start.Add(time.Minute).Unix(), 10))
			}}
			client := f.client(nil, nil)
			call(t, client, forge.PriorityNormal, "GET pulls")
			if _, refused := call(t, client, p, "GET pulls"); (refused == nil) != (i < c.allowed) || refused != nil && refused.Others != (c.left > 0) {
				t.Errorf("%d left, priority %d: %v", c.left, p, refused)
			}
			f.now = start.Add(time.Minute) // all begins anew
			if _, refused := call(t, client, p, "GET pulls"); refused != nil {
				t.Errorf("%d were left, priority %d: %v", c.left, p, refused)
			}
		}
	}
}

// TestUrgentCallsHavePlaces: calls that hang leave places to what is urgent.
func TestUrgentCallsHavePlaces(t *testing.T) {
	b := NewBudget(func() time.Time { return start }, nil, nil)
	var ends []func(*http.Response, []byte) time.Time
	begin := func(p forge.Priority, want bool) {
		t.Helper()
		ctx := forge.WithPriority(t.Context(), p)
		if !want {
			var cancel func()
			ctx, cancel = contextEnded(ctx)
			defer cancel()
		}
		end, err := b.begin(ctx, "GET pulls")
		if (err == nil) != want {
			t.Fatal(err)
		}
		if err == nil {
			ends = append(ends, end)
		}
	}
	for range maxInFlight - urgentPlaces {
		begin(forge.PriorityComment, true)
	}
	begin(forge.PriorityNormal, false)
	for range urgentPlaces {
		begin(forge.PriorityUrgent, true)
	}
	begin(forge.PriorityUrgent, false)
	for _, end := range ends {
		end(nil, nil)
	}
	begin(forge.PriorityNormal, true)
}

// TestRevertsPassWaitingCalls has the published limits used up for others. A revert is still
// opened, as long as the limit itself allows it, and waiting calls get turns.
func TestRevertsPassWaitingCalls(t *testing.T) {
	f := &limitedForge{now: start, limits: githubLimits(1)}
	client := f.client(githubLimits(1), nil)
	opened := 0
	for ; ; opened++ {
		if _, refused := call(t, client, forge.PriorityNormal, "POST pulls"); refused != nil {
			if !refused.Others {
				t.Fatalf("it keeps off what is urgent: %v", refused)
			}
			_, next := call(t, client, forge.PriorityComment, "POST issues/1/comments")
			if next == nil || !next.Until.After(refused.Until) {
				t.Fatalf("the second has to wait like the first, %v: %v", refused, next)
			}
			break
		}
	}
	if opened != 10 {
		t.Errorf("%d are opened at once", opened)
	}
	for i := range 10 {
		if status, refused := call(t, client, forge.PriorityUrgent, "POST pulls"); status != 200 {
			t.Fatalf("revert %d: %d %v", i, status, refused)
		}
	}
	if _, refused := call(t, client, forge.PriorityUrgent, "POST pulls"); refused == nil || refused.Others {
		t.Errorf("past what the forge allows: %v", refused)
	}
}

// TestHundredsOfWaitingCalls holds that hundreds of calls that limits make wait come again about
// once each, and not all of them in every minute.
func TestHundredsOfWaitingCalls(t *testing.T) {
	const hundreds = 400
	for _, c := range []struct {
		name     string
		limits   []Limit
		priority forge.Priority
		endpoint string
		within   time.Duration
	}{
		{"comments on GitLab", gitlabLimits(1), forge.PriorityComment, "POST merge_requests/1/notes", 10 * time.Minute},
		{"pull requests on GitHub", githubLimits(1), forge.PriorityNormal, "POST pulls", 70 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &limitedForge{now: start, limits: c.limits}
			client := f.client(c.limits, nil)
			at := make([]time.Time, hundreds) // when each comes again; zero: it was made
			for i := range at {
				at[i] = start
			}
			tries := 0
			for made := 0; made < hundreds; f.now = f.now.Add(time.Second) {
				for i := range at {
					if at[i].IsZero() || at[i].After(f.now) {
						continue
					}
					tries++
					_, refused := call(t, client, c.priority, c.endpoint)
					if at[i] = (time.Time{}); refused != nil {
						at[i] = refused.Until
					} else {
						made++
					}
				}
			}
			if f.refused > 0 || tries > 5*hundreds {
				t.Errorf("%d calls took %d tries, and %d were refused by the forge", hundreds, tries, f.refused)
			}
			if took := f.now.Sub(start); took > c.within {
				t.Errorf("they took %s", took)
			}
		})
	}
}

// TestCommentsTurnsAreTheirOwn holds that what is more urgent doesn't wait behind the turns of
// hundreds of comments.
func TestCommentsTurnsAreTheirOwn(t *testing.T) {
	f := &limitedForge{now: start, limits: gitlabLimits(1)}
	client := f.client(gitlabLimits(1), nil)
	const endpoint = "POST merge_requests/1/notes"
	for range 400 {
		call(t, client, forge.PriorityComment, endpoint)
	}
	if _, refused := call(t, client, forge.PriorityNormal, endpoint); refused == nil || refused.Until.Sub(start) > 5*time.Second {
		t.Errorf("it waits like this: %v", refused)
	}
}

// step is a call of a promotion.
type step struct {
	priority forge.Priority
	endpoint string
}

// promotionSteps are about what a promotion calls on GitHub besides its merge.
var promotionSteps = []step{
	{forge.PriorityNormal, "POST pulls"}, {forge.PriorityNormal, "POST issues/1/labels"}, {forge.PriorityNormal, "POST statuses/1"}, {forge.PriorityNormal, "GET pulls/1"},
	{forge.PriorityComment, "POST issues/1/comments"}, {forge.PriorityComment, "PATCH issues/comments/1"},
}

// mergeSteps are a merge's.
var mergeSteps = []step{{forge.PriorityUrgent, "GET pulls/1"}, {forge.PriorityUrgent, "PUT pulls/1/merge"}}

var gitlabSteps = []step{
	{forge.PriorityNormal, "POST merge_requests"}, {forge.PriorityNormal, "POST statuses/1"}, {forge.PriorityNormal, "GET merge_requests/1"},
	{forge.PriorityComment, "POST merge_requests/1/notes"}, {forge.PriorityComment, "PUT merge_requests/1/notes/1"},
}

type waiter struct {
	at   time.Time
	key  int
	next int // the step that it is at

	merges bool // its steps are mergeSteps
}

type waiters []waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w waiters) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiters) Push(x any)        { *w = append(*w, x.(waiter)) }
func (w *waiters) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// runAll runs many promotions' calls through one client, in the forge's time, each call that
// is refused again when it may be made. It gives how long each took to be merged and to end.
func runAll(t *testing.T, f *limitedForge, client *http.Client, n int, steps []step) (merged, ended time.Duration) {
	chance := rand.New(rand.NewPCG(1, 2))
	queue := &waiters{}
	for key := range n { // all are opened and, others at the same time, merged
		heap.Push(queue, waiter{at: f.now, key: key})
		heap.Push(queue, waiter{at: f.now, key: key, merges: true})
	}
	for tries := 0; queue.Len() > 0; tries++ {
		if tries > 2_000_000 || f.now.Sub(start) > 7*24*time.Hour {
			t.Fatalf("after %s %d promotions haven't ended", f.now.Sub(start), queue.Len())
		}
		w := heap.Pop(queue).(waiter)
		if w.at.After(f.now) {
			f.now = w.at
		}
		todo := steps
		if w.merges {
			todo = mergeSteps
		}
		s := todo[w.next]
		status, refused := call(t, client, s.priority, s.endpoint)
		switch {
		case refused != nil:
			if !refused.Until.After(f.now) {
				t.Fatalf("refused until %s, which is over: %v", refused.Until, refused)
			}
			wait := refused.Until.Sub(f.now)
			w.at = refused.Until.Add(time.Duration(chance.Float64() / 10 * float64(wait)))
		case status != 200:
			w.at = f.now
		default:
			if w.merges {
				merged = f.now.Sub(start)
			}
			w.next++
		}
		if w.next < len(todo) {
			heap.Push(queue, w)
		}
	}
	return merged, f.now.Sub(start)
}

func githubLimits(share int) []Limit {
	points := func(e string) int {
		if strings.HasPrefix(e, "GET ") {
			return 1
		}
		return 5
	}
	content := func(e string) int {
		if e == "POST pulls" || strings.HasSuffix(e, "/comments") {
			return 1
		}
		return 0
	}
	return []Limit{{"points", 900 / share, time.Minute, points}, {"content", 80 / share, time.Minute, content}, {"content", 500 / share, time.Hour, content}}
}

func gitlabLimits(share int) []Limit {
	notes := func(e string) int {
		if e == "POST merge_requests/notes" {
			return 1
		}
		return 0
	}
	return []Limit{{"calls", 2000 / share, time.Minute, func(string) int { return 1 }}, {"notes", 60 / share, time.Minute, notes}}
}

// TestCallsOf500PromotionsKeepToLimits sends the calls of 500 promotions and 500 merges through the
// transport, without the service that makes them. The forge refuses all past its limits. At the
// published ones none is refused; at a tenth, of which the transport learns by refusals alone, all
// end, merges long before the rest.
func TestCallsOf500PromotionsKeepToLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute, one thing after the other")
	}
	for _, c := range []struct {
		name   string
		limits func(share int) []Limit
		hourly int
		steps  []step
	}{
		{"GitHub", githubLimits, 5000, promotionSteps},
		{"GitLab", gitlabLimits, 0, gitlabSteps},
	} {
		for _, share := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, 1/%d", c.name, share), func(t *testing.T) {
				f := &limitedForge{now: start, limits: c.limits(share), hourly: c.hourly / share}
				merged, ended := runAll(t, f, f.client(c.limits(1), nil), 500, c.steps)
				t.Logf("merged after %s, ended after %s, %d calls, %d refused", merged, ended, len(f.calls), f.refused)
				if share == 1 && f.refused > 0 {
					t.Errorf("%d calls were refused", f.refused)
				}
				if merged > ended/4 {
					t.Errorf("the last merge was after %s, all ended after %s", merged, ended)
				}
			})
		}
	}
}

// contextEnded is a context that is over.
func contextEnded(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, func() {}
}

// TestMayCall says beforehand what a call would answer, and takes nothing out of the budget.
func TestMayCall(t *testing.T) {
	f := &limitedForge{now: start}
	limit := Limit{Name: "content", Calls: 80, Every: time.Minute, Cost: func(endpoint string) int { return len(endpoint) / len("POST pulls") }}
	client, budget := f.clientAndBudget([]Limit{limit}, nil)
	may := func(p forge.Priority, endpoint string) error {
		return budget.MayCall(forge.WithPriority(t.Context(), p), "open a pull request", endpoint)
	}
	for range 100 {
		if err := may(forge.PriorityNormal, "POST pulls"); err != nil {
			t.Fatalf("with nothing used: %v", err)
		}
	}
	made := 0
	for {
		if _, refused := call(t, client, forge.PriorityNormal, "POST pulls"); refused != nil {
			break
		}
		made++
	}
	if made != 80/8 || len(f.calls) != made {
		t.Errorf("%d calls after it was asked for a hundred, %d arrived", made, len(f.calls))
	}
	err := may(forge.PriorityNormal, "POST pulls")
	var e *forge.Error
	if !errors.Is(err, forge.ErrRateLimited) || !errors.As(err, &e) || !e.RetryAfter.After(f.now) || !strings.HasPrefix(err.Error(), "open a pull request: ") || !strings.Contains(err.Error(), "80 of content") {
		t.Errorf("with nothing left: %v", err)
	}
	if err := may(forge.PriorityUrgent, "POST pulls"); err != nil {
		t.Errorf("what is urgent: %v", err)
	}
	if err := may(forge.PriorityNormal, "GET x"); err != nil {
		t.Errorf("what costs nothing: %v", err)
	}
	if len(f.calls) != made {
		t.Error("it has called")
	}
}
