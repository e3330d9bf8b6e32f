package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
	"github.com/liftlock/liftlock/internal/wording"
)

// Why a run came to no answer; callers tell them apart with errors.Is. All of
// them are the input's doing as a rule, and would come again.
var (
	ErrInput   = errors.New("too much to begin with") // the input is too large to be sent
	ErrMemory  = errors.New("too much memory")        // past Limits.Memory
	ErrCPU     = errors.New("too much CPU time")      // past Limits.CPU
	ErrTime    = errors.New("too much time")          // past Limits.Time
	ErrReads   = errors.New("too much read")          // past Limits.Reads
	ErrCrashed = errors.New("crashed")                // a panic, endless recursion, a signal from elsewhere, an exit without an answer
	ErrAnswer  = errors.New("not a valid answer")     // too large, or not the protocol
)

// ErrEndedOutside is an ErrCrashed that the input need not have to do with.
var ErrEndedOutside = fmt.Errorf("%w: ended from outside", ErrCrashed)

// Error is a run that came to no answer.
type Error struct {
	Task string // the kind of task
	Kind error  // one of the Err values above
	Text string // what happened, for people; bounded, valid UTF-8
}

// Error names the task and what happened.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, in a process of its own: %s", e.Task, e.Text)
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

// HandlerError is the handler's own error.
type HandlerError struct {
	Message string // at most 16 KiB of valid UTF-8
}

// Error is the handler's message.
func (h *HandlerError) Error() string { return h.Message }

// outOfMemoryPattern are the Go runtime's last words when the system gives it no more memory, in
// the heap, for a thread, or for itself. Its garbage collector doesn't check whether it got the
// memory it asked for (spanSPMCAlloc of Go 1.26) and reaches for address 0. That is a fault of the
// runtime's own, which reads otherwise than the nil dereference of a program.
var outOfMemoryPattern = regexp.MustCompile(
	`out of memory|cannot allocate memory|failed to create new OS thread|pthread_create failed|cannot map pages|` +
		`^SIGSEGV: segmentation violation\s+PC=\S+ m=\d+ sigcode=1 addr=0x0\b`)

// stackOverflow are its words for endless recursion.
const stackOverflow = "stack overflow"

// maxShownText is how much of a crash is shown to people.
const maxShownText = 400

// explainExit explains a child that ended without an answer.
func (l Limits) explainExit(task string, err error, cpu time.Duration) *Error {
	var pe *proc.Error
	words, signal := "", ""
	if errors.As(err, &pe) {
		words, signal = pe.StderrHead, pe.Signal // the traces come after the words
	}
	fail := func(kind error, text string) *Error { return &Error{Task: task, Kind: kind, Text: text} }
	switch {
	case strings.Contains(words, stackOverflow):
		return fail(ErrCrashed, "it crashed: it recurses without end (stack overflow)")
	case outOfMemoryPattern.MatchString(words):
		return fail(ErrMemory, l.memoryText())
	case signal != "" && cpu >= l.CPU/4*3: // the kernel counts by ticks when it ends a process
		return fail(ErrCPU, l.cpuText())
	case signal != "":
		return fail(ErrEndedOutside, fmt.Sprintf("it was ended from outside (signal %q): somebody stopped it, or the machine is short of "+
			"memory", signal))
	case words != "":
		return fail(ErrCrashed, "it crashed: "+wording.Clip(firstLines(words), maxShownText))
	case err != nil:
		return fail(ErrCrashed, "it crashed: "+wording.Clip(err.Error(), maxShownText))
	}
	return fail(ErrCrashed, "it ended without an answer")
}

func (l Limits) cpuText() string {
	return fmt.Sprintf("it needs more than %s of CPU time", l.CPU)
}

func (l Limits) memoryText() string {
	return fmt.Sprintf("it needs more than %s of memory", bytesText(l.Memory))
}

// firstLines are the lines that say what happened, without the traces after.
func firstLines(s string) string {
	s, _, _ = strings.Cut(s, "\n\n")
	return strings.Join(strings.Fields(s), " ")
}

func bytesText(n uint64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
