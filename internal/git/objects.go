package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

const (
	// MaxFileSize is the largest file that is read or written, in bytes.
	// Overlays are small; what is larger is not configuration.
	MaxFileSize = 20 << 20
	// readTimeout bounds one answer of a git that is running already.
	readTimeout = 30 * time.Second
	// maxHeader bounds the line before an object.
	maxHeader = 1024
)

// errMissing says that the object database has no such object.
var errMissing = errors.New("no such object")

// object is one stored object.
type object struct {
	sha  string
	kind string // commit, tree, blob or tag
	size int64
	data []byte // nil when only looked up
}

// objectReader reads objects through two long-lived git processes, started when
// they are first needed: one that prints contents, one that only looks up.
type objectReader struct {
	contents, lookups *catFile
}

func newObjectReader(p *programs) *objectReader {
	return &objectReader{
		contents: &catFile{command: p.gitCommand("cat-file", "--batch"), memory: p.limits().Data},
		lookups:  &catFile{command: p.gitCommand("cat-file", "--batch-check"), memory: p.limits().Data},
	}
}

// readObject returns an object's content; spec is an object id, with ^{tree} or the
// like behind it. errMissing: there is none. ErrTooLarge: past MaxFileSize.
func (o *objectReader) readObject(spec string) (object, error) {
	return o.contents.queryObject(spec, true)
}

// findObject looks an object up without reading it.
func (o *objectReader) findObject(spec string) (object, error) {
	return o.lookups.queryObject(spec, false)
}

// closeProcesses ends the processes; the next question starts them again.
func (o *objectReader) closeProcesses() {
	o.contents.closeProcess()
	o.lookups.closeProcess()
}

// catFile is one git cat-file process that answers one question at a time.
type catFile struct {
	command proc.Command
	memory  uint64 // in bytes, of the process; 0: as much as there is

	mu      sync.Mutex
	process *proc.Process
	out     *bufio.Reader
}

// queryObject asks for one object. A process that has died meanwhile (the mirror was
// made anew, the machine was short of memory) is replaced once.
func (cf *catFile) queryObject(spec string, contents bool) (object, error) {
	cf.mu.Lock()
	defer cf.mu.Unlock()
	had := cf.process != nil
	o, err := cf.tryQuery(spec, contents)
	if err != nil && had && cf.process == nil && !errors.Is(err, ErrTooLarge) {
		o, err = cf.tryQuery(spec, contents)
	}
	return o, err
}

// tryQuery asks once. Whatever leaves the conversation in doubt ends the process.
func (cf *catFile) tryQuery(spec string, contents bool) (object, error) {
	if cf.process == nil {
		c := cf.command
		c.MaxStdout = 0 // piped
		c.Limits = proc.Limits{Data: cf.memory}
		p, err := proc.Start(context.Background(), c)
		if err != nil {
			return object{}, err
		}
		cf.process, cf.out = p, bufio.NewReaderSize(p.Stdout, 64<<10)
	}
	watchdog := time.AfterFunc(readTimeout, cf.process.Kill)
	o, err := cf.sendQuery(spec, contents)
	watchdog.Stop()
	if err != nil && !errors.Is(err, errMissing) {
		err = cf.explainError(spec, err)
		cf.endProcess()
	}
	return o, err
}

func (cf *catFile) sendQuery(spec string, contents bool) (object, error) {
	if _, err := io.WriteString(cf.process.Stdin, spec+"\n"); err != nil {
		return object{}, err
	}
	o, err := readHeader(cf.out, spec)
	if err != nil || !contents {
		return o, err
	}
	if o.size > MaxFileSize {
		return o, tooLargeError(o.size, MaxFileSize)
	}
	o.data, err = readContent(cf.out, o.size)
	if err != nil {
		return object{}, err
	}
	return o, nil
}

func tooLargeError(size, limit int64) error {
	return fmt.Errorf("%w: its %d bytes are more than the %d that are read", ErrTooLarge, size, limit)
}

// readHeader reads the line before an object: "<id> <kind> <size>", or
// "<spec> missing", which is errMissing.
func readHeader(out *bufio.Reader, spec string) (object, error) {
	line, err := out.ReadSlice('\n')
	if err != nil || len(line) > maxHeader {
		return object{}, errors.Join(err, errors.New("no answer line"))
	}
	header := strings.TrimSuffix(string(line), "\n")
	if header == spec+" missing" {
		return object{}, errMissing
	}
	sha, rest, _ := strings.Cut(header, " ")
	kind, digits, _ := strings.Cut(rest, " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if !isSHA(sha) || err != nil || size < 0 {
		return object{}, fmt.Errorf("it answers %q", shortenForLog(header))
	}
	return object{sha: sha, kind: kind, size: size}, nil
}

// readContent reads an object's bytes and the line end behind them.
func readContent(out *bufio.Reader, size int64) ([]byte, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(out, data); err != nil {
		return nil, err
	}
	if end, err := out.ReadByte(); err != nil || end != '\n' {
		return nil, errors.Join(err, errors.New("the object does not end where it should"))
	}
	return data, nil
}

// explainError adds the process's own words. Git ends at an object that it can't
// read: such a mirror is damaged.
func (cf *catFile) explainError(spec string, err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	cf.process.Kill()
	werr := cf.process.Wait()
	e := &Error{Op: "read object " + spec, Err: errors.Join(err, werr)}
	if maybeDamaged(werr) {
		e.Kind = ErrCorrupt
	}
	return e
}

func (cf *catFile) endProcess() {
	cf.process.End()
	cf.process, cf.out = nil, nil
}

func (cf *catFile) closeProcess() {
	cf.mu.Lock()
	defer cf.mu.Unlock()
	if cf.process != nil {
		cf.endProcess()
	}
}
