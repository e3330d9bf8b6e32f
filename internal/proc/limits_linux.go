package proc

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (l Limits) checkSupported() error { return nil }

// applyTo sets the limits of a process that was just started. Go can't set them
// between fork and exec; a program that waits for its input can't do much
// before it gets any, and Run gives none before this.
func (l Limits) applyTo(pid int) error {
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
		grace    uint64 // of the hard limit beyond the soft one
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, l.Data, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, l.Files, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, l.Size, 0},
		// At the soft limit comes SIGXCPU, which ends most programs and says
		// why; at the hard one SIGKILL.
		{"RLIMIT_CPU", unix.RLIMIT_CPU, cpu, 1},
	} {
		if limit.value == 0 {
			continue
		}
		r := unix.Rlimit{Cur: limit.value, Max: limit.value + limit.grace}
		if err := unix.Prlimit(pid, limit.resource, &r, nil); err != nil {
			return fmt.Errorf("%s to %d: %w", limit.name, limit.value, err)
		}
	}
	return nil
}

// dieWithParent makes the kernel end the program when we are killed, so that
// no orphan writes where our successor already works. The signal really comes
// when the thread that started it ends; Go's threads end only with goroutines
// that lock them (golang/go#27505).
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
