package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The letters of the frames.
const (
	// Parent to child.
	frameTask  byte = 't' // a string, the task's name; its time in nanoseconds; its input as JSON
	frameBatch byte = 'b' // to a worker that lives on: a string, the task's name; the CPU time of an item; how many items, and each
	frameOK    byte = 'o' // a question's answer
	frameFail  byte = 'e' // why a question has none: see encodeError

	// Child to parent: questions, each a string, the tree's name, and a name in it.
	frameList     byte = 'L' // a folder: see appendFolder
	frameStat     byte = 'S' // a file or folder: see statReply
	frameFile     byte = 'F' // a file's bytes
	frameLink     byte = 'K' // a symbolic link's text
	frameContents byte = 'D' // a folder with identities, of a worker that lives on: see contentHost

	// Child to parent: the end.
	frameAnswer   byte = 'A' // the handler's output as JSON
	frameRefused  byte = 'R' // the handler's error
	framePanic    byte = 'P' // what it panicked with: a string, then the stack
	frameCPU      byte = 'C' // its CPU time is used up
	frameBatchEnd byte = 'Z' // of a worker that lives on, after its answers: the bytes of its heap, its CPU time so far
)

const (
	// maxTask bounds a task's input; the largest part are the clusters.
	maxTask = 64 << 20
	// maxFile bounds a file, a listing and any other answer to a question.
	maxFile = 32 << 20
	// maxRequest bounds a tree's name with a name in it, longer than file
	// systems allow.
	maxRequest = 16 << 10
	// maxErrorText bounds a handler's error, and maxPanic a panic with its stack.
	maxErrorText = 16 << 10
	maxPanic     = 64 << 10
)

// errProtocol marks a peer that doesn't speak the protocol.
var errProtocol = errors.New("not the protocol")

// writeFrame writes one frame; the parts are joined. A frame must be flushed
// by its writer.
func writeFrame(w *bufio.Writer, letter byte, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if uint64(size) > 1<<32-1 {
		return fmt.Errorf("%d bytes are too many for a frame", size)
	}
	head := binary.BigEndian.AppendUint32([]byte{letter}, uint32(size))
	for _, p := range append([][]byte{head}, parts...) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// readFrame reads one frame: its letter, which is its type, a length of four bytes, and that many bytes. maxSize
// gives how long a frame with a letter may be; a negative length means that no type has the letter. io.EOF: the
// peer ended between two frames. Memory is allocated as bytes arrive, and not by the length that the peer declares.
func readFrame(r io.Reader, maxSize func(letter byte) int64) (letter byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	letter, size := head[0], int64(binary.BigEndian.Uint32(head[1:]))
	switch limit := maxSize(letter); {
	case limit < 0:
		return 0, nil, fmt.Errorf("%w: no frame begins with %q", errProtocol, letter)
	case size > limit:
		return letter, nil, &oversizeError{letter: letter, size: size, max: limit}
	}
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, r, size); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return letter, buf.Bytes(), nil
}

// oversizeError is a frame that is longer than it may be.
type oversizeError struct {
	letter    byte
	size, max int64
}

func (o *oversizeError) Error() string {
	return fmt.Sprintf("a frame %q of %d bytes, of at most %d", o.letter, o.size, o.max)
}

func (o *oversizeError) Unwrap() error { return errProtocol }

// maxFromParent bounds the frames that a child accepts.
func maxFromParent(letter byte) int64 {
	switch letter {
	case frameTask, frameBatch:
		return maxTask + maxRequest
	case frameOK:
		return maxFile + maxRequest // a file with what is known of it
	case frameFail:
		return maxErrorText + 1
	}
	return -1
}

// maxFromChild bounds the frames that a parent accepts; answer is the caller's limit.
func maxFromChild(answer int64) func(letter byte) int64 {
	return func(letter byte) int64 {
		switch letter {
		case frameList, frameStat, frameFile, frameLink:
			return maxRequest
		case frameAnswer:
			return answer
		case frameRefused:
			return maxErrorText
		case framePanic:
			return maxPanic
		case frameCPU:
			return 0
		}
		return -1
	}
}

// maxFromWorker bounds the frames of a worker that lives on.
func maxFromWorker(answer int64) func(letter byte) int64 {
	common := maxFromChild(answer)
	return func(letter byte) int64 {
		switch letter {
		case frameList:
			return -1
		case frameContents:
			return maxRequest
		case frameBatchEnd:
			return 2 * 10 // two numbers
		}
		return common(letter)
	}
}
