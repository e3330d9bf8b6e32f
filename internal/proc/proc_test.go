package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// shellCommand is a command that runs a script; only tests use a shell.
func shellCommand(script string) Command { return Command{Program: "sh", Args: []string{"-c", script}} }

// eventually waits for a condition of the operating system.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
		runtime.Gosched()
	}
}

// hasExited says whether a process has ended; an orphan may stay a zombie where
// nobody collects it.
func hasExited(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		c        Command
		stdout   string
		exitCode int
		in       []string // the error's text; none: no error
	}{
		"success":            {c: shellCommand("echo out; echo err >&2"), stdout: "out\n"},
		"working directory":  {c: Command{Program: "pwd", Args: []string{"-P"}, Dir: dir}, stdout: mustReal(t, dir) + "\n"},
		"input":              {c: Command{Program: "cat", Stdin: []byte("hello")}, stdout: "hello"},
		"input nobody reads": {c: Command{Program: "true", Stdin: make([]byte, 1<<20)}},
		"no input":           {c: Command{Program: "cat"}},
		"failure":            {c: shellCommand("echo out; echo broken >&2; exit 7"), stdout: "out\n", exitCode: 7, in: []string{"sh -c", "exit code 7", "broken"}},
		"signal":             {c: shellCommand("kill -9 $$"), exitCode: -1, in: []string{"ended by signal killed"}},
		"no such program":    {c: Command{Program: "liftlock-no-such-program"}, exitCode: -1, in: []string{"liftlock-no-such-program", "not found"}},
		"many arguments":     {c: Command{Program: "false", Args: strings.Fields("1 2 3 4 5 6 7 8 9")}, exitCode: 1, in: []string{"false 1 2 3 4 5 6 …: exit code 1"}},
		"no shell":           {c: Command{Program: "echo", Args: []string{"$HOME; `id`"}}, stdout: "$HOME; `id`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), tc.c)
			if string(r.Stdout) != tc.stdout {
				t.Errorf("stdout %q, want %q", r.Stdout, tc.stdout)
			}
			if len(tc.in) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var pe *Error
			if !errors.As(err, &pe) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if pe.ExitCode != tc.exitCode {
				t.Errorf("exit code %d, want %d", pe.ExitCode, tc.exitCode)
			}
			for _, s := range tc.in {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
	if _, err := Run(t.Context(), Command{Program: "liftlock-no-such-program"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program is %v", err)
	}
}

func mustReal(t *testing.T, dir string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestEnvironmentIsScrubbed(t *testing.T) {
	t.Setenv("LIFTLOCK_TOKEN", "s3cret-token")
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("LANG", "de_DE.UTF-8")
	t.Setenv("LIFTLOCK_ASKED_FOR", "yes")
	t.Setenv("NO_PROXY", "localhost")
	r, err := Run(t.Context(), Command{Program: "env", Env: []string{"ADDED=1", "NO_PROXY=mine"}, Inherit: []string{"LIFTLOCK_ASKED_FOR"}})
	if err != nil {
		t.Fatal(err)
	}
	out := "\n" + string(r.Stdout)
	for _, want := range []string{"ADDED=1", "LC_ALL=C", "LIFTLOCK_ASKED_FOR=yes", "NO_PROXY=mine", "PATH=" + os.Getenv("PATH")} {
		if !strings.Contains(out, "\n"+want+"\n") {
			t.Errorf("%s is missing in:%s", want, out)
		}
	}
	for _, not := range []string{"LIFTLOCK_TOKEN", "GIT_DIR", "LANG=", "NO_PROXY=localhost"} {
		if strings.Contains(out, "\n"+not) {
			t.Errorf("%s came through:%s", not, out)
		}
	}
}

func TestAlone(t *testing.T) {
	t.Setenv("LIFTLOCK_ASKED_FOR", "yes")
	for want, env := range map[string][]string{"": nil, "ADDED=1\n": {"ADDED=1"}} {
		program, err := exec.LookPath("env")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), Command{Program: program, OnlyEnv: true, Env: env, Inherit: []string{"LIFTLOCK_ASKED_FOR"}})
		if err != nil || string(r.Stdout) != want {
			t.Errorf("%q, %v; want %q", r.Stdout, err, want)
		}
	}
}

func TestDeadlineEndsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, shellCommand("sleep 1000 & echo $! > "+pidFile+".new; mv "+pidFile+".new "+pidFile+"; wait"))
		done <- err
	}()
	var pid string
	eventually(t, "the child writes its child's number", func() bool {
		data, err := os.ReadFile(pidFile)
		pid = strings.TrimSpace(string(data))
		return err == nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	eventually(t, "the grandchild ends", func() bool { return hasExited(pid) })
}

func TestGraceLetsAProgramCleanUp(t *testing.T) {
	for name, tc := range map[string]struct {
		script  string
		cleaned bool
	}{
		"it cleans up":       {script: `trap 'echo bye > "$1"; exit 1' TERM; echo > "$0"; while :; do sleep 0.01; done`, cleaned: true},
		"it ignores SIGTERM": {script: `trap '' TERM; echo > "$0"; while :; do sleep 0.01; done`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ready, bye := filepath.Join(dir, "ready"), filepath.Join(dir, "bye")
			c := Command{Program: "sh", Args: []string{"-c", tc.script, ready, bye}, Grace: 5 * time.Second}
			if !tc.cleaned {
				c.Grace = 50 * time.Millisecond
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := Run(ctx, c)
				done <- err
			}()
			eventually(t, "the program is ready", func() bool { _, err := os.Stat(ready); return err == nil })
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			if _, err := os.Stat(bye); (err == nil) != tc.cleaned {
				t.Errorf("cleaned up: %v", err == nil)
			}
		})
	}
}

func TestContextThatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Command{Program: "true"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	for name, c := range map[string]Command{
		"endless":           {Program: "yes", MaxStdout: 1000},
		"one byte too many": {Program: "printf", Args: []string{"%01001d", "0"}, MaxStdout: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), c)
			if !errors.Is(err, ErrTooMuchOutput) {
				t.Fatalf("got %v", err)
			}
			if len(r.Stdout) != 1000 {
				t.Errorf("%d bytes were kept", len(r.Stdout))
			}
		})
	}
	r, err := Run(t.Context(), Command{Program: "printf", Args: []string{"%01000d", "0"}, MaxStdout: 1000})
	if err != nil || len(r.Stdout) != 1000 {
		t.Errorf("exactly the limit: %d bytes, %v", len(r.Stdout), err)
	}
}

func TestStderrIsTheEndOfIt(t *testing.T) {
	r, err := Run(t.Context(), shellCommand("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&2; exit 1"))
	if len(r.Stderr) > maxStderr || !strings.HasSuffix(r.Stderr, "line 19999\n") || !strings.HasPrefix(r.Stderr, "line ") {
		t.Errorf("%d bytes: %.20q … %q", len(r.Stderr), r.Stderr, r.Stderr[len(r.Stderr)-20:])
	}
	if len(err.Error()) > shownStderr+200 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestProcess(t *testing.T) {
	p, err := Start(t.Context(), Command{Program: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(p.Stdin, word); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.Stdout, buf); err != nil || string(buf) != word {
			t.Fatalf("%q, %v", buf, err)
		}
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("the second Wait: %v", err)
	}
	if p.CPU() <= 0 {
		t.Errorf("it took %s of CPU time", p.CPU())
	}
	p.Kill() // after the end: nothing
}

func TestProcessFails(t *testing.T) {
	p, err := Start(t.Context(), shellCommand("echo wrong >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	var pe *Error
	if err := p.Wait(); !errors.As(err, &pe) || pe.ExitCode != 3 || pe.Stderr != "wrong" {
		t.Fatalf("got %v", err)
	}
}

func TestProcessThatWritesEndlesslyEnds(t *testing.T) {
	for name, end := range map[string]func(p *Process, cancel func()){
		"killed":   func(p *Process, _ func()) { p.End() },
		"canceled": func(p *Process, cancel func()) { cancel(); _ = p.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := Start(ctx, Command{Program: "yes"})
			if err != nil {
				t.Fatal(err)
			}
			end(p, cancel)
			if err := p.Wait(); err == nil {
				t.Error("it ended well")
			}
		})
	}
}

func TestStartRefusesInvalidCommands(t *testing.T) {
	if _, err := Start(t.Context(), Command{Program: "cat", Stdin: []byte("x")}); err == nil {
		t.Error("a piped program took Stdin")
	}
	if _, err := Start(t.Context(), Command{Program: "liftlock-no-such-program"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing program is %v", err)
	}
}

func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := Run(t.Context(), Command{Program: "true", Limits: Limits{Files: 1}}); err == nil {
			t.Fatal("a limit that can't be held was accepted")
		}
		t.Skip("resource limits exist on Linux only")
	}
	t.Run("in force before the first input", func(t *testing.T) {
		c := shellCommand("read x; ulimit -n; ulimit -f; ulimit -t; ulimit -d")
		c.Stdin = []byte("go\n")
		c.Limits = Limits{Files: 33, Size: 512 * 10, CPU: 1500 * time.Millisecond, Data: 64 << 20}
		r, err := Run(t.Context(), c)
		if want := "33\n10\n2\n65536\n"; err != nil || string(r.Stdout) != want {
			t.Fatalf("%q, %v; want %q", r.Stdout, err, want)
		}
	})
	t.Run("memory", func(t *testing.T) {
		// dd allocates one block of the size that it is told.
		c := shellCommand("read size; exec dd if=/dev/zero of=/dev/null count=1 bs=$size")
		c.Limits = Limits{Data: 64 << 20}
		c.Stdin = []byte("256M\n")
		if r, err := Run(t.Context(), c); err == nil || !strings.Contains(r.Stderr, "memory") {
			t.Fatalf("got %v", err)
		}
		c.Stdin = []byte("16M\n")
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("CPU time", func(t *testing.T) {
		var pe *Error
		if _, err := Run(t.Context(), Command{Program: "sh", Args: []string{"-c", "while :; do :; done"}, Limits: Limits{CPU: time.Second}}); !errors.As(err, &pe) || pe.Signal == "" {
			t.Fatalf("got %v", err)
		}
	})
}
