package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// conn is the child's side of the pipes. Questions may be asked concurrently;
// the answers come in their order.
type conn struct {
	// gone is closed when the parent is: nobody waits for an answer any more.
	gone chan struct{}

	writing sync.Mutex // held while a question is queued and written, so that both have one order
	w       *bufio.Writer
	queue   chan chan<- reply
	lost    error // why gone is closed; read after it is
}

type reply struct {
	payload []byte
	err     error
}

// maxAhead is how many questions may wait for their answers.
const maxAhead = 256

// errGone says that the parent is.
var errGone = errors.New("the parent process is gone")

// newConn takes the pipes over once the task has been read.
func newConn(in io.Reader, out *bufio.Writer) *conn {
	c := &conn{gone: make(chan struct{}), w: out, queue: make(chan chan<- reply, maxAhead)}
	go func() {
		c.lost = c.listen(in)
		close(c.gone)
	}()
	return c
}

// listen hands the answers out until there are no more.
func (c *conn) listen(in io.Reader) error {
	for {
		letter, payload, err := readFrame(in, fromParent)
		if err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		var r reply
		switch letter {
		case frameOK:
			r.payload = payload
		case frameFail:
			r.err = readFailure(payload)
		default:
			return fmt.Errorf("%w: a second task", errProtocol)
		}
		select {
		case asked := <-c.queue:
			asked <- r
		default:
			return fmt.Errorf("%w: an answer without a question", errProtocol)
		}
	}
}

// ask asks one question about a tree and waits for its answer.
func (c *conn) ask(letter byte, tree, name string) ([]byte, error) {
	answer, err := c.begin(letter, tree, name)
	if err != nil {
		return nil, err
	}
	return c.end(answer)
}

// begin asks a question; end waits for its answer.
func (c *conn) begin(letter byte, tree, name string) (<-chan reply, error) {
	answer := make(chan reply, 1)
	return answer, c.send(letter, append(appendString(nil, tree), name...), answer)
}

func (c *conn) end(answer <-chan reply) ([]byte, error) {
	select {
	case r := <-answer:
		return r.payload, r.err
	case <-c.gone:
		return nil, c.lost
	}
}

func (c *conn) send(letter byte, payload []byte, answer chan<- reply) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if answer != nil {
		select {
		case c.queue <- answer:
		case <-c.gone:
			return c.lost
		}
	}
	if err := writeFrame(c.w, letter, payload); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}
