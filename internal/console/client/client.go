package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

const (
	// callTimeout bounds a whole call.
	callTimeout = 30 * time.Second
	// maxResponseSize bounds what is read of an answer: a pipeline of 5,000 components
	// in five environments is about 30 MB.
	maxResponseSize = 128 << 20
)

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	agent string
}

// New makes a client of the server at an http or https address. The token may
// be empty: then only questions are answered, and those only where reading is open.
func New(server, token, version string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the server's address is not one like https://liftlock.example.com")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the server's address has no user, query or fragment; the token is given on its own")
	}
	return &Client{base: u, token: token, agent: "liftlock/" + version, http: &http.Client{
		Timeout: callTimeout,
		// A command isn't sent anywhere but where it was meant to go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Refused is what the server answered to a request that it didn't serve.
type Refused struct {
	Status int
	Reason string
}

func (r *Refused) Error() string { return r.Reason }

// Pipelines lists the pipelines, without their components, and the troubles.
func (c *Client) Pipelines(ctx context.Context) (*api.Pipelines, error) {
	return getJSON[api.Pipelines](ctx, c, nil, "pipelines")
}

// Pipeline is one with its components. The repository may be empty where the
// name says enough.
func (c *Client) Pipeline(ctx context.Context, repository, name string) (*api.Pipeline, error) {
	return getJSON[api.Pipeline](ctx, c, url.Values{"repository": {repository}}, "pipelines", name)
}

// Promotion is one with its detail.
func (c *Client) Promotion(ctx context.Context, id int64) (*api.Promotion, error) {
	return getJSON[api.Promotion](ctx, c, nil, "promotions", strconv.FormatInt(id, 10))
}

// Why says why a component is as it is; an empty environment means all of them.
func (c *Client) Why(ctx context.Context, repository, pipeline, component, environment string) (*api.Why, error) {
	return getJSON[api.Why](ctx, c, url.Values{"repository": {repository}, "pipeline": {pipeline}, "component": {component},
		"environment": {environment}}, "why")
}

// SendPipelineCommand gives a command about a pipeline: promote, hold or unhold. It
// returns the server's answer for people.
func (c *Client) SendPipelineCommand(ctx context.Context, name, verb string, body api.PipelineCommand) (string, error) {
	return c.sendCommand(ctx, body, "pipelines", name, verb)
}

// SendPromotionCommand gives a command about one promotion: hold, unhold, retry, revert or skip.
func (c *Client) SendPromotionCommand(ctx context.Context, id int64, verb string, body api.PromotionCommand) (string, error) {
	return c.sendCommand(ctx, body, "promotions", strconv.FormatInt(id, 10), verb)
}

func (c *Client) sendCommand(ctx context.Context, body any, path ...string) (string, error) {
	if c.token == "" {
		return "", errors.New("a command needs one of the server's API tokens: give it to liftlock login, in LIFTLOCK_TOKEN or with " +
			"--token-file")
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("write the command: %w", err)
	}
	req, err := c.newRequest(ctx, http.MethodPost, nil, bytes.NewReader(raw), path...)
	if err != nil {
		return "", err
	}
	var key [12]byte
	if _, err := rand.Read(key[:]); err != nil {
		return "", fmt.Errorf("name the command: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", hex.EncodeToString(key[:]))
	a, err := doRequest[api.CommandReply](c, req)
	if err != nil {
		return "", err
	}
	return a.Text, nil
}

// CheckToken says what the server's answer to commands with this token would be; empty: it takes them.
// The error is that the token is none of the server's, or that the server can't be reached. It sends a
// command that is about nothing, so that nothing is done whatever the token may do.
func (c *Client) CheckToken(ctx context.Context) (refusal string, err error) {
	_, err = c.sendCommand(ctx, api.PipelineCommand{}, "pipelines", "-", string(command.Hold))
	var refused *Refused
	switch {
	case !errors.As(err, &refused):
		return "", err
	case refused.Status == http.StatusBadRequest:
		return "", nil
	case refused.Status == http.StatusForbidden:
		return refused.Reason, nil
	}
	return "", err
}

func getJSON[T any](ctx context.Context, c *Client, query url.Values, path ...string) (*T, error) {
	req, err := c.newRequest(ctx, http.MethodGet, query, nil, path...)
	if err != nil {
		return nil, err
	}
	return doRequest[T](c, req)
}

func (c *Client) newRequest(ctx context.Context, method string, query url.Values, body io.Reader, path ...string) (*http.Request, error) {
	u := c.base.JoinPath("api", "v1")
	for _, p := range path {
		if p == "" || p == "." || p == ".." {
			return nil, fmt.Errorf("%q can't be a name", p)
		}
		u = u.JoinPath(url.PathEscape(p))
	}
	for k, v := range query {
		if v[0] == "" {
			delete(query, k)
		}
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base.Host, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

func doRequest[T any](c *Client, req *http.Request) (*T, error) {
	raw, err := c.doRaw(req)
	if err != nil {
		return nil, err
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%s answers to %s %s, but not as Liftlock does: %w", c.base.Host, req.Method, req.URL.Path, err)
	}
	return &v, nil
}

// doRaw is the body of an answer that serves a request.
func (c *Client) doRaw(req *http.Request) ([]byte, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w; --server or LIFTLOCK_SERVER names another address", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxResponseSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	}
	if len(raw) > maxResponseSize {
		return nil, fmt.Errorf("the answer of %s is larger than %d bytes", c.base.Host, maxResponseSize)
	}
	if res.StatusCode != http.StatusOK {
		return nil, c.refusalFromResponse(res, raw)
	}
	return raw, nil
}

func (c *Client) refusalFromResponse(res *http.Response, raw []byte) error {
	var e api.Error
	if err := json.Unmarshal(raw, &e); err == nil && e.Error != "" {
		return &Refused{res.StatusCode, e.Error}
	}
	if to := res.Header.Get("Location"); to != "" {
		return &Refused{res.StatusCode, fmt.Sprintf("%s sends us on to %.200s; give that address if it is Liftlock's", c.base.Host, to)}
	}
	return &Refused{res.StatusCode, fmt.Sprintf("%s answers %s, but not as Liftlock does; is it the server's address?", c.base.Host,
		res.Status)}
}
