package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// DefaultMaxStdout is how much standard output Run keeps unless told otherwise.
	DefaultMaxStdout = 64 << 20
	// maxStderr is how much of the end of standard error is kept: enough for
	// any message a person would read, whatever the program repeats before it.
	maxStderr = 64 << 10
	// maxStderrHead is how much of its beginning is kept besides.
	maxStderrHead = 2 << 10
	// pipeGrace is how long after a program's end its output may still be held
	// open by what it started itself.
	pipeGrace = 2 * time.Second
)

// ErrTooMuchOutput says that a program wrote more to standard output than it
// was allowed, and was ended for it.
var ErrTooMuchOutput = errors.New("too much output")

// Command is a program to start. It is not changed by Run or Start and may be
// used again.
type Command struct {
	Program string   // looked up in PATH when it has no slash
	Args    []string // without the program itself; no shell ever sees them
	Dir     string   // working directory; empty: ours

	// Env is added to what the allow list lets through ("KEY=value"); it wins
	// over it. Inherit names further variables of our own environment to pass on.
	Env     []string
	Inherit []string
	// OnlyEnv leaves out the allow list and Inherit: Env is the whole environment.
	OnlyEnv bool

	Stdin     []byte // nil: empty
	MaxStdout int64  // bytes; 0: DefaultMaxStdout
	// Grace is how long the program's process group has to end after SIGTERM
	// when its context is done, before SIGKILL; 0: SIGKILL at once.
	Grace  time.Duration
	Limits Limits
	// Secrets are replaced by "***" in errors and in Result.Stderr. Empty and
	// very short ones are ignored, they would only garble the text.
	Secrets []string
}

// Limits are resource limits for the program and what it starts; 0 leaves a
// limit as ours is. They exist on Linux only: elsewhere a run that asks for
// one is refused. They are in force before the program can read the first byte
// of its standard input, but not before its first instruction.
type Limits struct {
	Data  uint64        // bytes of data segment and private anonymous memory (RLIMIT_DATA)
	Files uint64        // open files (RLIMIT_NOFILE)
	Size  uint64        // bytes of the largest file it may write (RLIMIT_FSIZE)
	CPU   time.Duration // CPU time, rounded up to seconds (RLIMIT_CPU): then SIGXCPU, a second later SIGKILL
}

// CanLimit says whether Limits can be asked for here.
func CanLimit() bool { return Limits{Data: 1}.checkSupported() == nil }

// Result is what a program left.
type Result struct {
	Stdout []byte
	Stderr string // the end of it, without secrets
}

// Run starts the program and waits for its end. When it ends otherwise than
// with exit code 0 the error is an *Error, and the Result holds what was
// written until then. A context that is done ends the whole process group;
// the error then wraps the context's. Run may be called concurrently.
func Run(ctx context.Context, c Command) (Result, error) {
	stdout := &headBuffer{max: c.MaxStdout}
	if stdout.max <= 0 {
		stdout.max = DefaultMaxStdout
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout.onFull = func() { cancel(ErrTooMuchOutput) }

	r, err := startCommand(runCtx, c, stdout, nil)
	if err != nil {
		return Result{}, err
	}
	err = r.wait()
	if err == nil && stdout.over {
		err = r.newExitError(ErrTooMuchOutput) // it ended before it could be ended
	}
	return Result{Stdout: stdout.buf.Bytes(), Stderr: r.stderrText()}, err
}

// runningCommand is a started program.
type runningCommand struct {
	cmd    *exec.Cmd
	c      Command
	ctx    context.Context
	stderr *tailBuffer
	group  *group
}

// startCommand begins the program with its output going to stdout. Its input is
// stdin, the program's end of a pipe, or where that is nil c.Stdin.
func startCommand(ctx context.Context, c Command, stdout io.Writer, stdin *os.File) (*runningCommand, error) {
	fail := func(err error) error {
		return newError(c, -1, "", "", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(context.Cause(ctx))
	}
	if err := c.Limits.checkSupported(); err != nil {
		return nil, fail(err)
	}
	cmd := exec.CommandContext(ctx, c.Program, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = commandEnviron(c)
	cmd.Stdout = stdout
	r := &runningCommand{cmd: cmd, c: c, ctx: ctx, stderr: &tailBuffer{max: maxStderr}}
	cmd.Stderr = r.stderr
	r.group = newGroup(cmd, c.Grace)
	cmd.Cancel = r.group.end
	cmd.WaitDelay = c.Grace + pipeGrace
	if stdin != nil {
		cmd.Stdin = stdin // a nil *os.File in the interface would not be nil
	}

	var feed io.WriteCloser
	if c.Stdin != nil {
		// Our own pipe, not exec's copying goroutine: nothing is written
		// before the limits are in force.
		w, err := cmd.StdinPipe()
		if err != nil {
			return nil, fail(err)
		}
		feed = w
	}
	if err := cmd.Start(); err != nil {
		return nil, fail(err)
	}
	if err := c.Limits.applyTo(cmd.Process.Pid); err != nil {
		r.group.kill()
		_ = cmd.Wait() // the limits' error is the one that matters
		return nil, fail(fmt.Errorf("setting resource limits: %w", err))
	}
	if feed != nil {
		go func() {
			// A program may end well without reading everything; one that
			// fails says so itself. Wait closes the pipe, so this ends.
			_, _ = feed.Write(c.Stdin)
			_ = feed.Close()
		}()
	}
	return r, nil
}

// wait waits for the end and says how it went.
func (r *runningCommand) wait() error {
	err := r.cmd.Wait()
	r.group.markFinished(r.ctx.Err() != nil)
	if err == nil {
		return nil
	}
	why := context.Cause(r.ctx)
	if exit := (*exec.ExitError)(nil); why == nil && !errors.As(err, &exit) {
		why = err // its output could not be read to the end
	}
	return r.newExitError(why)
}

func (r *runningCommand) newExitError(why error) error {
	e := newError(r.c, exitCode(r.cmd), signalName(r.cmd), r.stderrText(), why)
	e.StderrHead = r.stderr.firstText(r.c.Secrets)
	return e
}

func (r *runningCommand) stderrText() string { return redactTail(r.stderr, r.c.Secrets) }

func exitCode(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return -1
	}
	return cmd.ProcessState.ExitCode()
}

// headBuffer keeps the first max bytes and reports the first byte beyond.
type headBuffer struct {
	buf    bytes.Buffer
	max    int64
	onFull func()
	over   bool
}

func (h *headBuffer) Write(p []byte) (int, error) {
	room := h.max - int64(h.buf.Len())
	if int64(len(p)) <= room {
		return h.buf.Write(p)
	}
	h.buf.Write(p[:room])
	if !h.over {
		h.over = true
		h.onFull()
	}
	return len(p), nil // swallow the rest: the program is being ended
}
