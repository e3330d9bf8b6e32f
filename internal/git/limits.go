package git

import (
	"fmt"
	"regexp"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// Limits of a git program that reads what a stranger wrote, as a head is evaluated with. A blob of
// a few bytes may be made of one of many GB (gitformat-pack, "Deltified representation").
const (
	boundedMemory = 512 << 20
	boundedCPU    = time.Minute
	// boundedFetch is how long a head may take to be fetched: nothing else of its repository is
	// fetched meanwhile.
	boundedFetch = 3 * time.Minute
)

// limits are those of a program that reads what strangers wrote; none on a checkout, which is its
// owner's, and where there are none to be had.
func (p *programs) limits() proc.Limits {
	if !p.bounded || !proc.CanLimit() {
		return proc.Limits{}
	}
	return proc.Limits{Data: boundedMemory, CPU: boundedCPU}
}

// Git's words at its limits, its own and those about a program that it started: 24 is SIGXCPU.
const cpuSignal = "CPU time limit exceeded" // as syscall names SIGXCPU

var (
	memoryPattern = regexp.MustCompile(`[Oo]ut of memory|[Cc]annot allocate memory|unable to create thread`)
	cpuPattern    = regexp.MustCompile(`died of signal 24\b`)
)

// pastLimits says which of the limits a program has met; empty: none.
func pastLimits(err error) string {
	if err == nil {
		return ""
	}
	text := stderrOf(err)
	switch {
	case memoryPattern.MatchString(text):
		return fmt.Sprintf("takes more than %d MiB of memory", boundedMemory>>20)
	case cpuPattern.MatchString(text), signalOf(err) == cpuSignal:
		return fmt.Sprintf("takes more than %s of CPU time", boundedCPU)
	}
	return ""
}

// fsckPattern is how index-pack names what git's checks refuse: the object, and which check. The
// rest may be of the stranger's own words.
var fsckPattern = regexp.MustCompile(`(?m)^error: object ([0-9a-f]{40}): ([a-zA-Z]+):`)

// refusedObject says which object git's checks refuse in what was to be fetched.
func refusedObject(err error) string {
	if m := fsckPattern.FindStringSubmatch(stderrOf(err)); m != nil {
		return fmt.Sprintf("git refuses its object %s (%s)", m[1], m[2])
	}
	return "git's own checks refuse one of its objects"
}
