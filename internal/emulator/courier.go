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
	// deliveryTimeout is GitHub's: ten seconds, and it never tries again.
	deliveryTimeout = 10 * time.Second
	// maxDeliveries bounds what is remembered of past deliveries.
	maxDeliveries = 2000
	// shuffleWindow is the time within which shuffled deliveries overtake each other.
	shuffleWindow = 200 * time.Millisecond
)

// Webhooks says how unreliable deliveries are. The zero value delivers each
// event once, in order and at once.
type Webhooks struct {
	Drop    bool          // deliver nothing
	Times   int           // deliver each event so often, with one identity; 0: once
	Shuffle bool          // let deliveries overtake each other, by chance
	Seed    int64         // of that chance
	Delay   time.Duration // before each delivery
}

// Delivery is what became of one webhook.
type Delivery struct {
	ID     string // X-GitHub-Delivery; equal for repetitions
	Event  string
	Action string
	URL    string
	Status int    // the receiver's answer; 0: none
	Err    string // why there was no answer, or the event was dropped
	At     time.Time

	hook hook // as it was then
	body []byte
}

// courier delivers webhooks, one after the other.
type courier struct {
	log    *zap.Logger
	client *http.Client
	ctx    context.Context // ends with close: the courier's own life, not a caller's
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	how     Webhooks
	chance  *rand.Rand
	queue   []*Delivery
	wake    chan struct{} // has room for one
	pending int           // queued, delayed or under way
	idle    chan struct{} // closed when pending is 0
	past    []Delivery
	last    map[int64]Delivery // by hook
}

func newCourier(log *zap.Logger) *courier {
	c := &courier{
		log: log, client: &http.Client{Timeout: deliveryTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		done: make(chan struct{}), chance: rand.New(rand.NewSource(1)), wake: make(chan struct{}, 1),
		idle: make(chan struct{}), last: map[int64]Delivery{},
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	close(c.idle)
	go c.run()
	return c
}

func (c *courier) close() {
	c.stop()
	<-c.done
	c.client.CloseIdleConnections()
}

func (c *courier) configure(w Webhooks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.how, c.chance = w, rand.New(rand.NewSource(w.Seed))
}

// send queues an event for a hook. It never waits for the receiver.
func (c *courier) send(h *hook, event string, payload map[string]any) {
	body, err := json.Marshal(payload)
	if err != nil {
		// Payloads are built here from strings, numbers and times.
		c.log.Error("a webhook's payload can't be written", zap.String("event", event), zap.Error(err))
		return
	}
	action, _ := payload["action"].(string)
	c.enqueue(Delivery{ID: newUUID(), Event: event, Action: action, URL: h.url, hook: *h, body: body})
}

func (c *courier) enqueue(d Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how.Drop {
		d.Err = "dropped"
		c.remember(d)
		return
	}
	for range max(1, c.how.Times) {
		delay := c.how.Delay
		if c.how.Shuffle {
			delay += time.Duration(c.chance.Int63n(int64(shuffleWindow)))
		}
		if c.pending == 0 {
			c.idle = make(chan struct{})
		}
		c.pending++
		one := d
		if delay == 0 {
			c.put(&one)
			continue
		}
		time.AfterFunc(delay, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.put(&one)
		})
	}
}

// put is called with mu held.
func (c *courier) put(d *Delivery) {
	c.queue = append(c.queue, d)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *courier) run() {
	defer close(c.done)
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.wake:
		}
		for d := c.next(); d != nil; d = c.next() {
			c.deliver(d)
			c.finish(d)
			if c.ctx.Err() != nil {
				return
			}
		}
	}
}

func (c *courier) next() *Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	d := c.queue[0]
	c.queue = c.queue[1:]
	return d
}

func (c *courier) finish(d *Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(*d)
	c.pending--
	if c.pending == 0 {
		close(c.idle)
	}
}

func (c *courier) remember(d Delivery) {
	d.At = time.Now()
	c.past = append(c.past, d)
	if len(c.past) > maxDeliveries {
		c.past = c.past[len(c.past)-maxDeliveries:]
	}
	c.last[d.hook.id] = d
}

// deliver makes the request that GitHub makes.
func (c *courier) deliver(d *Delivery) {
	body, contentType := d.body, "application/json"
	if d.hook.contentType == "form" {
		body, contentType = []byte(url.Values{"payload": {string(d.body)}}.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		d.Err = err.Error()
		return
	}
	id := strconv.FormatInt(d.hook.id, 10)
	for k, v := range map[string]string{
		"Content-Type": contentType, "User-Agent": "GitHub-Hookshot/0000000", "Accept": "*/*",
		"X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.ID, "X-GitHub-Hook-ID": id,
		"X-GitHub-Hook-Installation-Target-ID": id, "X-GitHub-Hook-Installation-Target-Type": "repository",
	} {
		req.Header.Set(k, v)
	}
	if d.hook.secret != "" {
		req.Header.Set("X-Hub-Signature-256", sign(d.hook.secret, body))
	}
	res, err := c.client.Do(req)
	if err != nil {
		d.Err = err.Error()
		return
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		d.Err = err.Error()
	}
	d.Status = res.StatusCode
}

// lastAnswer is what the hook's receiver said last: a status code, nil when
// nothing was sent yet, and a word for it.
func (c *courier) lastAnswer(id int64) (code any, word string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.last[id]
	switch {
	case !ok:
		return nil, ""
	case d.Status >= 200 && d.Status < 300:
		return d.Status, "active"
	default:
		return d.Status, "misconfigured"
	}
}

// SetWebhooks changes how deliveries are made from now on.
func (f *Forge) SetWebhooks(w Webhooks) { f.mail.configure(w) }

// Deliveries are the webhooks so far, oldest first, those under way not
// included. Only the newest 2,000 are kept.
func (f *Forge) Deliveries() []Delivery {
	f.mail.mu.Lock()
	defer f.mail.mu.Unlock()
	return append([]Delivery(nil), f.mail.past...)
}

// Redeliver sends a past delivery again, with the same identity and body.
func (f *Forge) Redeliver(id string) error {
	for _, d := range f.Deliveries() {
		if d.ID == id {
			d.Status, d.Err = 0, ""
			f.mail.enqueue(d)
			return nil
		}
	}
	return fmt.Errorf("redelivering %s: there was no such delivery", id)
}

// WaitIdle waits until no webhook is queued, delayed or under way.
func (f *Forge) WaitIdle(ctx context.Context) error {
	for {
		f.mail.mu.Lock()
		pending, idle := f.mail.pending, f.mail.idle
		f.mail.mu.Unlock()
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
