//go:build !unix

package proc

import (
	"os/exec"
	"time"
)

// group is the program alone: there are no process groups to signal here.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd, _ time.Duration) *group { return &group{cmd: cmd} }

func (g *group) end() error { return g.cmd.Process.Kill() }

func (g *group) kill() { _ = g.cmd.Process.Kill() } // gone already is fine

func (g *group) markFinished(bool) {}

func signalName(*exec.Cmd) string { return "" }
