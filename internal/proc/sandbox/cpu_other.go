//go:build !unix

package sandbox

import (
	"os"
	"time"
)

// cpuUsedUp never tells: there is no limit on CPU time here.
func cpuUsedUp() (<-chan os.Signal, func()) { return nil, func() {} }

// limitCPU does nothing: there is no such limit here.
func limitCPU(time.Duration) error { return nil }

// cpuTime isn't known here.
func cpuTime() time.Duration { return 0 }
