package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/liftlock/liftlock/internal/pipeline/event"
)

const (
	// sendTimeout bounds one request, its answer read.
	sendTimeout = 15 * time.Second
	// maxAnswer is how much of an answer is read: enough to say what was wrong.
	maxAnswer = 4 << 10
	// maxRefusals is how often what a receiver calls malformed is sent, before the rest
	// no longer waits for it.
	maxRefusals = 3
	// firstDelay is the wait before something is sent again, which doubles up to maxDelay.
	firstDelay = 5 * time.Second
	maxDelay   = 5 * time.Minute
	// longestDelay is the longest that a receiver's Retry-After is waited for.
	longestDelay = time.Hour
)

// sender sends a message to one channel. The error is a *sendError and shows no address.
type sender interface {
	send(ctx context.Context, m message) error
	// single says that each event is a message of its own: programs read them.
	single() bool
}

// sendError is why something wasn't sent.
type sendError struct {
	err     error
	refused bool          // the message itself is what is wrong
	after   time.Duration // the receiver's own wish; 0: it has none
}

func (s *sendError) Error() string { return s.err.Error() }
func (s *sendError) Unwrap() error { return s.err }

// newHTTPClient follows no redirects: a signed message is for whom it was signed.
func newHTTPClient() *http.Client {
	return &http.Client{Timeout: sendTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func newSender(c Channel, client *http.Client, now func() time.Time) (sender, error) {
	p := poster{url: c.URL, secrets: listAddressSecrets(c.URL), client: client, now: now}
	switch c.Type {
	case Slack:
		return slackSender{p}, nil
	case Teams:
		return teamsSender{p}, nil
	case Webhook:
		sign, err := standardwebhooks.NewWebhook(c.Secret)
		if err != nil {
			return nil, fmt.Errorf("its secret is not whsec_ with a key in base64: %w", err)
		}
		return webhookSender{p, sign}, nil
	}
	return nil, fmt.Errorf("there is no type %q; it is webhook, slack or teams", c.Type)
}

// retryDelay is how long to wait after so many tries that failed.
func retryDelay(tries int, why *sendError) time.Duration {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstDelay), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(maxDelay), backoff.WithMaxElapsedTime(0))
	d := b.NextBackOff()
	for range min(tries, 10) - 1 {
		d = b.NextBackOff()
	}
	if why != nil {
		d = max(d, min(why.after, longestDelay))
	}
	return d
}

// poster posts bodies to one address.
type poster struct {
	url     string
	secrets []string // what of it errors must not show
	client  *http.Client
	now     func() time.Time
}

// post posts a body. Errors don't have the address, which for some receivers is a secret.
func (p poster) post(ctx context.Context, contentType string, body []byte, header http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return &sendError{err: errors.New("the channel's url can't be used")}
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "liftlock")
	res, err := p.client.Do(req)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if text := p.redact(err.Error()); text != err.Error() { // it may have what was answered
			err = errors.New(text)
		}
		return &sendError{err: fmt.Errorf("reach the receiver: %w", err)}
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // only for the error's text
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return nil
	}
	e := &sendError{err: fmt.Errorf("the receiver answered %d: %s", res.StatusCode,
		cmp.Or(clip(p.redact(strings.ToValidUTF8(string(answer), ""))), "nothing")), after: p.retryAfter(res.Header)}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		e.refused = true
	}
	return e
}

// retryAfter reads Retry-After: seconds or a date; 0 when there is none.
func (p poster) retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(n, 0), 3600)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(p.now()), 0)
	}
	return 0
}

func (p poster) postJSON(ctx context.Context, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return &sendError{err: fmt.Errorf("write the message: %w", err), refused: true}
	}
	return p.post(ctx, "application/json", raw, nil)
}

// webhookSender sends CloudEvents 1.0 in JSON, one a request, with the headers of Standard
// Webhooks.
type webhookSender struct {
	poster
	sign *standardwebhooks.Webhook
}

func (webhookSender) single() bool { return true }

func (w webhookSender) send(ctx context.Context, m message) error {
	it := &m.items[0]
	body, err := encodeCloudEvent(it)
	if err != nil {
		return &sendError{err: err, refused: true}
	}
	now := w.now()
	signature, err := w.sign.Sign(it.ID, now, body)
	if err != nil {
		return &sendError{err: fmt.Errorf("sign the message: %w", err), refused: true}
	}
	return w.post(ctx, "application/cloudevents+json; charset=utf-8", body, http.Header{
		"Webhook-Id": {it.ID}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)}, "Webhook-Signature": {signature}})
}

// cloudEvent is an event as CloudEvents 1.0 has it in JSON:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	DataContentType string    `json:"datacontenttype"`
	Time            time.Time `json:"time"`
	Data            *item     `json:"data"`
}

// encodeCloudEvent writes an event as a CloudEvent.
func encodeCloudEvent(it *item) ([]byte, error) {
	body, err := json.Marshal(cloudEvent{SpecVersion: "1.0", ID: it.ID, Type: "dev.liftlock." + it.Word + ".v1",
		Source:  "liftlock/" + url.PathEscape(it.Repository) + "/" + it.Pipeline,
		Subject: strings.Trim(it.Environment+"/"+it.Component, "/"), DataContentType: "application/json", Time: it.At.UTC(), Data: it})
	if err != nil {
		return nil, fmt.Errorf("write the event: %w", err)
	}
	return body, nil
}

// slackSender sends to an incoming webhook of Slack, in its mrkdwn.
type slackSender struct{ poster }

func (slackSender) single() bool { return false }

// slackEscape is Slack's own rule for text: these three and nothing else.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (s slackSender) send(ctx context.Context, m message) error {
	title := "*" + slackEscape.Replace(m.title()) + "*"
	if event.IsUrgent(m.word) {
		title = ":rotating_light: " + title
	}
	lines := m.describe(slackEscape.Replace, func(text, to string) string { return "<" + slackEscape.Replace(to) + "|" + text + ">" })
	return s.postJSON(ctx, map[string]any{"text": title + "\n" + strings.Join(lines, "\n"), "unfurl_links": false})
}

// teamsSender sends to the webhook of a Teams workflow, as an adaptive card.
type teamsSender struct{ poster }

func (teamsSender) single() bool { return false }

// teamsEscape takes its meaning from what a card's text would read as markup.
var teamsEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "`", "\\`", "<", "&lt;")

func (t teamsSender) send(ctx context.Context, m message) error {
	block := func(text string, more map[string]any) map[string]any {
		out := map[string]any{"type": "TextBlock", "text": text, "wrap": true}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	style := map[string]any{"weight": "Bolder", "size": "Medium"}
	if event.IsUrgent(m.word) {
		style["color"] = "Attention"
	}
	body := []any{block(teamsEscape.Replace(m.title()), style)}
	for _, line := range m.describe(teamsEscape.Replace, func(text, to string) string {
		return "[" + strings.TrimLeft(text, "#!") + "](" + strings.ReplaceAll(to, ")", "%29") + ")"
	}) {
		body = append(body, block(line, nil))
	}
	card := map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"body": body}
	return t.postJSON(ctx, map[string]any{"type": "message", "attachments": []any{
		map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}})
}
