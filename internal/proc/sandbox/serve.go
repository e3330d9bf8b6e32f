package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// Trees are what a task looks at: the parent's, and in the child the way to them.
type Trees struct {
	Main fs.FS
	// Named opens another tree by a name that both sides understand; nil:
	// there is no other. The error's text comes over, its type doesn't.
	Named func(ctx context.Context, name string) (fs.FS, error)
}

// Handler evaluates something over trees, in the child. The output becomes
// JSON. The error becomes a [HandlerError]; its text is for people. The context has
// the run's deadline, at which the process is ended: a handler that wants to
// say what took so long ends earlier.
type Handler func(ctx context.Context, trees Trees, input json.RawMessage) (output any, err error)

// maxStack bounds one goroutine's stack, so that endless recursion ends as such and not by the
// limit of memory. A stack that grows is there twice while it is copied, and a recursion has a
// heap, too. Templates that call each other get tens of thousands deep.
const maxStack = 64 << 20

// Serve is the child's side: it reads one task from in, runs its handler, and
// answers on out. Nothing is parsed before the task is there, which the parent
// sends when the limits are in force. It returns when the answer is written;
// the process must end then, because a handler may still be running. The error
// is for a parent that is gone or doesn't speak the protocol; what the handler
// does is the parent's to hear.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handlers map[string]Handler) error {
	debug.SetMaxStack(maxStack)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	buffered := bufio.NewReaderSize(in, 64<<10)
	letter, payload, err := readFrame(buffered, maxFromParent)
	if err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	task := &payloadReader{rest: payload}
	kind, timeout := task.readString(), time.Duration(task.readNumber())
	if task.err != nil || letter != frameTask {
		return fmt.Errorf("reading the task: %w", errors.Join(errProtocol, task.err))
	}
	c := newConn(buffered, bufio.NewWriterSize(out, 64<<10))
	handler, ok := handlers[kind]
	if !ok {
		return c.sendFinal(frameRefused, []byte(wording.Clip(fmt.Sprintf("this program has no task %q: parent and child are of different "+
			"versions", kind), maxErrorText)))
	}
	usedUp, stop := cpuUsedUp()
	defer stop()
	ended := make(chan finalFrame, 1)
	// The end of its time is the parent's to tell.
	timed, cancelTimed := context.WithTimeout(ctx, timeout)
	defer cancelTimed()
	go func() { ended <- runHandler(timed, handler, c.remoteTrees(), task.rest) }()
	select {
	case v := <-ended:
		return c.sendFinal(v.letter, v.payload)
	case <-usedUp:
		return c.sendFinal(frameCPU, nil)
	case <-c.closed:
		return c.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finalFrame is the child's last frame.
type finalFrame struct {
	letter  byte
	payload []byte
}

// runHandler runs a handler to its end, whatever end that is.
func runHandler(ctx context.Context, h Handler, trees Trees, input json.RawMessage) (v finalFrame) {
	defer func() {
		if p := recover(); p != nil {
			words := appendString(nil, wording.Clip(fmt.Sprint(p), maxErrorText))
			v = finalFrame{framePanic, append(words, wording.Clip(string(debug.Stack()), maxPanic-len(words))...)}
		}
	}()
	output, err := h(ctx, trees, input)
	if err != nil {
		return finalFrame{frameRefused, []byte(wording.Clip(err.Error(), maxErrorText))}
	}
	payload, err := json.Marshal(output)
	if err != nil {
		return finalFrame{frameRefused, []byte(wording.Clip(fmt.Sprintf("writing the answer: %v", err), maxErrorText))}
	}
	return finalFrame{frameAnswer, payload}
}

// sendFinal writes the last frame.
func (c *conn) sendFinal(letter byte, payload []byte) error { return c.sendFrame(letter, payload, nil) }
