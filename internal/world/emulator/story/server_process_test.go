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
func (s *serverProcess) keepRunning() {
	defer close(s.done)
	for s.runOnce() {
		if s.onDeath != nil {
			s.onDeath()
		}
		s.mu.Lock()
		if s.deaths++; s.deaths == 1 {
			close(s.died)
		}
		s.mu.Unlock()
	}
}

// runOnce runs the server to its death; false when that was its last.
func (s *serverProcess) runOnce() bool {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), configVariable+"="+s.config), s.environ()...)
	cmd.Stderr = s.log
	if stopped, err := s.start(cmd); stopped || err != nil {
		if err != nil {
			s.t.Errorf("start the server: %v", err)
		}
		return false
	}
	err := cmd.Wait()
	s.mu.Lock()
	s.running = false
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return false
	}
	var exit *exec.ExitError
	if killed := errors.As(err, &exit) && exit.ExitCode() == -1; !killed && (s.mayEnd == nil || !s.mayEnd()) {
		s.t.Errorf("the server ended by itself: %v", err)
		return false
	}
	return true
}

func (s *serverProcess) start(cmd *exec.Cmd) (stopped bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return true, nil
	}
	if _, err = cmd.StdinPipe(); err == nil { // it ends with this process
		err = cmd.Start()
	}
	s.cmd, s.running = cmd, err == nil
	return false, err
}

// killServer kills the server; false when none was running.
func (s *serverProcess) killServer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running && s.cmd.Process.Kill() == nil // it may have died meanwhile
}

func (s *serverProcess) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// stopServer kills the server for good.
func (s *serverProcess) stopServer() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.killServer()
	<-s.done
}

func (s *serverProcess) deathCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// checkServerLog holds that the server did nothing that it survived by luck.
func (s *serverProcess) checkServerLog() {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		s.t.Errorf("read the server's log: %v", err)
	}
	for _, bad := range []string{"DATA RACE", "panic while running", "goroutine 1 ["} {
		if i := bytes.Index(text, []byte(bad)); i >= 0 {
			s.t.Errorf("in the server's log: %s", text[i:min(len(text), i+4000)])
		}
	}
}

// lastLines are the last lines of the server's log.
func (s *serverProcess) lastLines(n int) []byte {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
