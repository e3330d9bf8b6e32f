package walkthrough

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Shell is a reader's terminal: what Run runs has the folder and the exported variables of
// what it ran before. It isn't for several goroutines.
type Shell struct {
	// Home is the reader's home. The first commands run in its empty folder begin.
	Home string
	env  []string
}

// NewShell makes the folder begin in home. Commands have of the machine only the PATH and these
// variables, as KEY=value, and nothing of its git.
func NewShell(home string, env ...string) (*Shell, error) {
	s := &Shell{Home: home, env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"LC_ALL=C.UTF-8"}, env...)}
	begin := filepath.Join(home, "begin")
	if err := os.Mkdir(begin, 0o750); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"folder": begin, "exports": ""} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Command is a script for bash that ends with the first command that fails.
func (s *Shell) Command(ctx context.Context, script string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-e", "-u", "-o", "pipefail", "-c", script)
	c.Dir, c.Env = s.Home, s.env
	return c
}

// Run runs commands and gives what they print, of both streams; its last line is ended.
func (s *Shell) Run(ctx context.Context, commands string) (string, error) {
	c := s.Command(ctx, fmt.Sprintf("source %[1]s/exports; cd \"$(cat %[1]s/folder)\"\n%[2]s\nexport -p > %[1]s/exports; pwd > "+
		"%[1]s/folder\n", s.Home, commands))
	out, err := c.CombinedOutput()
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	return string(out), err
}

// Folder is where the next commands run.
func (s *Shell) Folder() (string, error) {
	folder, err := os.ReadFile(filepath.Join(s.Home, "folder"))
	return string(bytes.TrimSpace(folder)), err
}
