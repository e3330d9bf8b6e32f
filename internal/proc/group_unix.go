//go:build unix

package proc

import (
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// group is a program's process group: what it starts itself ends with it.
type group struct {
	cmd   *exec.Cmd
	grace time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool // the leader has been waited for: its number may be reused
}

func newGroup(cmd *exec.Cmd, grace time.Duration) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	return &group{cmd: cmd, grace: grace}
}

// end asks the group to end, and ends it after the grace. It is exec.Cmd's
// Cancel, so the process has been started and not yet been waited for.
func (g *group) end() error {
	if g.grace <= 0 {
		g.signal(syscall.SIGKILL)
		return nil
	}
	g.signal(syscall.SIGTERM)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over && g.timer == nil {
		g.timer = time.AfterFunc(g.grace, g.kill)
	}
	return nil
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	_ = syscall.Kill(-g.cmd.Process.Pid, sig) // gone already is fine
}

// markFinished is called right after the leader was waited for. Processes that a canceled leader
// left behind in its group are killed. The group's number can't have been given away while a member
// lives, and no other of our programs can have got it within this instant.
func (g *group) markFinished(canceled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.over = true
	if canceled {
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // usually nobody is left
	}
}

func signalName(cmd *exec.Cmd) string {
	if cmd.ProcessState == nil {
		return ""
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}
