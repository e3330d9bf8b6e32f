package gateclient

import (
	"context"
	"encoding/pem"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/policies"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// promFixture is a Prometheus that answers what a test says.
type promFixture struct {
	*Metrics
	t      *testing.T
	clock  *clocktesting.FakeClock
	server *httptest.Server
	calls  atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request)
}

func newPromFixture(t *testing.T, answer func(w http.ResponseWriter, r *http.Request), change func(*Prometheus)) *promFixture {
	t.Helper()
	f := &promFixture{t: t, clock: clocktesting.NewFakeClock(noon), answer: answer}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		f.answer(w, r)
	}))
	t.Cleanup(f.server.Close)
	o := Prometheus{Name: "main", URL: f.server.URL + "/prom/"}
	if change != nil {
		change(&o)
	}
	var err error
	if f.Metrics, err = NewMetrics([]Prometheus{o}, f.clock.Now, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

func (p *promFixture) sample(query string) (policies.MetricSample, time.Time, error) {
	return p.Sample(p.t.Context(), "main", query, time.Minute, 5*time.Second)
}

// answers writes a body.
func answers(status int, body string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func success(kind, result string) func(w http.ResponseWriter, r *http.Request) {
	return answers(http.StatusOK, `{"status":"success","data":{"resultType":"`+kind+`","result":`+result+`}}`)
}

func TestSample(t *testing.T) {
	manySeries := "[" + strings.Repeat(`{"metric":{},"value":[1,"1"]},`, policies.MaxMetricSeries) + `{"metric":{},"value":[1,"1"]}]`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   policies.MetricSample
		err    string
	}{
		"a number":              {success("scalar", `[1435781451.781,"0.25"]`), policies.MetricSample{Values: []float64{0.25}}, ""},
		"one series":            {success("vector", `[{"metric":{"env":"qa"},"value":[1435781451.781,"1e-3"]}]`), policies.MetricSample{Values: []float64{0.001}}, ""},
		"several series":        {success("vector", `[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"2"]}]`), policies.MetricSample{Values: []float64{1, 2}}, ""},
		"nothing":               {success("vector", `[]`), policies.MetricSample{}, ""},
		"no number":             {success("vector", `[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"NaN"]}]`), policies.MetricSample{Problem: "the query gives NaN"}, ""},
		"more than any number":  {success("scalar", `[1,"+Inf"]`), policies.MetricSample{Problem: "the query gives +Inf"}, ""},
		"less than any number":  {success("scalar", `[1,"-Inf"]`), policies.MetricSample{Problem: "the query gives -Inf"}, ""},
		"a number out of range": {success("scalar", `[1,"1e999"]`), policies.MetricSample{Problem: "the query gives +Inf"}, ""},
		"too many series":       {success("vector", manySeries), policies.MetricSample{Problem: "the query gives 51 series, more than 50; aggregate it"}, ""},
		"a histogram":           {success("vector", `[{"metric":{},"histogram":[1,{"count":"1"}]}]`), policies.MetricSample{Problem: "the query gives a histogram, not a number"}, ""},
		"a warning":             {answers(200, `{"status":"success","warnings":["a store\nis away","x"],"data":{"resultType":"scalar","result":[1,"1"]}}`), policies.MetricSample{Values: []float64{1}, Warning: "a store is away; x"}, ""},
		"a text":                {success("string", `[1,"1"]`), policies.MetricSample{}, "the query gives a string; a gate needs a number, or a vector of numbers of now"},
		"a range":               {success("matrix", `[]`), policies.MetricSample{}, "the query gives a matrix; a gate needs a number, or a vector of numbers of now"},
		"an unknown type":       {success("other", `[]`), policies.MetricSample{}, `it answers a result of the type "other"`},
		"no type":               {answers(200, `{"status":"success"}`), policies.MetricSample{}, `it answers a result of the type ""`},
		"a vector that is none": {success("vector", `null`), policies.MetricSample{}, "it answers a vector that can't be read"},
		"no vector":             {success("vector", `{}`), policies.MetricSample{}, "it answers a vector that can't be read"},
		"a series without":      {success("vector", `[{"metric":{}}]`), policies.MetricSample{}, "it answers a value that can't be read: "},
		"a value that is none":  {success("scalar", `[1,"x"]`), policies.MetricSample{}, "it answers a value that is no number: x"},
		"a value that is half":  {success("scalar", `[1]`), policies.MetricSample{}, "it answers a value that can't be read: [1]"},
		"status error":          {answers(200, `{"status":"error","errorType":"execution","error":"it\nbroke"}`), policies.MetricSample{}, "it refuses the query: execution: it broke"},
		"no JSON":               {answers(200, `<html>login`), policies.MetricSample{}, "it answers what isn't Prometheus's API: <html>login"},
		"a bad query":           {answers(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), policies.MetricSample{}, "it answers 400: bad_data: parse error"},
		"no access":             {answers(401, `no`), policies.MetricSample{}, "it answers 401: no"},
		"a redirect":            {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, policies.MetricSample{}, "it answers 302, a redirect, which isn't followed; correct its url in the server's file"},
		"it isn't well":         {answers(503, ""), policies.MetricSample{}, "it answers 503: nothing"},
		"too much":              {answers(200, strings.Repeat(" ", maxQueryAnswer+1)), policies.MetricSample{}, "its answer is larger than 1048576 bytes; aggregate the query"},
		"a connection that ends": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"status":`)
		}, policies.MetricSample{}, "it can't be reached: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPromFixture(t, c.answer, nil)
			got, again, err := f.sample("up")
			if text := fmt.Sprint(err); text != c.err && (c.err != "" || err != nil) {
				t.Fatalf("the error is %q, want %q", text, c.err)
			}
			if err != nil {
				if !again.After(noon) {
					t.Errorf("it is asked again at %s", again)
				}
				return
			}
			c.want.At = noon
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestQueryIsSent holds what a server is asked, with which credentials.
func TestQueryIsSent(t *testing.T) {
	long := "sum(" + strings.Repeat("x", maxQueryAddress) + ")"
	for name, c := range map[string]struct {
		change func(*Prometheus)
		query  string
		want   string
	}{
		"nobody":                          {nil, `up{a="ä&b"}`, `GET /prom/api/v1/query up{a="ä&b"} 1795435200.000 10s false `},
		"a token":                         {func(o *Prometheus) { o.BearerToken = "abc" }, "up", "GET /prom/api/v1/query up 1795435200.000 10s false Bearer abc"},
		"a user":                          {func(o *Prometheus) { o.Username, o.Password = "u", "p" }, "up", "GET /prom/api/v1/query up 1795435200.000 10s false Basic dTpw"},
		"what is too long for an address": {nil, long, "POST /prom/api/v1/query " + long + " 1795435200.000 10s false "},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			f := newPromFixture(t, func(w http.ResponseWriter, r *http.Request) {
				got = strings.Join([]string{r.Method, r.URL.Path, r.FormValue("query"), r.FormValue("time"), r.FormValue("timeout"), r.FormValue("partial_response"), r.Header.Get("Authorization")}, " ")
				success("vector", "[]")(w, r)
			}, c.change)
			if _, _, err := f.sample(c.query); err != nil || got != c.want {
				t.Errorf("it was sent %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestServersThatAreAway holds that one that isn't well is left alone for longer and longer,
// for all of its queries, and one that refuses a query only for that.
func TestServersThatAreAway(t *testing.T) {
	f := newPromFixture(t, answers(503, "starting"), nil)
	for i, wait := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
		_, again, err := f.sample("up")
		if want := f.clock.Now().Add(wait * time.Second); err == nil || !again.Equal(want) || f.calls.Load() != int64(i+1) {
			t.Fatalf("after %d failures it is asked again at %s, want %s (%d calls): %v", i+1, again, want, f.calls.Load(), err)
		}
		if _, other, err := f.sample("down"); err == nil || err.Error() != "it answers 503: starting" || other.Before(again) || f.calls.Load() != int64(i+1) {
			t.Fatalf("another query is sent: %v, %s, %d calls", err, other, f.calls.Load())
		}
		f.clock.SetTime(again)
	}
	f.answer = success("scalar", `[1,"1"]`)
	if _, _, err := f.sample("up"); err != nil {
		t.Fatal(err)
	}
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	f.clock.Step(time.Minute)
	if _, again, _ := f.sample("up"); !again.Equal(f.clock.Now().Add(2 * time.Minute)) {
		t.Errorf("it is asked again at %s", again)
	}
	f.clock.Step(2 * time.Minute)
	f.answer = answers(400, "")
	before := f.calls.Load()
	for range 3 {
		if _, again, err := f.sample("bad("); err == nil || !again.Equal(f.clock.Now().Add(time.Minute)) {
			t.Errorf("it is asked again at %s: %v", again, err)
		}
	}
	f.answer = success("scalar", `[1,"1"]`)
	if _, _, err := f.sample("up"); err != nil || f.calls.Load() != before+2 {
		t.Errorf("%d calls: %v", f.calls.Load()-before, err)
	}
}

// TestBudget holds how often a server is asked, and that what was just answered isn't asked
// again.
func TestBudget(t *testing.T) {
	f := newPromFixture(t, success("scalar", `[1,"1"]`), nil)
	for range 10 {
		if _, _, err := f.sample("same"); err != nil {
			t.Fatal(err)
		}
	}
	if f.calls.Load() != 1 {
		t.Fatalf("%d calls for one answer", f.calls.Load())
	}
	f.clock.Step(time.Minute)
	answered, busy := 0, 0
	for i := range 20 {
		s, again, err := f.sample(fmt.Sprint("query", i))
		switch {
		case err != nil:
			t.Fatal(err)
		case !s.At.IsZero():
			answered++
		case again.After(f.clock.Now()) && again.Before(f.clock.Now().Add(2*busyDelay)):
			busy++
		}
	}
	if answered != callsPerSecond || busy != 20-callsPerSecond {
		t.Errorf("%d were answered, %d shall come again", answered, busy)
	}
	f.clock.Step(time.Second)
	if s, _, err := f.sample("query19"); err != nil || s.At.IsZero() {
		t.Errorf("a second later there is no room: %v", err)
	}
	if _, again, err := f.Sample(t.Context(), "other", "up", time.Minute, 0); err == nil || err.Error() != "the server's file has no such name under prometheus" || !again.IsZero() {
		t.Errorf("an unknown server: %v, %s", err, again)
	}
}

// TestOneFlight holds that those who ask the same at once share an answer, and that who
// gives up takes it from nobody.
func TestOneFlight(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	f := newPromFixture(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		success("scalar", `[1,"1"]`)(w, r)
	}, nil)
	impatient, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, _, err := f.Sample(impatient, "main", "up", time.Minute, 0)
		gaveUp <- err
	}()
	<-arrived
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if s, _, err := f.sample("up"); err != nil || len(s.Values) != 1 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	cancel()
	if err := <-gaveUp; err == nil {
		t.Error("it didn't give up")
	}
	close(release)
	wg.Wait()
	if f.calls.Load() != 1 {
		t.Errorf("%d calls", f.calls.Load())
	}
}

// TestCertificates holds whose certificates are believed.
func TestCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(success("scalar", `[1,"1"]`)))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, c := range map[string]struct {
		tls TLS
		err string
	}{
		"its authority":   {TLS{CA: ca}, ""},
		"anybody's":       {TLS{Insecure: true}, ""},
		"the system's":    {TLS{}, "it can't be reached: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"no certificates": {TLS{CA: []byte("x")}, "the Prometheus main: there is no certificate in caFile"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewMetrics([]Prometheus{{Name: "main", URL: s.URL, TLS: c.tls}}, func() time.Time { return noon }, nil)
			if err == nil {
				_, _, err = m.Sample(t.Context(), "main", "up", time.Minute, 0)
			}
			if text := fmt.Sprint(err); text != c.err && (c.err != "" || err != nil) {
				t.Errorf("%v, want %s", err, c.err)
			}
		})
	}
	for _, bad := range []string{"://", "http://u:p@x", "nowhere"} {
		if _, err := NewMetrics([]Prometheus{{Name: "main", URL: bad}}, time.Now, nil); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "x": 0, "-5": 0, "30": 30 * time.Second, "99999": time.Hour, "Mon, 23 Nov 2026 12:02:00 GMT": 2 * time.Minute, "Mon, 23 Nov 2026 11:00:00 GMT": 0, "Mon, 23 Nov 2027 11:00:00 GMT": time.Hour} {
		if got := parseRetryAfter(value, noon); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

// FuzzQueryAnswer holds that whatever a server answers is an error or something bounded
// that can be kept and judged.
func FuzzQueryAnswer(f *testing.F) {
	for _, body := range []string{
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}}`,
		`{"status":"success","warnings":["x"],"data":{"resultType":"scalar","result":[1,"0x1p-2"]}}`,
		`{"status":"error","errorType":"bad_data","error":"x"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := parseQueryAnswer(body)
		if err != nil {
			if len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("the error can't be shown: %q", err)
			}
			return
		}
		if len(s.Values) > policies.MaxMetricSeries || s.Problem != "" && len(s.Values) > 0 || len(s.Warning) > 2000 {
			t.Fatalf("it isn't bounded: %+v", s)
		}
		for _, v := range s.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("a value is no number: %v", v)
			}
		}
	})
}
