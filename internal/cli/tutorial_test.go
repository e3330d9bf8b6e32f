//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/walkthrough"
)

// These stand before a block of the tutorial that isn't simply run.
const (
	ownTerminal = "a terminal of its own" // it runs until the end
	untilPrints = "until it prints this"  // a reader runs it again until it does
)

// tutorialShell is the reader's first terminal.
type tutorialShell struct {
	*walkthrough.Shell
	t *testing.T
}

func newTutorialShell(t *testing.T) *tutorialShell {
	s, err := walkthrough.NewShell(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &tutorialShell{s, t}
}

// startTerminal runs commands in the folder tutorial until the test ends, and gives what they
// have printed so far.
func (t *tutorialShell) startTerminal(commands string) (printed func() string) {
	var mu sync.Mutex
	var out bytes.Buffer
	c := t.Command(t.t.Context(), "cd begin/tutorial\n"+commands)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }
	c.WaitDelay = 10 * time.Second
	w := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(p)
	})
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.t.Fatal(err)
	}
	printed = func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	t.t.Cleanup(func() {
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) { // Ctrl-C ends it, well or not
			t.t.Errorf("the terminal of %q: %v", commands, err)
		}
		if t.t.Failed() {
			t.t.Logf("the terminal of %q printed:\n%s", commands, printed())
		}
	})
	return printed
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// tutorialPatience is how long a step may take that others work on, on a machine where
// everything else is tested at the same time.
const tutorialPatience = 2 * time.Minute

// poll looks until a condition holds.
func (t *tutorialShell) poll(holds func() bool) bool {
	deadline, tick := time.NewTimer(tutorialPatience), time.NewTicker(200*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			return false
		case <-tick.C:
		}
	}
	return true
}

// TestTutorial does what the tutorial says, from an empty folder, and holds that everything
// prints what the page shows. In short form it ends before the server, which is what takes time.
func TestTutorial(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("a reader of the tutorial has %s: %v", program, err)
		}
	}
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if testing.Short() {
		var found bool
		if text, _, found = strings.Cut(text, "\n## 4. The server\n"); !found {
			t.Fatal("the page has no part about the server")
		}
	}
	blocks, err := walkthrough.Parse(text)
	if err != nil {
		t.Fatalf("docs/tutorial.md: %v", err)
	}
	s := newTutorialShell(t)
	for _, b := range blocks {
		var printed string
		var err error
		wants := walkthrough.PrintsPattern(b.Prints)
		matches := func() bool {
			printed, err = s.Run(t.Context(), b.Text)
			return err == nil && wants.MatchString(printed)
		}
		ok := false
		switch b.Directive {
		case ownTerminal:
			wants = walkthrough.PrintsPattern("…\n" + b.Prints + "…\n")
			soFar := s.startTerminal(b.Text)
			ok = s.poll(func() bool {
				printed = soFar()
				return wants.MatchString(printed)
			})
		case untilPrints:
			ok = s.poll(matches)
		case "":
			ok = b.File == "" && matches() // it shows files as commands that write them
		}
		if !ok {
			t.Fatalf("docs/tutorial.md:%d: these commands\n%s\nend with %v and print\n%s\nnot\n%s", b.Line, b.Text, err, printed, b.Prints)
		}
	}
}
