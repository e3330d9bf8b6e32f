//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gitClone is a story's own clone, in which people edit and everything is looked up.
type gitClone struct {
	dir string
	url string
}

// runGit runs one command in the clone, as a person where the remote is concerned.
func (c *gitClone) runGit(ctx context.Context, as *account, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if as != nil {
		basic := base64.StdEncoding.EncodeToString([]byte(as.login + ":" + as.token))
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic,
			"GIT_AUTHOR_NAME="+as.login, "GIT_AUTHOR_EMAIL="+as.email, "GIT_COMMITTER_NAME="+as.login, "GIT_COMMITTER_EMAIL="+as.email)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// edit is what happens to a file's content; a file that isn't there is empty.
type edit func(string) string

// push commits the edits on top of a branch of the remote and pushes them to
// another (or the same), again if somebody else was faster. It returns the commit.
func (c *gitClone) push(ctx context.Context, as *account, from, to, message string, edits map[string]edit) (string, error) {
	var last error
	for range 10 {
		commit, err := c.pushOnce(ctx, as, from, to, message, edits)
		if err == nil {
			return commit, nil
		}
		if last = err; !strings.Contains(err.Error(), "rejected") {
			break
		}
	}
	return "", last
}

func (c *gitClone) pushOnce(ctx context.Context, as *account, from, to, message string, edits map[string]edit) (string, error) {
	for _, args := range [][]string{{"fetch", "-q", "origin"}, {"checkout", "-q", "--detach", "origin/" + from}} {
		if _, err := c.runGit(ctx, as, args...); err != nil {
			return "", err
		}
	}
	return c.commitAndPush(ctx, as, "origin", to, message, edits)
}

// commitAndPush commits the edits on what is checked out, and pushes that.
func (c *gitClone) commitAndPush(ctx context.Context, as *account, remote, to, message string, edits map[string]edit) (string, error) {
	for name, change := range edits {
		path := filepath.Join(c.dir, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(change(string(old))), 0o600); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}, {"push", "-q", remote, "HEAD:refs/heads/" + to}} {
		if _, err := c.runGit(ctx, as, args...); err != nil {
			return "", err
		}
	}
	out, err := c.runGit(ctx, as, "rev-parse", "HEAD")
	return strings.TrimSpace(out), err
}

// readFile is a file's content at a revision of the remote, fetched just now.
func (c *gitClone) readFile(ctx context.Context, as *account, revision, file string) (string, error) {
	if _, err := c.runGit(ctx, as, "fetch", "-q", "origin"); err != nil {
		return "", err
	}
	return c.runGit(ctx, as, "show", revision+":"+file)
}

// fileDiff is one file's line of `git diff --numstat`.
type fileDiff struct {
	file           string
	added, removed int
}

// diffStat is what changed between two commits, file by file.
func (c *gitClone) diffStat(ctx context.Context, as *account, a, b string) ([]fileDiff, error) {
	if _, err := c.runGit(ctx, as, "fetch", "-q", "origin"); err != nil {
		return nil, err
	}
	out, err := c.runGit(ctx, as, "diff", "--numstat", "--no-renames", "-z", a, b)
	if err != nil {
		return nil, err
	}
	var diffs []fileDiff
	for _, line := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		if line == "" {
			continue
		}
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("git diff --numstat: unexpected line %q", line)
		}
		added, err1 := strconv.Atoi(f[0])
		removed, err2 := strconv.Atoi(f[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("git diff --numstat: line %q: %w", line, err)
		}
		diffs = append(diffs, fileDiff{file: f[2], added: added, removed: removed})
	}
	return diffs, nil
}
