package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// deliveryTimeout is GitHub's and GitLab's: ten seconds. Neither tries again here.
	deliveryTimeout = 10 * time.Second
	// maxDeliveries bounds what is remembered of past deliveries.
	maxDeliveries = 2000
	// shuffleWindow is the time within which shuffled deliveries overtake each other.
	shuffleWindow = 200 * time.Millisecond
	// maxHookAnswer is how much of a receiver's answer is read.
	maxHookAnswer = 8 << 10
	// droppedDelivery is the error of one that was dropped on purpose.
	droppedDelivery = "dropped"
)

// DeliveryOptions says how unreliable deliveries are. The zero value delivers each
// event once, in order and at once.
type DeliveryOptions struct {
	Drop    bool          // deliver nothing
	Times   int           // deliver each event so often, with one identity; 0: once
	Shuffle bool          // let deliveries overtake each other, by chance
	Seed    int64         // of that chance
	Delay   time.Duration // before each delivery
}

// Delivery is what became of one webhook.
type Delivery struct {
	ID     string // X-GitHub-Delivery or Idempotency-Key; equal for repetitions
	Event  string // X-GitHub-Event or X-Gitlab-Event
	Action string
	URL    string
	Status int    // the receiver's answer; 0: none
	Err    string // why there was no answer, or the event was dropped
	At     time.Time

	hook   hook // as it was then
	body   []byte
	log    int64 // its number among all deliveries and attempts
	again  bool  // an attempt after the first
	answer string
	took   time.Duration

	// GitLab's.
	flag      string
	eventUUID string
	sent      http.Header
}

// webhookSender delivers webhooks, one after the other.
type webhookSender struct {
	log    *zap.Logger
	client *http.Client
	ctx    context.Context // ends with close: the courier's own life, not a caller's
	stop   context.CancelFunc
	done   chan struct{}

	keepHooks bool // no hook is disabled because it fails

	mu         sync.Mutex
	options    DeliveryOptions
	random     *rand.Rand
	queue      []*Delivery
	wake       chan struct{} // has room for one
	pending    int           // queued, delayed or under way
	idle       chan struct{} // closed when pending is 0
	history    []Delivery
	lastByHook map[int64]Delivery // by hook
	lastLog    int64
	now        func() time.Time

	// GitLab's.
	instance string               // the forge's address
	health   map[int64]hookHealth // by hook
}

func newWebhookSender(log *zap.Logger, now func() time.Time, instance string) *webhookSender {
	c := &webhookSender{
		log: log, client: &http.Client{Timeout: deliveryTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		done: make(chan struct{}), random: rand.New(rand.NewSource(1)), wake: make(chan struct{}, 1),
		idle: make(chan struct{}), lastByHook: map[int64]Delivery{},
		now: now, instance: instance, health: map[int64]hookHealth{},
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	close(c.idle)
	go c.run()
	return c
}

func (ws *webhookSender) close() {
	ws.stop()
	<-ws.done
	ws.client.CloseIdleConnections()
}

func (ws *webhookSender) configure(w DeliveryOptions) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.options, ws.random = w, rand.New(rand.NewSource(w.Seed))
}

// sendEvent queues an event for a hook. It never waits for the receiver.
func (ws *webhookSender) sendEvent(h *hook, event string, payload map[string]any) {
	body, err := json.Marshal(payload)
	if err != nil {
		// Payloads are built here from strings, numbers and times.
		ws.log.Error("a webhook's payload can't be written", zap.String("event", event), zap.Error(err))
		return
	}
	action, _ := payload["action"].(string)
	ws.enqueue(Delivery{ID: newUUID(), Event: event, Action: action, URL: h.url, hook: *h, body: body})
}

func (ws *webhookSender) enqueue(d Delivery) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.options.Drop {
		d.Err = droppedDelivery
		ws.recordDelivery(d)
		return
	}
	for range max(1, ws.options.Times) {
		delay := ws.options.Delay
		if ws.options.Shuffle {
			delay += time.Duration(ws.random.Int63n(int64(shuffleWindow)))
		}
		if ws.pending == 0 {
			ws.idle = make(chan struct{})
		}
		ws.pending++
		one := d
		if delay == 0 {
			ws.queueDelivery(&one)
			continue
		}
		time.AfterFunc(delay, func() {
			ws.mu.Lock()
			defer ws.mu.Unlock()
			ws.queueDelivery(&one)
		})
	}
}

// queueDelivery is called with mu held.
func (ws *webhookSender) queueDelivery(d *Delivery) {
	ws.queue = append(ws.queue, d)
	select {
	case ws.wake <- struct{}{}:
	default:
	}
}

func (ws *webhookSender) run() {
	defer close(ws.done)
	for {
		select {
		case <-ws.ctx.Done():
			return
		case <-ws.wake:
		}
		for d := ws.nextDelivery(); d != nil; d = ws.nextDelivery() {
			ws.deliver(d)
			ws.finishDelivery(d)
			if ws.ctx.Err() != nil {
				return
			}
		}
	}
}

func (ws *webhookSender) nextDelivery() *Delivery {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.queue) == 0 {
		return nil
	}
	d := ws.queue[0]
	ws.queue = ws.queue[1:]
	return d
}

func (ws *webhookSender) finishDelivery(d *Delivery) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.recordDelivery(*d)
	ws.pending--
	if ws.pending == 0 {
		close(ws.idle)
	}
}

func (ws *webhookSender) recordDelivery(d Delivery) {
	d.At = ws.now()
	ws.lastLog++
	d.log = ws.lastLog
	if d.flag != "" && d.Err != droppedDelivery {
		ws.recordResult(&d)
	}
	ws.history = append(ws.history, d)
	if len(ws.history) > maxDeliveries {
		ws.history = ws.history[len(ws.history)-maxDeliveries:]
	}
	ws.lastByHook[d.hook.id] = d
}

// deliver makes the request that the forge makes.
func (ws *webhookSender) deliver(d *Delivery) {
	body, contentType := d.body, "application/json"
	if d.hook.contentType == "form" {
		body, contentType = []byte(url.Values{"payload": {string(d.body)}}.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(ws.ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		d.Err = err.Error()
		return
	}
	if d.flag != "" {
		d.sent = ws.gitlabHeaders(d)
		req.Header = d.sent.Clone()
	} else {
		req.Header = githubHeaders(d, contentType, body)
	}
	start := time.Now()
	res, err := ws.client.Do(req)
	d.took = time.Since(start)
	if err != nil {
		d.Err = err.Error()
		return
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxHookAnswer))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		d.Err = err.Error()
	}
	d.Status, d.answer = res.StatusCode, string(answer)
}

func githubHeaders(d *Delivery, contentType string, body []byte) http.Header {
	h := http.Header{}
	id, target, kind := strconv.FormatInt(d.hook.id, 10), d.hook.id, "repository"
	if d.hook.app != nil {
		target, kind = d.hook.app.id, "integration"
	}
	for k, v := range map[string]string{
		"Content-Type": contentType, "User-Agent": "GitHub-Hookshot/0000000", "Accept": "*/*",
		"X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.ID, "X-GitHub-Hook-ID": id,
		"X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(target, 10), "X-GitHub-Hook-Installation-Target-Type": kind,
	} {
		h.Set(k, v)
	}
	if d.hook.secret != "" {
		h.Set("X-Hub-Signature-256", signBody(d.hook.secret, body))
	}
	return h
}

// lastResponse is what the hook's receiver said last: a status code, nil when
// nothing was sent yet, and a word for it.
func (ws *webhookSender) lastResponse(id int64) (code any, word string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	d, ok := ws.lastByHook[id]
	switch {
	case !ok:
		return nil, ""
	case d.Status >= 200 && d.Status < 300:
		return d.Status, "active"
	default:
		return d.Status, "misconfigured"
	}
}

// SetDeliveryOptions changes how deliveries are made from now on.
func (f *Forge) SetDeliveryOptions(w DeliveryOptions) { f.sender.configure(w) }

// Deliveries are the webhooks so far, oldest first, those under way not
// included. Only the newest 2,000 are kept.
func (f *Forge) Deliveries() []Delivery {
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	return append([]Delivery(nil), f.sender.history...)
}

// Redeliver sends a past delivery again, with the same identity and body.
func (f *Forge) Redeliver(id string) error {
	for _, d := range f.Deliveries() {
		if d.ID == id {
			d.Status, d.Err, d.again = 0, "", true
			f.sender.enqueue(d)
			return nil
		}
	}
	return fmt.Errorf("redelivering %s: there was no such delivery", id)
}

// WaitIdle waits until no webhook is queued, delayed or under way.
func (f *Forge) WaitIdle(ctx context.Context) error {
	for {
		f.sender.mu.Lock()
		pending, idle := f.sender.pending, f.sender.idle
		f.sender.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d webhooks: %w", pending, context.Cause(ctx))
		}
	}
}
