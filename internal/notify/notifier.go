package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// The types of channels.
const (
	Webhook = "webhook" // CloudEvents in JSON, signed as Standard Webhooks says
	Slack   = "slack"   // an incoming webhook
	Teams   = "teams"   // a workflow's incoming webhook
)

const (
	// gatherFor is how long an event waits for others that say the same of other
	// components, so that one incident is one message.
	gatherFor = 10 * time.Second
	// maxEvents is how many events are read at once.
	maxEvents = 500
	// maxAge is how long what can't be delivered is kept.
	maxAge = 24 * time.Hour
	// slotFor is how long a channel is one process's; sending takes sendTimeout at most.
	slotFor = time.Minute
	// lookEvery is how often a channel's events are read when nothing announces any.
	lookEvery = 30 * time.Second
	// rulesWithin is how long an event waits for the rules of a pipeline that can't be read.
	rulesWithin = 15 * time.Minute
)

// Channel is where messages go.
type Channel struct {
	Name, Type string
	URL        string // a secret: its holder may write
	Secret     string // of a webhook: whsec_ and a key in base64
}

// Store is what a notifier needs of the store; *store.Store is one.
type Store interface {
	Events(ctx context.Context, f store.EventFilter) ([]store.Event, error)
	record.ReadWriter
	TakeSlot(ctx context.Context, name, owner string, ttl time.Duration) (bool, error)
	Subscribe() (<-chan struct{}, func())
}

// Options say what is told to whom. All but Log, HTTP and OnSent are needed.
type Options struct {
	Store    Store
	Channels []Channel
	// Routes says which events of a pipeline each channel is told of; false: that can't be
	// read now.
	Routes func(ctx context.Context, repo, name string) (map[string][]string, bool)
	// PullURL is a pull request's address on the forge; empty: not known.
	PullURL func(ctx context.Context, repo string, number int) string
	Console string // the server's address for people; empty: none
	Owner   string // unique among all processes
	Clock   clock.WithTicker
	Log     *zap.Logger
	HTTP    *http.Client                              // nil: one that follows no redirects
	OnSent  func(channel string, events int, ok bool) // of each try
}

// Notifier sends messages. Its methods may be called concurrently.
type Notifier struct {
	o       Options
	senders map[string]sender

	mu      sync.Mutex
	failing map[string]Failure
}

// Failure is a channel that can't be told, for the console.
type Failure struct {
	Err   string
	Since time.Time
}

// New makes a notifier. The error names the channel that can't be used.
func New(o Options) (*Notifier, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.HTTP == nil {
		o.HTTP = newHTTPClient()
	}
	if o.OnSent == nil {
		o.OnSent = func(string, int, bool) {}
	}
	n := &Notifier{o: o, senders: map[string]sender{}, failing: map[string]Failure{}}
	for _, c := range o.Channels {
		s, err := newSender(c, o.HTTP, o.Clock.Now)
		if err != nil {
			return nil, fmt.Errorf("the channel %s: %w", c.Name, err)
		}
		n.senders[c.Name] = s
	}
	return n, nil
}

// Run sends what is to be sent until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	var channels sync.WaitGroup
	for _, c := range n.o.Channels {
		channels.Go(func() { n.runChannel(ctx, c.Name) })
	}
	channels.Wait()
}

// runChannel sends events to one channel until the context ends. After a step it waits for the time that the step
// named, such as that of the next try; where it named none, for the next event. A timeout stands in for a store that
// tells of no events.
func (n *Notifier) runChannel(ctx context.Context, name string) {
	events, cancel := n.o.Store.Subscribe()
	defer cancel()
	for ctx.Err() == nil {
		next, err := n.Step(ctx, name)
		if err != nil && ctx.Err() == nil {
			n.o.Log.Warn("a channel could not be notified", zap.String("channel", name), zap.Time("again", next), zap.Error(err))
		}
		now := n.o.Clock.Now()
		wait := lookEvery
		if !next.IsZero() {
			wait = max(next.Sub(now), 0)
			select {
			case <-n.o.Clock.After(wait):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-events:
		case <-n.o.Clock.After(wait):
		case <-ctx.Done():
		}
	}
}

// position is how far a channel has come.
type position struct {
	After     int64     `json:"after"`          // everything up to here was sent, or isn't for it
	Sent      []int64   `json:"sent,omitempty"` // what was sent behind that, before others of which it has to be told
	Tries     int       `json:"tries,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// positions are by channel.
var positions = record.Declare[record.Named, position](record.Declaration{
	Name: "notified", Owner: "notify", Lifetime: record.Lasting,
	Doc: "How far the events were sent to the channel. Without it nothing old is sent.",
})

func (n *Notifier) readPosition(ctx context.Context, name string) (p position, err error) {
	p, known, err := positions.Get(ctx, n.o.Store, record.Named(name))
	if err != nil || known {
		return p, err
	}
	// It is new, or the database is: nothing old is told.
	newest, err := n.o.Store.Events(ctx, store.EventFilter{Newest: true, Limit: 1})
	if err != nil {
		return p, err
	}
	if len(newest) > 0 {
		p.After = newest[0].Seq
	}
	return p, n.writePosition(ctx, name, p)
}

func (n *Notifier) writePosition(ctx context.Context, name string, p position) error {
	return positions.Put(ctx, n.o.Store, record.Named(name), p)
}

// Step sends a channel what is due, one message at most, unless another process is at it.
// It gives when to call again at the latest; zero: when there is a new event. The error
// is why something wasn't sent; it is tried again then.
func (n *Notifier) Step(ctx context.Context, name string) (next time.Time, err error) {
	now := n.o.Clock.Now()
	mine, err := n.o.Store.TakeSlot(ctx, "notify|"+name, n.o.Owner, slotFor)
	if err != nil || !mine {
		return now.Add(lookEvery), err
	}
	p, err := n.readPosition(ctx, name)
	if err != nil {
		return now.Add(lookEvery), err
	}
	// A wait that is longer than any was written by a clock that was ahead.
	if now.Before(p.NotBefore) && p.NotBefore.Sub(now) <= longestDelay {
		return p.NotBefore, nil
	}
	all, err := n.o.Store.Events(ctx, store.EventFilter{After: p.After, Limit: maxEvents})
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	batch, until, wait := n.choose(ctx, name, all, p.Sent)
	if len(batch) == 0 {
		if until > p.After {
			p = p.moveOn(until, nil)
			if err := n.writePosition(ctx, name, p); err != nil {
				return now.Add(lookEvery), err
			}
		}
		if wait.IsZero() && len(all) == maxEvents {
			wait = now
		}
		return wait, nil
	}
	return n.send(ctx, name, p, batch, until)
}

// send sends events that belong together, and moves the channel on behind them.
func (n *Notifier) send(ctx context.Context, name string, p position, batch []store.Event, until int64) (time.Time, error) {
	now := n.o.Clock.Now()
	err := n.senders[name].send(ctx, n.message(ctx, batch))
	n.o.OnSent(name, len(batch), err == nil)
	n.noteFailure(name, err)
	var failed *sendError
	switch {
	case err == nil:
		p = p.moveOn(until, batch)
	case ctx.Err() != nil:
		return now, err
	case errors.As(err, &failed) && failed.refused && p.Tries+1 >= maxRefusals:
		n.o.Log.Error("a notification was refused and is left out", zap.String("channel", name), zap.Int("events", len(batch)),
			zap.String("first", batch[0].Message), zap.Error(err))
		p = p.moveOn(until, batch)
	default:
		p.Tries++
		p.NotBefore = now.Add(retryDelay(p.Tries, failed))
	}
	if werr := n.writePosition(ctx, name, p); werr != nil {
		return now.Add(time.Second), errors.Join(err, werr)
	}
	if p.NotBefore.IsZero() {
		return now, nil // maybe there is more
	}
	return p.NotBefore, err
}

// moveOn is the place of a channel when it was sent a batch and everything up to a place.
func (p position) moveOn(until int64, batch []store.Event) position {
	sent := slices.Clone(p.Sent)
	for i := range batch {
		sent = append(sent, batch[i].Seq)
	}
	sent = slices.DeleteFunc(sent, func(seq int64) bool { return seq <= until })
	slices.Sort(sent)
	return position{After: until, Sent: sent}
}

// choose picks from the events behind a channel's place those that make its next message; sent are
// those that it was told of already. until is the place up to which nothing is left then, and wait
// when to look again where they aren't all there yet. Others may come between events of one
// message, as a revert opens between two of many that degrade, and are told after it. But a
// component's events are always told in their order.
func (n *Notifier) choose(ctx context.Context, name string, all []store.Event, sent []int64) (batch []store.Event, until int64,
	wait time.Time) {
	now := n.o.Clock.Now()
	single := n.senders[name].single()
	left := map[string]bool{} // components of which something is left for a later message
	for i := range all {
		e := &all[i]
		wanted, known := n.isWanted(ctx, name, e)
		isDone := slices.Contains(sent, e.Seq)
		switch {
		case isDone:
		case !known && now.Sub(e.At) < rulesWithin:
			if len(batch) == 0 {
				return nil, until, now.Add(lookEvery)
			}
			return batch, until, time.Time{}
		case !known, !wanted, now.Sub(e.At) > maxAge:
			if wanted || !known {
				n.o.Log.Warn("a notification is too old and is left out", zap.String("channel", name), zap.Time("of", e.At),
					zap.String("message", e.Message))
			}
			isDone = true
		case single:
			return []store.Event{*e}, e.Seq, time.Time{}
		case len(batch) == 0:
			// One of a time that comes yet was written by a clock that was ahead.
			if due := e.At.Add(gatherFor); now.Before(due) && due.Sub(now) <= gatherFor {
				return nil, until, due
			}
			batch, isDone = []store.Event{*e}, true
		case isSameHappening(&batch[0], e) && !left[e.Component]:
			batch, isDone = append(batch, *e), true
		default:
			left[e.Component] = true
		}
		if isDone && len(left) == 0 {
			until = e.Seq
		}
	}
	return batch, until, time.Time{}
}

// isSameHappening says that two events are one for people: the same happened to another
// component.
func isSameHappening(a, b *store.Event) bool {
	return a.Repo == b.Repo && a.Pipeline == b.Pipeline && wordOf(a) == wordOf(b) && b.At.Sub(a.At) <= 5*time.Minute
}

// isWanted says whether a channel is told of an event; known is false where the rules
// can't be read.
func (n *Notifier) isWanted(ctx context.Context, name string, e *store.Event) (wanted, known bool) {
	word := wordOf(e)
	if word == "" || e.Pipeline == "" {
		return false, true
	}
	routes, known := n.o.Routes(ctx, e.Repo, e.Pipeline)
	return known && slices.Contains(routes[name], word), known
}

// Failures are the channels that can't be told, by name.
func (n *Notifier) Failures() map[string]Failure {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[string]Failure, len(n.failing))
	for name, f := range n.failing {
		out[name] = f
	}
	return out
}

func (n *Notifier) noteFailure(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.failing, name)
		return
	}
	f, failing := n.failing[name]
	if !failing {
		f.Since = n.o.Clock.Now()
	}
	f.Err = err.Error()
	n.failing[name] = f
}
