package sandbox

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// ItemHandler works on one item of a batch, in a worker that lives on. tree gives the trees that
// the batch names, by their identities. Anything that it left behind when it returns, a goroutine
// or a changed global, would be the next item's trouble: it leaves nothing. The error becomes a
// [HandlerError].
type ItemHandler func(ctx context.Context, tree func(root string) fs.FS, item []byte) ([]byte, error)

// ServeBatches is the side of a worker that lives on: it reads one batch after the other
// from in, runs its items, and answers each on out. It returns when the parent has no more,
// or when an item has used up its CPU time; the process must end then. The error is for a
// parent that is gone or doesn't speak the protocol.
func ServeBatches(ctx context.Context, in io.Reader, out io.Writer, handlers map[string]ItemHandler) error {
	debug.SetMaxStack(maxStack)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	usedUp, stop := cpuUsedUp()
	defer stop()
	c := newBatchConn(bufio.NewReaderSize(in, 64<<10), bufio.NewWriterSize(out, 64<<10))
	w := &batchWorker{conn: c, contents: newContentStore(c), handlers: handlers}
	ended := make(chan error, 1)
	go func() { ended <- w.serve(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-usedUp:
		return c.sendFinal(frameCPU, nil)
	case <-c.closed:
		if errors.Is(c.closeErr, io.EOF) {
			return nil // there are no more batches, and nobody waits for an answer
		}
		return c.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batchWorker is what a worker has from one batch to the next.
type batchWorker struct {
	conn     *conn
	contents *contentStore
	handlers map[string]ItemHandler
}

func (b *batchWorker) serve(ctx context.Context) error {
	for {
		select {
		case payload := <-b.conn.batches:
			if err := b.runBatch(ctx, payload); err != nil {
				return err
			}
		case <-b.conn.closed:
			return nil // the reader says why
		}
	}
}

// runBatch answers every item of a batch.
func (b *batchWorker) runBatch(ctx context.Context, payload []byte) error {
	r := &payloadReader{rest: payload}
	kind, cpu, count := r.readString(), time.Duration(r.readNumber()), r.readNumber()
	for range count {
		item := r.readString()
		if r.err != nil {
			return r.err
		}
		if err := limitCPU(cpu); err != nil {
			return fmt.Errorf("limiting the CPU time of an item: %w", err)
		}
		answer := b.runItem(ctx, kind, []byte(item))
		if err := b.conn.sendFinal(answer.letter, answer.payload); err != nil {
			return err
		}
		if answer.letter == framePanic {
			return nil // what it left half done is not to be used
		}
		b.contents.forget()
	}
	return b.conn.sendFinal(frameBatchEnd, binary.AppendUvarint(binary.AppendUvarint(nil, heapBytes()), uint64(cpuTime())))
}

// runItem runs one item to its end, whatever end that is.
func (b *batchWorker) runItem(ctx context.Context, kind string, item []byte) (v finalFrame) {
	defer func() {
		if p := recover(); p != nil {
			words := appendString(nil, wording.Clip(fmt.Sprint(p), maxErrorText))
			v = finalFrame{framePanic, append(words, wording.Clip(string(debug.Stack()), maxPanic-len(words))...)}
		}
	}()
	handler, ok := b.handlers[kind]
	if !ok {
		return finalFrame{frameRefused, []byte(wording.Clip(fmt.Sprintf("this program has no task %q: parent and child are of different "+
			"versions", kind), maxErrorText))}
	}
	output, err := handler(ctx, b.contents.Tree, item)
	if err != nil {
		return finalFrame{frameRefused, []byte(wording.Clip(err.Error(), maxErrorText))}
	}
	return finalFrame{frameAnswer, output}
}

// heapBytes are the bytes of objects in the heap, garbage that wasn't collected included. A
// heap that looks large is collected first.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if n := sample[0].Value.Uint64(); n < defaultMaxHeap {
		return n
	}
	runtime.GC()
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
