//go:build unix

package sandbox

import (
	"os"
	"os/signal"
	"syscall"
)

// cpuUsedUp tells when the process reaches the soft limit of its CPU time. A
// second after it the kernel ends the process, and its end wouldn't say why.
func cpuUsedUp() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGXCPU)
	return c, func() { signal.Stop(c) }
}
