//go:build unix

package sandbox

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// cpuUsedUp tells when the process reaches the soft limit of its CPU time. A
// second after it the kernel ends the process, and its end wouldn't say why.
func cpuUsedUp() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGXCPU)
	return c, func() { signal.Stop(c) }
}

// limitCPU lets the process take so much CPU time from now on, in whole seconds; at the end
// of it cpuUsedUp tells. It never goes beyond the limit that the parent has set.
func limitCPU(more time.Duration) error {
	if more <= 0 {
		return nil
	}
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &l); err != nil {
		return err
	}
	soft := uint64((cpuTime() + more + time.Second - 1) / time.Second)
	l.Cur = min(soft, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &l)
}

// cpuTime is the CPU time that the process has taken.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
