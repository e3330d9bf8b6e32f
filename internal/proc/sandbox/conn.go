package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// conn is the child's side of the pipes. Questions may be sent concurrently;
// the answers come in their order.
type conn struct {
	// closed is closed when the parent is: nobody waits for an answer any more.
	closed chan struct{}

	writeMu        sync.Mutex // held while a question is queued and written, so that both have one order
	w              *bufio.Writer
	pendingReplies chan chan<- reply
	closeErr       error // why closed is closed; read after it is

	batches chan []byte // of a worker that lives on; nil: it has one task
}

type reply struct {
	payload []byte
	err     error
}

// maxPendingRequests is how many questions may wait for their answers.
const maxPendingRequests = 256

// errParentExited says that the parent is gone.
var errParentExited = errors.New("the parent process is gone")

// newConn takes the pipes over once the task has been read.
func newConn(in io.Reader, out *bufio.Writer) *conn {
	return startConn(in, out, nil)
}

// newBatchConn takes the pipes over before the first batch.
func newBatchConn(in io.Reader, out *bufio.Writer) *conn {
	return startConn(in, out, make(chan []byte, 1))
}

func startConn(in io.Reader, out *bufio.Writer, batches chan []byte) *conn {
	c := &conn{closed: make(chan struct{}), w: out, pendingReplies: make(chan chan<- reply, maxPendingRequests), batches: batches}
	go func() {
		c.closeErr = c.dispatchReplies(in)
		close(c.closed)
	}()
	return c
}

// dispatchReplies hands the answers out until there are no more.
func (c *conn) dispatchReplies(in io.Reader) error {
	for {
		letter, payload, err := readFrame(in, maxFromParent)
		if err != nil {
			return fmt.Errorf("%w: %w", errParentExited, err)
		}
		var r reply
		switch letter {
		case frameOK:
			r.payload = payload
		case frameFail:
			r.err = decodeError(payload)
		case frameBatch:
			select {
			case c.batches <- payload: // never, where there are none
				continue
			default:
				return fmt.Errorf("%w: a batch before the last one's end", errProtocol)
			}
		default:
			return fmt.Errorf("%w: a second task", errProtocol)
		}
		select {
		case waiting := <-c.pendingReplies:
			waiting <- r
		default:
			return fmt.Errorf("%w: an answer without a question", errProtocol)
		}
	}
}

// roundTrip sends one question about a tree and waits for its answer.
func (c *conn) roundTrip(letter byte, tree, name string) ([]byte, error) {
	answer, err := c.startRequest(letter, tree, name)
	if err != nil {
		return nil, err
	}
	return c.awaitReply(answer)
}

// startRequest sends a question; awaitReply waits for its answer.
func (c *conn) startRequest(letter byte, tree, name string) (<-chan reply, error) {
	answer := make(chan reply, 1)
	return answer, c.sendFrame(letter, append(appendString(nil, tree), name...), answer)
}

func (c *conn) awaitReply(answer <-chan reply) ([]byte, error) {
	select {
	case r := <-answer:
		return r.payload, r.err
	case <-c.closed:
		return nil, c.closeErr
	}
}

func (c *conn) sendFrame(letter byte, payload []byte, answer chan<- reply) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if answer != nil {
		select {
		case c.pendingReplies <- answer:
		case <-c.closed:
			return c.closeErr
		}
	}
	if err := writeFrame(c.w, letter, payload); err != nil {
		return fmt.Errorf("%w: %w", errParentExited, err)
	}
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errParentExited, err)
	}
	return nil
}
