package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Process is a running program whose standard input and output the caller
// writes and reads. One goroutine may write while another reads; End may be
// called from any.
type Process struct {
	// Stdin is the program's standard input; closing it is how most programs
	// are told to finish.
	Stdin io.WriteCloser
	// Stdout is the program's standard output. It is not bounded: the reader
	// decides how much of it to take.
	Stdout io.Reader

	run    *runningCommand
	cancel context.CancelFunc
	out    *os.File
	once   sync.Once
	err    error
}

// Start begins a program that talks over pipes. Command.Stdin and MaxStdout
// must not be set. When ctx is done the whole process group is ended. The
// caller must call Wait or End.
func Start(ctx context.Context, c Command) (*Process, error) {
	if c.Stdin != nil || c.MaxStdout != 0 {
		return nil, newError(c, -1, "", "", fmt.Errorf("a piped program takes neither Stdin nor MaxStdout"))
	}
	ctx, cancel := context.WithCancel(ctx)
	inR, inW, err := os.Pipe()
	if err != nil {
		cancel()
		return nil, newError(c, -1, "", "", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		cancel()
		closeAll(inR, inW)
		return nil, newError(c, -1, "", "", err)
	}
	r, err := startCommand(ctx, c, outW, inR)
	closeAll(inR, outW) // the program has its own copies, or there is none
	if err != nil {
		cancel()
		closeAll(inW, outR)
		return nil, err
	}
	return &Process{Stdin: inW, Stdout: outR, run: r, cancel: cancel, out: outR}, nil
}

// Wait closes the program's input, waits for its end and releases the pipes.
// Output that was not read is lost. It may be called more than once, with the
// same answer; the error is as Run's.
func (p *Process) Wait() error {
	p.once.Do(func() {
		_ = p.Stdin.Close() // a second close, or a pipe that the program broke
		// A program that still writes can only end when somebody reads. Closing our end below ends
		// this, even if another process holds the other one.
		go func() { _, _ = io.Copy(io.Discard, p.out) }()
		p.err = p.run.wait()
		closeAll(p.out)
		p.cancel()
	})
	return p.err
}

// CPU is the CPU time that the program itself took. It is known, and may be
// asked for, once Wait or End has returned.
func (p *Process) CPU() time.Duration {
	state := p.run.cmd.ProcessState
	if state == nil {
		return 0
	}
	return state.UserTime() + state.SystemTime()
}

// Kill ends the process group at once, without waiting for it. It may be
// called at any time, also after the end.
func (p *Process) Kill() { p.run.group.kill() }

// End kills the process group and waits for it. How a program that was ended
// so went is of no interest and is not returned.
func (p *Process) End() {
	p.Kill()
	_ = p.Wait()
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // pipe ends: nothing buffered can be lost
	}
}
