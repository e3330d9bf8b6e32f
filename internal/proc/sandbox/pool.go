package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/proc"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// MaxBatch is how many items one batch may have.
	MaxBatch = 64
	// defaultMaxHeap is how large a worker's heap may stay between two batches, and
	// defaultMaxItems and defaultMaxCPU how much it may have done: then it is replaced.
	defaultMaxHeap  = 128 << 20
	defaultMaxItems = 5_000
	defaultMaxCPU   = 5 * time.Minute
	// defaultIdleTime is how long a worker that nobody needs is kept.
	defaultIdleTime = time.Minute
	// maxTries is how often an item is begun that may not be what its worker died of.
	maxTries = 3
)

// PoolOptions are the options of a Pool. Program is required.
type PoolOptions struct {
	Program string   // the program that calls ServeBatches: our own executable
	Args    []string // what makes it do so
	// Limits are those of a worker (Memory) and of each item: CPU, Time, Answer, and Reads of
	// a batch. A field that is 0 is its default's, as of a Runner.
	Limits  Limits
	Workers int // how many there are at once, at most; default 2

	MaxItems int           // after so many a worker is replaced; default 5,000
	MaxCPU   time.Duration // after so much CPU time; default 5 minutes
	MaxHeap  uint64        // when so many bytes stay in its heap; default 128 MiB
	IdleTime time.Duration // how long one is kept that nobody needs; default a minute

	Log *zap.Logger // default: none
}

// Pool runs batches in worker processes that live on, for trees whose authors may write to the
// branches that we deploy from. Their files may kill a worker, and that costs them their own
// answer. A stranger's head never gets here: a worker remembers one batch's files by their
// identities, and these serve the next. It is safe for concurrent use.
type Pool struct {
	o     PoolOptions
	slots chan struct{}
	// life ends the workers.
	stop context.CancelFunc
	life context.Context // of the pool, which is no call

	mu   sync.Mutex
	idle []*poolWorker // the one that worked last at the end
}

// NewPool makes a pool. Nothing is started yet.
func NewPool(o PoolOptions) *Pool {
	o.Limits = o.Limits.withDefaults()
	o.Workers = cmp.Or(o.Workers, defaultMaxConcurrent)
	o.MaxItems = cmp.Or(o.MaxItems, defaultMaxItems)
	o.MaxCPU = cmp.Or(o.MaxCPU, defaultMaxCPU)
	o.MaxHeap = cmp.Or(o.MaxHeap, defaultMaxHeap)
	o.IdleTime = cmp.Or(o.IdleTime, defaultIdleTime)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	p := &Pool{o: o, slots: make(chan struct{}, o.Workers)}
	p.life, p.stop = context.WithCancel(context.Background())
	return p
}

// Workers is how many there are at once, at most.
func (p *Pool) Workers() int { return p.o.Workers }

// Close ends all workers, also those at work.
func (p *Pool) Close() {
	p.stop()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w.end()
	}
}

// poolWorker is a worker process with what its parent knows of it.
type poolWorker struct {
	process *proc.Process
	in      *bufio.Reader
	out     *bufio.Writer
	host    contentHost
	items   int         // that it has answered
	expiry  *time.Timer // while it is idle
}

func (p *poolWorker) end() {
	if p.expiry != nil {
		p.expiry.Stop()
	}
	p.process.End()
}

// Batch is what is asked for at once.
type Batch struct {
	Task  string
	Items [][]byte               // at most MaxBatch
	Trees map[string]ContentTree // that the items may read, by the identities of their roots
	// Answer is called once for each item, in their order, with the handler's answer, or with
	// a [*HandlerError] or an [*Error] that is about this item alone.
	Answer func(item int, answer []byte, err error)
}

// Run has workers run a batch. Where one dies, the item that it was at has that as its
// answer, and another worker goes on with the rest. The error is the context's, or that of a
// worker that can't be started: then some items have no answer.
func (p *Pool) Run(ctx context.Context, b Batch) error {
	if len(b.Items) > MaxBatch {
		return fmt.Errorf("%s: %d items are too many for a batch; at most %d", b.Task, len(b.Items), MaxBatch)
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for other tasks to end: %w", b.Task, context.Cause(ctx))
	}
	tries := 0
	for next := 0; next < len(b.Items); {
		w, err := p.take()
		if err != nil {
			return fmt.Errorf("%s: starting a process for it: %w", b.Task, err)
		}
		fresh := w.items == 0
		done, err := p.runOn(ctx, w, b, next)
		if err == nil {
			return nil
		}
		if done > next {
			next, tries, fresh = done, 0, false
		}
		var about *Error
		if !errors.As(err, &about) || ctx.Err() != nil {
			return err
		}
		p.o.Log.Warn("a worker died", zap.String("task", b.Task), zap.Int("item", next), zap.Int("items", len(b.Items)), zap.Error(err))
		// Memory may have gone to others before, and a kill from outside may have been meant for
		// another one.
		if tries++; tries < maxTries && (errors.Is(err, ErrEndedOutside) || errors.Is(err, ErrMemory) && !fresh) {
			continue
		}
		if next == len(b.Items) {
			return nil // it died after its last answer
		}
		b.Answer(next, nil, err)
		next, tries = next+1, 0
	}
	return nil
}

// take gives an idle worker, or starts one.
func (p *Pool) take() (*poolWorker, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		w.expiry.Stop()
		return w, nil
	}
	p.mu.Unlock()
	c := childCommand(p.o.Program, p.o.Args, p.o.Limits)
	if proc.CanLimit() { // an item's own limit is the worker's to set, below this
		c.Limits.CPU = p.o.MaxCPU + MaxBatch*p.o.Limits.CPU
	}
	process, err := proc.Start(p.life, c)
	if err != nil {
		return nil, err
	}
	return &poolWorker{process: process, in: bufio.NewReaderSize(process.Stdout, 64<<10), out: bufio.NewWriterSize(process.Stdin, 64<<10),
		host: contentHost{sent: map[string]bool{}}}, nil
}

// giveBack keeps a worker for the next batch, unless it has done enough.
func (p *Pool) giveBack(w *poolWorker, heap uint64, cpu time.Duration) {
	if w.items >= p.o.MaxItems || heap > p.o.MaxHeap || cpu > p.o.MaxCPU || len(w.host.sent) > maxWorkerEntries {
		w.end()
		return
	}
	w.host.trees = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		w.process.Kill()
		return
	}
	w.expiry = time.AfterFunc(p.o.IdleTime, func() { p.expire(w) })
	p.idle = append(p.idle, w)
}

// expire ends a worker that nobody took meanwhile.
func (p *Pool) expire(w *poolWorker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.idle {
		if known == w {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			go w.process.End()
			return
		}
	}
}

// runOn has a worker run the items from the next one on, and says how many were answered in
// all. With an error the worker is gone.
func (p *Pool) runOn(ctx context.Context, w *poolWorker, b Batch, next int) (done int, err error) {
	w.host.trees, w.host.bytesLeft, w.host.budget = b.Trees, p.o.Limits.Reads, 0
	type step struct {
		letter  byte
		payload []byte
		err     error
	}
	steps, abandoned := make(chan step, 4), make(chan struct{})
	defer close(abandoned)
	go func() {
		letter, payload, err := byte(0), []byte(nil), w.sendBatch(b.Task, p.o.Limits.CPU, b.Items[next:])
		for {
			if err == nil {
				letter, payload, err = w.nextFrame(ctx, p.o.Limits.Answer)
			}
			select {
			case steps <- step{letter, payload, err}:
			case <-abandoned:
				return
			}
			if err != nil || letter == frameBatchEnd {
				return
			}
		}
	}()
	timer := time.NewTimer(p.o.Limits.Time)
	defer timer.Stop()
	for done = next; ; {
		var s step
		select {
		case s = <-steps:
		case <-ctx.Done():
			w.end()
			return done, fmt.Errorf("%s: %w", b.Task, context.Cause(ctx))
		case <-timer.C:
			w.end()
			return done, &Error{Task: b.Task, Kind: ErrTime, Text: fmt.Sprintf("it takes longer than %s", p.o.Limits.Time)}
		}
		if s.err == nil && s.letter == frameBatchEnd && done == len(b.Items) {
			r := &payloadReader{rest: s.payload}
			p.giveBack(w, r.readNumber(), time.Duration(r.readNumber()))
			return done, nil
		}
		if s.err == nil && done == len(b.Items) {
			s.err = fmt.Errorf("%w: more answers than items", errProtocol)
		}
		switch {
		case s.err != nil:
		case s.letter == frameAnswer:
			b.Answer(done, s.payload, nil)
		case s.letter == frameRefused:
			b.Answer(done, nil, &HandlerError{Message: wording.Clip(string(s.payload), maxErrorText)})
		case s.letter == framePanic:
			w.end()
			return done, newPanicError(p.o.Log, b.Task, s.payload)
		case s.letter == frameCPU:
			w.end()
			return done, &Error{Task: b.Task, Kind: ErrCPU, Text: p.o.Limits.cpuText()}
		default:
			s.err = fmt.Errorf("%w: an end before the last answer", errProtocol)
		}
		if s.err != nil {
			return done, p.explainDeath(ctx, w, b.Task, s.err)
		}
		done++
		w.items++
		timer.Reset(p.o.Limits.Time)
	}
}

// sendBatch writes the items that are left.
func (p *poolWorker) sendBatch(task string, cpu time.Duration, items [][]byte) error {
	head := binary.AppendUvarint(appendString(nil, task), uint64(cpu))
	parts := [][]byte{binary.AppendUvarint(head, uint64(len(items)))}
	size := 0
	for _, item := range items {
		size += len(item)
		parts = append(parts, binary.AppendUvarint(nil, uint64(len(item))), item)
	}
	if size > maxTask {
		return &oversizeError{letter: frameBatch, size: int64(size), max: maxTask}
	}
	if writeFrame(p.out, frameBatch, parts...) != nil || p.out.Flush() != nil {
		return errNoAnswer
	}
	return nil
}

// nextFrame answers questions until the worker says something of an item.
func (p *poolWorker) nextFrame(ctx context.Context, maxAnswer int64) (byte, []byte, error) {
	most := maxFromWorker(maxAnswer)
	for {
		letter, payload, err := readFrame(p.in, most)
		if err != nil && !errors.Is(err, errProtocol) {
			err = errNoAnswer
		}
		if err != nil {
			return letter, nil, err
		}
		switch letter {
		case frameAnswer, frameRefused, framePanic, frameCPU, frameBatchEnd:
			return letter, payload, nil
		}
		if letter, payload, err = p.host.handleRequest(ctx, letter, payload); err != nil {
			return letter, nil, err
		}
		if writeFrame(p.out, letter, payload) != nil || p.out.Flush() != nil {
			continue // it is gone, and what it said before is still to be read
		}
	}
}

// explainDeath ends a worker and says what it died of.
func (p *Pool) explainDeath(ctx context.Context, w *poolWorker, task string, err error) error {
	if !errors.Is(err, errNoAnswer) {
		w.end()
		return p.o.Limits.explainRefusal(task, err)
	}
	ended := w.process.Wait()
	if p.life.Err() != nil {
		return fmt.Errorf("%s: the program is ending", task)
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", task, cause)
	}
	limits := p.o.Limits
	cpu := w.process.CPU()
	if cpu < p.o.MaxCPU { // then the kernel's limit is far away
		cpu = 0
	}
	return limits.explainExit(task, ended, cpu)
}
