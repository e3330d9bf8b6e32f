package story_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// serverProcess is a server in a process of its own, which is started again whenever it
// died.
type serverProcess struct {
	t       *testing.T
	config  string // the server's file
	log     *os.File
	environ func() []string // of the next start
	// onDeath comes after every death, before the server is started again: it may change
	// what the server finds, or take its time. Nil: nothing.
	onDeath func()
	// mayEnd says whether it is no failure that the server ended by itself. Nil: it is one.
	mayEnd func() bool

	done chan struct{} // closed when it isn't started again any more
	died chan struct{} // closed at the first death, after onDeath

	mu      sync.Mutex
	cmd     *exec.Cmd // the last that was started
	running bool
	stopped bool
	deaths  int
}

// keepRunning runs the server, and runs it again when it died.
func (p *serverProcess) keepRunning() {
	defer close(p.done)
	for p.runOnce() {
		if p.onDeath != nil {
			p.onDeath()
		}
		p.mu.Lock()
		if p.deaths++; p.deaths == 1 {
			close(p.died)
		}
		p.mu.Unlock()
	}
}

// runOnce runs the server to its death; false when that was its last.
func (p *serverProcess) runOnce() bool {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), configVariable+"="+p.config), p.environ()...)
	cmd.Stderr = p.log
	if stopped, err := p.start(cmd); stopped || err != nil {
		if err != nil {
			p.t.Errorf("start the server: %v", err)
		}
		return false
	}
	err := cmd.Wait()
	p.mu.Lock()
	p.running = false
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		return false
	}
	var exit *exec.ExitError
	if killed := errors.As(err, &exit) && exit.ExitCode() == -1; !killed && (p.mayEnd == nil || !p.mayEnd()) {
		p.t.Errorf("the server ended by itself: %v", err)
		return false
	}
	return true
}

func (p *serverProcess) start(cmd *exec.Cmd) (stopped bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return true, nil
	}
	if _, err = cmd.StdinPipe(); err == nil { // it ends with this process
		err = cmd.Start()
	}
	p.cmd, p.running = cmd, err == nil
	return false, err
}

// killServer kills the server; false when none was running.
func (p *serverProcess) killServer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running && p.cmd.Process.Kill() == nil // it may have died meanwhile
}

func (p *serverProcess) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// stopServer kills the server for good.
func (p *serverProcess) stopServer() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.killServer()
	<-p.done
}

func (p *serverProcess) deathCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaths
}

// checkServerLog holds that the server did nothing that it survived by luck.
func (p *serverProcess) checkServerLog() {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		p.t.Errorf("read the server's log: %v", err)
	}
	for _, bad := range []string{"DATA RACE", "panic while running", "goroutine 1 ["} {
		if i := bytes.Index(text, []byte(bad)); i >= 0 {
			p.t.Errorf("in the server's log: %s", text[i:min(len(text), i+4000)])
		}
	}
}

// lastLines are the last lines of the server's log.
func (p *serverProcess) lastLines(n int) []byte {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
