package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"time"
)

const (
	// streamIdle is after how long without a sign of life a stream counts as broken that has
	// given one. As server-sent events it does every 15 seconds, but only from the first
	// event on, for which Argo CD lets its clients wait without an answer's beginning.
	streamIdle = 45 * time.Second
	// maxEvent bounds one event, in bytes. etcd takes objects of 1.5 MiB unless told
	// otherwise.
	maxEvent = 16 << 20
)

// Event is a change of an Application.
type Event struct {
	Type        string          `json:"type"` // ADDED, MODIFIED or DELETED
	Application json.RawMessage `json:"application"`
}

// ErrStreamIdle is a stream without a sign of life.
var ErrStreamIdle = errors.New("the stream has been silent for too long")

// StreamApplications hands the changes of Applications to visit from when it is connected
// until the stream ends, which is no error, or breaks. sent is called once the request has
// been sent: the server answers only when there is something to say. Argo CD replays
// nothing, and drops what a slow reader doesn't take in time: a stream is a hint, and the
// list the truth.
func (c *Client) StreamApplications(ctx context.Context, f ApplicationFilter, sent func(), visit func(Event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(c.idle, func() { cancel(ErrStreamIdle) })
	watchdog.Stop()
	defer watchdog.Stop()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			sent()
		}
	}})
	q := f.query()
	// Without a version it would begin with all that there is; it is none to go on from.
	q.Set("resourceVersion", "1")
	err := func() error {
		body, err := c.open(traced, request{address: "/api/v1/stream/applications", query: q, stream: true})
		if err != nil {
			return err
		}
		defer body.Close()
		return c.readEvents(signReader{body, func() { watchdog.Reset(c.idle) }}, visit)
	}()
	if err != nil && errors.Is(context.Cause(ctx), ErrStreamIdle) {
		return ErrStreamIdle
	}
	return err
}

// signReader tells of every sign of life.
type signReader struct {
	r    io.Reader
	seen func()
}

func (s signReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if n > 0 {
		s.seen()
	}
	return n, err
}

// readEvents reads server-sent events, or a line of JSON each, to their end.
func (c *Client) readEvents(r io.Reader, visit func(Event)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	for lines.Scan() {
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("data:")))
		if len(line) == 0 || line[0] == ':' { // a sign of life
			continue
		}
		var e struct {
			Result *Event `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		switch {
		case e.Error != nil:
			return fmt.Errorf("the stream ends: %s", c.hideToken(e.Error.Message))
		case e.Result != nil:
			visit(*e.Result)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the stream: %w", err)
	}
	return nil
}
