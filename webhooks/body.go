package webhooks

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// MaxBody is the largest body that is read, in bytes. GitHub caps its
	// payloads at 25 MB and drops what is larger; the default of other servers
	// (1 GB in GHSA-jmvp-698c-4x3w) lets a stranger fill the memory.
	MaxBody = 25_000_000

	// ReadTimeout is how long a sender may take for its body. GitHub itself gives
	// up a delivery after 10 s.
	ReadTimeout = 15 * time.Second

	// StallTimeout is how long a sender may be behind MinRate: long enough for a
	// packet that was lost twice, short enough that a stalled one is soon gone.
	StallTimeout = 3 * time.Second

	// MinRate is how many bytes a second a body must bring.
	MinRate = 16 << 10

	// RefusalTimeout is how long the rest of a body is waited for that is refused
	// before it was read, so that its sender gets to read why.
	RefusalTimeout = time.Second

	// firstReadSize is the first buffer's size: what a sender gets for nothing.
	firstReadSize = 4 << 10
)

// bodyReader reads a body within the budget and in time.
type bodyReader struct {
	pending *pendingBody
	data    []byte
}

// readBody reads a body to its end. announced is the Content-Length, negative when
// it isn't known; room for it is taken only as bytes come.
func (b *bodyReader) readBody(body io.Reader, announced int64) *Refusal {
	for size := firstReadSize; ; size = 2 * cap(b.data) {
		if len(b.data) == cap(b.data) && !b.grow(min(size, MaxBody+1), announced > SmallBody) {
			return newBusyRefusal()
		}
		if !b.pending.extend(bodyDeadline(b.pending.started, len(b.data))) {
			return newBusyRefusal()
		}
		n, err := body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if errors.Is(err, io.EOF) {
			b.pending.stopReading()
			return nil
		}
		if err != nil {
			return b.explainRead(err)
		}
	}
}

// ReadBody reads a body of at most limit bytes, whose sender isn't known yet. It does so in the way
// of deliveries: within the budget, in time, and giving way to others where there are too many. w
// is only used to bound the time; nothing is written to it. Exactly one of the results is nil.
func (b *Budget) ReadBody(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, *Refusal) {
	controller := http.NewResponseController(w)
	body := &bodyReader{pending: b.admit(req, func(t time.Time) {
		_ = controller.SetReadDeadline(t) // recorders have none, and then nobody dawdles
	})}
	defer body.release()
	if refusal := body.readBody(http.MaxBytesReader(w, req.Body, limit), req.ContentLength); refusal != nil {
		refusal.unread = true
		return nil, refusal
	}
	return bytes.Clone(body.data), nil
}

// bodyDeadline is when a body must have brought more than the bytes it has.
func bodyDeadline(started time.Time, received int) time.Time {
	behind := StallTimeout + time.Duration(received)*time.Second/MinRate
	return started.Add(min(behind, ReadTimeout))
}

// explainRead says why a body could not be read.
func (b *bodyReader) explainRead(err error) *Refusal {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newTooLargeRefusal(tooLarge.Limit)
	case b.pending.isDisplaced():
		return newBusyRefusal()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Refusal{Status: http.StatusRequestTimeout, Outcome: OutcomeSlow, Reason: "the body took too long to arrive"}
	default:
		return newMalformedRefusal("the body ended too early")
	}
}

// grow gives the buffer another size; false when there is no room. While it
// copies, both buffers count.
func (b *bodyReader) grow(size int, large bool) bool {
	if !b.pending.budget.reserve(b.pending, int64(size), large || size > SmallBody) {
		return false
	}
	old := b.data
	b.data = append(b.pending.budget.buffers.get(size), old...)
	b.pending.budget.buffers.put(old)
	b.pending.giveBack(int64(cap(old)))
	return true
}

// release gives all room back; the data must not be used afterwards.
func (b *bodyReader) release() {
	b.pending.release()
	b.pending.budget.buffers.put(b.data)
	b.data = nil
}

// bufferPools keep the buffers of small bodies for the next ones, a pool for each size that a
// buffer grows through. Without them a fifth of a delivery's time went into clearing them away.
type bufferPools [6]sync.Pool

// poolOf finds the pool of a size; nil when buffers of that size aren't kept.
func (b *bufferPools) poolOf(size int) *sync.Pool {
	for i := range b {
		if size == firstReadSize<<i {
			return &b[i]
		}
	}
	return nil
}

// get gives an empty buffer of a size.
func (b *bufferPools) get(size int) []byte {
	if pool := b.poolOf(size); pool != nil {
		if kept, ok := pool.Get().(*[]byte); ok {
			return (*kept)[:0]
		}
	}
	return make([]byte, 0, size)
}

// put takes a buffer back that nobody uses any more.
func (b *bufferPools) put(buffer []byte) {
	if pool := b.poolOf(cap(buffer)); pool != nil {
		pool.Put(&buffer)
	}
}
