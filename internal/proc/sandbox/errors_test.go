package sandbox

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// TestLastWords are ends that come too rarely to be waited for.
func TestLastWords(t *testing.T) {
	t.Parallel()
	limits := Limits{Memory: 256 << 20, CPU: time.Minute}
	for name, tc := range map[string]struct {
		words string
		kind  error
	}{
		"the collector got no memory": {"SIGSEGV: segmentation violation\nPC=0x4391bd m=7 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0xc0", ErrMemory},
		"a fault elsewhere":           {"SIGSEGV: segmentation violation\nPC=0x4391bd m=7 sigcode=1 addr=0xdeadbeef\n\ngoroutine 0 gp=0xc0", ErrCrashed},
		"a program's nil":             {"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]", ErrCrashed},
		"no thread":                   {"runtime: failed to create new OS thread (have 9 already; errno=11)", ErrMemory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := limits.explainExit("rogue", &proc.Error{StderrHead: tc.words}, 0); !errors.Is(got, tc.kind) {
				t.Errorf("got %v, want %v", got, tc.kind)
			}
		})
	}
}
