package emulator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// commit is a commit as it is shown to clients.
type commit struct {
	SHA, Tree               string
	Parents                 []string
	Author, Committer       gitIdent
	Message                 string
	Added, Removed, Changed []string // empty for a merge
}

// The separators of logFormat: bytes that no name, address or path can hold.
const (
	recordStart = "\x01"
	headerEnd   = "\x02"
	fieldSep    = "\x1f"
)

const logFormat = "%x01%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%cn%x1f%ce%x1f%ct%x1f%B%x02"

// namesCPU bounds the CPU time in which the files of commits are listed. Folders can repeat each
// other until there are too many to list, and forges leave out the rest too.
const namesCPU = 2 * time.Second

// readLog describes the commits that args select, in Git's order.
func (b *bareRepo) readLog(args ...string) ([]commit, error) {
	log := []string{"log", "-z", "--root", "--no-renames", "--format=tformat:" + logFormat}
	cmd := proc.Command{Program: "git", Args: slices.Concat(log, []string{"--name-status"}, args), Dir: b.dir, Env: gitEnv(b.dir)}
	if proc.CanLimit() {
		cmd.Limits.CPU = namesCPU
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	res, err := proc.Run(ctx, cmd)
	out := string(res.Stdout)
	if err != nil && exitCode(err) < 0 { // it was ended
		out, err = b.runGit(slices.Concat(log, args)...)
	}
	if err != nil {
		return nil, err
	}
	var commits []commit
	for i, record := range strings.Split(out, recordStart) {
		if i == 0 {
			continue
		}
		c, err := parseCommit(record)
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// readCommit describes one commit.
func (b *bareRepo) readCommit(sha string) (commit, error) {
	commits, err := b.readLog("-1", "--end-of-options", sha)
	if err != nil {
		return commit{}, err
	}
	if len(commits) != 1 {
		return commit{}, fmt.Errorf("commit %s: %w", sha, errNoObject)
	}
	return commits[0], nil
}

func parseCommit(record string) (commit, error) {
	header, files, ok := strings.Cut(record, headerEnd)
	f := strings.SplitN(header, fieldSep, 10)
	if !ok || len(f) != 10 {
		return commit{}, fmt.Errorf("git log printed a record that can't be read: %q", header)
	}
	c := commit{
		SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]),
		Author:    gitIdent{Name: f[3], Email: f[4], When: unixTime(f[5])},
		Committer: gitIdent{Name: f[6], Email: f[7], When: unixTime(f[8])},
		Message:   strings.TrimRight(f[9], "\n"),
	}
	fields := strings.Split(files, "\x00")
	for i := 0; i+1 < len(fields); {
		status := strings.TrimSpace(fields[i])
		if status == "" { // the end of the message's line
			i++
			continue
		}
		path := fields[i+1]
		switch status[0] {
		case 'A':
			c.Added = append(c.Added, path)
		case 'D':
			c.Removed = append(c.Removed, path)
		default:
			c.Changed = append(c.Changed, path)
		}
		i += 2
	}
	return c, nil
}

func unixTime(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{} // Git prints a number; a broken commit object has none
	}
	return time.Unix(n, 0).UTC()
}
