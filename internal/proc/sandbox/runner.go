package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/proc"
	"github.com/liftlock/liftlock/internal/wording"
)

// Limits bound one run. A field that is 0 is its default's. Memory and CPU
// exist on Linux only; the others are held everywhere.
type Limits struct {
	Memory uint64        // bytes of heap, stacks and other private memory (RLIMIT_DATA); default 512 MiB
	CPU    time.Duration // CPU time, rounded up to seconds (RLIMIT_CPU); default 1 minute
	Time   time.Duration // from the child's start; default 90 seconds
	Answer int64         // bytes of the answer as JSON, at most 4 GiB; default 64 MiB
	Values int           // values in the answer, each member or element one: a few bytes can be a large Go value; default 4 million
	Reads  int64         // bytes of the trees that are sent, listings included; default 1 GiB
}

// CanLimitMemory says whether children are held to their limits of memory and CPU time here.
func CanLimitMemory() bool { return proc.CanLimit() }

func (l Limits) withDefaults() Limits {
	l.Memory = cmp.Or(l.Memory, 512<<20)
	l.CPU = cmp.Or(l.CPU, time.Minute)
	l.Time = cmp.Or(l.Time, 90*time.Second)
	l.Answer = cmp.Or(l.Answer, 64<<20)
	l.Values = cmp.Or(l.Values, 4_000_000)
	l.Reads = cmp.Or(l.Reads, 1<<30)
	return l
}

const (
	// childFiles are the open files a child may have; it needs its three pipes
	// and the runtime's own.
	childFiles = 64
	// childFileSize is the largest file that a child may write: none is wanted.
	childFileSize = 1
	// childThreads bounds what a child takes of the machine at once.
	childThreads = 2
	// defaultMaxConcurrent is how many children run at once unless told otherwise.
	defaultMaxConcurrent = 2
)

// childEnvVar is a variable that children have: a child starts no children, also
// when it is a program that should have called Serve and runs something else.
const childEnvVar = "LIFTLOCK_SANDBOX"

// Options of a Runner. Program is required.
type Options struct {
	Program       string   // the program that calls Serve: our own executable
	Args          []string // what makes it do so
	Limits        Limits
	MaxConcurrent int         // how many children run at once, at most; default 2
	Log           *zap.Logger // default: none
}

// Runner runs tasks in child processes. It is safe for concurrent use.
type Runner struct {
	o     Options
	slots chan struct{}
}

// New makes a runner. Nothing is started yet.
func New(o Options) *Runner {
	o.Limits = o.Limits.withDefaults()
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = defaultMaxConcurrent
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return &Runner{o: o, slots: make(chan struct{}, o.MaxConcurrent)}
}

// Run has the named handler evaluate the trees with the input in a child, and decodes its answer
// into output, a pointer. Input and output are JSON on the way. A tree must not lead out of itself
// (os.DirFS follows links that do; os.Root doesn't).
//
// The error is a [*HandlerError] for the handler's own, and an [*Error] for a run that came to no
// answer. Otherwise it is the context's or one of starting the child. When the context or the time
// ends while the tree is being read, Run doesn't wait for the tree: that read's answer is dropped
// when it comes.
func (r *Runner) Run(ctx context.Context, task string, trees Trees, input, output any) error {
	if os.Getenv(childEnvVar) != "" {
		return fmt.Errorf("%s: this is a process of its own already, and starts no other", task)
	}
	sent, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("%s: writing the input: %w", task, err)
	}
	if len(sent) > maxTask {
		return &Error{Task: task, Kind: ErrInput, Text: fmt.Sprintf("the input has %d bytes, of at most %d", len(sent), maxTask)}
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for other processes to end: %w", task, context.Cause(ctx))
	}
	timed, cancel := context.WithTimeoutCause(ctx, r.o.Limits.Time, ErrTime)
	defer cancel()
	begun := time.Now()
	answer, err := r.runChild(timed, task, sent, trees)
	r.o.Log.Debug("a task ran in a process of its own", zap.String("task", task), zap.Duration("took", time.Since(begun)),
		zap.Int("answer", len(answer)), zap.Error(err))
	if err != nil {
		return err
	}
	if n := countValues(answer); n > r.o.Limits.Values {
		return &Error{Task: task, Kind: ErrAnswer, Text: fmt.Sprintf("its answer has %d values, of at most %d", n, r.o.Limits.Values)}
	}
	if err := json.Unmarshal(answer, output); err != nil {
		return &Error{Task: task, Kind: ErrAnswer, Text: "its answer can't be read: " + wording.Clip(err.Error(), maxShownText)}
	}
	return nil
}

// runChild starts a child and talks to it until its last frame, its end, or the
// context's.
func (r *Runner) runChild(ctx context.Context, task string, input []byte, trees Trees) ([]byte, error) {
	p, err := proc.Start(ctx, childCommand(r.o.Program, r.o.Args, r.o.Limits))
	if err != nil {
		return nil, fmt.Errorf("%s: starting a process for it: %w", task, err)
	}
	type outcome struct {
		answer []byte
		err    error
	}
	talked := make(chan outcome, 1)
	go func() {
		answer, err := r.exchangeFrames(ctx, p.Stdout, p.Stdin, task, input, trees)
		talked <- outcome{answer, err}
	}()
	var o outcome
	select {
	case o = <-talked:
	case <-ctx.Done():
		p.End()
		o.err = errNoAnswer
	}
	if o.err == nil {
		p.End() // it has nothing to do but to end
		return o.answer, nil
	}
	return nil, r.explainFailure(ctx, p, task, o.err)
}

// childCommand starts a child with nothing of our environment, in a folder that is not ours. Its
// garbage collector tries to stay well within the limit before the kernel refuses.
func childCommand(program string, args []string, l Limits) proc.Command {
	c := proc.Command{
		Program: program, Args: args, Dir: "/", OnlyEnv: true,
		Env: []string{
			"LC_ALL=C", childEnvVar + "=child", "GOTRACEBACK=none",
			"GOMAXPROCS=" + strconv.Itoa(min(childThreads, runtime.NumCPU())),
			"GOMEMLIMIT=" + strconv.FormatUint(l.Memory/4*3, 10),
		},
	}
	if proc.CanLimit() {
		c.Limits = proc.Limits{Data: l.Memory, CPU: l.CPU, Files: childFiles, Size: childFileSize}
	}
	return c
}

// errNoAnswer says that the child's end, or the context's, is why there is no answer.
var errNoAnswer = errors.New("no answer")

// exchangeFrames sends the task and answers questions until the last frame.
func (r *Runner) exchangeFrames(ctx context.Context, from io.Reader, to io.Writer, task string, input []byte, trees Trees) ([]byte, error) {
	in, out := bufio.NewReaderSize(from, 64<<10), bufio.NewWriterSize(to, 64<<10)
	head := binary.AppendUvarint(appendString(nil, task), uint64(r.o.Limits.Time))
	if writeFrame(out, frameTask, head, input) != nil || out.Flush() != nil {
		return nil, errNoAnswer
	}
	h := newHost(trees, r.o.Limits.Reads)
	most := maxFromChild(r.o.Limits.Answer)
	stoppedReading := false // it doesn't read any more: it may have said its last word before
	for {
		letter, payload, err := readFrame(in, most)
		if err != nil {
			if errors.Is(err, errProtocol) {
				return nil, err
			}
			return nil, errNoAnswer
		}
		switch letter {
		case frameAnswer:
			return payload, nil
		case frameRefused:
			return nil, &HandlerError{Message: wording.Clip(string(payload), maxErrorText)}
		case framePanic:
			return nil, newPanicError(r.o.Log, task, payload)
		case frameCPU:
			return nil, &Error{Task: task, Kind: ErrCPU, Text: r.o.Limits.cpuText()}
		}
		if stoppedReading {
			continue
		}
		letter, payload, err = h.handleRequest(ctx, letter, payload)
		if err != nil {
			return nil, err
		}
		stoppedReading = writeFrame(out, letter, payload) != nil
		if in.Buffered() == 0 && !stoppedReading { // else the child waits for several answers anyway
			stoppedReading = out.Flush() != nil
		}
	}
}

func newPanicError(log *zap.Logger, task string, payload []byte) error {
	words := &payloadReader{rest: payload}
	text := words.readString()
	log.Warn("a task panicked in a process of its own", zap.String("task", task), zap.String("panic", wording.Clip(text, maxShownText)),
		zap.String("stack", wording.Clip(string(words.rest), maxPanic)))
	return &Error{Task: task, Kind: ErrCrashed, Text: "it crashed: " + wording.Clip(text, maxShownText)}
}

// explainFailure ends the child and says why there is no answer.
func (r *Runner) explainFailure(ctx context.Context, p *proc.Process, task string, err error) error {
	l := r.o.Limits
	if errors.Is(err, errNoAnswer) {
		ended := p.Wait() // its output is at its end, or the context's end has ended it
		if cause := context.Cause(ctx); errors.Is(cause, ErrTime) {
			return &Error{Task: task, Kind: ErrTime, Text: fmt.Sprintf("it takes longer than %s", l.Time)}
		} else if cause != nil {
			return fmt.Errorf("%s: %w", task, cause)
		}
		return l.explainExit(task, ended, p.CPU())
	}
	p.End()
	return l.explainRefusal(task, err)
}

// explainRefusal says why a child was ended for what it asked or said.
func (l Limits) explainRefusal(task string, err error) error {
	fail := func(kind error, text string) error { return &Error{Task: task, Kind: kind, Text: text} }
	var big *oversizeError
	switch {
	case errors.Is(err, errReads):
		err = fail(ErrReads, fmt.Sprintf("it reads more than %s of the repository", bytesText(uint64(l.Reads))))
	case errors.As(err, &big) && big.letter == frameAnswer:
		err = fail(ErrAnswer, fmt.Sprintf("its answer has %s, of at most %s", bytesText(uint64(big.size)), bytesText(uint64(big.max))))
	case errors.Is(err, errProtocol):
		err = fail(ErrAnswer, wording.Clip(err.Error(), maxShownText))
	}
	return err
}

// countValues counts what a JSON text holds: one more than its separators.
func countValues(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}
