package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// PathsChanged lists, for each of some commits, the paths that it changed of its
// first parent's files (all its files where it has no parent), in git's order. It
// asks git once for all of them. ErrUnknownCommit when the repository lacks a
// commit or its parent, as a shallow clone does.
func (r *repository) PathsChanged(ctx context.Context, commits []CommitInfo) ([][]string, error) {
	for i := range commits {
		if err := r.requireCommits(ctx, commits[i].SHA); err != nil {
			return nil, err
		}
		if len(commits[i].Parents) > 0 {
			if err := r.requireCommits(ctx, commits[i].Parents[0]); err != nil {
				return nil, err
			}
		}
	}
	if len(commits) == 0 {
		return [][]string{}, nil
	}
	return r.engine.listChangedPaths(ctx, commits)
}

func (p *programs) listChangedPaths(ctx context.Context, commits []CommitInfo) ([][]string, error) {
	out := make([][]string, len(commits))
	at := make(map[string]int, len(commits))
	var input bytes.Buffer
	for i := range commits {
		line := []string{commits[i].SHA}
		if len(commits[i].Parents) > 0 {
			line = append(line, commits[i].Parents[0])
		}
		at[commits[i].SHA] = i
		input.WriteString(strings.Join(line, " ") + "\n")
	}
	c := p.gitCommand("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv")
	c.Stdin = input.Bytes()
	text, err := p.runGit(ctx, c)
	if err != nil {
		return nil, p.localError(fmt.Sprintf("list what %d commits changed", len(commits)), err)
	}
	// "<commit>\0:100644 100644 <id> <id> M\0path\0:…", repeated.
	fields := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	commit := -1
	for i := 0; i < len(fields); i++ {
		if strings.HasPrefix(fields[i], ":") {
			if i+1 == len(fields) || commit < 0 {
				return nil, errors.New("list what commits changed: git diff-tree's answer is cut off")
			}
			i++
			out[commit] = append(out[commit], fields[i])
			continue
		}
		n, ok := at[strings.TrimSpace(fields[i])]
		if !ok && fields[i] != "" {
			return nil, fmt.Errorf("list what commits changed: git diff-tree answers %q", shortenForLog(fields[i]))
		}
		commit = n
	}
	return out, nil
}
