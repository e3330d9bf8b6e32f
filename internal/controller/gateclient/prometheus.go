package gateclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// queryTimeout bounds a query, its answer read; the server is given it too.
	queryTimeout = 10 * time.Second
	// maxQueryAnswer bounds an answer: a few series with all of their labels.
	maxQueryAnswer = 1 << 20
	// maxQueryAddress is how long an address may be for all servers and proxies.
	maxQueryAddress = 2000
	// maxAnswerText bounds what is shown of a server's words, in characters.
	maxAnswerText = 200
)

// callError is why something wasn't answered.
type callError struct {
	text  string
	away  bool          // the server isn't well, or wants a pause: others' calls wait too
	after time.Duration // the server's own wish; 0: none
}

func (c *callError) Error() string { return c.text }

// Prometheus is a server that answers PromQL, and how it is reached.
type Prometheus struct {
	Name        string
	URL         string // where /api/v1 is below
	BearerToken string // or
	Username    string
	Password    string
	TLS         TLS
}

// promClient asks one server.
type promClient struct {
	o      Prometheus
	base   *url.URL
	client *http.Client
	now    func() time.Time
}

func newPromClient(o Prometheus, now func() time.Time) (*promClient, error) {
	base, err := url.Parse(strings.TrimSuffix(o.URL, "/"))
	if err != nil || base.Host == "" || base.User != nil {
		return nil, errors.New("its url is no address of a server, or has credentials in it")
	}
	client, err := newHTTPClient(o.TLS)
	if err != nil {
		return nil, err
	}
	return &promClient{o: o, base: base, client: client, now: now}, nil
}

// query asks for the value of a query at a time. The error is a *callError and shows neither address
// nor credentials.
func (p *promClient) query(ctx context.Context, query string, at time.Time) (policies.MetricSample, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	// A proxy of several stores, as Thanos, is to refuse rather than to answer by a part of
	// them; Prometheus itself doesn't know the parameter.
	form := url.Values{"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)},
		"timeout": {queryTimeout.String()}, "partial_response": {"false"}}
	// GET is what a role that only reads may do behind a proxy; what is too long for an
	// address goes by POST.
	method, address, payload := http.MethodGet, p.base.String()+"/api/v1/query?"+form.Encode(), ""
	if len(address) > maxQueryAddress {
		method, address, payload = http.MethodPost, p.base.String()+"/api/v1/query", form.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(payload))
	if err != nil {
		return policies.MetricSample{}, &callError{text: "its url can't be used"}
	}
	if payload != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "liftlock")
	switch {
	case p.o.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+p.o.BearerToken)
	case p.o.Username != "":
		req.SetBasicAuth(p.o.Username, p.o.Password)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return policies.MetricSample{}, reachError(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxQueryAnswer+1))
	switch {
	case err != nil:
		return policies.MetricSample{}, reachError(err)
	case len(body) > maxQueryAnswer:
		return policies.MetricSample{}, &callError{text: fmt.Sprintf("its answer is larger than %d bytes; aggregate the query",
			maxQueryAnswer)}
	case res.StatusCode < 200 || res.StatusCode > 299:
		return policies.MetricSample{}, statusError(res, promErrorText(body), p.now())
	}
	sample, err := parseQueryAnswer(body)
	if err != nil {
		return policies.MetricSample{}, &callError{text: err.Error()}
	}
	sample.At = at
	return sample, nil
}

// queryAnswer is an answer of /api/v1/query.
type queryAnswer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// promErrorText is what an answer that is no success says of why.
func promErrorText(body []byte) string {
	var a queryAnswer
	if json.Unmarshal(body, &a) == nil && a.Error != "" {
		return strings.TrimPrefix(a.ErrorType+": ", ": ") + a.Error
	}
	return string(body)
}

// parseQueryAnswer reads an answer, without its time. A number and a vector's values are
// what a gate is about; anything else is an error that says what it is.
func parseQueryAnswer(body []byte) (policies.MetricSample, error) {
	var a queryAnswer
	var s policies.MetricSample
	if err := json.Unmarshal(body, &a); err != nil {
		return s, errors.New("it answers what isn't Prometheus's API: " + clipAnswer(string(body)))
	}
	if a.Status != "success" {
		return s, errors.New("it refuses the query: " + clipAnswer(promErrorText(body)))
	}
	s.Warning = clipAnswer(strings.Join(a.Warnings[:min(len(a.Warnings), 5)], "; "))
	var values []json.RawMessage
	switch a.Data.ResultType {
	case "scalar":
		values = []json.RawMessage{a.Data.Result}
	case "vector":
		var series []struct {
			Value     json.RawMessage `json:"value"`
			Histogram json.RawMessage `json:"histogram"`
		}
		if err := json.Unmarshal(a.Data.Result, &series); err != nil || bytes.Equal(bytes.TrimSpace(a.Data.Result), []byte("null")) {
			return s, errors.New("it answers a vector that can't be read")
		}
		if len(series) > policies.MaxMetricSeries {
			s.Problem = fmt.Sprintf("the query gives %d series, more than %d; aggregate it", len(series), policies.MaxMetricSeries)
			return s, nil
		}
		for _, x := range series {
			if x.Value == nil && x.Histogram != nil {
				s.Problem = "the query gives a histogram, not a number"
				return s, nil
			}
			values = append(values, x.Value)
		}
	case "string", "matrix":
		return s, fmt.Errorf("the query gives a %s; a gate needs a number, or a vector of numbers of now", a.Data.ResultType)
	default:
		return s, fmt.Errorf("it answers a result of the type %q", clipAnswer(a.Data.ResultType))
	}
	for _, raw := range values {
		v, err := parseSampleValue(raw)
		if err != nil {
			return s, err
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s.Values, s.Problem = nil, "the query gives "+strconv.FormatFloat(v, 'g', -1, 64)
			return s, nil
		}
		s.Values = append(s.Values, v)
	}
	return s, nil
}

// parseSampleValue reads a time and a value, which the API writes as a text.
func parseSampleValue(raw json.RawMessage) (float64, error) {
	var pair []json.RawMessage
	var text string
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &text) != nil {
		return 0, errors.New("it answers a value that can't be read: " + clipAnswer(string(raw)))
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("it answers a value that is no number: " + clipAnswer(text))
	}
	return v, nil
}

// clipAnswer makes words of a server fit to be shown.
func clipAnswer(s string) string {
	return wording.ClipLine(strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD"), maxAnswerText)
}
