//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What stands before a block of the tutorial that isn't simply run.
const (
	ownTerminal = "<!-- a terminal of its own -->" // it runs until the end
	untilPrints = "<!-- until it prints this -->"  // a reader runs it again until it does
)

// tutorialBlock is one block of commands.
type tutorialBlock struct {
	line      int    // of the page, where its commands begin
	commands  string // a shell's
	prints    string // … stands for anything in a line and, alone in one, for any lines
	directive string // ownTerminal, untilPrints or none
}

// parseTutorial cuts a page into its blocks: what follows ```sh is run, and prints what the
// ```text after it has, or nothing. Any other block is refused: it would be checked by nobody.
func parseTutorial(page string) ([]tutorialBlock, error) {
	var out []tutorialBlock
	lines := strings.Split(page, "\n")
	directive := ""
	for i := 0; i < len(lines); i++ {
		switch lines[i] {
		case ownTerminal, untilPrints:
			directive = lines[i]
		case "":
		case "```sh", "```text":
			end := i + 1
			for end < len(lines) && lines[end] != "```" {
				end++
			}
			if end == len(lines) {
				return nil, fmt.Errorf("line %d: the block has no end", i+1)
			}
			text := strings.Join(lines[i+1:end], "\n") + "\n"
			if lines[i] == "```sh" {
				out = append(out, tutorialBlock{line: i + 2, commands: text, directive: directive})
			} else if len(out) == 0 || out[len(out)-1].prints != "" {
				return nil, fmt.Errorf("line %d: no commands have printed this", i+1)
			} else {
				out[len(out)-1].prints = text
			}
			i, directive = end, ""
		default:
			if strings.HasPrefix(lines[i], "```") {
				return nil, fmt.Errorf("line %d: a block is sh or text, not %q", i+1, lines[i])
			}
			directive = ""
		}
	}
	return out, nil
}

// printsPattern matches what a block prints.
func printsPattern(prints string) *regexp.Regexp {
	var b strings.Builder
	for line := range strings.Lines(prints) {
		if line = strings.TrimRight(line, "\n"); line == "…" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		b.WriteString(strings.Join(parts, ".*") + " *\n")
	}
	return regexp.MustCompile(`^` + b.String() + `$`)
}

// tutorialShell is the reader's first terminal: each block is a shell of its own, which has
// the folder and the exported variables of the one before.
type tutorialShell struct {
	t    *testing.T
	home string
}

// newTutorialShell opens it in an empty folder, without anything of the machine's git.
func newTutorialShell(t *testing.T) *tutorialShell {
	s := &tutorialShell{t: t, home: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.home, "begin"), 0o750); err != nil {
		t.Fatal(err)
	}
	s.remember(filepath.Join(s.home, "begin"), "")
	return s
}

func (s *tutorialShell) remember(folder, exports string) {
	s.t.Helper()
	for name, text := range map[string]string{"folder": folder, "exports": exports} {
		if err := os.WriteFile(filepath.Join(s.home, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *tutorialShell) command(script string) *exec.Cmd {
	c := exec.CommandContext(s.t.Context(), "bash", "--noprofile", "--norc", "-e", "-u", "-o", "pipefail", "-c", script)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8"}
	return c
}

// run runs commands and gives what they print, of both streams; its last line is ended.
func (s *tutorialShell) run(commands string) (string, error) {
	c := s.command(fmt.Sprintf("source %[1]s/exports; cd \"$(cat %[1]s/folder)\"\n%[2]s\nexport -p > %[1]s/exports; pwd > %[1]s/folder\n", s.home, commands))
	out, err := c.CombinedOutput()
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	return string(out), err
}

// startTerminal runs commands in the folder tutorial until the test ends, and gives what they
// have printed so far.
func (s *tutorialShell) startTerminal(commands string) (printed func() string) {
	var mu sync.Mutex
	var out bytes.Buffer
	c := s.command("cd begin/tutorial\n" + commands)
	c.Dir = s.home
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
		s.t.Fatal(err)
	}
	printed = func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	s.t.Cleanup(func() {
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) { // Ctrl-C ends it, well or not
			s.t.Errorf("the terminal of %q: %v", commands, err)
		}
		if s.t.Failed() {
			s.t.Logf("the terminal of %q printed:\n%s", commands, printed())
		}
	})
	return printed
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// tutorialPatience is how long a step may take that others work on, on a machine where
// everything else is tested at the same time.
const tutorialPatience = 2 * time.Minute

// poll looks until a condition holds.
func (s *tutorialShell) poll(holds func() bool) bool {
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
	blocks, err := parseTutorial(text)
	if err != nil {
		t.Fatalf("docs/tutorial.md: %v", err)
	}
	s := newTutorialShell(t)
	for _, b := range blocks {
		var printed string
		var err error
		wants := printsPattern(b.prints)
		matches := func() bool {
			printed, err = s.run(b.commands)
			return err == nil && wants.MatchString(printed)
		}
		ok := false
		switch b.directive {
		case ownTerminal:
			wants = printsPattern("…\n" + b.prints + "…\n")
			soFar := s.startTerminal(b.commands)
			ok = s.poll(func() bool {
				printed = soFar()
				return wants.MatchString(printed)
			})
		case untilPrints:
			ok = s.poll(matches)
		default:
			ok = matches()
		}
		if !ok {
			t.Fatalf("docs/tutorial.md:%d: these commands\n%s\nend with %v and print\n%s\nnot\n%s", b.line, b.commands, err, printed, b.prints)
		}
	}
}

func TestParseTutorial(t *testing.T) {
	for name, page := range map[string]string{
		"a block that nobody checks":       "```console\n$ true\n```\n",
		"output of no command":             "```text\nok\n```\n",
		"two outputs of one command":       "```sh\ntrue\n```\n```text\nok\n```\n```text\nok\n```\n",
		"a block without an end":           "```sh\ntrue\n",
		"a block in a language of its own": "```yaml\na: b\n```\n",
	} {
		if blocks, err := parseTutorial(page); err == nil {
			t.Errorf("%s is read as %+v", name, blocks)
		}
	}
	pattern := printsPattern("at 127.0.0.1:…\n…\nend\n")
	for printed, want := range map[string]bool{
		"at 127.0.0.1:1234\nend\n": true, "at 127.0.0.1:1\none\ntwo\nend\n": true,
		"at 127.0.0.1:1\nend": false, "at 127.0.0.2:1\nend\n": false, "at 127.0.0.1:1\nend\nmore\n": false,
	} {
		if got := pattern.MatchString(printed); got != want {
			t.Errorf("%q matches: %t", printed, got)
		}
	}
}
